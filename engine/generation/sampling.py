"""Sampling: one token after the other, from a cut and tempered distribution, with a KV cache.

Each row has a stream of chance of its own: its text does not depend on what is written beside it, and sampling never
disturbs a training. Notation: B rows, T time, V vocabulary, K candidates.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from engine.model.cache import Cache
from engine.model.decoding import Decoding
from engine.model.transformer import DecoderLM, EncoderDecoder, EncoderLM

COLD = 1e-3  # temperature


class Progress(Protocol):
    """What a model remembers of one text: how many tokens of it, at least."""

    length: int


class Decodes(Protocol):
    """What can write texts token by token."""

    def new_cache(self, room: int) -> Any:
        """An empty memory, a `Progress`, with room for so many tokens."""
        ...

    def next_logits(self, tokens: Tensor, cache: Any) -> Tensor:
        """(B, T) new tokens → (B, V) logits of the token after them; the memory is extended in place."""
        ...


class FromDecoder:
    """A decoder with its KV cache.

    Args:
        model: in evaluation mode.
        fixed: steps of one shape, replayed as a graph on CUDA; see `Decoding`.
    """

    def __init__(self, model: DecoderLM, *, fixed: bool = False) -> None:
        self.model, self.fixed = model, fixed

    def new_cache(self, room: int) -> Decoding:
        """An empty KV cache."""
        return Decoding(self.model, room, fixed=self.fixed)

    def next_logits(self, tokens: Tensor, cache: Decoding) -> Tensor:
        """(B, T) → (B, V)."""
        return cache.feed(tokens)


class FromEncoder:
    """An encoder used as a language model: every step reads the whole text again, since any token may change all."""

    @dataclass
    class Text:
        """The tokens so far, (B, T)."""

        tokens: Tensor | None = None

        @property
        def length(self) -> int:
            """T."""
            return 0 if self.tokens is None else self.tokens.shape[1]

    def __init__(self, model: EncoderLM) -> None:
        self.model = model

    def new_cache(self, room: int) -> "FromEncoder.Text":
        """No text yet."""
        return FromEncoder.Text()

    def next_logits(self, tokens: Tensor, cache: "FromEncoder.Text") -> Tensor:
        """(B, T) → (B, V)."""
        cache.tokens = tokens if cache.tokens is None else torch.cat((cache.tokens, tokens), dim=1)
        logits: Tensor = self.model(cache.tokens)[:, -1]
        return logits


class FromSource:
    """A decoder over sources (B, S), which were read once."""

    def __init__(self, model: EncoderDecoder, source: Tensor) -> None:
        self.model = model
        with torch.inference_mode():
            self.memory = model.encode(source)

    def new_cache(self, room: int) -> Cache:
        """An empty cache; it also keeps the source's keys and values."""
        return self.model.new_cache(room)

    def next_logits(self, tokens: Tensor, cache: Cache) -> Tensor:
        """(B, T) → (B, V)."""
        return self.model.decode(tokens, self.memory, cache=cache)[:, -1]


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


class Chances:
    """Uniform numbers for each row from a seed of its own.

    Args:
        seeds: one a row.
        device: where they are wanted; they are drawn on the CPU, so that all devices draw alike.
    """

    AHEAD = 64

    def __init__(self, seeds: Sequence[int], device: torch.device) -> None:
        self._generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        self._device = device
        self._drawn: Iterator[Tensor] = iter(())

    def next(self) -> Tensor:
        """(B, 1) numbers in (0, 1]."""
        for column in self._drawn:
            return column
        drawn = torch.stack([1.0 - torch.rand(self.AHEAD, generator=own) for own in self._generators])
        self._drawn = iter(torch.split(drawn.to(self._device), 1, dim=1))
        return next(self._drawn)


@dataclass(frozen=True)
class Column:
    """The next token of every row.

    Args:
        tokens: (B, 1) ids.
        probability: (B, 1), under the model, at temperature 1 and nothing cut.
        chance: (B, 1), under the distribution it was drawn from.
        restarted: the context was full and began anew before it.
        likeliest: (B, K) the ids that the model holds most probable, best first, with (B, K) `probability` and
            `chance` as above; None where they were not asked for.
    """

    tokens: Tensor
    probability: Tensor
    chance: Tensor
    restarted: bool = False
    likeliest: tuple[Tensor, Tensor, Tensor] | None = None

    def drawn(self) -> "list[Drawn]":
        """Each row's token."""
        values = (self.tokens, self.probability, self.chance)
        rows = [
            Drawn(int(token), probability, chance, self.restarted)
            for token, probability, chance in zip(*(part[:, 0].tolist() for part in values), strict=True)
        ]
        if self.likeliest is None:
            return rows
        ranked = zip(*(part.tolist() for part in self.likeliest), strict=True)
        return [
            replace(row, alternatives=tuple(Alternative(*one) for one in zip(*rank, strict=True)))
            for row, rank in zip(rows, ranked, strict=True)
        ]


@dataclass(frozen=True)
class Alternative:
    """A token that could have been: its probability under the model, and its chance of being drawn; see `Column`."""

    token: int
    probability: float
    chance: float


@dataclass(frozen=True)
class Drawn:
    """One token of one row, and the likeliest in its place, best first, where they were asked for; see `Column`."""

    token: int
    probability: float
    chance: float
    restarted: bool
    alternatives: tuple[Alternative, ...] = ()


def _candidates(logits: Tensor, how: Sampling, allowed: int | None) -> tuple[Tensor, Tensor | None]:
    """(B, V) → (B, K) probabilities that sum to 1, and the tokens they belong to where those are not 0 … K − 1."""
    scores = logits.float() if allowed is None else logits[:, :allowed].float()
    if how.temperature == 0.0:
        likeliest = scores.argmax(-1, keepdim=True)
        return torch.ones_like(likeliest, dtype=torch.float32), likeliest
    tokens = None
    if 0 < how.top_k < scores.shape[1]:
        scores, tokens = scores.topk(how.top_k)
    elif how.top_p < 1.0:
        scores, tokens = scores.sort(descending=True)
    if how.temperature < COLD:
        scores = scores - scores.amax(-1, keepdim=True)  # or the division would overflow
    probabilities = (scores / max(how.temperature, 1e-30)).softmax(-1)
    if how.top_p < 1.0:
        before = probabilities.cumsum(-1) - probabilities  # mass of the likelier ones; the first is always kept
        probabilities = probabilities.masked_fill(before >= how.top_p, 0.0)
        probabilities = probabilities / probabilities.sum(-1, keepdim=True)
    return probabilities, tokens


def distribution(logits: Tensor, how: Sampling, allowed: int | None = None) -> Tensor:
    """The distributions that are drawn from.

    Args:
        logits: (B, V).
        how: temperature and cuts; temperature 0 puts all mass on the likeliest token.
        allowed: tokens the tokenizer has; ids past it (a padded embedding) are never drawn.

    Returns:
        (B, V) fp32 probabilities, each row sums to 1.
    """
    probabilities, tokens = _candidates(logits, how, allowed)
    if tokens is None:
        tokens = torch.arange(probabilities.shape[1], device=logits.device).expand_as(probabilities)
    return torch.zeros_like(logits, dtype=torch.float32).scatter_(1, tokens, probabilities)


def draw(logits: Tensor, how: Sampling, chances: Tensor, allowed: int | None = None) -> tuple[Tensor, Tensor]:
    """Draw a token for each row: the first candidate where the summed probability reaches the row's chance.

    Args:
        logits: (B, V).
        how: temperature and cuts.
        chances: (B, 1) uniform in (0, 1].
        allowed: tokens the tokenizer has.

    Returns:
        (B, 1) token ids, and (B, 1) the probability each was drawn with.
    """
    probabilities, tokens = _candidates(logits, how, allowed)
    if probabilities.shape[1] == 1:
        chosen = torch.zeros_like(chances, dtype=torch.long)
    else:
        reached = probabilities.cumsum(-1)
        chosen = torch.searchsorted(reached, chances * reached[:, -1:])
    chance = probabilities.gather(1, chosen)
    return (chosen if tokens is None else tokens.gather(1, chosen)), chance


def column(logits: Tensor, how: Sampling, chances: Tensor, allowed: int | None = None, alternatives: int = 0) -> Column:
    """Draw a token for each row, with all that is to be known of it.

    Args:
        logits: (B, V) fp32.
        how: temperature and cuts.
        chances: (B, 1) uniform in (0, 1].
        allowed: tokens the tokenizer has.
        alternatives: how many of the likeliest tokens to tell, K; what is drawn does not depend on it.
    """
    tokens, chance = draw(logits, how, chances, allowed)
    belief = logits.softmax(-1)
    likeliest = None
    if alternatives > 0:
        known = belief if allowed is None else belief[:, :allowed]
        probability, ids = known.topk(min(alternatives, known.shape[1]))
        likeliest = (ids, probability, distribution(logits, how, allowed).gather(1, ids))
    return Column(tokens, belief.gather(1, tokens), chance, likeliest=likeliest)


def columns(
    model: Decodes,
    prompts: Tensor,
    length: int,
    how: Sampling,
    seeds: Sequence[int],
    *,
    context: int,
    allowed: int | None = None,
    alternatives: int = 0,
) -> Iterator[Column]:
    """Draw `length` tokens after each of several prompts of equal length, one column at a time.

    Args:
        model: writes, in evaluation mode.
        prompts: (B, T) token ids, at least one each; only the newest `context` tokens count.
        length: how many tokens to draw.
        how: temperature, cuts, and what to do when the context is full.
        seeds: one a row, the only source of chance.
        context: tokens the model was trained on at once. When they are used up, `restart` keeps the newest
            context // 2 tokens and reads them again from position 0.
        allowed: tokens the tokenizer has.
        alternatives: how many of the likeliest tokens to tell in each place; what is drawn does not depend on it.

    Raises:
        ValueError: empty prompts.
    """
    if prompts.shape[1] == 0:
        raise ValueError("a prompt needs at least one token")
    chances = Chances(seeds, prompts.device)
    half = max(1, context // 2)
    pending = prompts[:, -context:]
    recent = deque(torch.split(pending, 1, dim=1), maxlen=half)
    room = min(context, pending.shape[1] + length)
    cache = model.new_cache(room)
    for _ in range(length):
        restarted = False
        if cache.length + pending.shape[1] > context:
            if how.overflow == "stop":
                return
            restarted = True
            pending = torch.cat(tuple(recent), dim=1)
            cache = model.new_cache(room)
        with torch.inference_mode():
            logits = model.next_logits(pending, cache).float()
            now = column(logits, how, chances.next(), allowed, alternatives)
        yield replace(now, restarted=restarted)
        recent.append(now.tokens)
        pending = now.tokens


def stream(
    model: Decodes,
    prompt: Tensor,
    length: int,
    how: Sampling,
    seed: int,
    *,
    context: int,
    allowed: int | None = None,
    alternatives: int = 0,
) -> Iterator[Drawn]:
    """Draw `length` tokens after one prompt (T,), one at a time; see `columns`.

    Raises:
        ValueError: an empty prompt.
    """
    for now in columns(
        model, prompt[None], length, how, [seed], context=context, allowed=allowed, alternatives=alternatives
    ):
        yield from now.drawn()
