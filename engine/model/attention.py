"""Softmax attention: the written-out reference, and the fast kernels behind one table.

Every function takes the positions of queries and keys, a visibility and a position scheme, so a mask, a kernel, a
cache and a picture cannot disagree. score = (q·k + content) · scale + bias; a row that sees nothing gives zeros.
Notation: B batch, Tq/Tk query/key time, H heads, D model width, Dh head width.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from engine.model.banded import Bands, banded_attention
from engine.model.dropout import dropout
from engine.model.positions import PositionScheme
from engine.model.span import Span
from engine.model.visibility import LONG, NARROW, QUICKER, Visibility

SHORT = 1024  # tokens up to which three bf16 products beat the fused kernel's on a CPU


@dataclass(frozen=True)
class Situation:
    """What a backend may look at to say whether it can serve a call."""

    q: Tensor
    k: Tensor
    q_at: Span
    k_at: Span
    see: Visibility
    scheme: PositionScheme
    dropout: float

    @property
    def scale(self) -> float:
        """The factor of the scores."""
        return self.scheme.scale if self.scheme.scale is not None else 1.0 / math.sqrt(self.q.shape[-1])

    def visible(self) -> Tensor:
        """(N, 1, Tq, Tk) bool: the dense mask."""
        seen: Tensor = self.see(self.q_at.index[:, :, None], self.k_at.index[:, None, :])
        return seen[:, None]


def attention_weights(q: Tensor, k: Tensor, q_at: Span, k_at: Span, see: Visibility, scheme: PositionScheme) -> Tensor:
    """The attention distribution written out (Vaswani et al. 2017, eq. 1): the readable reference.

    Args:
        q: (B, H, Tq, Dh), rotated.
        k: (B, H, Tk, Dh), rotated.
        q_at: positions of the queries.
        k_at: positions of the keys.
        see: who may look at whom.
        scheme: the position scheme, for its bias and content terms.

    Returns:
        (B, H, Tq, Tk), each row sums to 1, or to 0 where it sees nothing.
    """
    case = Situation(q, k, q_at, k_at, see, scheme, 0.0)
    scores = q @ k.transpose(-2, -1)  # (B, H, Tq, Tk)
    content = scheme.content(q, k, q_at.index, k_at.index)
    if content is not None:
        scores = scores + content
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32)) * case.scale
    bias = scheme.bias(q_at.index, k_at.index)
    if bias is not None:
        scores = scores + bias
    visible = case.visible()
    scores = scores.masked_fill(~visible, -math.inf)
    # A row that sees nothing would be 0/0: give it finite scores, then take its weights away again.
    lost = ~visible.any(-1, keepdim=True)
    weights = scores.masked_fill(lost, 0.0).softmax(-1)
    return weights.masked_fill(lost, 0.0).to(q.dtype)


def _reference(case: Situation, v: Tensor) -> Tensor:
    weights = attention_weights(case.q, case.k, case.q_at, case.k_at, case.see, case.scheme)
    if case.dropout > 0.0:
        weights = dropout(weights, case.dropout)
    return weights @ v


def _sdpa_mask(case: Situation) -> tuple[Tensor | None, bool]:
    """(mask, is_causal) for torch's kernel; no mask is built where the host knows that none is needed."""
    q_start, k_start = case.q_at.start, case.k_at.start
    known = q_start is not None and k_start is not None
    bias = case.scheme.bias(case.q_at.index, case.k_at.index)
    if bias is None and known and case.see.causal and case.see.window is None:
        # is_causal is aligned to the TOP LEFT: right only for a square block on the diagonal.
        if q_start == k_start and case.q_at.length == case.k_at.length:
            return None, True
        if case.q_at.length == 1 and q_start == k_start + case.k_at.length - 1:  # type: ignore[operator]
            return None, False
    visible = case.visible()
    if bias is None:
        return visible, False
    return bias.to(case.q.dtype).masked_fill(~visible, -math.inf), False


def _sdpa(case: Situation, v: Tensor) -> Tensor:
    mask, is_causal = _sdpa_mask(case)
    return F.scaled_dot_product_attention(
        case.q, case.k, v, attn_mask=mask, dropout_p=case.dropout, is_causal=is_causal, scale=case.scale
    )


def _sdpa_legal(case: Situation) -> str | None:
    if type(case.scheme).content is not PositionScheme.content:
        return "the scheme adds terms of queries and keys, which the fused kernel has no place for"
    return None


def _dense(case: Situation, v: Tensor) -> Tensor:
    """Three products over all rows and heads at once: what a CPU does fastest at short lengths, and with dropout."""
    batch, heads, time, _ = case.q.shape
    mask, is_causal = _sdpa_mask(case)
    mask = _as_scores(case.visible() if is_causal else mask, case.q.dtype)
    q, k, values = (x.flatten(0, 1) for x in (case.q, case.k, v))
    if mask is not None and mask.shape[:2] == (1, 1):
        scores = torch.baddbmm(mask[0], q, k.transpose(1, 2), alpha=case.scale)
    else:
        scores = torch.bmm(q * case.scale, k.transpose(1, 2))
        if mask is not None:
            scores = (scores.view(batch, heads, time, -1) + mask).flatten(0, 1)
    return torch.bmm(dropout(scores.softmax(-1), case.dropout), values).view(batch, heads, time, -1)


def _as_scores(mask: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """A mask as what is added to scores: 0 where it lets through, −∞ elsewhere."""
    if mask is None or mask.dtype != torch.bool:
        return None if mask is None else mask.to(dtype)
    return torch.zeros_like(mask, dtype=dtype).masked_fill(~mask, -math.inf)


def _dense_legal(case: Situation) -> str | None:
    if case.q_at.start is None or case.q_at.start != case.k_at.start or case.q_at.length != case.k_at.length:
        return "a row may see nothing, which only the reference and the fused kernel know to handle"
    return _sdpa_legal(case)


def _dense_pays(case: Situation) -> bool:
    short_bf16 = case.q.dtype == torch.bfloat16 and case.q.shape[2] <= SHORT
    return case.q.device.type == "cpu" and (case.dropout > 0.0 or short_bf16)


def _banded(case: Situation, v: Tensor) -> Tensor:
    if type(case.scheme).content is not PositionScheme.content:
        return _banded_content(case, v)
    return banded_attention(case.q, case.k, v, case.q_at, case.see, case.scheme, case.scale, case.dropout)


def _banded_content(case: Situation, v: Tensor) -> Tensor:
    """Where queries and keys say more than their product: each block with its band as a text of its own."""
    batch, heads, time, _ = case.q.shape
    bands = Bands.of(time, case.see)

    def texts(parts: Tensor) -> Tensor:  # (B · H · n, …) → (B · n, H, …)
        return parts.view(batch, heads, bands.n, *parts.shape[1:]).transpose(1, 2).flatten(0, 1)

    q_at, k_at = (Span(at.expand(batch, -1, -1).flatten(0, 1)) for at in bands.places(case.q_at))
    parts = (texts(bands.blocks(case.q)), texts(bands.bands(case.k)), texts(bands.bands(v)))
    mixed = softmax_attention(*parts, q_at, k_at, case.see, case.scheme, dropout=case.dropout)
    return mixed.view(batch, bands.n, heads, bands.block, -1).transpose(1, 2).flatten(2, 3)[:, :, :time]


def _banded_legal(case: Situation) -> str | None:
    if case.see.window is None or case.see.link_every is not None:
        return "only a window without links is a band"
    same = case.q_at is case.k_at or (case.q_at.start is not None and case.q_at.start == case.k_at.start)
    if not (same and case.q_at.packed and case.q.shape[2] == case.k.shape[2]):
        return "a band needs queries and keys at the same places, side by side"
    return None


def _banded_pays(case: Situation) -> bool:
    time, reach = case.q.shape[2], case.see.reach(1)
    if reach is None or NARROW * reach > time:
        return False
    return time >= LONG or (case.q.device.type == "cpu" and QUICKER * reach <= time)


@dataclass(frozen=True)
class Backend:
    """A way to compute the same attention: when it may be used (None, or why not), when it pays, and how."""

    name: str
    legal: Callable[[Situation], str | None]
    pays: Callable[[Situation], bool]
    run: Callable[[Situation, Tensor], Tensor]


# Fastest first; the first legal one that pays wins.
BACKENDS: tuple[Backend, ...] = (
    Backend("banded", _banded_legal, _banded_pays, _banded),
    Backend("dense", _dense_legal, _dense_pays, _dense),
    Backend("sdpa", _sdpa_legal, lambda case: True, _sdpa),
    Backend("reference", lambda case: None, lambda case: True, _reference),
)


def choose(case: Situation, wanted: str = "auto") -> Backend:
    """The backend that serves a call.

    Raises:
        ValueError: the wanted backend cannot serve it; says why.
    """
    for backend in BACKENDS:
        if wanted == "auto" and not backend.pays(case):
            continue
        if wanted in ("auto", backend.name):
            reason = backend.legal(case)
            if reason is None:
                return backend
            if wanted != "auto":
                raise ValueError(f"attention backend '{wanted}' cannot be used here: {reason}")
    raise ValueError(f"no attention backend is called '{wanted}'")


def softmax_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    q_at: Span,
    k_at: Span,
    see: Visibility,
    scheme: PositionScheme,
    *,
    dropout: float = 0.0,
    backend: str = "auto",
) -> Tensor:
    """Attention through the first backend that can serve it.

    Args:
        q: (B, H, Tq, Dh), rotated.
        k: (B, H, Tk, Dh), rotated.
        v: (B, H, Tk, Dh).
        q_at: positions of the queries.
        k_at: positions of the keys.
        see: who may look at whom.
        scheme: the position scheme.
        dropout: probability of dropping an attention weight.
        backend: a name from `BACKENDS`, or "auto".

    Returns:
        (B, H, Tq, Dh).
    """
    case = Situation(q, k, q_at, k_at, see, scheme, dropout)
    return choose(case, backend).run(case, v)
