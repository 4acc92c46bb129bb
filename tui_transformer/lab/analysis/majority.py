"""What always giving the same answer scores: a row beside runs on questions that is no run, and a column against it.

The answer is the most frequent one of the training questions, the score its share of the held-out ones; data.json has
both. Knowledge of the documents is what a run is right in beyond it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tui_transformer.lab.records.facts import number, table, text

NO_RUN = "no run"  # the state of the row
SCORE = "exact_match"


@dataclass(frozen=True)
class Majority:
    """Always the same answer.

    Args:
        answer: as it was read; whoever shows it cleans it.
        share: of the held-out questions that it is right in, 0 to 1.
    """

    answer: str
    share: float

    @property
    def name(self) -> str:
        """`always 'Arlow'`."""
        return f"always '{self.answer[:40]}'"


def read_majority(data: dict[str, Any]) -> Majority | None:
    """Of a run's data.json; None where it asks no questions."""
    found = table(data.get("majority"))
    right, of = number(found.get("right")), number(found.get("of"))
    if right is None or not of or not 0 <= right <= of:
        return None
    return Majority(text(found.get("answer")), right / of)


def different(found: Iterable[Majority | None]) -> list[Majority]:
    """Each once, in their order."""
    return list(dict.fromkeys(one for one in found if one is not None))


def path_of(beside: Path, majority: Majority) -> Path:
    """What the row is known by; nothing is there, and no run can be called so."""
    return beside.parent / f"{NO_RUN}: {majority.name.replace('/', '∕')}"
