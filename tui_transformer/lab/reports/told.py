"""What every section of a report is given: the runs, the language of its words and that of its pictures."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tui_transformer.lab.analysis.language import Language
from tui_transformer.lab.reports.document import Cell, Strong, Table
from tui_transformer.lab.reports.gathered import Gathered

NONE = "–"


@dataclass(frozen=True)
class Told:
    """A report in the making.

    Args:
        gathered: what it is of.
        language: of its words.
        drawn: of the words in its pictures; another one where this machine has no letters for the first.
    """

    gathered: Gathered
    language: Language
    drawn: Language

    def say(self, key: str, /, **values: Any) -> str:
        """A phrase."""
        return self.language.say(key, **values)

    def sentences(self, parts: Iterable[str]) -> str:
        """Sentences one after the other."""
        return self.say("join.sentence").join(part for part in parts if part)


def cells(texts: Iterable[str], *, strong: bool = False) -> tuple[Cell, ...]:
    """A row of texts; what is empty is a dash."""
    return tuple(Cell(text or NONE, strong) for text in texts)


def pairs_table(
    caption: str, heads: tuple[str, str], rows: Iterable[tuple[str, str]], *, across: int = 1, code: bool = False
) -> Table:
    """What has a value, in one column of pairs or several beside each other; with `code`, keys letter for letter."""
    listed = list(rows)
    down = -(-len(listed) // across)
    columns = [listed[i * down : (i + 1) * down] for i in range(across)]
    made = []
    for y in range(down):
        row: list[Cell] = []
        for column in columns:
            key, value = column[y] if y < len(column) else ("", "")
            row += [Cell(key, code=code and bool(key)), Cell(value)]
        made.append(tuple(row))
    return Table(caption, heads * across, tuple(made), "ll" * across)


def emphasis(words: Iterable[tuple[str, bool]], between: str) -> tuple[str | Strong, ...]:
    """Sentences, those that are alarms set off."""
    spans: list[str | Strong] = []
    for text, strong in words:
        if spans and between:
            spans.append(between)
        spans.append(Strong(text) if strong else text)
    return tuple(spans)
