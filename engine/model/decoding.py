"""Decoding token by token, with a cache; in a decoder, everything that does not depend on the tokens is precomputed.

A step of one token is so small that module calls, masks and position angles cost more than its matrix products.
`_FastDecoder` binds weights once, looks positions up in tables, writes keys and values in place. Layers are defined in
`engine.model.layers` and `engine.model.heads`; tests compare every network's steps with its full pass.

What that saves, in steps/s with and without it, for 200 tokens on one CPU thread: 4 layers of 256 features 549 and 390
for one text, 102 and 90 for 32 at once; 6 layers of 384 features 198 and 165, 28 and 26.
Notation: B rows, S source time, T time, D model width, H heads, Hkv key/value heads, Dh head width, V vocabulary.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.model.cache import Cache, KeyValueCache
from engine.model.heads import ForwardContext, SoftmaxSelfAttention, repeat_kv
from engine.model.layers import Branch, Layer, ShortConvolution
from engine.model.positions import Positions, PositionScheme, TensorFunction
from engine.model.torch_private import CAN_PACK, pack, packed_linear
from engine.model.transformer import Network

WORTH_TRANSPOSING = 128  # tokens; transposing takes as long as 10 to 180 products gain
WORTH_SPLITTING = 2**15  # weights; below, starting the second thread takes as long as it saves
SPLIT = 8  # products
FEW_ROWS = 8  # with more, oneDNN's GELU is as fast as torch's


class Predictor:
    """A network in evaluation mode that predicts the next token of B texts of equal length, perhaps after a source
    (B, S). `source_at`: the source's positions; None: there is no padding.
    """

    cache: Cache

    def __init__(self, model: Network, source: Tensor | None = None, source_at: Positions | None = None) -> None:
        self.model, self._source = model, (source, source_at)

    def begin(self, capacity: int = 0) -> None:
        """Forget the texts; make room for about `capacity` tokens of new ones."""
        with torch.inference_mode():
            self.cache = self.model.new_cache(capacity, *self._source)
        self._steps = _FastDecoder(self.model, self.cache, capacity) if supports_fast_decoding(self.model) else None

    def feed(self, tokens: Tensor) -> Tensor:
        """(B, T) new tokens → (B, V) logits of the next; `ValueError` for a position past the learned table."""
        if self._steps is not None and tokens.shape[1] == 1 and self.cache.length:
            return self._steps.step(tokens)
        return self.model.next_logits(tokens, self.cache)


def supports_fast_decoding(model: Network) -> bool:
    """Return whether a step runs one stack whose layers all have simple steps."""
    parts = [layer.get_submodule("attention") for layer in model.stacks[-1].layers]
    alone = model.has_cache and not model.reads_source and not model.training
    return alone and all(isinstance(part, SoftmaxSelfAttention) and part.supports_fast_decoding for part in parts)


class _FastDecoder:
    # by scheme: (1, H, 1, capacity) added to the scores; the last entry is the token's own
    bias: dict[PositionScheme, Tensor | None]

    def __init__(self, model: Network, cache: Cache, capacity: int) -> None:
        (self._stack,), self._cache = model.stacks, cache
        self._reading = ForwardContext(Positions.consecutive(0, 0))
        parts = [part for part in model.modules() if isinstance(part, SoftmaxSelfAttention)]
        self._schemes = list(dict.fromkeys(part.scheme for part in parts))
        self._long = capacity >= WORTH_TRANSPOSING
        self._layers = [
            self._layer(layer, state)
            for layer, state in zip(self._stack.layers, cache.layers, strict=True)
            if isinstance(layer, Layer) and isinstance(state, KeyValueCache)
        ]
        self._final_norm, self._to_logits = _norm(self._stack.final_norm), model.to_logits
        self._embedding = model.token_embedding.weight
        self._scale = math.sqrt(model.config.d_model) if model.config.embedding_scale else None
        self._tables(capacity)

    def _tables(self, capacity: int) -> None:
        """Tabulate positions for `capacity` tokens: the terms added to embeddings, and to scores by distance."""
        weight, longest = self._embedding, self._stack.positions.longest
        self._capacity = capacity
        self._numbers = torch.arange(capacity, device=weight.device)[None]
        table = self._stack.positions.embed(self._numbers[:, :longest])
        self._rows = None if table is None else table[0].to(weight.dtype)
        self.bias = {}
        for scheme in self._schemes:
            bias = scheme.bias(self._numbers[:, -1:], self._numbers)
            self.bias[scheme] = None if bias is None else bias.to(weight.dtype)

    def step(self, tokens: Tensor) -> Tensor:
        """(B, 1) → (B, V)."""
        at = self._cache.length
        self._stack.check_positions(at + 1)
        if at >= self._capacity:
            self._tables(2 * at)
        self._reading.positions = Positions(self._numbers[:, at : at + 1], at)
        x = F.embedding(tokens[:, 0], self._embedding)
        if self._scale is not None:
            x = x * self._scale
        if self._rows is not None:
            x = x + self._rows[at]
        self._reading.embedded = x
        for layer in self._layers:
            x = layer(x)
        logits = self._to_logits(self._final_norm(x))
        self._cache.length = at + 1
        return logits

    def _layer(self, layer: Layer, state: KeyValueCache) -> TensorFunction:
        attention, feed_forward = layer.get_submodule("attention"), layer.feed_forward
        assert isinstance(attention, SoftmaxSelfAttention)
        first, second = _norm(layer.attention_norm), _norm(layer.feed_forward_norm)
        attend = self._attention(attention, state)
        expand, output = _linear(feed_forward.expand, self._long), _linear(feed_forward.output, self._long)
        activation = feed_forward.activation
        if activation is F.gelu and feed_forward.output.weight.device.type == "cpu":
            activation = _gelu
        reading = self._reading
        attend = _then(attend, layer.attention_after)
        feed = _then(lambda y: output(activation(expand(y))), layer.feed_forward_after)
        if layer.attention_conv is not None and layer.feed_forward_conv is not None:
            attend = _with_convolution(layer.attention_conv, attend, reading, state)
            feed = _with_convolution(layer.feed_forward_conv, feed, reading, state)
        branches = Branch(first, attend), Branch(second, feed)
        return lambda x: layer.join_branches(x, reading, *branches)  # (B, D) → (B, D)

    def _attention(self, part: SoftmaxSelfAttention, state: KeyValueCache) -> TensorFunction:
        project, output = _linear(part.query_key_value, self._long), _linear(part.output, self._long)
        n_heads, width, scheme = part.n_heads, part.head_width, part.scheme
        turned = n_heads + part.widths[1] // width  # queries and keys
        softmax, shapes, turns = part.softmax, part.normalizes_or_mixes_values, part.rotates_or_normalizes_heads
        scale = width**-0.5 if scheme.scale is None else scheme.scale
        shared_keys = part.widths[1] != part.widths[0]
        reading = self._reading

        def attend(x: Tensor) -> Tensor:  # (B, D) → (B, D)
            heads = project(x).view(x.shape[0], -1, 1, width)  # (B, H + 2 Hkv, 1, Dh)
            if shapes:
                q, k, v = torch.split(heads, [n_heads, turned - n_heads, turned - n_heads], dim=1)
                heads = torch.cat(part.normalized_with_mixed_values(q, k, v, reading), dim=1)
            if turns:
                heads = torch.cat((part.rotated(heads[:, :turned], reading.positions.index), heads[:, turned:]), dim=1)
            k, v = state.append(heads[:, n_heads:])
            bias = self.bias[scheme]
            bias = None if bias is None else bias[..., -k.shape[2] :]
            if shared_keys:
                k, v = repeat_kv(k, n_heads), repeat_kv(v, n_heads)
            if softmax is not None:
                scores = softmax.cap_scores(heads[:, :n_heads] @ k.transpose(2, 3) * scale)
                mixed = softmax.weights(scores if bias is None else scores + bias) @ v
            else:
                mixed = F.scaled_dot_product_attention(heads[:, :n_heads], k, v, attn_mask=bias, scale=scheme.scale)
            return output(part.apply_gate(mixed.reshape(x.shape), x))

        return attend


def _linear(part: nn.Linear, worth_transposing: bool) -> TensorFunction:
    """Return a linear map. On a CPU, weights are laid out at the first call as the product reads them fastest: see
    `_one_row`; for several rows, packed for oneDNN.

    MKL, which torch calls, is slow on processors it does not know. On an AMD EPYC, all products of a step of 4 layers
    of 256 features take 1.6 ms for 4 rows, packed 0.6 ms; for 32 rows, 2.0 ms and 1.5 ms.
    """
    weight, bias = part.weight, part.bias
    if not (CAN_PACK and weight.device.type == "cpu" and weight.dtype == torch.float32):
        return lambda x: F.linear(x, weight, bias)
    alone: TensorFunction | None = None
    packed: Tensor | None = None

    def product(x: Tensor) -> Tensor:
        nonlocal alone, packed
        if x.shape[0] == 1:
            if alone is None:  # a beam may end with one row: too late to transpose
                alone = _one_row(weight, bias, transposes=worth_transposing and packed is None)
            return alone(x)
        if packed is None:
            packed = pack(weight, x.shape[0])
        return packed_linear(x, packed, bias)

    return product


def _one_row(weight: Tensor, bias: Tensor | None, *, transposes: bool) -> TensorFunction:
    """Return the linear map (1, I) → (1, O) with weights (O, I).

    One row's product is run by one thread; with several threads, the outputs are split into products of their own,
    which run side by side. On two threads of an AMD EPYC, all products of a step of 4 layers take 0.5 ms split, 1.3 ms
    as one each (256 features), 1.4 and 2.8 (384), 4.4 and 8.1 (768). On one thread, weights that `transposes` allows
    are transposed where outputs are more than inputs: 1.9 and 2.7 ms (384 features).
    """
    outputs, inputs = weight.shape
    if torch.get_num_threads() > 1:
        if outputs % SPLIT or weight.numel() < WORTH_SPLITTING:
            return lambda x: F.linear(x, weight, bias)
        parts = weight.view(SPLIT, -1, inputs).transpose(1, 2)  # a view: split weights take no memory
        if bias is None:
            return lambda x: torch.bmm(x.expand(SPLIT, 1, inputs), parts).view(1, outputs)
        biases = bias.view(SPLIT, 1, -1)
        return lambda x: torch.baddbmm(biases, x.expand(SPLIT, 1, inputs), parts).view(1, outputs)
    if not (transposes and outputs > inputs):
        return lambda x: F.linear(x, weight, bias)
    transposed = weight.t().contiguous()
    return lambda x: x @ transposed if bias is None else torch.addmm(bias, x, transposed)


def _gelu(x: Tensor) -> Tensor:
    """GELU of (B, F); of a few rows in an order that keeps torch from calling oneDNN, which takes 24 µs for a row
    instead of 2.
    """
    if x.shape[0] > FEW_ROWS or x.shape[1] % 2:
        return F.gelu(x)
    halves = x.view(x.shape[0], 2, -1).transpose(1, 2)  # not contiguous
    return F.gelu(halves).transpose(1, 2).reshape(x.shape)


def _then(f: TensorFunction, after: nn.Sequential) -> TensorFunction:
    return (lambda x: after(f(x))) if len(after) else f


def _with_convolution(
    conv: ShortConvolution, f: TensorFunction, reading: ForwardContext, state: KeyValueCache
) -> TensorFunction:
    return lambda x: f(conv(x[:, None], reading.positions, state)[:, 0])


def _norm(part: nn.Module) -> TensorFunction:
    if isinstance(part, nn.LayerNorm):
        shape, weight, bias, eps = part.normalized_shape, part.weight, part.bias, part.eps
        return lambda x: torch.layer_norm(x, shape, weight, bias, eps)
    return part.forward
