"""What each badge means and what to do about it: one table for every pane, command and export. No Textual, no torch."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

PASSED, NONE_YET = "✓", "–"  # all checks passed; no checks yet


@dataclass(frozen=True)
class Badge:
    """Something that is wrong with a run's scores.

    Args:
        name: as checks.json has it.
        word: where there is little room; at most nine columns.
        means: one sentence.
        advice: what to do about it, one sentence.
        void: whether its loss must not be held against another run's.
    """

    name: str
    word: str
    means: str
    advice: str
    void: bool = False

    @property
    def severity(self) -> Literal["bad", "warn"]:
        """Red (bad) if the score means nothing, else amber (warn)."""
        return "bad" if self.void else "warn"


_TABLES = tomllib.loads(Path(__file__).with_name("badges.toml").read_text(encoding="utf-8"))
BADGES = {name: Badge(name, **table) for name, table in _TABLES.items()}


def badge(name: str) -> Badge:
    """Return what a badge means; one of a later version is shown by its name."""
    unknown = "This version does not know this badge.", "Read its reason; a newer version may say more."
    return BADGES.get(name) or Badge(name, name[:9], *unknown)


def worst_first(names: Iterable[str]) -> tuple[str, ...]:
    """Return badges, with those that make a score void first."""
    return tuple(sorted(names, key=lambda name: not badge(name).void))


def in_a_cell(names: Iterable[str], *, checked: bool) -> str:
    """Return badges for a narrow cell; without any, whether checks have passed or there are none yet.

    Args:
        names: its badges.
        checked: both the model and a score have been checked.
    """
    return " ".join(badge(name).word for name in names) or (PASSED if checked else NONE_YET)
