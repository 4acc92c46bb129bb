"""What a model wrote or attended to, as it is shown: no torch, no Textual.

Probabilities fall into five levels, shared wherever tokens are coloured; each is also visible without colour.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.base.clean import clean
from engine.base.language import tr
from engine.generation.output import FullAnswer

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEVELS = (0.5, 0.2, 0.05, 0.01)  # probabilities at and above which a token is of level 0, 1, 2, 3; else of level 4
SIGNS = {"\n": "↵", " ": "␣", "\t": "⇥"}
HIDDEN = "·"  # stands for a character unsafe for terminals


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
