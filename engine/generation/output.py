"""What a model wrote or read, as texts and probabilities: no torch."""

import math
from dataclasses import dataclass

from engine.base.language import tr

LEAST = 1e-45  # for a probability that fp32 rounded to 0


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
