"""Feed-forward, norms, and the layer that both stacks are built from. Notation: B batch, T time, D model width."""

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from engine.config.model import ModelConfig
from engine.config.visibility import Visibility
from engine.model.cache import LayerState
from engine.model.dropout import Dropout, RowDropout
from engine.model.heads import SELF_ATTENTION, CrossAttention, ForwardContext
from engine.model.positions import Positions, PositionScheme, TensorFunction


def _gated(x: Tensor, by: TensorFunction) -> Tensor:
    gate, value = x.chunk(2, dim=-1)
    return by(gate) * value


class _SquaredReLU(torch.autograd.Function):
    """y², y = relu(x): its slope 2y is 0 where x is negative, so backward needs no mask, and only y is kept."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = F.relu(x)
        ctx.save_for_backward(y)
        return y * y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        slope: Tensor = y * gradient
        return slope.mul_(2.0)


def _squared_relu(x: Tensor) -> Tensor:
    squared: Tensor = _SquaredReLU.apply(x)  # type: ignore[no-untyped-call]
    return squared


GELU_TANH = partial(F.gelu, approximate="tanh")
# How each of the activations and norms of `engine.config.schemes` is computed.
ACTIVATION_FUNCTIONS: dict[str, TensorFunction] = {
    "gelu": F.gelu,
    "gelu-tanh": GELU_TANH,
    "relu": F.relu,
    "relu2": _squared_relu,
    "silu": F.silu,
    "swiglu": partial(_gated, by=F.silu),
    "geglu": partial(_gated, by=F.gelu),
    "geglu-tanh": partial(_gated, by=GELU_TANH),
}
NORM_BUILDERS: dict[str, Callable[[ModelConfig], nn.Module]] = {
    "layer": lambda model: nn.LayerNorm(model.d_model, eps=model.norm_eps, bias=model.bias),
    "rms": lambda model: nn.RMSNorm(model.d_model, eps=model.norm_eps),
    "none": lambda model: nn.Identity(),
}


def make_norm(model: ModelConfig) -> nn.Module:
    return NORM_BUILDERS[model.norm](model)


class LayerScale(nn.Module):
    """A learned gain per feature: LayerScale (Touvron et al. 2021)."""

    def __init__(self, width: int, initial: float) -> None:
        super().__init__()
        self.initial = initial
        self.weight = nn.Parameter(torch.empty(width))

    def set_initial_values(self) -> None:
        self.weight.fill_(self.initial)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) → (B, T, D)."""
        return x * self.weight


class EmbeddingMix(nn.Module):
    """A learned mixture λ x + μ x₀ of the residual stream with the initial embedding (Jordan et al. 2024)."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(2))  # λ, μ

    def set_initial_values(self) -> None:
        self.weight.copy_(torch.tensor([1.0, 0.0]))

    def forward(self, x: Tensor, embedded: Tensor | None) -> Tensor:
        """(B, T, D), twice → (B, T, D)."""
        assert embedded is not None
        return self.weight[0] * x + self.weight[1] * embedded


class ShortConvolution(nn.Module):
    """A causal depthwise convolution over tokens (So et al. 2021; Allen-Zhu 2025), initially the identity."""

    def __init__(self, width: int, tokens: int, part: str) -> None:
        super().__init__()
        self.tokens, self.part = tokens, part
        self.weight = nn.Parameter(torch.empty(tokens * width))  # from the newest token to the oldest, D each

    def set_initial_values(self) -> None:
        self.weight.zero_()[: len(self.weight) // self.tokens] = 1.0

    def forward(self, x: Tensor, at: Positions, state: LayerState | None) -> Tensor:
        """(B, T, D) → (B, T, D); zero-padded before the first token."""
        others = self.tokens - 1
        before = None if state is None else state.conv_inputs.get(self.part)
        x = torch.cat((x.new_zeros(x.shape[0], others, x.shape[2]) if before is None else before, x), dim=1)
        if state is not None:
            state.conv_inputs[self.part] = x[:, -others:]
        own, *earlier = self.weight.to(x.dtype).view(self.tokens, -1)
        found: Tensor = own * x[:, others:]
        for back, weight in enumerate(earlier, 1):
            seen = x[:, others - back : -back]
            if at.start is None:  # there may be padding before the first token
                seen = seen.masked_fill((at.index < back)[:, :, None], 0.0)
            found = torch.addcmul(found, weight, seen)
        return found


def make_sublayer_output_modules(model: ModelConfig, relative_depth: float) -> nn.Sequential:
    """Return what is applied to a sublayer's output before it is added to the residual stream; often nothing. The
    depth is that of the layer, up to 1.
    """
    steps: dict[str, nn.Module] = {}
    if model.norm_placement == "sandwich":
        steps["norm"] = make_norm(model)
    if model.layer_scale:
        steps["scale"] = LayerScale(model.d_model, model.layer_scale)
    if model.layer_drop:  # a rate that grows with depth (Huang et al. 2016, eq. 4)
        steps["drop"] = RowDropout(model.layer_drop * relative_depth)
    return nn.Sequential(OrderedDict(steps))


class FeedForward(nn.Module):
    """Two projections with an activation between, applied to each position separately (Vaswani et al. 2017, §3.3)."""

    def __init__(self, model: ModelConfig) -> None:
        super().__init__()
        self.activation = ACTIVATION_FUNCTIONS[model.activation]
        self.expand = nn.Linear(model.d_model, model.ff_expanded_width, bias=model.bias)
        self.hidden_dropout = Dropout(model.ff_dropout)
        self.output = nn.Linear(model.d_ff, model.d_model, bias=model.bias)
        self.output_dropout = Dropout(model.dropout)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) → (B, T, D)."""
        hidden = self.hidden_dropout(self.activation(self.expand(x)))
        output: Tensor = self.output_dropout(self.output(hidden))
        return output


class Branch(NamedTuple):
    """A residual branch of a layer: a norm and a sublayer, both (B, T, D) → (B, T, D)."""

    norm: TensorFunction
    sublayer: TensorFunction


class Layer(nn.Module):
    """Self-attention, cross-attention in a decoder over a source, and feed-forward, each with a residual connection.

    Pre-norm (GPT-2; Xiong et al. 2020): x + f(norm(x)). Post-norm (Vaswani et al. 2017): norm(x + f(x)). Sandwich (Ding
    et al. 2021): x + norm(f(norm(x))). Without `residual`, no x + term. In parallel (Wang and Komatsuzaki 2021):
    x + f(norm(x)) + g(norm(x)). It is layer `i` of `n`, from 0.
    """

    def __init__(
        self, model: ModelConfig, see: Visibility, scheme: PositionScheme, i: int, n: int, *, over_source: bool
    ) -> None:
        super().__init__()
        self.pre_norm, self.residual, self.parallel = model.norm_placement != "post", model.residual, model.parallel
        self.mix = EmbeddingMix() if model.embedding_mix else None
        self.attention_norm = make_norm(model)
        self.attention_conv, self.feed_forward_conv = (
            ShortConvolution(model.d_model, model.conv, part) if model.conv else None
            for part in ("attention", "feed-forward")
        )
        self.attention = SELF_ATTENTION[model.attention](model, see, scheme, i)
        self.attention_after = make_sublayer_output_modules(model, (i + 1) / n)
        self.cross_attention = CrossAttention(model) if over_source else None
        self.cross_attention_norm = make_norm(model) if over_source else nn.Identity()
        self.cross_attention_after = make_sublayer_output_modules(model, (i + 1) / n) if over_source else nn.Identity()
        self.feed_forward_norm = make_norm(model)
        self.feed_forward = FeedForward(model)
        self.feed_forward_after = make_sublayer_output_modules(model, (i + 1) / n)

    def forward(
        self,
        x: Tensor,
        context: ForwardContext,
        state: LayerState | None = None,
        source: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:
        """(B, T, D) → (B, T, D); `source` are this layer's keys and values of the source."""

        def attended(y: Tensor) -> Tensor:
            if self.attention_conv is not None:
                y = self.attention_conv(y, context.positions, state)
            output: Tensor = self.attention_after(self.attention(y, context, state))
            return output

        def fed(y: Tensor) -> Tensor:
            if self.feed_forward_conv is not None:
                y = self.feed_forward_conv(y, context.positions, state)
            output: Tensor = self.feed_forward_after(self.feed_forward(y))
            return output

        attend, feed = Branch(self.attention_norm, attended), Branch(self.feed_forward_norm, fed)
        across = None
        if self.cross_attention is not None:
            norm, cross, end = self.cross_attention_norm, self.cross_attention, self.cross_attention_after
            across = Branch(norm, lambda y: end(cross(y, context.positions, source, context.source_at)))
        return self.join_branches(x, context, attend, feed, across)

    def join_branches(
        self, x: Tensor, context: ForwardContext, attend: Branch, feed: Branch, across: Branch | None = None
    ) -> Tensor:
        """Join a layer's branches, in training and in decoding: (B, T, D) → (B, T, D)."""
        if self.mix is not None:
            x = self.mix(x, context.embedded)
        start, x = x, self.add_residual(x, attend)
        if self.parallel:
            return x + feed.sublayer(feed.norm(start))
        if across is not None:
            x = self.add_residual(x, across)
        return self.add_residual(x, feed)

    def add_residual(self, x: Tensor, branch: Branch) -> Tensor:
        y = branch.sublayer(branch.norm(x)) if self.pre_norm else branch.sublayer(x)
        if self.residual:
            y = x + y
        return y if self.pre_norm else branch.norm(y)
