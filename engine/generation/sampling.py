"""Sampling: token by token, from a truncated distribution with temperature.

Each row has its own random stream: its text does not depend on the other rows, and sampling never disturbs training.
Notation: B rows, T time, V vocabulary, K candidates.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine.config.schema import RunConfig
from engine.generation.loop import DecodeStep, generate
from engine.model.decoding import Predictor
from engine.model.transformer import Network

LOW_TEMPERATURE = 1e-3  # temperature
N_PREDRAWN = 64  # numbers drawn at once
FIXED_POINT_ONE = 2.0**40  # a probability of 1 in fixed point


@dataclass(frozen=True)
class Sampling:
    temperature: float = 0.8  # divides the logits; 0 takes the likeliest token
    top_k: int = 40  # only the k likeliest; 0 means all
    top_p: float = 1.0  # only the likeliest that together have this probability (Holtzman et al. 2020, nucleus).
    overflow: str = "restart"  # at a full context, `restart` continues from its newest half, `stop` ends

    @classmethod
    def from_config(cls, config: RunConfig) -> "Sampling":
        g = config.generation
        return cls(g.temperature, g.top_k, g.top_p, g.overflow)


def row_uniforms(seeds: Sequence[int], device: torch.device) -> Iterator[Tensor]:
    """Yield (B, 1) numbers in (0, 1] from each row's own seed; drawn on the CPU, so that all devices draw alike."""
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    while True:
        drawn = torch.stack([1.0 - torch.rand(N_PREDRAWN, generator=own) for own in generators])
        yield from torch.split(drawn.to(device), 1, dim=1)


@dataclass(frozen=True)
class SampledStep(DecodeStep):
    """The next token of every row."""

    probability: Tensor  # (B, 1), under the model, at temperature 1, untruncated
    chance: Tensor  # (B, 1), under the distribution it was drawn from
    # (B, K) the ids that the model holds most probable, best first, with (B, K) `probability` and `chance` as above;
    # None if not requested
    likeliest: tuple[Tensor, Tensor, Tensor] | None = None

    def rows(self) -> "list[SampledToken]":
        columns = (part[:, 0].tolist() for part in (self.tokens, self.probability, self.chance))
        rows = [SampledToken(token, p, chance, self.restarted) for token, p, chance in zip(*columns, strict=True)]
        if self.likeliest is None:
            return rows
        ranked = zip(*(part.tolist() for part in self.likeliest), strict=True)
        return [
            replace(row, alternatives=tuple(SampledToken(*one) for one in zip(*rank, strict=True)))
            for row, rank in zip(rows, ranked, strict=True)
        ]


@dataclass(frozen=True)
class SampledToken:
    """One token of one row and, if wanted, the likeliest in its place, best first; see `SampledStep`."""

    token: int
    probability: float
    chance: float
    restarted: bool = False
    alternatives: "tuple[SampledToken, ...]" = ()


def _candidate_probabilities(logits: Tensor, how: Sampling) -> tuple[Tensor, Tensor | None]:
    """(B, V) → (B, K) probabilities that sum to 1, and the tokens they belong to where those are not 0 … K − 1."""
    scores = logits.float()
    if how.temperature == 0.0:
        likeliest = scores.argmax(-1, keepdim=True)
        return torch.ones_like(likeliest, dtype=torch.float32), likeliest
    tokens = None
    if 0 < how.top_k < scores.shape[1]:
        scores, tokens = scores.topk(how.top_k)
    elif how.top_p < 1.0:
        scores, tokens = scores.sort(descending=True)
    if how.temperature < LOW_TEMPERATURE:
        scores = scores - scores.amax(-1, keepdim=True)  # else the division would overflow
    probabilities = (scores / max(how.temperature, 1e-30)).softmax(-1)
    if how.top_p < 1.0:
        before = _running_sum(probabilities) - probabilities  # mass of likelier ones; the first is always kept
        probabilities = probabilities.masked_fill(before >= how.top_p, 0.0)
        probabilities = probabilities / probabilities.sum(-1, keepdim=True)
    return probabilities, tokens


def _running_sum(probabilities: Tensor) -> Tensor:
    """Return cumulative sums along rows (B, K); on CUDA in fixed point, as its float sums are not repeatable."""
    if probabilities.device.type != "cuda":
        return probabilities.cumsum(-1)
    sums = (probabilities.double() * FIXED_POINT_ONE).long().cumsum(-1)
    return sums.double().div(FIXED_POINT_ONE).to(probabilities.dtype)


def distribution(logits: Tensor, how: Sampling) -> Tensor:
    """Return the distribution drawn from: (B, V) logits → (B, V) fp32 that sum to 1; at temperature 0 one-hot."""
    probabilities, tokens = _candidate_probabilities(logits, how)
    if tokens is None:
        tokens = torch.arange(probabilities.shape[1], device=logits.device).expand_as(probabilities)
    return torch.zeros_like(logits, dtype=torch.float32).scatter_(1, tokens, probabilities)


def sample_step(
    logits: Tensor, how: Sampling, uniforms: Tensor, allowed: Tensor | None = None, alternatives: int = 0
) -> SampledStep:
    """Draw a token for each row of `logits` (B, V): the first candidate where the summed probability reaches the row's
    chance, (B, 1) uniform in (0, 1]. `allowed` and `alternatives` as in `stream_batch`.
    """
    open_ = logits if allowed is None else logits[:, allowed]
    probabilities, places = _candidate_probabilities(open_, how)
    if probabilities.shape[1] == 1:
        chosen = torch.zeros_like(uniforms, dtype=torch.long)
    else:
        reached = _running_sum(probabilities)
        chosen = torch.searchsorted(reached, uniforms * reached[:, -1:])
    chance = probabilities.gather(1, chosen)
    tokens = chosen if places is None else places.gather(1, chosen)
    belief, likeliest = logits.softmax(-1), None
    if alternatives > 0:
        known = belief if allowed is None else belief[:, allowed]
        probability, best = known.topk(min(alternatives, known.shape[1]))
        ids = best if allowed is None else allowed[best]
        likeliest = (ids, probability, distribution(open_, how).gather(1, best))
    tokens = tokens if allowed is None else allowed[tokens]
    return SampledStep(tokens, belief.gather(1, tokens), chance, likeliest=likeliest)


def stream_batch(
    predictor: Predictor,
    prompts: Tensor,
    length: int,
    how: Sampling,
    seeds: Sequence[int],
    *,
    context: int,
    allowed: Tensor | None = None,
    alternatives: int = 0,
) -> Iterator[SampledStep]:
    """Draw `length` tokens after each of several prompts (B, T) of equal length, one step at a time; see `generate`.

    At a full `context`, `restart` goes on from its newest half. `seeds`, one per row, are the only randomness.
    `allowed`: (K,) ascending ids that may be drawn; None: all. `alternatives`: how many of the likeliest tokens to
    report at each place; it does not affect the draws.
    """
    chances = row_uniforms(seeds, prompts.device)

    def choose(logits: Tensor) -> SampledStep:
        return sample_step(logits.float(), how, next(chances), allowed, alternatives)

    return generate(predictor, prompts, length, choose, context=context, restart_when_full=how.overflow == "restart")


def stream_tokens(
    predictor: Predictor,
    prompt: Tensor,
    length: int,
    how: Sampling,
    seed: int,
    *,
    context: int,
    allowed: Tensor | None = None,
    end: int | None = None,
    alternatives: int = 0,
) -> Iterator[SampledToken]:
    """Draw at most `length` tokens after one prompt (T,), one at a time; see `stream_batch`.

    An `end` is not yielded; with one, a full context ends the text too.
    """
    how = how if end is None else replace(how, overflow="stop")
    for step in stream_batch(
        predictor, prompt[None], length, how, [seed], context=context, allowed=allowed, alternatives=alternatives
    ):
        (token,) = step.rows()
        if token.token == end:
            return
        yield token


def sample_text(
    model: Network,
    config: RunConfig,
    vocab_size: int,
    ids: Tensor,
    length: int,
    how: Sampling,
    seed: int,
    alternatives: int = 0,
) -> Iterator[SampledToken]:
    """Sample from a text (T,): a decoder continues it, an encoder-decoder takes it as its source.

    `model` is in evaluation mode, `vocab_size` counts tokens of the text; other arguments are as in `stream_tokens`.
    """
    context, source = config.model.context_length, None
    if model.reads_source:
        source = ids[None, -config.model.source_tokens :]
        if config.special_tokens:
            ids, length = ids.new_tensor([vocab_size]), min(length, source.numel())
        else:
            ids = source[0, -1:]
        how = replace(how, overflow="stop")
    allowed = None if vocab_size == model.vocab_size else torch.arange(vocab_size, device=ids.device)
    predictor = Predictor(model, source)
    yield from stream_tokens(
        predictor, ids, length, how, seed, context=context, allowed=allowed, alternatives=alternatives
    )


def fill_gaps(
    model: Network, vocab_size: int, ids: Tensor, gaps: Tensor, how: Sampling, seed: int, alternatives: int = 0
) -> tuple[Tensor, list[SampledToken]]:
    """Fill the gaps (T,) of a text (T,), all at once, with a model of the objective `masked` in evaluation mode; return
    the text with its gaps filled, and what was drawn for each gap.

    `vocab_size` counts tokens of the text; the mask token comes after them. The tokens at gaps are ignored.
    """
    count = int(gaps.sum())
    if count == 0:
        return ids, []
    chances = torch.rand(count, 1, generator=torch.Generator().manual_seed(seed))
    with torch.inference_mode():
        logits = model(torch.where(gaps, vocab_size, ids)[None])[0]
        allowed = torch.arange(vocab_size, device=ids.device)
        found = sample_step(logits[gaps].float(), how, 1.0 - chances.to(ids.device), allowed, alternatives)
    return ids.masked_scatter(gaps, found.tokens), found.rows()
