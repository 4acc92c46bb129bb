"""Feed-forward, norms and the decoder layer. Notation: B batch, T time, D model width."""

from collections.abc import Callable
from functools import partial

from torch import Tensor, nn
from torch.nn import functional as F

from engine.config.schema import ModelConfig
from engine.model.attention import MultiHeadAttention
from engine.model.cache import KeyValueCache
from engine.model.positions import PositionScheme
from engine.model.span import Span
from engine.model.visibility import Visibility

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,  # Hendrycks and Gimpel 2016, exact
    "gelu-tanh": partial(F.gelu, approximate="tanh"),  # GPT-2's approximation
    "relu": F.relu,
}


def make_norm(model: ModelConfig) -> nn.Module:
    """The normalisation over features: LayerNorm (Ba et al. 2016)."""
    return nn.LayerNorm(model.d_model, eps=model.norm_eps, bias=model.bias)


class FeedForward(nn.Module):
    """Two linear maps with an activation between, at each position alone (Vaswani et al. 2017, §3.3)."""

    def __init__(self, model: ModelConfig) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[model.activation]
        self.expand = nn.Linear(model.d_model, model.d_ff, bias=model.bias)
        self.hidden_dropout = nn.Dropout(model.ff_dropout)
        self.output = nn.Linear(model.d_ff, model.d_model, bias=model.bias)
        self.output_dropout = nn.Dropout(model.dropout)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) → (B, T, D)."""
        hidden = self.hidden_dropout(self.activation(self.expand(x)))
        output: Tensor = self.output_dropout(self.output(hidden))
        return output


class DecoderLayer(nn.Module):
    """Self-attention, then feed-forward, each around a residual.

    Pre-norm (GPT-2; Xiong et al. 2020): x + f(norm(x)). Post-norm (Vaswani et al. 2017): norm(x + f(x)).
    """

    def __init__(self, model: ModelConfig, see: Visibility, scheme: PositionScheme) -> None:
        super().__init__()
        self.pre_norm = model.norm_placement == "pre"
        self.attention_norm = make_norm(model)
        self.attention = MultiHeadAttention(model, see, scheme)
        self.feed_forward_norm = make_norm(model)
        self.feed_forward = FeedForward(model)

    def forward(self, x: Tensor, at: Span, state: KeyValueCache | None = None) -> Tensor:
        """(B, T, D) → (B, T, D)."""
        if self.pre_norm:
            x = x + self.attention(self.attention_norm(x), at, state)
            out: Tensor = x + self.feed_forward(self.feed_forward_norm(x))
        else:
            x = self.attention_norm(x + self.attention(x, at, state))
            out = self.feed_forward_norm(x + self.feed_forward(x))
        return out
