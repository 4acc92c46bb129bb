"""Feed-forward, norms, and the layer that both stacks are built from. Notation: B batch, T time, D model width."""

from collections import OrderedDict
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.config.sections import ModelConfig
from engine.model.cache import LayerState
from engine.model.dropout import Dropout, RowDropout
from engine.model.heads import SELF_ATTENTION, CrossAttention
from engine.model.positions import Positions, PositionScheme
from engine.model.visibility import Visibility


def _gated(x: Tensor, by: Callable[[Tensor], Tensor]) -> Tensor:
    gate, value = x.chunk(2, dim=-1)
    return by(gate) * value


GELU_TANH = partial(F.gelu, approximate="tanh")
# How each of the activations and norms of `engine.schemes` is computed.
ACTIVATION: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu-tanh": GELU_TANH,
    "relu": F.relu,
    "relu2": lambda x: F.relu(x).square(),
    "silu": F.silu,
    "swiglu": partial(_gated, by=F.silu),
    "geglu": partial(_gated, by=F.gelu),
    "geglu-tanh": partial(_gated, by=GELU_TANH),
}
NORM: dict[str, Callable[[ModelConfig], nn.Module]] = {
    "layer": lambda model: nn.LayerNorm(model.d_model, eps=model.norm_eps, bias=model.bias),
    "rms": lambda model: nn.RMSNorm(model.d_model, eps=model.norm_eps),
    "none": lambda model: nn.Identity(),
}


def make_norm(model: ModelConfig) -> nn.Module:
    return NORM[model.norm](model)


class Gain(nn.Module):
    """A learned factor for each feature: LayerScale (Touvron et al. 2021)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) → (B, T, D)."""
        return x * self.weight


class Mix(nn.Module):
    """A learned mixture λ x + μ x₀ of the stream with the embedding that it began with (Jordan et al. 2024)."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(2))  # λ, μ

    def forward(self, x: Tensor, embedded: Tensor) -> Tensor:
        """(B, T, D), twice → (B, T, D)."""
        return self.weight[0] * x + self.weight[1] * embedded


def after(model: ModelConfig, dropped: float) -> nn.Sequential:
    """Return what the output of a part of a layer passes before it is added to the stream; often nothing."""
    steps: dict[str, nn.Module] = {}
    if model.norm_placement == "sandwich":
        steps["norm"] = make_norm(model)
    if model.layer_scale:
        steps["scale"] = Gain(model.d_model)
    if dropped:
        steps["drop"] = RowDropout(dropped)
    return nn.Sequential(OrderedDict(steps))


class FeedForward(nn.Module):
    """Two linear maps with an activation between, at each position alone (Vaswani et al. 2017, §3.3)."""

    def __init__(self, model: ModelConfig) -> None:
        super().__init__()
        self.activation = ACTIVATION[model.activation]
        self.expand = nn.Linear(model.d_model, model.ff_expansion, bias=model.bias)
        self.hidden_dropout = Dropout(model.ff_dropout)
        self.output = nn.Linear(model.d_ff, model.d_model, bias=model.bias)
        self.output_dropout = Dropout(model.dropout)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) → (B, T, D)."""
        hidden = self.hidden_dropout(self.activation(self.expand(x)))
        output: Tensor = self.output_dropout(self.output(hidden))
        return output


class Layer(nn.Module):
    """Self-attention, in a decoder over a source also cross-attention, then feed-forward, each around a residual.

    Pre-norm (GPT-2; Xiong et al. 2020): x + f(norm(x)). Post-norm (Vaswani et al. 2017): norm(x + f(x)). Sandwich (Ding
    et al. 2021): x + norm(f(norm(x))). Without `residual`, no x + term. In parallel (Wang and Komatsuzaki 2021):
    x + f(norm(x)) + g(norm(x)). `dropped` is the share of rows for which a part is left out in training.
    """

    def __init__(
        self,
        model: ModelConfig,
        see: Visibility,
        scheme: PositionScheme,
        *,
        over_source: bool,
        is_first: bool,
        dropped: float = 0.0,
    ) -> None:
        super().__init__()
        self.pre_norm, self.residual, self.parallel = model.norm_placement != "post", model.residual, model.parallel
        self.mix = Mix() if model.embedding_mix else None
        self.attention_norm = make_norm(model)
        self.attention = SELF_ATTENTION[model.attention](model, see, scheme, is_first=is_first)
        self.attention_after = after(model, dropped)
        self.cross_attention = CrossAttention(model) if over_source else None
        self.cross_attention_norm = make_norm(model) if over_source else nn.Identity()
        self.cross_attention_after = after(model, dropped) if over_source else nn.Identity()
        self.feed_forward_norm = make_norm(model)
        self.feed_forward = FeedForward(model)
        self.feed_forward_after = after(model, dropped)

    def forward(
        self,
        x: Tensor,
        at: Positions,
        state: LayerState | None = None,
        source: tuple[Tensor, Tensor] | None = None,
        source_at: Positions | None = None,
        embedded: Tensor | None = None,
        first: list[Tensor] | None = None,
    ) -> Tensor:
        """(B, T, D) → (B, T, D); `source` are this layer's keys and values of the source, at `source_at`; `embedded` is
        the input of the first layer, and `first` as in `SelfAttention`.
        """
        if self.mix is not None:
            x = self.mix(x, embedded)

        def feed(y: Tensor) -> Tensor:
            output: Tensor = self.feed_forward_after(self.feed_forward(y))
            return output

        wrap = partial(around, pre_norm=self.pre_norm, residual=self.residual)
        start, x = x, wrap(x, self.attention_norm, lambda y: self.attention_after(self.attention(y, at, state, first)))
        if self.parallel:
            return x + feed(self.feed_forward_norm(start))
        if self.cross_attention is not None:
            cross, end = self.cross_attention, self.cross_attention_after
            x = wrap(x, self.cross_attention_norm, lambda y: end(cross(y, at, source, source_at)))
        return wrap(x, self.feed_forward_norm, feed)


def around(
    x: Tensor, norm: Callable[[Tensor], Tensor], f: Callable[[Tensor], Tensor], *, pre_norm: bool, residual: bool
) -> Tensor:
    y = f(norm(x)) if pre_norm else f(x)
    if residual:
        y = x + y
    return y if pre_norm else norm(y)
