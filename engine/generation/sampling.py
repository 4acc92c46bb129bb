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

from engine.config.schema import RunConfig
from engine.model.cache import Cache
from engine.model.decoding import Decoding
from engine.model.transformer import DecoderLM, EncoderDecoder, EncoderLM, Network

COLD = 1e-3  # temperature


class Predictor(Protocol):
    """Predicts the next token of texts from those before it."""

    def new_cache(self, capacity: int) -> Any:
        """Return an empty memory for about `capacity` tokens; its `length` is the number of tokens it has seen."""
        ...

    def next_logits(self, tokens: Tensor, cache: Any) -> Tensor:
        """(B, T) new tokens → (B, V) logits of the token after them; the memory is extended in place."""
        ...


class DecoderPredictor:
    """A decoder with its KV cache.

    Args:
        model: in evaluation mode.
        fixed: steps of one shape, replayed as a graph on CUDA; see `Decoding`.
    """

    def __init__(self, model: DecoderLM, *, fixed: bool = False) -> None:
        self.model, self.fixed = model, fixed

    def new_cache(self, capacity: int) -> Decoding:
        return Decoding(self.model, capacity, fixed=self.fixed)

    def next_logits(self, tokens: Tensor, cache: Decoding) -> Tensor:
        return cache.feed(tokens)


@dataclass
class TokensSoFar:
    """(B, T) all tokens so far: the memory of a model that has no cache."""

    tokens: Tensor | None = None

    @property
    def length(self) -> int:
        return 0 if self.tokens is None else self.tokens.shape[1]


class EncoderPredictor:
    """An encoder used as a language model: every step reads the whole text again, since any token may change all."""

    def __init__(self, model: EncoderLM) -> None:
        self.model = model

    def new_cache(self, capacity: int) -> TokensSoFar:
        return TokensSoFar()

    def next_logits(self, tokens: Tensor, cache: TokensSoFar) -> Tensor:
        cache.tokens = tokens if cache.tokens is None else torch.cat((cache.tokens, tokens), dim=1)
        logits: Tensor = self.model(cache.tokens)[:, -1]
        return logits


class SourcePredictor:
    """A decoder over sources (B, S), which are read once."""

    def __init__(self, model: EncoderDecoder, source: Tensor) -> None:
        self.model = model
        with torch.inference_mode():
            self.memory = model.encode(source)

    def new_cache(self, capacity: int) -> Cache:
        return self.model.new_cache(capacity)

    def next_logits(self, tokens: Tensor, cache: Cache) -> Tensor:
        return self.model.decode(tokens, self.memory, cache=cache)[:, -1]


class EndingPredictor:
    """A predictor restricted to tokens of the text, perhaps marks, and the end.

    What can be drawn is numbered anew: the text's tokens as they are, then the marks, then the end.

    Args:
        predictor: of one text that has not been begun.
        text: tokens of the text; the others are numbered after them.
        end: the token that ends what is written.
        marks: special tokens that may be written besides.
    """

    def __init__(self, predictor: Predictor, text: int, end: int, marks: Sequence[int] = ()) -> None:
        self._predictor, self._text, self._others = predictor, text, [*marks, end]

    @property
    def allowed(self) -> int:
        """Tokens that can be drawn; the last is the end."""
        return self._text + len(self._others)

    def new_cache(self, capacity: int) -> Any:
        return self._predictor.new_cache(capacity)

    def next_logits(self, tokens: Tensor, cache: Any) -> Tensor:
        """(B, T) → (B, allowed + 1): the last is all that is never drawn, so that probabilities stay the model's.

        The first tokens are the prompt's, numbered as the model has them; later ones are those that were drawn.
        """
        if cache.length:
            ids = torch.cat((torch.arange(self._text, device=tokens.device), tokens.new_tensor(self._others)))
            tokens = ids[tokens]
        logits = self._predictor.next_logits(tokens, cache)
        never = torch.ones(logits.shape[1], dtype=torch.bool, device=logits.device)
        never[: self._text] = False
        never[self._others] = False
        rest = logits[:, never].logsumexp(-1, keepdim=True)
        return torch.cat((logits[:, : self._text], logits[:, self._others], rest), dim=1)


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn."""

    temperature: float = 0.8  # logits are divided by it; 0 takes the likeliest token
    top_k: int = 40  # only the k likeliest; 0 means all
    top_p: float = 1.0  # only the likeliest that together have this probability (Holtzman et al. 2020, nucleus).
    overflow: str = "restart"  # at a full context, `restart` goes on from the newest half of it, `stop` ends

    @classmethod
    def of(cls, config: RunConfig) -> "Sampling":
        """Return what the config's `[generation]` asks for."""
        g = config.generation
        return cls(g.temperature, g.top_k, g.top_p, g.overflow)


class RowRandom:
    """Uniform random numbers, each row's from a seed of its own; drawn on the CPU, so that all devices draw alike."""

    AHEAD = 64

    def __init__(self, seeds: Sequence[int], device: torch.device) -> None:
        self._generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        self._device = device
        self._drawn: Iterator[Tensor] = iter(())

    def next(self) -> Tensor:
        """Return (B, 1) numbers in (0, 1]."""
        for column in self._drawn:
            return column
        drawn = torch.stack([1.0 - torch.rand(self.AHEAD, generator=own) for own in self._generators])
        self._drawn = iter(torch.split(drawn.to(self._device), 1, dim=1))
        return next(self._drawn)


@dataclass(frozen=True)
class SampledStep:
    """The next token of every row."""

    tokens: Tensor  # (B, 1) ids
    probability: Tensor  # (B, 1), under the model, at temperature 1 and nothing cut
    chance: Tensor  # (B, 1), under the distribution it was drawn from
    restarted: bool = False  # the context was full and began anew before it
    # (B, K) the ids that the model holds most probable, best first, with (B, K) `probability` and `chance` as above;
    # None where they were not asked for
    likeliest: tuple[Tensor, Tensor, Tensor] | None = None

    def rows(self) -> "list[SampledToken]":
        values = (self.tokens, self.probability, self.chance)
        rows = [
            SampledToken(int(token), probability, chance, self.restarted)
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
    """A token that could have been drawn; see `SampledStep`."""

    token: int
    probability: float
    chance: float


@dataclass(frozen=True)
class SampledToken:
    """One token of one row, and the likeliest in its place, best first, where wanted; see `SampledStep`."""

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
    """Return the distributions that are drawn from: (B, V) logits → (B, V) fp32, each row sums to 1.

    At temperature 0 all mass is on the likeliest token. Ids from `allowed` on (a padded embedding) are never drawn.
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


def sample_step(
    logits: Tensor, how: Sampling, chances: Tensor, allowed: int | None = None, alternatives: int = 0
) -> SampledStep:
    """Draw a token for each row as `draw` does, and tell the `alternatives` likeliest ones; the draw ignores these."""
    tokens, chance = draw(logits, how, chances, allowed)
    belief = logits.softmax(-1)
    likeliest = None
    if alternatives > 0:
        known = belief if allowed is None else belief[:, :allowed]
        probability, ids = known.topk(min(alternatives, known.shape[1]))
        likeliest = (ids, probability, distribution(logits, how, allowed).gather(1, ids))
    return SampledStep(tokens, belief.gather(1, tokens), chance, likeliest=likeliest)


def stream_batch(
    predictor: Predictor,
    prompts: Tensor,
    length: int,
    how: Sampling,
    seeds: Sequence[int],
    *,
    context: int,
    allowed: int | None = None,
    alternatives: int = 0,
) -> Iterator[SampledStep]:
    """Draw `length` tokens after each of several prompts of equal length, one step at a time.

    Args:
        predictor: of a model in evaluation mode.
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
    chances = RowRandom(seeds, prompts.device)
    half = max(1, context // 2)
    pending = prompts[:, -context:]
    recent = deque(torch.split(pending, 1, dim=1), maxlen=half)
    capacity = min(context, pending.shape[1] + length)
    cache = predictor.new_cache(capacity)
    for _ in range(length):
        restarted = False
        if cache.length + pending.shape[1] > context:
            if how.overflow == "stop":
                return
            restarted = True
            pending = torch.cat(tuple(recent), dim=1)
            cache = predictor.new_cache(capacity)
        with torch.inference_mode():
            logits = predictor.next_logits(pending, cache).float()
            now = sample_step(logits, how, chances.next(), allowed, alternatives)
        yield replace(now, restarted=restarted)
        recent.append(now.tokens)
        pending = now.tokens


def stream(
    predictor: Predictor,
    prompt: Tensor,
    length: int,
    how: Sampling,
    seed: int,
    *,
    context: int,
    allowed: int | None = None,
    alternatives: int = 0,
) -> Iterator[SampledToken]:
    """Draw `length` tokens after one prompt (T,), one at a time; see `stream_batch`."""
    for step in stream_batch(
        predictor, prompt[None], length, how, [seed], context=context, allowed=allowed, alternatives=alternatives
    ):
        yield from step.rows()


def stream_to_end(
    predictor: EndingPredictor,
    prompt: Tensor,
    length: int,
    how: Sampling,
    seed: int,
    *,
    context: int,
    alternatives: int = 0,
) -> Iterator[SampledToken]:
    """Draw tokens after one prompt (T,) until the end, which is not given, or at most `length`; see `stream_batch`."""
    how, allowed = replace(how, overflow="stop"), predictor.allowed
    for token in stream(
        predictor, prompt, length, how, seed, context=context, allowed=allowed, alternatives=alternatives
    ):
        if token.token == allowed - 1:
            return
        yield token


def write(
    model: Network,
    config: RunConfig,
    vocab_size: int,
    ids: Tensor,
    length: int,
    how: Sampling,
    seed: int,
    alternatives: int = 0,
) -> Iterator[SampledToken]:
    """Sample what a model makes of a text (T,): a decoder continues it, an encoder-decoder takes it for its source.

    `model` is in evaluation mode, `vocab_size` counts tokens of the text; other arguments are as in `stream`.
    """
    context = config.model.context_length
    predictor: Predictor
    if isinstance(model, EncoderDecoder):
        source = ids[-config.model.source_tokens :]
        predictor = SourcePredictor(model, source[None])
        if config.special_tokens:
            ids, length = ids.new_tensor([vocab_size]), min(length, source.numel())
        else:
            ids = source[-1:]
        how = replace(how, overflow="stop")
    else:
        predictor = EncoderPredictor(model) if isinstance(model, EncoderLM) else DecoderPredictor(model)
    yield from stream(predictor, ids, length, how, seed, context=context, allowed=vocab_size, alternatives=alternatives)


def fill(
    model: EncoderLM,
    config: RunConfig,
    vocab_size: int,
    ids: Tensor,
    gaps: Tensor,
    how: Sampling,
    seed: int,
    alternatives: int = 0,
) -> tuple[Tensor, list[SampledToken]]:
    """Fill the gaps of a text, all at once, with a model of the objective `masked` in evaluation mode.

    Args:
        model: trained to fill gaps.
        config: the run's.
        vocab_size: tokens of the text; the mask token comes after them.
        ids: (T,) the text; what stands at a gap does not matter.
        gaps: (T,) bool.
        how: temperature and cuts.
        seed: of the draws.
        alternatives: how many of the likeliest tokens to tell in each gap.

    Returns:
        (T,) the text with its gaps filled, and what was drawn for each gap.
    """
    count = int(gaps.sum())
    if count == 0:
        return ids, []
    chances = torch.rand(count, 1, generator=torch.Generator().manual_seed(seed))
    with torch.inference_mode():
        logits = model(torch.where(gaps, vocab_size, ids)[None])[0]
        found = sample_step(logits[gaps].float(), how, 1.0 - chances.to(ids.device), vocab_size, alternatives)
    return ids.masked_scatter(gaps, found.tokens), found.rows()
