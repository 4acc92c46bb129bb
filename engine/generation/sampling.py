"""Sampling: one token after the other, from a cut and tempered distribution, with a KV cache.

Draws come from a generator of their own, so sampling never disturbs a training. V vocabulary.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from engine.model.cache import Cache
from engine.model.span import Span


class Decodes(Protocol):
    """A model that can decode step by step."""

    def __call__(self, tokens: Tensor, at: Span | None = None, cache: Cache | None = None) -> Tensor:
        """(B, T) → (B, T, V) logits."""
        ...

    def new_cache(self) -> Cache:
        """An empty cache."""
        ...


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn.

    Args:
        temperature: logits are divided by it; 0 takes the likeliest token.
        top_k: only the k likeliest; 0 means all.
        top_p: only the likeliest that together have this probability (Holtzman et al. 2020, nucleus).
        overflow: at a full context, `restart` goes on from the newest half of it, `stop` ends.
    """

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 1.0
    overflow: str = "restart"


@dataclass(frozen=True)
class Drawn:
    """One token, its probability under the model (temperature 1, nothing cut), and whether the context restarted."""

    token: int
    probability: float
    restarted: bool


def distribution(logits: Tensor, how: Sampling, allowed: int | None = None) -> Tensor:
    """The distribution that is drawn from.

    Args:
        logits: (V,).
        how: temperature and cuts; temperature 0 puts all mass on the likeliest token.
        allowed: tokens the tokenizer has; ids past it (a padded embedding) are never drawn.

    Returns:
        (V,) fp32 probabilities that sum to 1.
    """
    logits = logits.float()
    if allowed is not None:
        logits = logits.clone()
        logits[allowed:] = -torch.inf
    if how.temperature == 0.0:
        return torch.nn.functional.one_hot(logits.argmax(), logits.numel()).float()
    # Shifted before the division, so that a tiny temperature cannot overflow.
    scores = (logits - logits.max()) / max(how.temperature, 1e-30)
    if 0 < how.top_k < scores.numel():
        kept = scores.topk(how.top_k).indices  # by index: of equal scores only as many as k has room for
        scores = torch.full_like(scores, -torch.inf).index_copy(0, kept, scores[kept])
    probabilities = scores.softmax(-1)
    if how.top_p < 1.0:
        ordered, order = probabilities.sort(descending=True)
        before = ordered.cumsum(-1) - ordered  # mass of the likelier ones; the first is always kept
        probabilities[order[before >= how.top_p]] = 0.0
        probabilities = probabilities / probabilities.sum()
    return probabilities


def stream(
    model: Decodes,
    prompt: Tensor,
    length: int,
    how: Sampling,
    generator: torch.Generator,
    *,
    context: int,
    allowed: int | None = None,
) -> Iterator[Drawn]:
    """Draw `length` tokens after a prompt, one at a time.

    Args:
        model: in evaluation mode.
        prompt: (T,) token ids, at least one; only its newest `context` tokens count.
        length: how many tokens to draw.
        how: temperature, cuts, and what to do when the context is full.
        generator: on the CPU; the only source of chance.
        context: tokens the model was trained on at once. When they are used up, `restart` keeps the newest
            context // 2 tokens and reads them again from position 0.
        allowed: tokens the tokenizer has.

    Raises:
        ValueError: an empty prompt.
    """
    if prompt.numel() == 0:
        raise ValueError("a prompt needs at least one token")
    recent = prompt.tolist()[-context:]
    cache = model.new_cache()
    device = prompt.device
    pending = recent
    for _ in range(length):
        restarted = False
        if cache.length + len(pending) > context:
            if how.overflow == "stop":
                return
            restarted = True
            recent = recent[-max(1, context // 2) :]
            cache, pending = model.new_cache(), recent
        with torch.no_grad():
            logits = model(torch.tensor([pending], device=device), cache=cache)[0, -1].float().cpu()
        chosen = int(torch.multinomial(distribution(logits, how, allowed), 1, generator=generator))
        yield Drawn(chosen, float(logits.softmax(-1)[chosen]), restarted)
        recent.append(chosen)
        pending = [chosen]
