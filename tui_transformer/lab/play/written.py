"""What a model wrote, read or attended to, as texts and numbers to show: no torch, no Textual.

Probabilities fall into five levels, shared wherever tokens are coloured; each is also visible without colour.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.base.clean import clean
from engine.base.language import tr

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAST = 1e-45  # for a probability that fp32 rounded to 0
LEVELS = (0.5, 0.2, 0.05, 0.01)  # probabilities at and above which a token is of level 0, 1, 2, 3; else of level 4
SIGNS = {"\n": "↵", " ": "␣", "\t": "⇥"}
HIDDEN = "·"  # stands for a character unsafe for terminals


@dataclass(frozen=True)
class Alternative:
    """An alternative token: its probability under the model, and its chance of being drawn."""

    text: str
    probability: float
    chance: float


@dataclass(frozen=True)
class AnswerToken:
    text: str  # raw from the model: clean it before showing it
    probability: float | None = None  # under the model, nothing cut; None if nothing predicted it
    chance: float | None = None  # under the distribution it was drawn from, if drawn
    alternatives: tuple[Alternative, ...] = ()  # the likeliest tokens in its place, best first

    @property
    def nats(self) -> float | None:
        return None if self.probability is None else -math.log(max(self.probability, LEAST))


@dataclass(frozen=True)
class FullAnswer:
    """A whole answer, not cleaned."""

    text: str
    probability: float  # product over its tokens and the end: that the model says exactly this


@dataclass(frozen=True)
class BeamResult:
    """An answer that a beam search found."""

    tokens: tuple[AnswerToken, ...]
    score: float  # log probability / length penalty; higher is better

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.tokens)


@dataclass(frozen=True)
class ScoredText:
    tokens: tuple[AnswerToken, ...]
    nats: tuple[float | None, ...]  # −log p of each; None where nothing predicts it
    source: str  # the given text, "" for a model without a source
    rule: str  # what tokens were predicted from, in a sentence

    @property
    def total_nats(self) -> float:
        return math.fsum(value for value in self.nats if value is not None)

    @property
    def characters(self) -> int:
        return sum(len(piece.text) for piece, value in zip(self.tokens, self.nats, strict=True) if value is not None)

    @property
    def nats_per_character(self) -> float:
        return self.total_nats / max(1, self.characters)

    @property
    def perplexity(self) -> float:
        """e to the mean over tokens; infinite where that overflows."""
        mean = self.total_nats / max(1, sum(value is not None for value in self.nats))
        return math.exp(mean) if mean < 700 else math.inf

    @property
    def summary(self) -> str:
        bits = 1 / math.log(2)
        return tr(
            "{total:.2f} nats ({total2:.2f} bits) for {characters:,} characters · {mean:.3f} nats "
            "({mean2:.3f} bits) per character · perplexity {perplexity:.3g}",
            total=self.total_nats,
            total2=self.total_nats * bits,
            characters=self.characters,
            mean=self.nats_per_character,
            mean2=self.nats_per_character * bits,
            perplexity=self.perplexity,
        )


@dataclass(frozen=True)
class AttentionView:
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    weights: "NDArray[Any]"  # (queries, keys), each row sums to 1
    visible: "NDArray[Any]"  # (queries, keys) bool
    bias: "NDArray[Any] | None"  # (queries, keys) position bias of the scores
    title: str
    rule: str  # who may look at whom, in a sentence
    is_cross: bool = False  # the keys are another text


def probability_level(probability: float | None) -> int:
    """0 for a likely token to 4 for a very unlikely one; unknown ones are likely."""
    if probability is None:
        return 0
    return sum(probability < least for least in LEVELS)


def token_label(text: str) -> str:
    """A token's name in a list: spaces and line ends as symbols, nothing that controls a terminal."""
    return "".join(SIGNS.get(c, c) if c in SIGNS or clean(c) else HIDDEN for c in text) or HIDDEN


def answer_probabilities_text(answers: Sequence[FullAnswer]) -> str:
    """`probability 0.83; then Arlow 0.10, Corvik 0.02`: an answer's, and the likeliest others. Not cleaned."""
    if not answers:
        return ""
    others = ", ".join(f"{one.text or '(nothing)'} {probability_text(one.probability)}" for one in answers[1:])
    first = "" if answers[0].text else "(nothing) "
    return tr("{first}probability {number}", first=first, number=probability_text(answers[0].probability)) + (
        tr("; then {others}", others=others) if others else ""
    )


def probability_text(probability: float) -> str:
    if probability >= 0.995:
        return "1.00"
    return f"{probability:.2f}" if probability >= 0.1 else f"{probability:.3f}" if probability >= 5e-4 else "0.000"
