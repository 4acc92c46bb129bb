"""Where a head looks: its attention weights over a text, from the queries and keys that the model itself uses.

Layers expose them (`observe` in `engine.model.heads`), and the readable reference turns them into weights: no separate
implementation. Weights show where a model looks, not why (Jain and Wallace 2019).
Notation: B batch, Tq/Tk query and key time, H heads, Dh head width.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias, cast

from torch import Tensor

from engine.base.errors import InputError, join_or
from engine.base.language import Message
from engine.model.attention import AttentionCall, attention_weights
from engine.model.heads import CrossAttention, Observe, SelfAttention
from engine.model.transformer import Network, evaluating

# The text's tokens look at those before or around them; the target's at the source's; the source's at each other.
ATTENTION_KINDS = ("self", "cross", "encoder")
AnyAttention: TypeAlias = SelfAttention | CrossAttention


@dataclass(frozen=True)
class HeadAttention:
    weights: Tensor  # (Tq, Tk), each row sums to 1, or to 0 where it sees nothing
    visible: Tensor  # (Tq, Tk) bool, allowed by causality, window and links
    bias: Tensor | None  # (Tq, Tk) the position scheme's addition to the scores; None if nothing


def attention_kinds(model: Network) -> tuple[str, ...]:
    return ATTENTION_KINDS if model.reads_source else ("self",)


def attention_layers(model: Network, which: str = "self") -> list[AnyAttention]:
    """Return each layer's attention. Raises InputError if the network has no such kind."""
    if which not in attention_kinds(model):
        problem = Message(
            "attention '{which}': in this network it must be {places}",
            which=which,
            places=join_or(attention_kinds(model)),
        )
        raise InputError(problem)
    layers = model.stacks[0 if which == "encoder" else -1].layers
    name = "cross_attention" if which == "cross" else "attention"
    return [cast(AnyAttention, layer.get_submodule(name)) for layer in layers]


def head_attention(
    model: Network, tokens: Tensor, layer: int, head: int, which: str = "self", source: Tensor | None = None
) -> HeadAttention:
    """Return where a head of a layer, both from 0, looks while the model reads (T,) tokens, at most a context of them:
    in an encoder-decoder what the decoder reads, with a `source` (S,). `which` is of `ATTENTION_KINDS`. `InputError`:
    no such layer, head or kind of attention, or it has no weights.
    """
    parts = attention_layers(model, which)
    if not 0 <= layer < len(parts):
        raise InputError(Message("layer {layer}: this network has layers 1 to {n}", layer=layer + 1, n=len(parts)))
    part = parts[layer]
    if part.why_no_weights:
        raise InputError(part.why_no_weights)
    if not 0 <= head < part.n_heads:
        raise InputError(
            Message("head {head}: each layer has heads 1 to {n_heads}", head=head + 1, n_heads=part.n_heads)
        )
    seen: list[AttentionCall] = []
    with evaluating(model), _observe(part, seen.append):
        model.logits(tokens[None], None if source is None else source[None])
        call = seen[-1]
        bias = call.scheme.bias(call.q_at.index, call.k_at.index)
        weights, visible = attention_weights(call), call.visible()
    return HeadAttention(weights[0, head], visible[0, 0], None if bias is None else bias[0, head])


@contextmanager
def _observe(part: AnyAttention, observe: Observe) -> Iterator[None]:
    part.observe = observe
    try:
        yield
    finally:
        part.observe = None


@contextmanager
def record_cross_attention(model: Network, layer: int = -1) -> Iterator[list[Tensor]]:
    """Collect a decoder layer's cross-attention weights, (B, H, Tq, Tk) per decoder call inside the context."""
    part, weights = attention_layers(model, "cross")[layer], list[Tensor]()
    with _observe(part, lambda call: weights.append(attention_weights(call))):
        yield weights
