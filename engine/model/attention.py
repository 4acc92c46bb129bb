"""Softmax attention: the written-out reference, and the fast kernels behind one table.

Every function takes the positions of queries and keys, a visibility and a position scheme, so masks, kernels, caches
and pictures cannot disagree. score = (q·k + content) · scale + bias; a row that sees nothing gives zeros. Notation: B
batch, Tq/Tk query/key time, H heads, D model width, Dh head width.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from engine.model.banded import Bands, banded_attention
from engine.model.dropout import dropout
from engine.model.positions import Positions, PositionScheme
from engine.model.visibility import LONG, NARROW, Visibility
from engine.schemes import QUICKER

SHORT = 1024  # tokens up to which three bf16 products beat the fused kernel on a CPU


@dataclass(frozen=True)
class AttentionCall:
    """The arguments of one attention call, by which a backend decides whether it can serve it."""

    q: Tensor
    k: Tensor
    q_at: Positions
    k_at: Positions
    see: Visibility
    scheme: PositionScheme
    dropout: float

    @property
    def scale(self) -> float:
        return self.scheme.scale if self.scheme.scale is not None else 1.0 / math.sqrt(self.q.shape[-1])

    def visible(self) -> Tensor:
        """(N, 1, Tq, Tk) bool: the dense mask."""
        seen: Tensor = self.see(self.q_at.index[:, :, None], self.k_at.index[:, None, :])
        return seen[:, None]


def attention_weights(
    q: Tensor, k: Tensor, q_at: Positions, k_at: Positions, see: Visibility, scheme: PositionScheme
) -> Tensor:
    """The attention distribution (B, H, Tq, Tk) written out (Vaswani et al. 2017, eq. 1): the readable reference.

    Of rotated queries (B, H, Tq, Dh) and keys (B, H, Tk, Dh); each row sums to 1, or to 0 where it sees nothing.
    `scheme` is for its bias and content terms.
    """
    call = AttentionCall(q, k, q_at, k_at, see, scheme, 0.0)
    scores = q @ k.transpose(-2, -1)  # (B, H, Tq, Tk)
    content = scheme.content(q, k, q_at.index, k_at.index)
    if content is not None:
        scores = scores + content
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32)) * call.scale
    bias = scheme.bias(q_at.index, k_at.index)
    if bias is not None:
        scores = scores + bias
    visible = call.visible()
    scores = scores.masked_fill(~visible, -math.inf)
    # A row that sees nothing would be 0/0: give it finite scores, then take its weights away again.
    lost = ~visible.any(-1, keepdim=True)
    weights = scores.masked_fill(lost, 0.0).softmax(-1)
    return weights.masked_fill(lost, 0.0).to(q.dtype)


def _reference(call: AttentionCall, v: Tensor) -> Tensor:
    weights = attention_weights(call.q, call.k, call.q_at, call.k_at, call.see, call.scheme)
    if call.dropout > 0.0:
        weights = dropout(weights, call.dropout)
    return weights @ v


def _sdpa_mask(call: AttentionCall) -> tuple[Tensor | None, bool]:
    """Return (mask, is_causal) for torch's kernel; no mask is built if the host knows that none is needed."""
    q_start, k_start = call.q_at.start, call.k_at.start
    known = q_start is not None and k_start is not None
    bias = call.scheme.bias(call.q_at.index, call.k_at.index)
    if bias is None and known and call.see.causal and call.see.window is None:
        # is_causal is aligned to the TOP LEFT: right only for a square block on the diagonal.
        if q_start == k_start and call.q_at.length == call.k_at.length:
            return None, True
        if call.q_at.length == 1 and q_start == k_start + call.k_at.length - 1:  # type: ignore[operator]
            return None, False
    visible = call.visible()
    if bias is None:
        return visible, False
    return bias.to(call.q.dtype).masked_fill(~visible, -math.inf), False


def _sdpa(call: AttentionCall, v: Tensor) -> Tensor:
    mask, is_causal = _sdpa_mask(call)
    return F.scaled_dot_product_attention(
        call.q, call.k, v, attn_mask=mask, dropout_p=call.dropout, is_causal=is_causal, scale=call.scale
    )


def _sdpa_why_not(call: AttentionCall) -> str | None:
    if type(call.scheme).content is not PositionScheme.content:
        return "the scheme adds terms of queries and keys, which the fused kernel has no place for"
    return None


def _dense(call: AttentionCall, v: Tensor) -> Tensor:
    """Three products over all rows and heads at once: fastest on a CPU at short lengths, and with dropout."""
    batch, heads, time, _ = call.q.shape
    mask, is_causal = _sdpa_mask(call)
    mask = _as_scores(call.visible() if is_causal else mask, call.q.dtype)
    q, k, values = (x.flatten(0, 1) for x in (call.q, call.k, v))
    if mask is not None and mask.shape[:2] == (1, 1):
        scores = torch.baddbmm(mask[0], q, k.transpose(1, 2), alpha=call.scale)
    else:
        scores = torch.bmm(q * call.scale, k.transpose(1, 2))
        if mask is not None:
            scores = (scores.view(batch, heads, time, -1) + mask).flatten(0, 1)
    return torch.bmm(dropout(scores.softmax(-1), call.dropout), values).view(batch, heads, time, -1)


def _as_scores(mask: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """Return a mask to add to scores: 0 where visible, −∞ elsewhere."""
    if mask is None or mask.dtype != torch.bool:
        return None if mask is None else mask.to(dtype)
    return torch.zeros_like(mask, dtype=dtype).masked_fill(~mask, -math.inf)


def _dense_why_not(call: AttentionCall) -> str | None:
    if call.q_at.start is None or call.q_at.start != call.k_at.start or call.q_at.length != call.k_at.length:
        return "a row may see nothing, which only the reference and the fused kernel know to handle"
    return _sdpa_why_not(call)


def _dense_is_faster(call: AttentionCall) -> bool:
    short_bf16 = call.q.dtype == torch.bfloat16 and call.q.shape[2] <= SHORT
    return call.q.device.type == "cpu" and (call.dropout > 0.0 or short_bf16)


def _banded(call: AttentionCall, v: Tensor) -> Tensor:
    if type(call.scheme).content is not PositionScheme.content:
        return _banded_content(call, v)
    return banded_attention(call.q, call.k, v, call.q_at, call.see, call.scheme, call.scale, call.dropout)


def _banded_content(call: AttentionCall, v: Tensor) -> Tensor:
    """Treat each block and its band as a separate text, for schemes whose scores are more than q·k."""
    batch, heads, time, _ = call.q.shape
    bands = Bands.of(time, call.see)

    def texts(parts: Tensor) -> Tensor:  # (B · H · n, …) → (B · n, H, …)
        return parts.view(batch, heads, bands.n, *parts.shape[1:]).transpose(1, 2).flatten(0, 1)

    q_at, k_at = (Positions(at.expand(batch, -1, -1).flatten(0, 1)) for at in bands.places(call.q_at))
    parts = (texts(bands.blocks(call.q)), texts(bands.bands(call.k)), texts(bands.bands(v)))
    mixed = softmax_attention(*parts, q_at, k_at, call.see, call.scheme, dropout=call.dropout)
    return mixed.view(batch, bands.n, heads, bands.block, -1).transpose(1, 2).flatten(2, 3)[:, :, :time]


def _banded_why_not(call: AttentionCall) -> str | None:
    if call.see.window is None or call.see.link_every is not None:
        return "only a window without links is a band"
    same = call.q_at is call.k_at or (call.q_at.start is not None and call.q_at.start == call.k_at.start)
    if not (same and call.q_at.packed and call.q.shape[2] == call.k.shape[2]):
        return "a band needs queries and keys at the same places, side by side"
    return None


def _banded_is_faster(call: AttentionCall) -> bool:
    time, reach = call.q.shape[2], call.see.reach(1)
    if reach is None or NARROW * reach > time:
        return False
    return time >= LONG or (call.q.device.type == "cpu" and QUICKER * reach <= time)


@dataclass(frozen=True)
class Backend:
    """A way to compute the same attention: why it cannot serve a call (None: it can), when it is faster, and how."""

    name: str
    why_not: Callable[[AttentionCall], str | None]
    is_faster: Callable[[AttentionCall], bool]
    compute: Callable[[AttentionCall, Tensor], Tensor]


# Fastest first; the first that is faster and can serve the call wins.
BACKENDS: tuple[Backend, ...] = (
    Backend("banded", _banded_why_not, _banded_is_faster, _banded),
    Backend("dense", _dense_why_not, _dense_is_faster, _dense),
    Backend("sdpa", _sdpa_why_not, lambda call: True, _sdpa),
    Backend("reference", lambda call: None, lambda call: True, _reference),
)


def choose(call: AttentionCall, wanted: str = "auto") -> Backend:
    """Return the backend that serves a call; `ValueError` says why the wanted one cannot."""
    for backend in BACKENDS:
        if wanted == "auto" and not backend.is_faster(call):
            continue
        if wanted in ("auto", backend.name):
            reason = backend.why_not(call)
            if reason is None:
                return backend
            if wanted != "auto":
                raise ValueError(f"attention backend '{wanted}' cannot be used here: {reason}")
    raise ValueError(f"no attention backend is called '{wanted}'")


def softmax_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    q_at: Positions,
    k_at: Positions,
    see: Visibility,
    scheme: PositionScheme,
    *,
    dropout: float = 0.0,
    backend: str = "auto",
) -> Tensor:
    """Attention (B, H, Tq, Dh) over values (B, H, Tk, Dh) through the first backend that can serve it, or a named one;
    the other arguments as in `attention_weights`.
    """
    call = AttentionCall(q, k, q_at, k_at, see, scheme, dropout)
    return choose(call, backend).compute(call, v)
