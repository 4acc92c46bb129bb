"""Where a head looks: its attention weights over a text, from the very queries and keys that the model compares.

Layers show them as they pass (`observe` in `engine.model.heads`), and the readable reference makes weights of them:
nothing is computed a second way. Weights show where a model looks, not why (Jain and Wallace 2019).
Notation: B batch, Tq/Tk query and key time, H heads, Dh head width.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from torch import Tensor, nn

from engine.errors import InputError, one_of
from engine.model.attention import attention_weights
from engine.model.heads import CrossAttention, LinearSelfAttention, Observe, SoftmaxSelfAttention
from engine.model.positions import Positions
from engine.model.transformer import EncoderDecoder, Network, evaluating

NO_WEIGHTS = (
    "linear attention has no weights to show: it sums keys and values up before any query looks at them, so there is "
    "no table of who looks at whom"
)
PLACES = {
    "self": "the text's tokens at those before them, or around them",
    "cross": "the target's tokens at the source's",
    "encoder": "the source's tokens at each other",
}


@dataclass(frozen=True)
class HeadAttention:
    """Where one head of one layer looks."""

    weights: Tensor  # (Tq, Tk), each row sums to 1, or to 0 where it sees nothing
    visible: Tensor  # (Tq, Tk) bool, what causality, window and links let through
    bias: Tensor | None  # (Tq, Tk) what the position scheme adds to the scores; None if it adds nothing to them


def places(model: Network) -> tuple[str, ...]:
    """Return the kinds of attention that a network has, of `PLACES`."""
    return tuple(PLACES) if isinstance(model, EncoderDecoder) else ("self",)


def attentions(model: Network, which: str = "self") -> list[nn.Module]:
    """Return the attention of each layer.

    Raises:
        InputError: the network has no such kind.
    """
    if which not in places(model):
        raise InputError(f"attention '{which}': this network has {one_of(places(model))}")
    layers = model.encoder.layers if which == "encoder" and isinstance(model, EncoderDecoder) else model.layers
    return [layer.get_submodule("cross_attention" if which == "cross" else "attention") for layer in layers]


def why_no_weights(model: Network, which: str = "self") -> str | None:
    """Return why this kind of attention has no weights, or None if it has."""
    return NO_WEIGHTS if any(isinstance(part, LinearSelfAttention) for part in attentions(model, which)) else None


def head_attention(
    model: Network, tokens: Tensor, layer: int, head: int, which: str = "self", source: Tensor | None = None
) -> HeadAttention:
    """Return where a head looks while the model reads a text.

    Args:
        model: the network.
        tokens: (T,) the text, at most a context of it; in an encoder-decoder what the decoder reads.
        layer: from 0.
        head: from 0.
        which: of `PLACES`.
        source: (S,) what the encoder of an encoder-decoder reads.

    Raises:
        InputError: no such layer, head or kind of attention, or it has no weights.
    """
    parts = attentions(model, which)
    reason = why_no_weights(model, which)
    if reason is not None:
        raise InputError(f"attention: {reason}")
    if not 0 <= layer < len(parts):
        raise InputError(f"layer {layer + 1}: this network's layers are 1 to {len(parts)}")
    part = parts[layer]
    assert isinstance(part, SoftmaxSelfAttention | CrossAttention)
    if not 0 <= head < part.n_heads:
        raise InputError(f"head {head + 1}: a layer's heads are 1 to {part.n_heads}")
    seen: list[tuple[Tensor, Tensor, Positions, Positions]] = []
    with evaluating(model), _observing(part, lambda *compared: seen.append(compared)):
        if isinstance(model, EncoderDecoder):
            assert source is not None
            model(source[None], tokens[None])
        else:
            model(tokens[None])
        q, k, q_at, k_at = seen[-1]
        bias = part.scheme.bias(q_at.index, k_at.index)
        visible = part.see(q_at.index[:, :, None], k_at.index[:, None, :])
        weights = attention_weights(q, k, q_at, k_at, part.see, part.scheme)
    return HeadAttention(weights[0, head], visible[0], None if bias is None else bias[0, head])


@contextmanager
def _observing(part: SoftmaxSelfAttention | CrossAttention, observe: Observe) -> Iterator[None]:
    """Show `observe` the queries and keys that a layer compares, with their positions."""
    part.observe = observe
    try:
        yield
    finally:
        part.observe = None


def cross_attention(model: EncoderDecoder, layer: int) -> CrossAttention:
    """Return the cross-attention of a decoder layer, from 0; −1 is the last.

    Raises:
        InputError: there is no such layer.
    """
    n = len(model.layers)
    if not -n <= layer < n:
        raise InputError(f"layer {layer}: the decoder's {n} layers are 0 to {n - 1}, and −1 is the last")
    part = model.layers[layer].get_submodule("cross_attention")
    assert isinstance(part, CrossAttention)
    return part


@contextmanager
def recorded_weights(part: CrossAttention) -> Iterator[list[Tensor]]:
    """Collect a layer's cross-attention weights, (B, H, Tq, Tk) for each call of the decoder meanwhile."""
    weights: list[Tensor] = []
    with _observing(
        part, lambda q, k, q_at, k_at: weights.append(attention_weights(q, k, q_at, k_at, part.see, part.scheme))
    ):
        yield weights


def one_head(weights: Tensor, head: int | None) -> Tensor:
    """(H, Tq, Tk) weights → (Tq, Tk) of one head, from 0, or of all on average.

    Raises:
        InputError: there is no such head.
    """
    n = weights.shape[0]
    if head is None:
        return weights.mean(0)
    if not 0 <= head < n:
        raise InputError(f"head {head}: the layer's {n} heads are 0 to {n - 1}")
    return weights[head]
