"""Attention: the written-out reference, the fast kernels, and the multi-head layer that uses either.

Every function takes the positions of queries and keys, a visibility and a position scheme, so a mask, a kernel, a
cache and a picture cannot disagree. score = (q·k + content) · scale + bias; a row that sees nothing gives zeros.
Notation: B batch, Tq/Tk query/key time, H heads, D model width, Dh head width.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.config.schema import ModelConfig
from engine.model.cache import KeyValueCache
from engine.model.positions import PositionScheme
from engine.model.span import Span
from engine.model.visibility import Visibility


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
        weights = F.dropout(weights, case.dropout)
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


@dataclass(frozen=True)
class Backend:
    """A way to compute the same attention: when it may be used (None, or why not), and how."""

    name: str
    legal: Callable[[Situation], str | None]
    run: Callable[[Situation, Tensor], Tensor]


# Fastest first; the first legal one wins.
BACKENDS: tuple[Backend, ...] = (
    Backend("sdpa", _sdpa_legal, _sdpa),
    Backend("reference", lambda case: None, _reference),
)


def choose(case: Situation, wanted: str = "auto") -> Backend:
    """The backend that serves a call.

    Raises:
        ValueError: the wanted backend cannot serve it; says why.
    """
    for backend in BACKENDS:
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


class MultiHeadAttention(nn.Module):
    """Self-attention with H heads (Vaswani et al. 2017, §3.2.2): project, attend, join, project back."""

    def __init__(self, model: ModelConfig, see: Visibility, scheme: PositionScheme) -> None:
        super().__init__()
        width = model.d_model
        self.n_heads, self.see, self.scheme = model.n_heads, see, scheme
        self.dropout, self.backend = model.attention_dropout, model.backend
        self.query_key_value = nn.Linear(width, 3 * width, bias=model.bias)
        self.output = nn.Linear(width, width, bias=model.bias)
        self.output_dropout = nn.Dropout(model.attention_output_dropout)

    def project(self, x: Tensor, at: Span) -> tuple[Tensor, Tensor, Tensor]:
        """(B, T, D) → rotated queries, rotated keys, values, each (B, H, T, Dh)."""
        batch, time, width = x.shape
        heads = self.query_key_value(x).view(batch, time, 3, self.n_heads, width // self.n_heads)
        q, k, v = heads.permute(2, 0, 3, 1, 4)  # each (B, H, T, Dh)
        return self.scheme.rotate(q, at.index), self.scheme.rotate(k, at.index), v

    def forward(self, x: Tensor, at: Span, state: KeyValueCache | None = None) -> Tensor:
        """(B, T, D) → (B, T, D); with a state, also over all it remembers."""
        q, k, v = self.project(x, at)
        k_at = at
        if state is not None:
            k, v, k_at = state.extend(k, v, at)
        dropout = self.dropout if self.training else 0.0
        mixed = softmax_attention(q, k, v, at, k_at, self.see, self.scheme, dropout=dropout, backend=self.backend)
        joined = mixed.transpose(1, 2).reshape(x.shape)  # (B, T, D)
        output: Tensor = self.output_dropout(self.output(joined))
        return output
