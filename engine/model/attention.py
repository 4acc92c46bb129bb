"""Softmax attention: the written-out reference, and the fast kernels behind one table.

All of them take the same `AttentionCall`, so masks, kernels, caches and pictures cannot disagree.
score = cap((q·k + content) · scale) + bias; a row that sees nothing gives zeros. Notation: B batch, T time, Tq/Tk
query/key time, H heads, D model width, Dh head width; in bands n blocks of L queries, R = before + L + after keys each.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from engine.base.language import tr
from engine.config.model import ModelConfig
from engine.config.visibility import SMALLEST_BLOCK, Visibility
from engine.model.dropout import dropout, keep_mask
from engine.model.positions import Positions, PositionScheme
from engine.model.torch_private import softmax_backward

DENSE_BF16_TOKENS = 1024  # tokens up to which three bf16 products beat the fused kernel on a CPU


@dataclass(frozen=True)
class AttentionCall:
    """Everything that decides the attention weights: all inputs but the values."""

    q: Tensor  # (B, H, Tq, Dh), rotated
    k: Tensor  # (B, H, Tk, Dh), rotated
    q_at: Positions
    k_at: Positions
    visibility: Visibility
    scheme: PositionScheme  # for its bias and content terms
    dropout: float = 0.0  # rate, of the weights
    softmax: "Softmax | None" = None  # None: a plain softmax

    @property
    def needs_explicit_weights(self) -> bool:
        """Whether the weights are more than a softmax of q·k + bias."""
        return self.softmax is not None or type(self.scheme).content_bias is not PositionScheme.content_bias

    @property
    def scale(self) -> float:
        return self.scheme.scale if self.scheme.scale is not None else 1.0 / math.sqrt(self.q.shape[-1])

    def visible(self) -> Tensor:
        """(N, 1, Tq, Tk) bool: the dense mask."""
        seen: Tensor = self.visibility(self.q_at.index[:, :, None], self.k_at.index[:, None, :])
        return seen[:, None]


def soft_cap(scores: Tensor, cap: float) -> Tensor:
    """cap · tanh(scores / cap) (Gemma Team 2024, §2)."""
    return cap * torch.tanh(scores / cap) if cap else scores


class Softmax(nn.Module):
    """The softmax of a network with a soft cap on scores, attention sinks, or both."""

    def __init__(self, cap: float = 0.0, sinks: Tensor | None = None) -> None:
        super().__init__()
        self.cap = cap  # bound on a score before its bias; 0: none
        self.sinks = None if sinks is None else nn.Parameter(sinks)  # (H,) a logit per row that belongs to no key

    @classmethod
    def from_config(cls, model: ModelConfig) -> "Softmax | None":
        """Return that of a network; None for a plain softmax."""
        if not (model.score_cap or model.sinks):
            return None
        return cls(model.score_cap, torch.zeros(model.n_heads) if model.sinks else None)

    def cap_scores(self, scores: Tensor) -> Tensor:
        """Cap scaled scores (…, Tq, Tk); as in FlashAttention, before any bias."""
        return soft_cap(scores, self.cap)

    def weights(self, scores: Tensor) -> Tensor:
        """Weights (B, H, Tq, Tk). Sinks (H,) take a share of each row (Xiao et al. 2024; Agarwal et al. 2025)."""
        if self.sinks is None:
            return scores.softmax(-1)
        sinks = self.sinks.to(scores.dtype)[:, None, None].expand(*scores.shape[:-1], 1)
        return torch.cat((scores, sinks), dim=-1).softmax(-1)[..., :-1]


def attention_weights(call: AttentionCall) -> Tensor:
    """The attention distribution (B, H, Tq, Tk) written out (Vaswani et al. 2017, eq. 1): the readable reference. Each
    row sums to 1, less with a sink, or to 0 where it sees nothing; dropout is not applied.
    """
    q, k, q_pos, k_pos = call.q, call.k, call.q_at.index, call.k_at.index
    scores = q @ k.transpose(-2, -1)  # (B, H, Tq, Tk)
    content = call.scheme.content_bias(q, k, q_pos, k_pos)
    if content is not None:
        scores = scores + content
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32)) * call.scale
    if call.softmax is not None:
        scores = call.softmax.cap_scores(scores)
    bias = call.scheme.bias(q_pos, k_pos)
    if bias is not None:
        scores = scores + bias
    visible = call.visible()
    scores = scores.masked_fill(~visible, -math.inf)
    # A row that sees nothing would be 0/0: give it finite scores, then zero its weights.
    lost = ~visible.any(-1, keepdim=True)
    scores = scores.masked_fill(lost, 0.0)
    weights = scores.softmax(-1) if call.softmax is None else call.softmax.weights(scores)
    return weights.masked_fill(lost, 0.0).to(q.dtype)


def _reference(call: AttentionCall, v: Tensor) -> Tensor:
    return dropout(attention_weights(call), call.dropout) @ v


def _sdpa_mask(call: AttentionCall) -> tuple[Tensor | None, bool]:
    """Return (mask, is_causal) for torch's kernel; no mask is built if the host knows that none is needed."""
    q_start, k_start = call.q_at.start, call.k_at.start
    bias = call.scheme.bias(call.q_at.index, call.k_at.index)
    plain = bias is None and call.visibility.causal and call.visibility.window is None
    if plain and q_start is not None and k_start is not None:
        # is_causal is aligned to the TOP LEFT: right only for a square block on the diagonal.
        if q_start == k_start and call.q_at.length == call.k_at.length:
            return None, True
        if call.q_at.length == 1 and q_start == k_start + call.k_at.length - 1:
            return None, False
    visible = call.visible()
    if bias is None:
        return visible, False
    return bias.to(call.q.dtype).masked_fill(~visible, -math.inf), False


def _additive_mask(call: AttentionCall) -> Tensor | None:
    """The term (N, 1 or H, Tq, Tk) added to scores: 0 or the bias where visible, −∞ elsewhere; None: all 0."""
    mask, is_causal = _sdpa_mask(call)
    mask = call.visible() if is_causal else mask
    if mask is not None and mask.dtype == torch.bool:
        mask = torch.zeros_like(mask, dtype=call.q.dtype).masked_fill(~mask, -math.inf)
    return mask


def _sdpa(call: AttentionCall, v: Tensor) -> Tensor:
    k, sinks = call.k, None if call.softmax is None else call.softmax.sinks
    if sinks is None:
        mask, is_causal = _sdpa_mask(call)
    else:  # an extra key of zeros, whose bias is the sink and whose value is zero
        added, is_causal = _additive_mask(call), False
        added = call.q.new_zeros(1, 1, 1, 1) if added is None else added
        shape = (added.shape[0], *call.q.shape[1:3])
        columns = added.expand(*shape, k.shape[2]), sinks.to(call.q.dtype)[:, None, None].expand(*shape, 1)
        k, v, mask = F.pad(k, (0, 0, 0, 1)), F.pad(v, (0, 0, 0, 1)), torch.cat(columns, dim=-1)
    return F.scaled_dot_product_attention(
        call.q, k, v, attn_mask=mask, dropout_p=call.dropout, is_causal=is_causal, scale=call.scale
    )


def _sdpa_why_not(call: AttentionCall) -> str | None:
    if type(call.scheme).content_bias is not PositionScheme.content_bias:
        return tr("the fused kernel does not support position schemes whose terms depend on queries and keys")
    capped = call.softmax is not None and call.softmax.cap > 0.0
    return tr("the fused kernel does not support a cap on scores") if capped else None


def _dense(call: AttentionCall, v: Tensor) -> Tensor:
    """Three products over all rows and heads at once: fastest on a CPU at short lengths, and with dropout."""
    batch, heads, time, _ = call.q.shape
    mask = _additive_mask(call)
    q, k, values = (x.flatten(0, 1) for x in (call.q, call.k, v))
    if mask is not None and mask.shape[:2] == (1, 1) and not call.needs_explicit_weights:
        scores = torch.baddbmm(mask[0], q, k.transpose(1, 2), alpha=call.scale)
    else:
        scores = torch.bmm(q * call.scale, k.transpose(1, 2))
        scores = scores if call.softmax is None else call.softmax.cap_scores(scores)
        if mask is not None:
            scores = (scores.view(batch, heads, time, -1) + mask).flatten(0, 1)
    scores = scores.view(batch, heads, time, -1)
    weights = (scores.softmax(-1) if call.softmax is None else call.softmax.weights(scores)).flatten(0, 1)
    return torch.bmm(dropout(weights, call.dropout), values).view(batch, heads, time, -1)


def _dense_why_not(call: AttentionCall) -> str | None:
    if call.q_at.start is None or call.q_at.start != call.k_at.start or call.q_at.length != call.k_at.length:
        return tr("some queries may have no visible key; only the reference and the fused kernel handle that")
    if type(call.scheme).content_bias is not PositionScheme.content_bias:
        return tr("this kernel does not support position schemes whose terms depend on queries and keys")
    return None


def _dense_is_faster(call: AttentionCall) -> bool:
    short_bf16 = call.q.dtype == torch.bfloat16 and call.q.shape[2] <= DENSE_BF16_TOKENS
    return call.q.device.type == "cpu" and (call.dropout > 0.0 or short_bf16 or call.needs_explicit_weights)


@dataclass(frozen=True)
class Bands:
    """How `time` slots are split into blocks, for a window of `before` slots back and `after` ahead of a query."""

    time: int
    before: int
    after: int

    @classmethod
    def from_visibility(cls, time: int, see: Visibility) -> "Bands":
        before = min(see.reach(1) or 0, time - 1)
        return cls(time, before, 0 if see.causal else before)

    @property
    def block(self) -> int:
        """L; never shorter than the reach, so a band touches only neighbouring blocks."""
        return min(max(SMALLEST_BLOCK, self.before), self.time)

    @property
    def n(self) -> int:
        """Number of blocks; the last one may be padded."""
        return -(-self.time // self.block)

    @property
    def band_length(self) -> int:
        return self.before + self.block + self.after

    def blocks(self, x: Tensor) -> Tensor:
        """(B, H, T, Dh) → (B · H · n, L, Dh)."""
        filled = self.n * self.block - self.time
        x = F.pad(x, (0, 0, 0, filled)) if filled else x
        return x.reshape(-1, self.block, x.shape[-1])

    def bands(self, x: Tensor) -> Tensor:
        """(B, H, T, Dh) → (B · H · n, R, Dh), zeros past either end."""
        blocks = self.blocks(x).view(-1, self.n, self.block, x.shape[-1])
        out = blocks.new_empty(blocks.shape[0], self.n, self.band_length, x.shape[-1])
        own = self.before + self.block
        out[:, :, self.before : own] = blocks
        out[:, 0, : self.before] = 0
        out[:, 1:, : self.before] = blocks[:, :-1, self.block - self.before :]
        out[:, -1, own:] = 0
        out[:, :-1, own:] = blocks[:, 1:, : self.after]
        return out.view(-1, self.band_length, x.shape[-1])

    def bands_adjoint(self, d: Tensor, shape: torch.Size) -> Tensor:
        """Adjoint of `bands`: sum each band's gradient (B · H · n, R, Dh) back into its slots (B, H, T, Dh)."""
        d = d.view(-1, self.n, self.band_length, d.shape[-1])
        own = self.before + self.block
        out = d[:, :, self.before : own].contiguous()
        out[:, :-1, self.block - self.before :] += d[:, 1:, : self.before]
        out[:, 1:, : self.after] += d[:, :-1, own:]
        return out.view(*shape[:2], -1, shape[-1])[:, :, : self.time]

    def block_positions(self, span: Positions) -> tuple[Tensor, Tensor]:
        """Return positions of the blocks' queries (N, n, L) and of the bands' keys (N, n, R); −1 past either end."""
        filled = self.n * self.block - self.time
        queries = F.pad(span.index, (0, filled), value=-1).unfold(1, self.block, self.block)
        keys = F.pad(span.index, (self.before, filled + self.after), value=-1).unfold(1, self.band_length, self.block)
        return queries, keys


def _banded(call: AttentionCall, v: Tensor) -> Tensor:
    """Windowed attention without links, on a band of blocks: O(T · window) time and memory, no T × T.

    Each block of queries sees the keys its window can reach: its own block, the end of the previous one and, without a
    causal mask, the start of the next.
    """
    if call.needs_explicit_weights:
        return _banded_as_separate_texts(call, v)
    q, at = call.q, call.q_at
    bands = Bands.from_visibility(q.shape[2], call.visibility)
    # all blocks look the same but the first, whose band starts before the text
    alike = call.visibility.causal and at.start is not None and call.scheme.bias_by_distance
    if alike:
        keys = torch.arange(bands.band_length, device=q.device)[None, None]
        queries = keys[..., bands.before :]
    else:
        queries, keys = bands.block_positions(at)  # (N, n, L), (N, n, R)
    visible = call.visibility(queries[..., None], keys[:, :, None])  # (N, n, L, R)
    lost = ~visible.any(-1, keepdim=True)
    added = torch.zeros(visible.shape, dtype=q.dtype, device=q.device)
    added = added.masked_fill(~(visible | lost), -math.inf)[:, None]  # (N, 1, n, L, R)
    bias = call.scheme.bias(queries.flatten(0, 1), keys.flatten(0, 1))  # (N · n, H, L, R)
    if bias is not None:
        added = added + bias.to(q.dtype).view(*queries.shape[:2], *bias.shape[1:]).transpose(1, 2)
    mixed: Tensor = _Banded.apply(q, call.k, v, added, bands, alike, call.scale, call.dropout)  # type: ignore[no-untyped-call]
    return mixed.masked_fill(lost.flatten(1, 2)[:, None, : q.shape[2]], 0.0) if at.start is None else mixed


class _Banded(torch.autograd.Function):
    """softmax(scale · q kᵀ + added) v; the backward pass is written by hand, so bands are never copied for autograd."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, added: Tensor, bands: Bands, alike: bool, scale: float, rate: float
    ) -> Tensor:
        queries, keys, values = bands.blocks(q), bands.bands(k), bands.bands(v)
        with torch.autocast(q.device.type, enabled=False):
            scores = torch.baddbmm(queries.new_empty(1), queries, keys.transpose(1, 2), beta=0.0, alpha=scale)
            by_block = scores.view(*q.shape[:2], bands.n, bands.block, bands.band_length).add_(added)
            if alike:
                by_block[:, :, 0, :, : bands.before] = -math.inf
            weights = scores.softmax(-1)
            mask = None
            if rate > 0.0:
                cpu = weights.device.type == "cpu"
                mask = keep_mask(weights.shape, rate, weights.dtype) if cpu else dropout(torch.ones_like(weights), rate)
            mixed = torch.bmm(weights if mask is None else weights * mask, values)
        ctx.save_for_backward(queries, keys, values, weights, mask)
        ctx.bands, ctx.scale, ctx.shape, ctx.added = bands, scale, q.shape, added.shape
        return mixed.view(*q.shape[:2], -1, q.shape[-1])[:, :, : bands.time]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        queries, keys, values, weights, mask = ctx.saved_tensors
        bands, shape = ctx.bands, ctx.shape
        gradient = bands.blocks(gradient)
        d_weights = torch.bmm(gradient, values.transpose(1, 2))
        dropped = weights
        if mask is not None:
            dropped, d_weights = weights * mask, d_weights * mask
        d_values = torch.bmm(dropped.transpose(1, 2), gradient)
        d_scores = softmax_backward(d_weights, weights)
        d_added = None
        if ctx.needs_input_grad[3]:
            d_added = d_scores.view(*shape[:2], bands.n, bands.block, bands.band_length).sum_to_size(ctx.added)
        d_scores = d_scores * ctx.scale if d_added is not None else d_scores.mul_(ctx.scale)
        d_queries = torch.bmm(d_scores, keys).view(*shape[:2], -1, shape[-1])[:, :, : bands.time]
        d_keys = torch.bmm(d_scores.transpose(1, 2), queries)
        d_keys, d_values = bands.bands_adjoint(d_keys, shape), bands.bands_adjoint(d_values, shape)
        return d_queries, d_keys, d_values, d_added, None, None, None, None


def _banded_as_separate_texts(call: AttentionCall, v: Tensor) -> Tensor:
    """Treat each block and its band as a separate text, for weights that are more than a softmax of q·k + bias."""
    batch, heads, time, _ = call.q.shape
    bands = Bands.from_visibility(time, call.visibility)

    def texts(parts: Tensor) -> Tensor:  # (B · H · n, …) → (B · n, H, …)
        return parts.view(batch, heads, bands.n, *parts.shape[1:]).transpose(1, 2).flatten(0, 1)

    q_at, k_at = (Positions(at.expand(batch, -1, -1).flatten(0, 1)) for at in bands.block_positions(call.q_at))
    q, k, values = texts(bands.blocks(call.q)), texts(bands.bands(call.k)), texts(bands.bands(v))
    mixed = _reference(replace(call, q=q, k=k, q_at=q_at, k_at=k_at), values)
    return mixed.view(batch, bands.n, heads, bands.block, -1).transpose(1, 2).flatten(2, 3)[:, :, :time]


def _banded_why_not(call: AttentionCall) -> str | None:
    if call.visibility.window is None or call.visibility.has_gaps:
        return tr("it needs windowed attention without links to keys outside the window")
    same = call.q_at is call.k_at or (call.q_at.start is not None and call.q_at.start == call.k_at.start)
    side_by_side = call.q_at.start is not None or call.q_at.one_sided_padding
    if not (same and side_by_side and call.q.shape[2] == call.k.shape[2]):
        return tr("it needs queries and keys at the same, consecutive positions")
    return None


@dataclass(frozen=True)
class Backend:
    """A way to compute the same attention: why it cannot serve a call (None: it can), when it is faster, and how."""

    name: str
    why_not: Callable[[AttentionCall], str | None]
    is_faster: Callable[[AttentionCall], bool]
    compute: Callable[[AttentionCall, Tensor], Tensor]


# Fastest first; the first that is faster and can serve the call wins.
BACKENDS: tuple[Backend, ...] = (
    Backend(
        "banded",
        _banded_why_not,
        lambda call: call.visibility.is_band_faster(call.q.shape[2], cpu=call.q.device.type == "cpu"),
        _banded,
    ),
    Backend("dense", _dense_why_not, _dense_is_faster, _dense),
    Backend("sdpa", _sdpa_why_not, lambda call: True, _sdpa),
    Backend("reference", lambda call: None, lambda call: True, _reference),
)


def choose_backend(call: AttentionCall, wanted: str = "auto") -> Backend:
    """Return the backend that serves a call; `ValueError` says why the wanted one cannot."""
    for backend in BACKENDS:
        if wanted == backend.name or (wanted == "auto" and backend.is_faster(call)):
            reason = backend.why_not(call)
            if reason is None:
                return backend
            if wanted != "auto":
                message = tr("attention backend '{wanted}' cannot be used here: {reason}", wanted=wanted, reason=reason)
                raise ValueError(message)
    raise ValueError(tr("unknown attention backend '{wanted}'", wanted=wanted))


def softmax_attention(call: AttentionCall, v: Tensor, backend: str = "auto") -> Tensor:
    """Attention (B, H, Tq, Dh) over values (B, H, Tk, Dh), by the first backend that supports it, or a named one."""
    return choose_backend(call, backend).compute(call, v)
