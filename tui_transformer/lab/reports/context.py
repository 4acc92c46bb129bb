"""What every section of a report is given: the runs, the language of its words and that of its pictures."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tui_transformer.lab.analysis.language import Language
from tui_transformer.lab.analysis.verdict import VariantResult
from tui_transformer.lab.reports.document import Cell, Table
from tui_transformer.lab.reports.report_data import ReportData

NONE = "–"


@dataclass(frozen=True)
class ReportContext:
    """A report in the making.

    Args:
        data: what it is of.
        language: of its words.
        drawn: of the words in its pictures; another one where this machine has no letters for the first.
    """

    data: ReportData
    language: Language
    drawn: Language

    def say(self, key: str, /, **values: Any) -> str:
        return self.language.say(key, **values)

    def sentences(self, parts: Iterable[str]) -> str:
        return self.say("join.sentence").join(part for part in parts if part)

    def bracketed(self, text: str, facts: str) -> str:
        """`text (facts)`; the text alone where there are no facts."""
        return self.say("bracketed", text=text, facts=facts) if facts else text

    def names(self, standings: Iterable[VariantResult]) -> str:
        """`a, b and c`."""
        return self.language.joined(map(self.data.name, standings))

    def corpora(self) -> str:
        """All texts that its runs were trained on."""
        return self.language.joined(self.data.corpora)

    def heads(self, *keys: str) -> tuple[str, ...]:
        return tuple(self.say(f"head.{key}") for key in keys)


def cells(texts: Iterable[str], *, strong: bool = False) -> tuple[Cell, ...]:
    """A row of texts; what is empty is a dash."""
    return tuple(Cell(text or NONE, strong) for text in texts)


def pairs_table(
    caption: str, heads: tuple[str, ...], rows: Iterable[tuple[str, str]], *, across: int = 1, code: bool = False
) -> Table:
    """What has a value, in one column of pairs or several beside each other; with `code`, keys letter for letter."""
    listed = list(rows)
    down = -(-len(listed) // across)
    listed += [("", "")] * (down * across - len(listed))
    pairs = [(Cell(key, code=code and bool(key)), Cell(value)) for key, value in listed]
    made = [tuple(cell for pair in pairs[y::down] for cell in pair) for y in range(down)]
    return Table(caption, heads * across, tuple(made), "ll" * across)
