"""Windowed attention on a band of blocks: O(T · window) time and memory, no T × T.

Each block of queries meets the keys its window can reach: its own block, the end of the previous one and, without a
causal mask, the start of the next. The backward pass is written by hand, so bands are never copied for autograd.
Notation: B batch, T time, H heads, Dh head width, n blocks of L queries, R = before + L + after keys a band.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from engine.model.dropout import dropout, keep_mask
from engine.model.positions import Positions, PositionScheme
from engine.model.visibility import SMALLEST_BLOCK, Visibility


@dataclass(frozen=True)
class Bands:
    """How `time` slots are cut into blocks, for a window of `before` slots back and `after` ahead of a query."""

    time: int
    before: int
    after: int

    @classmethod
    def of(cls, time: int, see: Visibility) -> "Bands":
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
    def reach(self) -> int:
        return self.before + self.block + self.after

    def blocks(self, x: Tensor) -> Tensor:
        """(B, H, T, Dh) → (B · H · n, L, Dh)."""
        filled = self.n * self.block - self.time
        x = F.pad(x, (0, 0, 0, filled)) if filled else x
        return x.reshape(-1, self.block, x.shape[-1])

    def bands(self, x: Tensor) -> Tensor:
        """(B, H, T, Dh) → (B · H · n, R, Dh), zeros past either end."""
        blocks = self.blocks(x).view(-1, self.n, self.block, x.shape[-1])
        out = blocks.new_empty(blocks.shape[0], self.n, self.reach, x.shape[-1])
        own = self.before + self.block
        out[:, :, self.before : own] = blocks
        out[:, 0, : self.before] = 0
        out[:, 1:, : self.before] = blocks[:, :-1, self.block - self.before :]
        out[:, -1, own:] = 0
        out[:, :-1, own:] = blocks[:, 1:, : self.after]
        return out.view(-1, self.reach, x.shape[-1])

    def unbanded(self, d: Tensor, shape: torch.Size) -> Tensor:
        """Adjoint of `bands`: sum each band's gradient (B · H · n, R, Dh) back into its slots (B, H, T, Dh)."""
        d = d.view(-1, self.n, self.reach, d.shape[-1])
        own = self.before + self.block
        out = d[:, :, self.before : own].contiguous()
        out[:, :-1, self.block - self.before :] += d[:, 1:, : self.before]
        out[:, 1:, : self.after] += d[:, :-1, own:]
        return out.view(*shape[:2], -1, shape[-1])[:, :, : self.time]

    def places(self, span: Positions) -> tuple[Tensor, Tensor]:
        """Return positions of the blocks' queries (N, n, L) and of the bands' keys (N, n, R); −1 past either end."""
        filled = self.n * self.block - self.time
        queries = F.pad(span.index, (0, filled), value=-1).unfold(1, self.block, self.block)
        keys = F.pad(span.index, (self.before, filled + self.after), value=-1).unfold(1, self.reach, self.block)
        return queries, keys


def banded_attention(
    q: Tensor, k: Tensor, v: Tensor, at: Positions, see: Visibility, scheme: PositionScheme, scale: float, rate: float
) -> Tensor:
    """Attention (B, H, T, Dh) of a window without links over slots side by side; `rate` of the weights are dropped."""
    bands = Bands.of(q.shape[2], see)
    # all blocks but the first, whose band begins past the end
    alike = see.causal and at.start is not None and scheme.by_distance
    if alike:
        keys = torch.arange(bands.reach, device=q.device)[None, None]
        queries = keys[..., bands.before :]
    else:
        queries, keys = bands.places(at)  # (N, n, L), (N, n, R)
    visible = see(queries[..., None], keys[:, :, None])  # (N, n, L, R)
    lost = ~visible.any(-1, keepdim=True)
    added = torch.zeros(visible.shape, dtype=q.dtype, device=q.device)
    added = added.masked_fill(~(visible | lost), -math.inf)[:, None]  # (N, 1, n, L, R)
    bias = scheme.bias(queries.flatten(0, 1), keys.flatten(0, 1))  # (N · n, H, L, R)
    if bias is not None:
        added = added + bias.to(q.dtype).view(*queries.shape[:2], *bias.shape[1:]).transpose(1, 2)
    mixed: Tensor = _Banded.apply(q, k, v, added, bands, alike, scale, rate)  # type: ignore[no-untyped-call]
    return mixed.masked_fill(lost.flatten(1, 2)[:, None, : q.shape[2]], 0.0) if at.start is None else mixed


class _Banded(torch.autograd.Function):
    """softmax(scale · q kᵀ + added) v on bands."""

    @staticmethod
    def forward(
        context: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        added: Tensor,
        bands: Bands,
        alike: bool,
        scale: float,
        rate: float,
    ) -> Tensor:
        queries, keys, values = bands.blocks(q), bands.bands(k), bands.bands(v)
        with torch.autocast(q.device.type, enabled=False):
            scores = torch.baddbmm(queries.new_empty(1), queries, keys.transpose(1, 2), beta=0.0, alpha=scale)
            by_block = scores.view(*q.shape[:2], bands.n, bands.block, bands.reach).add_(added)
            if alike:
                by_block[:, :, 0, :, : bands.before] = -math.inf
            weights = scores.softmax(-1)
            mask = _mask(weights, rate) if rate > 0.0 else None
            mixed = torch.bmm(weights if mask is None else weights * mask, values)
        context.save_for_backward(queries, keys, values, weights, mask)
        context.bands, context.scale, context.shape, context.added = bands, scale, q.shape, added.shape
        return mixed.view(*q.shape[:2], -1, q.shape[-1])[:, :, : bands.time]

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        queries, keys, values, weights, mask = context.saved_tensors
        bands, shape = context.bands, context.shape
        gradient = bands.blocks(gradient)
        d_weights = torch.bmm(gradient, values.transpose(1, 2))
        dropped = weights
        if mask is not None:
            dropped, d_weights = weights * mask, d_weights * mask
        d_values = torch.bmm(dropped.transpose(1, 2), gradient)
        d_scores = torch._softmax_backward_data(d_weights, weights, -1, weights.dtype)
        d_added = None
        if context.needs_input_grad[3]:
            d_added = d_scores.view(*shape[:2], bands.n, bands.block, bands.reach).sum_to_size(context.added)
        d_scores = d_scores * context.scale if d_added is not None else d_scores.mul_(context.scale)
        d_queries = torch.bmm(d_scores, keys).view(*shape[:2], -1, shape[-1])[:, :, : bands.time]
        d_keys = torch.bmm(d_scores.transpose(1, 2), queries)
        d_keys, d_values = bands.unbanded(d_keys, shape), bands.unbanded(d_values, shape)
        return d_queries, d_keys, d_values, d_added, None, None, None, None


def _mask(weights: Tensor, rate: float) -> Tensor:
    if weights.device.type == "cpu":
        return keep_mask(weights.shape, rate, weights.dtype)
    return dropout(torch.ones_like(weights), rate)
