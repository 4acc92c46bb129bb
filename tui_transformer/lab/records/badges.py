"""What each badge means and what to do about it: one table for every pane, command and export. No Textual, no torch."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

PASSED, NONE_YET = "✓", "–"  # all checks passed; no checks yet


@dataclass(frozen=True)
class Badge:
    """Something that is wrong with a run's scores."""

    name: str  # as in checks.json
    word: str  # for little room; at most nine columns
    means: str  # one sentence
    advice: str  # what to do about it, one sentence
    void: bool = False  # whether its loss must not be compared with others

    @property
    def severity(self) -> Literal["bad", "warn"]:
        """Red (bad) if the score means nothing, else amber (warn)."""
        return "bad" if self.void else "warn"


_TABLES = tomllib.loads(Path(__file__).with_name("badges.toml").read_text(encoding="utf-8"))
BADGES = {name: Badge(name, **table) for name, table in _TABLES.items()}


def badge(name: str) -> Badge:
    """Return a badge's meaning; one from a later version is shown by name."""
    unknown = "This version does not know this badge.", "Read its reason; a newer version may say more."
    return BADGES.get(name) or Badge(name, name[:9], *unknown)


def worst_first(names: Iterable[str]) -> tuple[str, ...]:
    """Return badges, those that void a score first."""
    return tuple(sorted(names, key=lambda name: not badge(name).void))


def in_a_cell(names: Iterable[str], *, checked: bool) -> str:
    """Return badges for a narrow cell; if none, whether checks passed or have not run yet."""
    return " ".join(badge(name).word for name in names) or (PASSED if checked else NONE_YET)
