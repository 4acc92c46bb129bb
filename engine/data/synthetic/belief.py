"""The Bayes-optimal predictor of a generated text's next character from a limited window.

A window may begin anywhere: within a scene, a line, a word. A belief is a distribution over hypotheses about where in
the grammar the text is now and what the window has shown so far; each character rules some of them out (the forward
algorithm of a hidden Markov model; Rabiner 1989, §III.A). What a hypothesis has not seen is not enumerated: it stays
unknown and is summed out when the text refers to it.

This module is independent of any particular grammar.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from engine.data.synthetic.grammar import Choice

S = TypeVar("S", bound=Hashable)
Nats = npt.NDArray[np.float64]
Belief = dict[tuple[S, str], float]  # (state, what its choice has spelled so far) → probability


@cache
def _next_characters(choice: Choice, typed: str) -> dict[str, float]:
    return choice.next_characters(typed)


class WindowFilter(Generic[S]):
    """Exact p(next character | window), for windows that begin at any character with equal probability.

    A grammar is given as states: a place in it plus everything seen that still matters.
    """

    def __init__(
        self,
        choice_at: Callable[[S], Choice],  # what is drawn next, given what the state knows
        after: Callable[[S, str], Sequence[tuple[float, S]]],  # states that a literal leads to; probabilities sum to 1
        stationary: Mapping[S, float],  # states without a past, each with its expected visits per unit
        knows_all: Callable[[S], bool],  # whether knowing more of the past could no longer change any prediction
    ) -> None:
        self.choice_at, self.successors, self.knows_all = choice_at, after, knows_all
        found: dict[str, Belief[S]] = defaultdict(lambda: defaultdict(float))
        for state, visits in stationary.items():
            choice = choice_at(state)
            prefixes = {literal[:n]: None for literal in choice.options for n in range(len(literal))}
            reached = {"": visits}
            for typed in sorted(prefixes, key=len):
                for character, p in _next_characters(choice, typed).items():
                    reached[typed + character] = reached[typed] * p
                    self._add_successors(state, choice, typed + character, reached[typed] * p, found[character])
        total = sum(sum(belief.values()) for belief in found.values())
        # First character → its probability and the belief after it.
        self.initial_beliefs = {first: (sum(b.values()) / total, _normalise(b)[1]) for first, b in found.items()}

    def _add_successors(self, state: S, choice: Choice, typed: str, p: float, into: Belief[S]) -> None:
        if typed in choice.weights:
            for share, following in self.successors(state, typed):
                into[following, ""] = into.get((following, ""), 0.0) + p * share
        else:
            into[state, typed] = into.get((state, typed), 0.0) + p

    def advance(self, belief: Belief[S], character: str) -> tuple[float, Belief[S]]:
        """Return p(character | window) and the belief after it. Raises ValueError: the grammar cannot continue with
        this character.
        """
        found: Belief[S] = {}
        for (state, typed), p in belief.items():
            choice = self.choice_at(state)
            share = _next_characters(choice, typed).get(character)
            if share is not None:
                self._add_successors(state, choice, typed + character, p * share, found)
        if not found:
            raise ValueError(f"no text of this grammar continues with {character!r} here")
        return _normalise(found)

    def nats(self, text: str, start: int, stop: int, whole_past_nats: Nats) -> Nats:
        """Return (stop − start − 1,) −log p of the characters after the first of a window, given those before them in
        it; `whole_past` is (n,) −log p(character | whole past) of the text, used where the window shows enough.
        """
        found = np.empty(stop - start - 1)
        belief, at = self.initial_beliefs[text[start]][1], start + 1
        while at < stop:
            first, *others = belief
            if not others and self.knows_all(first[0]):
                found[at - start - 1 :] = whole_past_nats[at:stop]
                break
            choices = {id(choice): choice for choice in (self.choice_at(state) for state, _ in belief)}
            if len(choices) > 1 or any(typed for _, typed in belief):
                p, belief = self.advance(belief, text[at])
                found[at - start - 1] = -np.log(p)
                at += 1
                continue
            # All hypotheses draw from the same choice: read a whole literal at once.
            (shared,) = choices.values()
            match = shared.pattern.match(text, at)
            if match is None:  # the text ends within it
                literal = next(literal for literal in shared.options if literal.startswith(text[at:stop]))
            else:
                literal = match.group()
            length = min(len(literal), stop - at)
            place = at - start - 1
            np.negative(shared.log_probabilities[literal][:length], out=found[place : place + length])
            at += length
            if at < stop:
                after: Belief[S] = {}
                for (state, _), p in belief.items():
                    self._add_successors(state, shared, literal, p, after)
                belief = after
        return found


def _normalise(belief: Mapping[tuple[S, str], float]) -> tuple[float, Belief[S]]:
    total = sum(belief.values())
    return total, {hypothesis: p / total for hypothesis, p in belief.items()}
