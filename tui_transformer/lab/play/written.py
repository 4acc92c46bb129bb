"""What a model wrote, read or looked at, as texts and numbers to show: no torch, no Textual.

A probability has one of five levels, which every place that colours tokens shares; each can be told without colour.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.clean import clean

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAST = 1e-45  # a probability that fp32 rounded to 0
LEVELS = (0.5, 0.2, 0.05, 0.01)  # probabilities at and above which a token is of level 0, 1, 2, 3; else of level 4
SIGNS = {"\n": "↵", " ": "␣", "\t": "⇥"}
HIDDEN = "·"  # what stands for a character that must not reach a terminal


@dataclass(frozen=True)
class Alternative:
    """A token that could have been: its probability under the model, and its chance of being drawn."""

    text: str
    probability: float
    chance: float


@dataclass(frozen=True)
class AnswerToken:
    """One token of a text.

    Args:
        text: as the model has it: to be cleaned before it is shown.
        probability: under the model, nothing cut; None where nothing predicted it.
        chance: under the distribution it was drawn from, where it was drawn.
        alternatives: the likeliest tokens in its place, best first.
    """

    text: str
    probability: float | None = None
    chance: float | None = None
    alternatives: tuple[Alternative, ...] = ()

    @property
    def nats(self) -> float | None:
        """Its surprise, −log p, nats."""
        return None if self.probability is None else -math.log(max(self.probability, LEAST))


@dataclass(frozen=True)
class Answer:
    """A whole answer, not cleaned.

    Args:
        text: of it.
        probability: the product of its tokens', the end's too: that the model says this and nothing else.
    """

    text: str
    probability: float


@dataclass(frozen=True)
class TokenScores:
    """How surprised a model is by a text.

    Args:
        pieces: its tokens.
        nats: −log p of each; None where nothing predicts it.
        source: the text that was given before, "" for a model without a source.
        rule: what each token was predicted from, in a sentence.
    """

    pieces: tuple[AnswerToken, ...]
    nats: tuple[float | None, ...]
    source: str
    rule: str

    @property
    def total(self) -> float:
        """Of all tokens, nats."""
        return math.fsum(value for value in self.nats if value is not None)

    @property
    def characters(self) -> int:
        """How many characters were predicted."""
        return sum(len(piece.text) for piece, value in zip(self.pieces, self.nats, strict=True) if value is not None)

    @property
    def mean(self) -> float:
        """Nats per character."""
        return self.total / max(1, self.characters)

    @property
    def perplexity(self) -> float:
        """e to the mean over tokens; infinite where that overflows."""
        mean = self.total / max(1, sum(value is not None for value in self.nats))
        return math.exp(mean) if mean < 700 else math.inf

    @property
    def words(self) -> str:
        """Total, mean and perplexity on a line."""
        bits = 1 / math.log(2)
        return (
            f"{self.total:.2f} nats ({self.total * bits:.2f} bits) for {self.characters:,} characters · "
            f"{self.mean:.3f} nats ({self.mean * bits:.3f} bits) a character · perplexity {self.perplexity:.3g}"
        )


@dataclass(frozen=True)
class AttentionView:
    """Where one head looks over a text.

    Args:
        queries: the tokens that look.
        keys: the tokens that are looked at.
        weights: (queries, keys), each row sums to 1.
        visible: (queries, keys) bool.
        bias: (queries, keys) what positions add to the scores; None if nothing.
        title: whose it is.
        rule: who may look at whom, in a sentence.
        crosses: the keys are another text.
    """

    queries: tuple[str, ...]
    keys: tuple[str, ...]
    weights: "NDArray[Any]"
    visible: "NDArray[Any]"
    bias: "NDArray[Any] | None"
    title: str
    rule: str
    crosses: bool = False


def level(probability: float | None) -> int:
    """0 for a likely token, 4 for one that hardly could have been; unknown ones are likely."""
    if probability is None:
        return 0
    return sum(probability < least for least in LEVELS)


def sign(text: str) -> str:
    """A token as it is named in a list: spaces and line ends as signs, nothing that commands a terminal."""
    return "".join(SIGNS.get(c, c) if c in SIGNS or clean(c) else HIDDEN for c in text) or HIDDEN


def in_words(answers: Sequence[Answer]) -> str:
    """`probability 0.83; then Arlow 0.10, Corvik 0.02`: an answer's, and the likeliest others. Not cleaned."""
    if not answers:
        return ""
    others = ", ".join(f"{one.text or '(nothing)'} {number(one.probability)}" for one in answers[1:])
    first = "" if answers[0].text else "(nothing) "
    return f"{first}probability {number(answers[0].probability)}" + (f"; then {others}" if others else "")


def number(probability: float) -> str:
    """A probability as it stands in a list: four characters."""
    if probability >= 0.995:
        return "1.00"
    return f"{probability:.2f}" if probability >= 0.1 else f"{probability:.3f}" if probability >= 5e-4 else "0.000"
