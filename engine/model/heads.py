"""The multi-head layers: project into heads, attend, join, project back (Vaswani et al. 2017, §3.2.2).

Queries may share keys and values: `n_kv_heads` below `n_heads` is grouped-query attention (Ainslie et al. 2023), 1 is
multi-query (Shazeer 2019). Notation: B batch, T time, H heads, D model width, Dh head width.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor, nn

from engine.base.language import tr
from engine.config.model import ModelConfig
from engine.config.visibility import Visibility
from engine.model.attention import AttentionCall, Softmax, choose_backend, softmax_attention
from engine.model.cache import KeyValueCache, LayerState, LinearState
from engine.model.dropout import Dropout
from engine.model.linear_attention import linear_attention
from engine.model.positions import Positions, PositionScheme

Observe = Callable[[AttentionCall], None]  # called before attention is computed


@dataclass
class ForwardContext:
    """What the layers of a stack share in a forward pass."""

    positions: Positions
    source_at: Positions | None = None  # of the source, in a decoder over one
    embedded: Tensor | None = None  # (B, T, D) the first layer's input
    shared: dict[str, Tensor] = field(default_factory=dict)  # from earlier layers, for later ones


def into_heads(x: Tensor, head_width: int) -> Tensor:
    """(B, T, heads · Dh) → (B, heads, T, Dh)."""
    return x.view(*x.shape[:-1], -1, head_width).transpose(1, 2)


def repeat_kv(shared: Tensor, n_heads: int) -> Tensor:
    """Repeat keys or values (B, Hkv, T, Dh) for the query heads that share them: (B, H, T, Dh)."""
    times = n_heads // shared.shape[1]
    return shared if times == 1 else shared.repeat_interleave(times, dim=1)


class HeadNorm(nn.RMSNorm):
    """RMS norm of each head's queries or keys (Henry et al. 2020; Qwen Team 2025)."""

    def forward(self, x: Tensor) -> Tensor:
        """(…, Dh) → (…, Dh), in fp32 or wider."""
        return super().forward(x.to(torch.promote_types(x.dtype, torch.float32))).to(x.dtype)


class SelfAttention(nn.Module, ABC):
    """The base of all self-attention: an input projection and an output projection."""

    observe: Observe | None = None
    why_no_weights: ClassVar[str] = ""
    """Why there is no table of who looks at whom; "" if `attend` calls `observe`, where that is set."""

    def __init__(self, model: ModelConfig, see: Visibility, scheme: PositionScheme, i: int = 0) -> None:
        super().__init__()
        self.n_heads, self.head_width = model.n_heads, model.head_width
        self.mixes, self.is_first = model.value_mix, i == 0
        self.widths = [model.d_model, model.kv_width, model.kv_width]
        self.visibility, self.scheme = see, scheme
        self.dropout, self.backend = model.attention_dropout, model.backend
        self.query_key_value = nn.Linear(model.d_model, sum(self.widths), bias=model.bias)
        self.output = nn.Linear(model.d_model, model.d_model, bias=model.bias)
        self.output_dropout = Dropout(model.attention_output_dropout)
        before, after = (model.qk_norm == place for place in ("before", "after"))
        self.query_norm = HeadNorm(self.head_width, model.norm_eps) if before else nn.Identity()
        self.key_norm = HeadNorm(self.head_width, model.norm_eps) if before else nn.Identity()
        self.rotated_norm = HeadNorm(self.head_width, model.norm_eps, False) if after else nn.Identity()
        self.value_mix = nn.Parameter(torch.empty(2)) if self.mixes and not self.is_first else None
        self.gate = None
        if model.gate != "none":
            self.gate = nn.Linear(model.d_model, model.n_heads if model.gate == "head" else model.d_model, model.bias)

    def set_initial_values(self) -> None:
        """Set the initial values that are not random."""
        if self.value_mix is not None:
            self.value_mix.fill_(0.5)

    @property
    def normalizes_or_mixes_values(self) -> bool:
        """Whether `normalized_with_mixed_values` does anything."""
        return self.mixes or isinstance(self.query_norm, HeadNorm)

    def normalized_with_mixed_values(
        self, q: Tensor, k: Tensor, v: Tensor, reading: ForwardContext
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries (B, H, T, Dh), keys and values (B, Hkv, T, Dh) with QK norm and value mixing, unrotated."""
        if self.mixes:
            v = self.mix_first_values(v, reading.shared)
        return self.query_norm(q), self.key_norm(k), v

    @property
    def rotates_or_normalizes_heads(self) -> bool:
        """Whether `rotated` does anything."""
        return type(self.scheme).rotate is not PositionScheme.rotate or isinstance(self.rotated_norm, HeadNorm)

    def rotated(self, x: Tensor, index: Tensor) -> Tensor:
        """Return queries or keys (B, H, T, Dh) as the scores use them: rotated by their positions (N, T)."""
        rotated: Tensor = self.rotated_norm(self.scheme.rotate(x, index))
        return rotated

    @abstractmethod
    def attend(self, q: Tensor, k: Tensor, v: Tensor, at: Positions, state: LayerState | None) -> Tensor:
        """Mix the values: → (B, H, T, Dh)."""

    @abstractmethod
    def new_state(self, capacity: int) -> LayerState:
        """An empty decoding state, with initial room for `capacity` tokens."""

    @abstractmethod
    def kernel_name(self, heads: Tensor, at: Positions) -> str:
        """Name the backend that computes a training step over queries and keys such as `heads` (B, H, T, Dh)."""

    def forward(self, x: Tensor, reading: ForwardContext, state: LayerState | None = None) -> Tensor:
        """(B, T, D) → (B, T, D); with a state, also over everything in it."""
        q, k, v = self.query_key_value(x).split(self.widths, dim=-1)
        q, k, v = into_heads(q, self.head_width), into_heads(k, self.head_width), into_heads(v, self.head_width)
        q, k, v = self.normalized_with_mixed_values(q, k, v, reading)
        mixed = self.attend(q, k, v, reading.positions, state).transpose(1, 2).reshape(x.shape)
        output: Tensor = self.output_dropout(self.output(self.apply_gate(mixed, x)))
        return output

    def mix_first_values(self, v: Tensor, shared: dict[str, Tensor]) -> Tensor:
        """Mix values (B, Hkv, T, Dh) with the first layer's, which it stores in `shared` (Zhou et al. 2024)."""
        if self.value_mix is None:
            shared["values"] = v  # again when a backward pass recomputes it
            return v
        return self.value_mix[0] * shared["values"] + self.value_mix[1] * v

    def apply_gate(self, mixed: Tensor, x: Tensor) -> Tensor:
        """Return the attention output (…, D) scaled by its gates, if it has any: one per head or feature, computed from
        the layer's input (…, D) (Qiu et al. 2025).
        """
        if self.gate is None:
            return mixed
        gates = torch.sigmoid(self.gate(x))
        return (mixed.view(*gates.shape, -1) * gates[..., None]).flatten(-2)


class SoftmaxSelfAttention(SelfAttention):
    def __init__(self, model: ModelConfig, see: Visibility, scheme: PositionScheme, i: int = 0) -> None:
        super().__init__(model, see, scheme, i)
        self.softmax = Softmax.from_config(model)

    @property
    def supports_fast_decoding(self) -> bool:
        """Whether a new token needs only the keys in its window, and a bias by distance."""
        plain = type(self.scheme).content_bias is PositionScheme.content_bias and self.scheme.bias_by_distance
        return plain and not self.visibility.has_gaps and self.backend in ("auto", "sdpa")

    def attend(self, q: Tensor, k: Tensor, v: Tensor, at: Positions, state: LayerState | None) -> Tensor:
        q, k = self.rotated(q, at.index), self.rotated(k, at.index)
        k_at = at
        if state is not None:
            assert isinstance(state, KeyValueCache)
            k, v, k_at = state.extend(k, v, at)
        k, v = repeat_kv(k, self.n_heads), repeat_kv(v, self.n_heads)
        call = self._call(q, k, at, k_at, self.dropout if self.training else 0.0)
        if self.observe is not None:
            self.observe(call)
        backend = self.backend if state is None or self.backend in ("reference", "sdpa") else "auto"
        return softmax_attention(call, v, backend)  # the others compute whole texts only

    def _call(self, q: Tensor, k: Tensor, at: Positions, k_at: Positions, rate: float) -> AttentionCall:
        return AttentionCall(q, k, at, k_at, self.visibility, self.scheme, rate, self.softmax)

    def new_state(self, capacity: int) -> LayerState:
        window = None if self.visibility.has_gaps else self.visibility.window
        return KeyValueCache(capacity if window is None else 0, window)

    def kernel_name(self, heads: Tensor, at: Positions) -> str:
        return choose_backend(self._call(heads, heads, at, at, self.dropout), self.backend).name


class LinearSelfAttention(SelfAttention):
    """Self-attention through a feature map; see `engine.model.linear_attention`."""

    why_no_weights = tr(
        "attention: linear attention has no weights to show; it sums keys and values before any "
        "query looks at them, so no pair of tokens has a weight of its own"
    )

    def attend(self, q: Tensor, k: Tensor, v: Tensor, at: Positions, state: LayerState | None) -> Tensor:
        assert state is None or isinstance(state, LinearState)
        k, v, causal = repeat_kv(k, self.n_heads), repeat_kv(v, self.n_heads), self.visibility.causal
        return linear_attention(q, k, v, at, self.scheme, causal=causal, state=state, backend=self.backend)

    def new_state(self, capacity: int) -> LayerState:
        return LinearState()

    def kernel_name(self, heads: Tensor, at: Positions) -> str:
        return "chunked" if self.backend == "auto" else self.backend


# The class of each of `engine.config.schemes.ATTENTIONS`.
SELF_ATTENTION: dict[str, type[SelfAttention]] = {
    "global": SoftmaxSelfAttention,
    "window": SoftmaxSelfAttention,
    "sparse": SoftmaxSelfAttention,
    "linear": LinearSelfAttention,
}


class CrossAttention(nn.Module):
    """A decoder's attention over the source. They share no axis: no position terms, and no mask but padding."""

    observe: Observe | None = None
    why_no_weights: ClassVar[str] = ""

    def __init__(self, model: ModelConfig) -> None:
        super().__init__()
        self.n_heads, self.head_width = model.n_heads, model.head_width
        self.visibility, self.scheme = Visibility(causal=False), PositionScheme()
        self.dropout = model.attention_dropout
        self.backend = model.backend if model.backend in ("reference", "sdpa") else "auto"
        self.query = nn.Linear(model.d_model, model.d_model, bias=model.bias)
        self.key_value = nn.Linear(model.d_model, 2 * model.kv_width, bias=model.bias)
        self.output = nn.Linear(model.d_model, model.d_model, bias=model.bias)
        self.output_dropout = Dropout(model.attention_output_dropout)

    def keys_and_values(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """The encoder's output (B, S, D) → keys and values (B, H, S, Dh), once per source."""
        k, v = self.key_value(hidden).chunk(2, dim=-1)
        k, v = (repeat_kv(into_heads(part, self.head_width), self.n_heads) for part in (k, v))
        return k, v

    def forward(self, x: Tensor, at: Positions, source: tuple[Tensor, Tensor], source_at: Positions) -> Tensor:
        """(B, T, D) → (B, T, D)."""
        k, v = source
        q = into_heads(self.query(x), self.head_width)
        call = AttentionCall(q, k, at, source_at, self.visibility, self.scheme, self.dropout if self.training else 0.0)
        if self.observe is not None:
            self.observe(call)
        mixed = softmax_attention(call, v, self.backend)
        output: Tensor = self.output_dropout(self.output(mixed.transpose(1, 2).reshape(x.shape)))
        return output
