"""Sampling: one token after the other, from a cut and tempered distribution, with a KV cache.

Draws come from a generator of their own, so sampling never disturbs a training. V vocabulary.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from engine.model.cache import Cache
from engine.model.transformer import DecoderLM, EncoderDecoder, EncoderLM


class Progress(Protocol):
    """What a model remembers of one text: how many tokens of it, at least."""

    length: int


class Decodes(Protocol):
    """What can write a text token by token."""

    def new_cache(self) -> Any:
        """An empty memory, a `Progress`."""
        ...

    def next_logits(self, tokens: Tensor, cache: Any) -> Tensor:
        """(1, T) new tokens → (V,) logits of the token after them; the memory is extended in place."""
        ...


class FromDecoder:
    """A decoder with its KV cache."""

    def __init__(self, model: DecoderLM) -> None:
        self.model = model

    def new_cache(self) -> Cache:
        """An empty KV cache."""
        return self.model.new_cache()

    def next_logits(self, tokens: Tensor, cache: Cache) -> Tensor:
        """(1, T) → (V,)."""
        logits: Tensor = self.model(tokens, cache=cache)[0, -1]
        return logits


class FromEncoder:
    """An encoder used as a language model: every step reads the whole text again, since any token may change all."""

    @dataclass
    class Text:
        """The tokens so far, (1, T)."""

        tokens: Tensor | None = None

        @property
        def length(self) -> int:
            """T."""
            return 0 if self.tokens is None else self.tokens.shape[1]

    def __init__(self, model: EncoderLM) -> None:
        self.model = model

    def new_cache(self) -> "FromEncoder.Text":
        """No text yet."""
        return FromEncoder.Text()

    def next_logits(self, tokens: Tensor, cache: "FromEncoder.Text") -> Tensor:
        """(1, T) → (V,)."""
        cache.tokens = tokens if cache.tokens is None else torch.cat((cache.tokens, tokens), dim=1)
        logits: Tensor = self.model(cache.tokens)[0, -1]
        return logits


class FromSource:
    """A decoder over one source, which was read once."""

    def __init__(self, model: EncoderDecoder, source: Tensor) -> None:
        self.model = model
        with torch.no_grad():
            self.memory = model.encode(source)

    def new_cache(self) -> Cache:
        """An empty cache; it also keeps the source's keys and values."""
        return self.model.new_cache()

    def next_logits(self, tokens: Tensor, cache: Cache) -> Tensor:
        """(1, T) → (V,)."""
        return self.model.decode(tokens, self.memory, cache=cache)[0, -1]


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
    """One token.

    Args:
        token: its id.
        probability: under the model, at temperature 1 and nothing cut.
        chance: under the distribution it was drawn from.
        restarted: the context was full and began anew before it.
    """

    token: int
    probability: float
    chance: float
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
        model: writes, in evaluation mode.
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
            logits = model.next_logits(torch.tensor([pending], device=device), cache).float().cpu()
        drawn_from = distribution(logits, how, allowed)
        chosen = int(torch.multinomial(drawn_from, 1, generator=generator))
        yield Drawn(chosen, float(logits.softmax(-1)[chosen]), float(drawn_from[chosen]), restarted)
        recent.append(chosen)
        pending = [chosen]
