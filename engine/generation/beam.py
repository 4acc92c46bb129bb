"""Beam search: the likeliest translations of a batch of sentences, cached, all of them at once.

A sentence has `beam` places. At each step all its live hypotheses are extended, and the likeliest extensions take the
places that are left; one that ends is done and keeps its place (Sutskever et al. 2014, §3.2). So a beam of 1 is greedy
decoding, and one wide enough drops nothing. At the length limit those that still live are done as they stand. Those
that are done are compared by their log probability over a length penalty. The live hypotheses of all sentences are the
rows of one batch; a sentence leaves it as soon as nothing better can come.
Notation: B sentences, S source time, R rows, V vocabulary.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Literal

import torch
from torch import Tensor

from engine.data.pairs import Specials
from engine.errors import InputError, nearest, one_of
from engine.model.positions import Positions
from engine.model.transformer import EncoderDecoder, evaluating

LengthPenalty = Literal["gnmt", "power"]
# Tokens written, the end included, and α → what a log probability is divided by.
LENGTH_PENALTIES: dict[LengthPenalty, Callable[[int, float], float]] = {
    "gnmt": lambda length, alpha: ((5 + length) / 6) ** alpha,  # Wu et al. 2016, eq. 14
    "power": lambda length, alpha: length**alpha,
}
LARGEST_ALPHA = 20  # either way: beyond, a penalty overflows before it decides anything more


def penalty_of(name: LengthPenalty, alpha: float) -> Callable[[int], float]:
    """Return the function of a length by which log probabilities are divided.

    Raises:
        InputError: an unknown name, or too large an α.
    """
    if name not in LENGTH_PENALTIES:
        raise InputError(
            f"length penalty '{name}' is unknown: {one_of(LENGTH_PENALTIES)}{nearest(name, LENGTH_PENALTIES)}"
        )
    if not abs(alpha) <= LARGEST_ALPHA:
        raise InputError(f"alpha {alpha} must be between −{LARGEST_ALPHA} and {LARGEST_ALPHA}")
    return lambda length: LENGTH_PENALTIES[name](length, alpha)


@dataclass(frozen=True)
class Hypothesis:
    """A translation."""

    tokens: tuple[int, ...]  # of the text, without start and end
    chances: tuple[float, ...]  # of each token under the model, given the source and the tokens before it
    end_chance: float | None  # of the end after them; None where the length limit cut it off
    log_probability: float  # of all of this, in nats
    score: float  # the log probability over the length penalty; higher is better

    @property
    def finished(self) -> bool:
        return self.end_chance is not None


@dataclass(frozen=True)
class _Live:
    tokens: tuple[int, ...] = ()
    chances: tuple[float, ...] = ()
    log_probability: float = 0.0


@dataclass(frozen=True)
class BeamOptions:
    """The options of one sentence's beam; `limit` counts tokens written, the end included."""

    beam: int
    n_best: int
    limit: int
    end: int
    penalty: Callable[[int], float]


class SentenceBeam:
    """One sentence's beam: which hypotheses live, which are done, and when no better one can come."""

    def __init__(self, options: BeamOptions) -> None:
        self.options = options
        self.live = [_Live()]
        self.done: list[Hypothesis] = []

    def advance(self, extensions: Sequence[Sequence[tuple[int, float]]]) -> list[tuple[int, int]]:
        """Take one step.

        Args:
            extensions: for each live hypothesis its likeliest next tokens with their log probabilities, best first.

        Returns:
            For each hypothesis that is live now: its parent's number, and the token it got.
        """
        ranked = [
            (live.log_probability + log_probability, parent, token, log_probability)
            for parent, (live, options) in enumerate(zip(self.live, extensions, strict=True))
            for token, log_probability in options
        ]
        ranked.sort(key=lambda extension: -extension[0])  # stable: at a tie the better parent, then the lower id
        before, self.live, moves = self.live, [], []
        for total, parent, token, log_probability in ranked[: self.options.beam - len(self.done)]:
            old, chance = before[parent], math.exp(log_probability)
            if token == self.options.end:
                self._keep(_Live(old.tokens, old.chances, total), chance)
            else:
                self.live.append(_Live((*old.tokens, token), (*old.chances, chance), total))
                moves.append((parent, token))
        if self.live and len(self.live[0].tokens) == self.options.limit:
            for live in self.live:
                self._keep(live, None)
            self.live = []
        if self._settled():
            self.live = []
        return moves if self.live else []

    def _keep(self, live: _Live, end_chance: float | None) -> None:
        length = len(live.tokens) + (end_chance is not None)
        score = live.log_probability / self.options.penalty(length)
        self.done.append(Hypothesis(live.tokens, live.chances, end_chance, live.log_probability, score))
        self.done.sort(key=lambda hypothesis: -hypothesis.score)  # stable: at a tie the one that was done first

    def _settled(self) -> bool:
        if len(self.done) < self.options.n_best:
            return False
        return all(self.done[self.options.n_best - 1].score >= self.best_possible(live) for live in self.live)

    def best_possible(self, live: _Live) -> float:
        """Return the best score that a live hypothesis may still reach.

        No token makes it likelier. If the penalty grows with the length, dividing by the largest flatters it most.
        """
        shortest, longest = self.options.penalty(len(live.tokens) + 1), self.options.penalty(self.options.limit)
        return live.log_probability / max(shortest, longest)


def closed_tokens(vocab_size: int, specials: Specials, allowed: int, device: torch.device) -> Tensor:
    """Return (V,) bool: the tokens that are never written: all but the text's, which are below `allowed`, and the end.

    Raises:
        ValueError: the model has no token for the end.
    """
    if not 0 <= specials.end < vocab_size:
        raise ValueError(f"the end token {specials.end} is not among the model's {vocab_size} tokens")
    ids = torch.arange(vocab_size, device=device)
    return ((ids >= allowed) | (ids == specials.pad) | (ids == specials.start)) & (ids != specials.end)


def likeliest(logits: Tensor, k: int, closed: Tensor) -> tuple[Tensor, Tensor]:
    """Return the k likeliest next tokens of each row, best first, at a tie the lower id first.

    Args:
        logits: (R, V).
        k: how many, at most as many as are open.
        closed: (V,) bool, never chosen.

    Returns:
        (R, k) token ids and (R, k) their log probabilities under the model, fp32 or wider.

    Raises:
        InputError: the model's answers are no numbers.
    """
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    log_probabilities = wide.log_softmax(-1).masked_fill(closed, -math.inf)
    ids = log_probabilities.argmax(-1, keepdim=True) if k == 1 else _in_order(log_probabilities, k)
    chosen = log_probabilities.gather(-1, ids)
    if not chosen.isfinite().all():
        raise InputError("the model predicts no numbers (NaN or infinite): its training diverged, or it is damaged")
    return ids, chosen


def _in_order(scores: Tensor, k: int) -> Tensor:
    """Return `topk`'s places with ties broken towards the lower place: `topk` takes any of the equals, in any order."""
    values, places = scores.topk(min(k + 1, scores.shape[-1]))
    if values.shape[-1] > k and (values[:, k] == values[:, k - 1]).any():  # a tie at the border
        return scores.sort(dim=-1, descending=True, stable=True).indices[:, :k]
    places = places[:, :k].sort(-1).values
    return places.gather(-1, scores.gather(-1, places).sort(dim=-1, descending=True, stable=True).indices)


def extend(sentences: Sequence[SentenceBeam], logits: Tensor, closed: Tensor, k: int) -> list[tuple[int, int]]:
    """Extend all live hypotheses by their k likeliest tokens.

    Args:
        sentences: with a live hypothesis each.
        logits: (R, V) of all live hypotheses, sentence by sentence.
        closed: (V,) bool, never written.
        k: at most as many as are open.

    Returns:
        For each hypothesis that is live now: its parent's row, and the token it got.
    """
    ids, chosen = (part.tolist() for part in likeliest(logits, k, closed))
    extensions = [list(zip(*row, strict=True)) for row in zip(ids, chosen, strict=True)]
    borders = list(accumulate((len(sentence.live) for sentence in sentences), initial=0))
    return [
        (first + parent, token)
        for sentence, (first, stop) in zip(sentences, pairwise(borders), strict=True)
        for parent, token in sentence.advance(extensions[first:stop])
    ]


@dataclass(frozen=True)
class BeamSearch:
    """How translations are searched."""

    beam: int = 1  # hypotheses a sentence keeps; 1 is greedy decoding
    n_best: int = 1  # translations wanted of each sentence, at most `beam`
    # how a log probability is made comparable between lengths; see `LENGTH_PENALTIES`
    length_penalty: LengthPenalty = "gnmt"
    alpha: float = 0.6  # its exponent: 0 compares log probabilities as they are, more favours longer translations


def translate_batch(
    model: EncoderDecoder,
    source: Tensor,
    source_at: Positions | None,
    search: BeamSearch = BeamSearch(),
    *,
    specials: Specials,
    allowed: int,
    max_length: int | Sequence[int],
    between: Callable[[], None] = lambda: None,
) -> list[list[Hypothesis]]:
    """Return the best translations of each of several sentences that a beam search finds.

    A sentence's translations do not depend on what is beside it in the batch.

    Args:
        model: in any mode; dropout is off meanwhile.
        source: (B, S) int64, each row at most `model.config.source_tokens` tokens.
        source_at: their positions, −1 at padding; None: there is none.
        search: beam and length penalty.
        specials: start, end and padding.
        allowed: tokens of the text; no id from here on is written but the end.
        max_length: most tokens to write, the end included, for all sentences or for each, up to the model's context.
        between: called before each token; may raise to stop.

    Returns:
        For each sentence its distinct translations, best score first; fewer than `n_best` only where fewer exist.

    Raises:
        InputError: options out of bounds, or a model whose answers are no numbers.
        ValueError: a source of no length, or no token for the end.
    """
    beam, n_best = search.beam, search.n_best
    penalty = penalty_of(search.length_penalty, search.alpha)
    lengths = [max_length] * source.shape[0] if isinstance(max_length, int) else max_length
    limits = [min(length, model.config.context_length) for length in lengths]
    if min(limits, default=1) < 1 or beam < 1 or not 1 <= n_best <= beam:
        raise InputError(
            f"beam {beam}, n_best {n_best}, max_length {max_length}: each must be at least 1, and n_best at most beam"
        )
    if source.shape[0] == 0:
        return []
    if len(limits) != source.shape[0]:
        raise ValueError(f"{len(limits)} lengths for {source.shape[0]} sources")
    if source.shape[1] == 0:
        raise ValueError("a source needs at least one token")
    sentences = [SentenceBeam(BeamOptions(beam, n_best, limit, specials.end, penalty)) for limit in limits]
    closed = closed_tokens(model.vocab_size, specials, allowed, source.device)
    k = min(beam, int((~closed).sum()))
    with evaluating(model):
        memory, cache = model.encode(source, source_at), model.new_cache()
        pending = torch.full_like(source[:, :1], specials.start)
        owners = list(range(len(sentences)))  # which sentence each row is of
        active = sentences
        while active:
            between()
            moves = extend(active, model.decode(pending, memory, cache=cache)[:, -1], closed, k)
            active = [sentence for sentence in active if sentence.live]
            if not active:
                break
            parents = [parent for parent, _ in moves]
            if parents != list(range(len(owners))):
                before, owners = owners, [owners[parent] for parent in parents]
                cache.select(torch.tensor(parents, device=source.device), same_sources=owners == before)
            pending = torch.tensor([[token] for _, token in moves], device=source.device)
    return [sentence.done[:n_best] for sentence in sentences]
