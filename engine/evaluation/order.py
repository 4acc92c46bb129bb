"""The order check: do positions reach the model at all?"""

from copy import deepcopy

import torch
from torch import Tensor

from engine.evaluation.checks import relative_change
from engine.evaluation.verdict import NO_ORDER, OK, Verdict, When
from engine.model.heads import SelfAttention
from engine.model.span import Span
from engine.model.transformer import EncoderDecoder, Network, Stack
from engine.model.visibility import Visibility
from engine.seeds import seed_for

ORDERED = 32  # tokens of the text that is permuted
ORDER_LIMIT = 1e-9  # relative, in float64


def order_check(model: Network, vocab_size: int, *, when: When = "before", step: int = 0) -> Verdict | None:
    """Whether positions reach the model; None for one that has none, or no text long enough to tell.

    Without a mask and without positions a Transformer cannot tell order: permuting its text permutes its predictions
    and nothing else. So in a copy with other weights the masks are lifted and two neighbours change places; in float64
    anything more than rounding counts.
    """
    length = min(ORDERED, model.config.context_length, model.config.source_tokens)
    if model.config.position == "none" or length < 3 or vocab_size < 2:
        return None
    copy = deepcopy(model).cpu().double().eval()  # on the CPU: MPS has no float64
    for part in copy.modules():
        if isinstance(part, SelfAttention):
            part.see = Visibility(causal=False)
    redraw(copy)
    tokens = torch.arange(length)[None] % min(vocab_size, length)
    swapped = torch.arange(length)
    swapped[:2] = torch.tensor([1, 0])
    with torch.no_grad():
        moved = []
        for stack in [part for part in copy.modules() if isinstance(part, Stack)]:
            before, after = (_hidden(copy, stack, text) for text in (tokens, tokens[:, swapped]))
            moved.append(relative_change(before[:, swapped], after))
    if not min(moved) <= ORDER_LIMIT:
        return Verdict("order", when, step, OK, 0.0, f"the model tells order ({model.config.position} positions)")
    why = (
        f"permuting a text only permutes the predictions: {model.config.position} positions never reach the model "
        "(a table indexed by batch instead of time is the usual cause)"
    )
    return Verdict("order", when, step, NO_ORDER, min(moved), why)


@torch.no_grad()
def redraw(model: Network) -> None:
    """Redraw the weights at another scale, in place: this tests how parts are connected, not how they start."""
    generator = torch.Generator().manual_seed(seed_for(0, "probe", "order"))
    for weight in model.parameters():
        drawn = torch.randn(weight.shape, generator=generator, dtype=torch.float64)
        if weight.dim() >= 2:
            weight.copy_((drawn / weight.shape[-1] ** 0.5).to(weight.device))
        else:
            weight.add_((0.1 * drawn).to(weight))  # gains and biases


def _hidden(model: Network, stack: Stack, tokens: Tensor) -> Tensor:
    """What one stack alone makes of a text; a decoder over a source gets the same few random vectors for it."""
    at, x = Span.run(tokens.shape[1], 0, tokens.device), model.token_embedding(tokens)
    if not isinstance(model, EncoderDecoder) or stack is model.encoder:
        return stack.run(x, at)
    generator = torch.Generator().manual_seed(seed_for(0, "probe", "source"))
    hidden = torch.randn(1, 4, x.shape[-1], generator=generator, dtype=torch.float64).to(x)
    return stack.run(x, at, None, model.read(hidden), Span.run(4, 0, x.device))
