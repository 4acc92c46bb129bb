"""Alignment: which words of the source the decoder looks at while it writes each word of the target.

The weights are those of its cross-attention, written out by the readable reference from the very queries and keys that
a pass of the model makes. They show where it looks, not why (Jain and Wallace 2019). Notation: B batch, H heads,
T target time, S source time.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor

from engine.errors import InputError
from engine.model.attention import attention_weights
from engine.model.heads import CrossAttention
from engine.model.transformer import EncoderDecoder


def cross_attention(model: EncoderDecoder, layer: int) -> CrossAttention:
    """The cross-attention of a decoder layer.

    Args:
        model: has one in each.
        layer: from 0; −1 is the last.

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
def captured(model: EncoderDecoder, layer: int) -> Iterator[list[Tensor]]:
    """Collects a layer's cross-attention weights, (B, H, T, S) for each call of the decoder meanwhile.

    Raises:
        InputError: there is no such layer.
    """
    part = cross_attention(model, layer)
    weights: list[Tensor] = []
    part.observe = lambda q, k, at, source_at: weights.append(
        attention_weights(q, k, at, source_at, part.see, part.scheme)
    )
    try:
        yield weights
    finally:
        part.observe = None


def of_head(weights: Tensor, head: int | None) -> Tensor:
    """(H, T, S) weights of one head, or of all on average: (T, S).

    Args:
        weights: of one sentence.
        head: from 0; None: the mean.

    Raises:
        InputError: there is no such head.
    """
    n = weights.shape[0]
    if head is None:
        return weights.mean(0)
    if not 0 <= head < n:
        raise InputError(f"head {head}: the layer's {n} heads are 0 to {n - 1}")
    return weights[head]
