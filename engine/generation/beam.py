"""Beam search with a cache: the likeliest translations of a batch of sentences.

A sentence has `beam` places. At each step all its live hypotheses are extended, and the likeliest extensions take the
places that are left; one that ends is done and keeps its place (Sutskever et al. 2014, §3.2). So a beam of 1 is greedy
decoding, and a wide enough one is exhaustive. At the length limit, live hypotheses count as done. Finished ones are
ranked by log probability over a length penalty. The live hypotheses of all sentences are the rows of one batch; a
sentence leaves it as soon as nothing better can come.
Notation: B sentences, S source time, R rows, V vocabulary.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import Literal

import torch
from torch import Tensor

from engine.base.errors import InputError, did_you_mean, join_or
from engine.base.language import Message, tr
from engine.data.rows import Specials
from engine.generation.loop import DecodeStep, generate
from engine.model.decoding import Predictor
from engine.model.positions import Positions
from engine.model.transformer import Network, evaluating

LengthPenalty = Literal["gnmt", "power"]
# Tokens written, the end included, and α → the divisor of a log probability.
LENGTH_PENALTIES: dict[LengthPenalty, Callable[[int, float], float]] = {
    "gnmt": lambda length, alpha: ((5 + length) / 6) ** alpha,  # Wu et al. 2016, eq. 14
    "power": lambda length, alpha: length**alpha,
}
NO_NUMBERS = tr("the model's predictions are NaN or infinite: its training diverged, or the model is damaged")
LARGEST_ALPHA = 20  # in magnitude: a larger penalty overflows before it changes anything


def make_length_penalty(name: LengthPenalty, alpha: float) -> Callable[[int], float]:
    """Return the function of a length by which log probabilities are divided. Raises InputError: no such name or α."""
    if name not in LENGTH_PENALTIES:
        problem = Message(
            "unknown length penalty '{name}': use {length_penalties}{nearest}",
            name=name,
            length_penalties=join_or(LENGTH_PENALTIES),
            nearest=did_you_mean(name, LENGTH_PENALTIES),
        )
        raise InputError(problem)
    if not abs(alpha) <= LARGEST_ALPHA:
        problem = Message(
            "alpha {alpha} must be between −{largest_alpha} and {largest_alpha}",
            alpha=alpha,
            largest_alpha=LARGEST_ALPHA,
        )
        raise InputError(problem)
    return lambda length: LENGTH_PENALTIES[name](length, alpha)


@dataclass(frozen=True)
class Hypothesis:
    tokens: tuple[int, ...] = ()  # of the text, without start and end
    chances: tuple[float, ...] = ()  # of each token under the model, given the source and the tokens before it
    end_chance: float | None = None  # of the end after them; None if it is live, or the length limit cut it off
    log_probability: float = 0.0  # of tokens and end together, in nats
    score: float = 0.0  # once done: log probability / length penalty; higher is better

    @property
    def finished(self) -> bool:
        return self.end_chance is not None


@dataclass
class SentenceBeam:
    """One sentence's beam: live and finished hypotheses, and whether a better one can still come."""

    beam: int
    n_best: int
    limit: int  # of tokens written, the end included
    end: int
    penalty: Callable[[int], float]
    live: list[Hypothesis] = field(default_factory=lambda: [Hypothesis()])
    done: list[Hypothesis] = field(default_factory=list)

    def advance(self, extensions: Sequence[Sequence[tuple[int, float]]]) -> list[tuple[int, int]]:
        """Take one step: for each live hypothesis its likeliest next tokens with log probabilities, best first. Return
        for each that is live now: its parent's number, and the token it got.
        """
        ranked = [
            (live.log_probability + log_probability, parent, token, log_probability)
            for parent, (live, options) in enumerate(zip(self.live, extensions, strict=True))
            for token, log_probability in options
        ]
        ranked.sort(key=lambda extension: -extension[0])  # stable: ties go to the better parent, then the lower id
        before, self.live, moves = self.live, [], []
        for total, parent, token, log_probability in ranked[: self.beam - len(self.done)]:
            old, chance = before[parent], math.exp(log_probability)
            if token == self.end:
                self._finish(Hypothesis(old.tokens, old.chances, chance, total))
            else:
                self.live.append(Hypothesis((*old.tokens, token), (*old.chances, chance), None, total))
                moves.append((parent, token))
        if self.live and len(self.live[0].tokens) == self.limit:
            for live in self.live:
                self._finish(live)
            self.live = []
        if self._is_settled():
            self.live = []
        return moves if self.live else []

    def _finish(self, done: Hypothesis) -> None:
        score = done.log_probability / self.penalty(len(done.tokens) + done.finished)
        self.done.append(replace(done, score=score))
        self.done.sort(key=lambda hypothesis: -hypothesis.score)  # stable: ties go to the one finished first

    def _is_settled(self) -> bool:
        if len(self.done) < self.n_best:
            return False
        # No token makes a text likelier; if the penalty grows with length, the longest text is the best case.
        worst, longest = self.done[self.n_best - 1].score, self.penalty(self.limit)
        return all(worst >= one.log_probability / max(self.penalty(len(one.tokens) + 1), longest) for one in self.live)


def allowed_token_ids(vocab_size: int, specials: Specials, text_vocab_size: int, device: torch.device) -> Tensor:
    """Return (K,) ascending ids that may be written: those of the text, which are below `text`, and the end.
    `ValueError`: the model has no token for the end.
    """
    if not 0 <= specials.end < vocab_size:
        problem = tr(
            "the end token {end} is not among the model's {vocab_size} tokens", end=specials.end, vocab_size=vocab_size
        )
        raise ValueError(problem)
    return torch.tensor(sorted({*range(text_vocab_size), specials.end} - {specials.pad, specials.start}), device=device)


def top_ids_and_log_probabilities(logits: Tensor, k: int, allowed: Tensor) -> tuple[Tensor, Tensor]:
    """Return the k likeliest next tokens of each row, best first, at a tie the lower id first.

    (R, V) logits and (K,) ascending ids that may be chosen → (R, k) ids and (R, k) their log probabilities under the
    model, fp32 or wider. `InputError`: the model's answers are no numbers.
    """
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    log_probabilities = wide.log_softmax(-1)[:, allowed]
    places = log_probabilities.argmax(-1, keepdim=True) if k == 1 else _stable_topk(log_probabilities, k)
    chosen = log_probabilities.gather(-1, places)
    if not chosen.isfinite().all():
        raise InputError(NO_NUMBERS)
    return allowed[places], chosen


def _stable_topk(scores: Tensor, k: int) -> Tensor:
    """Return `topk`'s places with ties broken towards the lower place: `topk` breaks them arbitrarily."""
    values, places = scores.topk(min(k + 1, scores.shape[-1]))
    if values.shape[-1] > k and (values[:, k] == values[:, k - 1]).any():  # a tie at the border
        return scores.sort(dim=-1, descending=True, stable=True).indices[:, :k]
    places = places[:, :k].sort(-1).values
    return places.gather(-1, scores.gather(-1, places).sort(dim=-1, descending=True, stable=True).indices)


def beam_search(
    predictor: Predictor,
    prompts: Tensor,
    sentences: Sequence[SentenceBeam],
    allowed: Tensor,
    between: Callable[[], None] = lambda: None,
) -> list[list[Hypothesis]]:
    """Search until no sentence has a live hypothesis left; return the `n_best` done hypotheses of each, best first.

    `prompts` (B, T) stand before the sentences, which are of one width and not begun. `allowed`: (K,) ascending ids
    that may be written; `between` is called before each token and may raise to stop. `InputError`: the model's outputs
    are not numbers.
    """
    k = min(sentences[0].beam, allowed.numel())
    owners = list(range(len(sentences)))  # which sentence each row is of
    active = sentences

    def choose(logits: Tensor) -> DecodeStep | None:
        nonlocal owners, active
        ids, chosen = (part.tolist() for part in top_ids_and_log_probabilities(logits, k, allowed))
        extensions = [list(zip(*row, strict=True)) for row in zip(ids, chosen, strict=True)]
        borders = list(accumulate((len(sentence.live) for sentence in active), initial=0))
        moves = [
            (first + parent, token)
            for sentence, (first, stop) in zip(active, pairwise(borders), strict=True)
            for parent, token in sentence.advance(extensions[first:stop])
        ]
        active = [sentence for sentence in active if sentence.live]
        if not active:
            return None
        tokens, parents = prompts.new_tensor([[token] for _, token in moves]), [parent for parent, _ in moves]
        if parents == list(range(len(owners))):
            return DecodeStep(tokens)
        before, owners = owners, [owners[parent] for parent in parents]
        return DecodeStep(tokens, parents=prompts.new_tensor(parents), same_sources=owners == before)

    longest, context = max(sentence.limit for sentence in sentences), predictor.model.config.context_length
    for _ in generate(predictor, prompts, longest, choose, context=context, between=between):
        pass
    return [sentence.done[: sentence.n_best] for sentence in sentences]


def translate_batch(
    model: Network,
    source: Tensor,
    source_at: Positions | None,
    *,
    beam: int = 1,
    n_best: int = 1,
    penalty: Callable[[int], float] = lambda length: 1.0,
    specials: Specials,
    text_vocab_size: int,
    max_length: Sequence[int],
    between: Callable[[], None] = lambda: None,
) -> list[list[Hypothesis]]:
    """Return the best translations of each of several sentences that a beam search finds: distinct ones, best score
    first, fewer than `n_best` only where fewer exist. They do not depend on the rest of the batch.

    Args:
        model: in any mode; dropout is off meanwhile.
        source: (B, S) int64, each row at most `model.config.source_tokens` tokens; in a decoder what it reads before it
            writes, at most its context, and without padding.
        source_at: their positions, −1 at padding; None: there is none.
        beam: hypotheses that a sentence keeps; 1 is greedy.
        penalty: of a length; see `make_length_penalty`.
        allowed: tokens of the text; no id from here on is written but the end.
        max_length: (B,) most tokens to write, the end included, up to the model's context.
        between: called before each token; may raise to stop.

    `InputError`: options out of bounds, or a model whose answers are no numbers. `ValueError`: a source of no length,
    or no token for the end.
    """
    room = model.config.context_length + (0 if model.reads_source else 1 - source.shape[1])
    limits = [min(length, room) for length in max_length]
    if min(limits, default=1) < 1 or beam < 1 or not 1 <= n_best <= beam:
        problem = Message(
            "beam {beam}, n_best {n_best}, max_length {max_length}: each must be at least 1, and n_best at most beam",
            beam=beam,
            n_best=n_best,
            max_length=max_length,
        )
        raise InputError(problem)
    if not limits:
        return []
    if source.shape[1] == 0:
        raise ValueError(tr("a source needs at least one token"))
    sentences = [SentenceBeam(beam, n_best, limit, specials.end, penalty) for limit in limits]
    open_ = allowed_token_ids(model.vocab_size, specials, text_vocab_size, source.device)
    with evaluating(model):
        if not model.reads_source:
            return beam_search(Predictor(model), source, sentences, open_, between)
        predictor = Predictor(model, source, source_at)
        return beam_search(predictor, torch.full_like(source[:, :1], specials.start), sentences, open_, between)
