"""One sentence's beam: which hypotheses live, which are done, how they compare, and when no better one can come.

A sentence has `beam` places. At each step all its live hypotheses are extended, and the likeliest extensions take the
places that are left; one that ends is done and keeps its place (Sutskever et al. 2014, §3.2). So a beam of 1 is greedy
decoding, and one wide enough drops nothing. At the length limit those that still live are done as they stand. Those
that are done are compared by their log probability over a length penalty. No torch here.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from engine.errors import InputError, nearest, one_of

LengthPenalty = Literal["gnmt", "power"]
# Tokens written, the end included, and α → what a log probability is divided by.
LENGTH_PENALTIES: dict[LengthPenalty, Callable[[int, float], float]] = {
    "gnmt": lambda length, alpha: ((5 + length) / 6) ** alpha,  # Wu et al. 2016, eq. 14
    "power": lambda length, alpha: length**alpha,
}
LARGEST_ALPHA = 20  # either way: beyond, a penalty overflows before it decides anything more


def penalty_of(name: LengthPenalty, alpha: float) -> Callable[[int], float]:
    """Length → what a log probability is divided by.

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
    """A translation.

    Args:
        tokens: of the text, without start and end.
        chances: of each token under the model, given the source and the tokens before it.
        end_chance: of the end after them; None where the length limit cut it off.
        log_probability: of all of this, in nats.
        score: the log probability over the length penalty; higher is better.
    """

    tokens: tuple[int, ...]
    chances: tuple[float, ...]
    end_chance: float | None
    log_probability: float
    score: float

    @property
    def finished(self) -> bool:
        """Whether the model ended it."""
        return self.end_chance is not None


@dataclass(frozen=True)
class _Live:
    tokens: tuple[int, ...] = ()
    chances: tuple[float, ...] = ()
    log_probability: float = 0.0


@dataclass(frozen=True)
class Rules:
    """What all sentences of a search share."""

    beam: int
    n_best: int
    limit: int  # tokens written, the end included
    end: int
    penalty: Callable[[int], float]

    def hopes(self, live: _Live) -> float:
        """The best score that may still become of a live hypothesis.

        No token makes it likelier. If the penalty grows with the length, dividing by the largest flatters it most.
        """
        shortest, longest = self.penalty(len(live.tokens) + 1), self.penalty(self.limit)
        return live.log_probability / max(shortest, longest)


class Sentence:
    """The places of one sentence's beam."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.live = [_Live()]
        self.done: list[Hypothesis] = []

    def advance(self, extensions: Sequence[Sequence[tuple[int, float]]]) -> list[tuple[int, int]]:
        """Take one step.

        Args:
            extensions: for each live hypothesis its likeliest next tokens with their log probabilities, best first.

        Returns:
            For each hypothesis that is live now, which it was before and the token it got.
        """
        ranked = [
            (live.log_probability + log_probability, parent, token, log_probability)
            for parent, (live, options) in enumerate(zip(self.live, extensions, strict=True))
            for token, log_probability in options
        ]
        ranked.sort(key=lambda extension: -extension[0])  # stable: at a tie the better parent, then the lower id
        before, self.live, moves = self.live, [], []
        for total, parent, token, log_probability in ranked[: self.rules.beam - len(self.done)]:
            old, chance = before[parent], math.exp(log_probability)
            if token == self.rules.end:
                self._keep(_Live(old.tokens, old.chances, total), chance)
            else:
                self.live.append(_Live((*old.tokens, token), (*old.chances, chance), total))
                moves.append((parent, token))
        if self.live and len(self.live[0].tokens) == self.rules.limit:
            for live in self.live:
                self._keep(live, None)
            self.live = []
        if self._settled():
            self.live = []
        return moves if self.live else []

    def _keep(self, live: _Live, end_chance: float | None) -> None:
        length = len(live.tokens) + (end_chance is not None)
        score = live.log_probability / self.rules.penalty(length)
        self.done.append(Hypothesis(live.tokens, live.chances, end_chance, live.log_probability, score))
        self.done.sort(key=lambda hypothesis: -hypothesis.score)  # stable: at a tie the one that was done first

    def _settled(self) -> bool:
        if len(self.done) < self.rules.n_best:
            return False
        return all(self.done[self.rules.n_best - 1].score >= self.rules.hopes(live) for live in self.live)
