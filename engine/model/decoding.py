"""Decoding token by token: the same layers, with what is the same for every token looked up beforehand.

A step of one token is so small that module calls, masks and position angles cost more than its products. Here weights
are bound once, positions come from tables, and keys and values are written where they stay. What a layer does is said
in `engine.model.layers` and `engine.model.heads`; tests hold every network's steps against its full pass.
Notation: B rows, D model width, H heads, Hkv key/value heads, Dh head width, V vocabulary.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.model.cache import KeyValueCache
from engine.model.heads import SoftmaxSelfAttention, for_each_query
from engine.model.layers import FeedForward, Layer, around
from engine.model.positions import PositionScheme
from engine.model.transformer import DecoderLM

Map = Callable[[Tensor], Tensor]
Remember = Callable[[Tensor], tuple[Tensor, Tensor, Tensor | None]]  # a token's keys and values → all it sees, and bias


class Decoding:
    """A decoder that writes B rows of equal length.

    Args:
        model: in evaluation mode.
        capacity: tokens that memory and tables are made for at first; more may come.
        fixed: steps of one shape, over the whole capacity every time, which CUDA replays as one graph. Its memory is
            not in `cache` then, except for the length: rows cannot be reordered. Ignored where a layer is not simple.
    """

    def __init__(self, model: DecoderLM, capacity: int, *, fixed: bool = False) -> None:
        self.model, self.cache = model, model.new_cache(capacity)
        self._capacity = capacity
        kind = _FixedSteps if fixed else _Steps
        self._steps = kind(self) if not model.training and simple(model) else None

    @property
    def length(self) -> int:
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


class _SharedByLayers:
    """The position and bias that all layers of one step share."""

    at: Tensor  # (1, 1) the token's position
    bias: Tensor | None  # (1, H, 1, capacity) what is added to the scores; the last entry is the token's own


def simple(model: DecoderLM) -> bool:
    """Return whether layers need no more than the keys that their window shows, and a bias by distance."""
    parts = [layer.get_submodule("attention") for layer in model.layers]
    return all(
        isinstance(part, SoftmaxSelfAttention)
        and part.see.link_every is None
        and part.backend in ("auto", "sdpa")
        and type(part.scheme).content is PositionScheme.content
        for part in parts
    )


class _Steps:
    """Steps of one token."""

    def __init__(self, decoding: Decoding) -> None:
        model = decoding.model
        self._model, self._cache, self._shared = model, decoding.cache, _SharedByLayers()
        self._first = next(part for part in model.modules() if isinstance(part, SoftmaxSelfAttention))
        self._states = [state for state in decoding.cache.layers if isinstance(state, KeyValueCache)]
        self._layers = [
            _layer(layer, self._memory(state), self._shared)
            for layer, state in zip(model.layers, self._states, strict=True)
            if isinstance(layer, Layer)
        ]
        self._final_norm, self._head = _norm(model.final_norm), _linear(model.head)
        self._embedding = model.token_embedding.weight
        self._scale = math.sqrt(model.config.d_model) if model.config.embedding_scale else None
        self._tables(decoding._capacity)

    def _memory(self, state: KeyValueCache) -> Remember:
        shared, window = self._shared, self._first.see.window

        def remember(keys_values: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
            k, v = state.append(keys_values, window)
            return k, v, None if shared.bias is None else shared.bias[..., -k.shape[2] :]

        return remember

    def _tables(self, capacity: int) -> None:
        """Look up positions for `capacity` tokens: what is added to embeddings, and to scores by distance."""
        weight, longest = self._embedding, self._model.positions.longest
        self._capacity = capacity
        self._numbers = torch.arange(capacity, device=weight.device)[None]
        table = self._model.positions.embed(self._numbers[:, :longest])
        self._rows = None if table is None else table[0].to(weight.dtype)
        bias = self._first.scheme.bias(self._numbers[:, -1:], self._numbers)
        self._shared.bias = None if bias is None else bias.to(weight.dtype)

    def take(self, tokens: Tensor) -> Tensor:
        """(B, 1) → (B, V)."""
        at = self._cache.length
        self._model.check_positions(at + 1)
        if at >= self._capacity:
            self._tables(2 * at)
        self._shared.at = self._numbers[:, at : at + 1]
        logits = self._compute(tokens, None if self._rows is None else self._rows[at])
        self._cache.length = at + 1
        return logits

    def _compute(self, tokens: Tensor, row: Tensor | None) -> Tensor:
        x = F.embedding(tokens[:, 0], self._embedding)
        if self._scale is not None:
            x = x * self._scale
        if row is not None:
            x = x + row
        for layer in self._layers:
            x = layer(x)
        return self._head(self._final_norm(x))


@dataclass
class _Slots:
    """One layer's memory at its full size: (B, 2 Hkv, capacity, Dh), keys first; unwritten slots are masked."""

    buffer: Tensor


class _FixedSteps(_Steps):
    """Steps of one shape: keys and values of the whole capacity, most of them masked; on CUDA replayed as one graph."""

    def __init__(self, decoding: Decoding) -> None:
        self._slots: list[_Slots] = []
        self._masks = torch.empty(0)
        self._inputs, self._at = torch.empty(0), torch.empty(0)
        self._replay: Callable[[], Tensor] | None = None
        super().__init__(decoding)

    def _memory(self, state: KeyValueCache) -> Remember:
        shared, slots = self._shared, _Slots(torch.empty(0))
        self._slots.append(slots)

        def remember(keys_values: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
            slots.buffer.index_copy_(2, shared.at[0], keys_values)
            k, v = slots.buffer.chunk(2, dim=1)
            return k, v, self._masks

        return remember

    def _tables(self, capacity: int) -> None:
        super()._tables(capacity)
        self._replay = None

    def take(self, tokens: Tensor) -> Tensor:
        at = self._cache.length
        self._model.check_positions(at + 1)
        if at >= self._capacity:
            self._tables(2 * at)
        if self._replay is None:
            self._inputs = tokens.clone()
            self._at = torch.full_like(self._numbers[:, :1], at)
            self._take_over(tokens.shape[0], at)
            self._replay = _recorded(self._whole) if tokens.is_cuda else self._whole
        self._inputs.copy_(tokens)
        self._at.fill_(at)
        logits = self._replay()
        self._cache.length = at + 1
        return logits.clone()

    def _take_over(self, rows: int, length: int) -> None:
        """Copy what was read before into the slots: from the prefill, or from smaller slots."""
        for slots, state in zip(self._slots, self._states, strict=True):
            old, start = (slots.buffer, 0) if slots.buffer.numel() else state.contents()
            slots.buffer = old.new_zeros(rows, old.shape[1], self._capacity, old.shape[3])
            slots.buffer[:, :, start : start + old.shape[2]] = old

    def _whole(self) -> Tensor:
        # A scheme may remember what it made of a tensor of positions, so each step's is a new one.
        at, numbers = self._at.clone(), self._numbers
        self._shared.at = at
        seen = self._first.see(at, numbers)[:, None, None]  # (1, 1, 1, capacity)
        bias = self._shared.bias
        if bias is None:
            bias = torch.zeros((), dtype=self._embedding.dtype, device=numbers.device)
        else:
            bias = bias.index_select(3, (self._capacity - 1 - at + numbers)[0].clamp(max=self._capacity - 1))
        self._masks = torch.where(seen, bias, -math.inf)
        return self._compute(self._inputs, None if self._rows is None else self._rows.index_select(0, at[0]))


def _recorded(compute: Callable[[], Tensor]) -> Callable[[], Tensor]:
    """Record `compute` as a CUDA graph, after the warm-up that recording needs: it runs a few times."""
    aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            compute()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        logits = compute()

    def replay() -> Tensor:
        graph.replay()
        return logits

    return replay


def _linear(part: nn.Linear) -> Map:
    weight, bias = part.weight, part.bias
    return lambda x: F.linear(x, weight, bias)


def _norm(part: nn.Module) -> Map:
    if isinstance(part, nn.LayerNorm):
        shape, weight, bias, eps = part.normalized_shape, part.weight, part.bias, part.eps
        return lambda x: torch.layer_norm(x, shape, weight, bias, eps)
    return part.forward


def _layer(layer: Layer, remember: Remember, shared: _SharedByLayers) -> Map:
    attention, feed_forward = layer.get_submodule("attention"), layer.feed_forward
    assert isinstance(attention, SoftmaxSelfAttention)
    first, second = _norm(layer.attention_norm), _norm(layer.feed_forward_norm)
    attend, apply = _attention(attention, remember, shared), _feed_forward(feed_forward)
    pre_norm, residual = layer.pre_norm, layer.residual

    def step(x: Tensor) -> Tensor:  # (B, D) → (B, D)
        x = around(x, first, attend, pre_norm=pre_norm, residual=residual)
        return around(x, second, apply, pre_norm=pre_norm, residual=residual)

    return step


def _feed_forward(part: FeedForward) -> Map:
    expand, activation, output = _linear(part.expand), part.activation, _linear(part.output)
    return lambda x: output(activation(expand(x)))


def _attention(part: SoftmaxSelfAttention, remember: Remember, shared: _SharedByLayers) -> Map:
    project, output = _linear(part.query_key_value), _linear(part.output)
    n_heads, width, scheme = part.n_heads, part.head_width, part.scheme
    turned = n_heads + part.widths[1] // width  # queries and keys
    rotates = type(scheme).rotate is not PositionScheme.rotate
    shared_keys = part.widths[1] != part.widths[0]

    def attend(x: Tensor) -> Tensor:  # (B, D) → (B, D)
        heads = project(x).view(x.shape[0], -1, 1, width)  # (B, H + 2 Hkv, 1, Dh)
        if rotates:
            heads = torch.cat((scheme.rotate(heads[:, :turned], shared.at), heads[:, turned:]), dim=1)
        k, v, bias = remember(heads[:, n_heads:])
        if shared_keys:
            k, v = for_each_query(k, n_heads), for_each_query(v, n_heads)
        mixed = F.scaled_dot_product_attention(heads[:, :n_heads], k, v, attn_mask=bias, scale=scheme.scale)
        return output(mixed.reshape(x.shape))

    return attend
