"""Decoding token by token: the same layers, with what is the same for every token looked up beforehand.

A step of one token is so small that module calls, masks and position angles cost more than its products. Here weights
are bound once, positions come from tables, and keys and values are written where they stay. What a layer does is said
in `engine.model.layers` and `engine.model.heads`; tests hold every network's steps against its full pass.
Notation: B rows, D model width, H heads, Hkv key/value heads, Dh head width, V vocabulary.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.model.cache import KeyValueCache
from engine.model.heads import SoftmaxSelfAttention, for_each_query
from engine.model.layers import FeedForward, Layer, around
from engine.model.positions import PositionScheme
from engine.model.transformer import DecoderLM

Map = Callable[[Tensor], Tensor]


class Decoding:
    """A decoder that writes B rows of equal length.

    Args:
        model: in evaluation mode.
        room: tokens that memory and tables are made for at first; more may come.
    """

    def __init__(self, model: DecoderLM, room: int) -> None:
        self.model, self.cache = model, model.new_cache(room)
        self._room = room
        self._steps = None if model.training else _Steps.of(self)

    @property
    def length(self) -> int:
        """Tokens so far."""
        return self.cache.length

    def feed(self, tokens: Tensor) -> Tensor:
        """(B, T) new tokens → (B, V) logits of the token after them.

        Raises:
            ValueError: a position past the learned table.
        """
        if self._steps is not None and tokens.shape[1] == 1 and self.cache.length:
            return self._steps.take(tokens)
        logits: Tensor = self.model.head(self.model.hidden(tokens, cache=self.cache)[:, -1])
        return logits


class _Now:
    """What all layers of one step share."""

    at: Tensor  # (1, 1) the token's position
    bias: Tensor  # (1, H, 1, room) what is added to the scores; the last entry is the token's own


class _Steps:
    """Steps of one token."""

    def __init__(self, decoding: Decoding) -> None:
        model = decoding.model
        self._model, self._cache, self._now = model, decoding.cache, _Now()
        self._scheme = next(part.scheme for part in model.modules() if isinstance(part, SoftmaxSelfAttention))
        self._layers = [
            _layer(layer, state, self._now)
            for layer, state in zip(model.layers, decoding.cache.layers, strict=True)
            if isinstance(layer, Layer) and isinstance(state, KeyValueCache)
        ]
        self._final_norm, self._head = _norm(model.final_norm), _linear(model.head)
        self._embedding = model.token_embedding.weight
        self._scale = math.sqrt(model.config.d_model) if model.config.embedding_scale else None
        self._tables(decoding._room)

    @classmethod
    def of(cls, decoding: Decoding) -> "_Steps | None":
        """None where a layer needs more than the keys that its window shows and a bias by distance."""
        parts = [layer.get_submodule("attention") for layer in decoding.model.layers]
        simple = all(
            isinstance(part, SoftmaxSelfAttention)
            and part.see.link_every is None
            and part.backend in ("auto", "sdpa")
            and type(part.scheme).content is PositionScheme.content
            for part in parts
        )
        return cls(decoding) if simple else None

    def _tables(self, room: int) -> None:
        """Positions for `room` tokens: what is added to embeddings, and to scores by distance."""
        weight, longest = self._embedding, self._model.positions.longest
        self._room = room
        self._numbers = torch.arange(room, device=weight.device)[None]
        table = self._model.positions.embed(self._numbers[:, :longest])
        self._rows = None if table is None else table[0].to(weight.dtype)
        bias = self._scheme.bias(self._numbers[:, -1:], self._numbers)
        self._now.bias = torch.empty(0) if bias is None else bias.to(weight.dtype)

    def take(self, tokens: Tensor) -> Tensor:
        """(B, 1) → (B, V)."""
        at = self._cache.length
        self._model.check_positions(at + 1)
        if at >= self._room:
            self._tables(2 * at)
        self._now.at = self._numbers[:, at : at + 1]
        x = F.embedding(tokens[:, 0], self._embedding)
        if self._scale is not None:
            x = x * self._scale
        if self._rows is not None:
            x = x + self._rows[at]
        for layer in self._layers:
            x = layer(x)
        self._cache.length = at + 1
        return self._head(self._final_norm(x))


def _linear(part: nn.Linear) -> Map:
    weight, bias = part.weight, part.bias
    return lambda x: F.linear(x, weight, bias)


def _norm(part: nn.Module) -> Map:
    if isinstance(part, nn.LayerNorm):
        shape, weight, bias, eps = part.normalized_shape, part.weight, part.bias, part.eps
        return lambda x: torch.layer_norm(x, shape, weight, bias, eps)
    return part.forward


def _layer(layer: Layer, state: KeyValueCache, now: _Now) -> Map:
    attention, feed_forward = layer.get_submodule("attention"), layer.feed_forward
    assert isinstance(attention, SoftmaxSelfAttention)
    first, second = _norm(layer.attention_norm), _norm(layer.feed_forward_norm)
    attend, apply = _attention(attention, state, now), _feed_forward(feed_forward)
    pre_norm, residual = layer.pre_norm, layer.residual

    def step(x: Tensor) -> Tensor:  # (B, D) → (B, D)
        x = around(x, first, attend, pre_norm=pre_norm, residual=residual)
        return around(x, second, apply, pre_norm=pre_norm, residual=residual)

    return step


def _feed_forward(part: FeedForward) -> Map:
    expand, activation, output = _linear(part.expand), part.activation, _linear(part.output)
    return lambda x: output(activation(expand(x)))


def _attention(part: SoftmaxSelfAttention, state: KeyValueCache, now: _Now) -> Map:
    project, output = _linear(part.query_key_value), _linear(part.output)
    n_heads, width, window, scheme = part.n_heads, part.head_width, part.see.window, part.scheme
    turned = n_heads + part.widths[1] // width  # queries and keys
    rotates = type(scheme).rotate is not PositionScheme.rotate
    shared_keys, biased = part.widths[1] != part.widths[0], type(scheme).bias is not PositionScheme.bias

    def attend(x: Tensor) -> Tensor:  # (B, D) → (B, D)
        heads = project(x).view(x.shape[0], -1, 1, width)  # (B, H + 2 Hkv, 1, Dh)
        if rotates:
            heads = torch.cat((scheme.rotate(heads[:, :turned], now.at), heads[:, turned:]), dim=1)
        k, v = state.append(heads[:, n_heads:], window)
        if shared_keys:
            k, v = for_each_query(k, n_heads), for_each_query(v, n_heads)
        bias = now.bias[..., -k.shape[2] :] if biased else None
        mixed = F.scaled_dot_product_attention(heads[:, :n_heads], k, v, attn_mask=bias, scale=scheme.scale)
        return output(mixed.reshape(x.shape))

    return attend
