"""Feed-forward, norms, and the layer that both stacks are built from. Notation: B batch, T time, D model width."""

from collections.abc import Callable
from functools import partial

from torch import Tensor, nn
from torch.nn import functional as F

from engine.config.sections import ModelConfig
from engine.model.cache import LayerState
from engine.model.dropout import Dropout
from engine.model.heads import SELF_ATTENTION, CrossAttention
from engine.model.positions import Positions, PositionScheme
from engine.model.visibility import Visibility


def _swiglu(x: Tensor) -> Tensor:
    gate, value = x.chunk(2, dim=-1)
    return F.silu(gate) * value


# How each of the activations and norms of `engine.schemes` is computed.
ACTIVATION: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu-tanh": partial(F.gelu, approximate="tanh"),
    "relu": F.relu,
    "swiglu": _swiglu,
}
NORM: dict[str, Callable[[ModelConfig], nn.Module]] = {
    "layer": lambda model: nn.LayerNorm(model.d_model, eps=model.norm_eps, bias=model.bias),
    "rms": lambda model: nn.RMSNorm(model.d_model, eps=model.norm_eps),
    "none": lambda model: nn.Identity(),
}


def make_norm(model: ModelConfig) -> nn.Module:
    return NORM[model.norm](model)


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

    Pre-norm (GPT-2; Xiong et al. 2020): x + f(norm(x)). Post-norm (Vaswani et al. 2017): norm(x + f(x)). Without
    `residual`, no x + term.
    """

    def __init__(
        self, model: ModelConfig, see: Visibility, scheme: PositionScheme, *, over_source: bool, is_first: bool
    ) -> None:
        super().__init__()
        self.pre_norm, self.residual = model.norm_placement == "pre", model.residual
        self.attention_norm = make_norm(model)
        self.attention = SELF_ATTENTION[model.attention](model, see, scheme, is_first=is_first)
        self.cross_attention = CrossAttention(model) if over_source else None
        self.cross_attention_norm = make_norm(model) if over_source else nn.Identity()
        self.feed_forward_norm = make_norm(model)
        self.feed_forward = FeedForward(model)

    def forward(
        self,
        x: Tensor,
        at: Positions,
        state: LayerState | None = None,
        source: tuple[Tensor, Tensor] | None = None,
        source_at: Positions | None = None,
        first: list[Tensor] | None = None,
    ) -> Tensor:
        """(B, T, D) → (B, T, D); `source` are this layer's keys and values of the source, at `source_at`; `first` is as
        in `SelfAttention`.
        """
        wrap = partial(around, pre_norm=self.pre_norm, residual=self.residual)
        x = wrap(x, self.attention_norm, lambda y: self.attention(y, at, state, first))
        if self.cross_attention is not None:
            cross = self.cross_attention
            x = wrap(x, self.cross_attention_norm, lambda y: cross(y, at, source, source_at))
        return wrap(x, self.feed_forward_norm, self.feed_forward)


def around(
    x: Tensor, norm: Callable[[Tensor], Tensor], f: Callable[[Tensor], Tensor], *, pre_norm: bool, residual: bool
) -> Tensor:
    y = f(norm(x)) if pre_norm else f(x)
    if residual:
        y = x + y
    return y if pre_norm else norm(y)
