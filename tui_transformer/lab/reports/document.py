"""A format-independent report: blocks in order. Texts are plain and untrusted; each format escapes them."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

NONE = "–"
_HYPHEN = re.compile(r"(?<![\w.\-])-(?=\d+\.\d)")


def typeset_numbers(text: str) -> str:
    """Text whose decimal numbers have a minus, not a hyphen, and whose lines never break at a ±."""
    return _HYPHEN.sub("\u2212", text).replace(" ± ", "\u00a0±\u00a0")


@dataclass(frozen=True)
class Strong:
    text: str


@dataclass(frozen=True)
class Code:
    """A key, a name or a hash, verbatim."""

    text: str


@dataclass(frozen=True)
class Math:
    """An inline formula in LaTeX, made only from this program's own tables and numbers."""

    latex: str


Inline = str | Strong | Code | Math
Spans = tuple[Inline, ...]


@dataclass(frozen=True)
class Heading:
    """The title of a section (level 1) or subsection (level 2)."""

    text: str
    level: int = 1


@dataclass(frozen=True)
class Paragraph:
    spans: Spans


@dataclass(frozen=True)
class VerdictParagraph:
    """The first paragraph of a report; an `alarm` says that something makes a score void."""

    spans: Spans
    alarm: bool = False


@dataclass(frozen=True)
class Bullets:
    items: tuple[Spans, ...]


@dataclass(frozen=True)
class TableCell:
    text: str
    strong: bool = False
    code: bool = False


def cells(texts: Iterable[str], *, strong: bool = False) -> tuple[TableCell, ...]:
    """A row of texts; empty ones become dashes."""
    return tuple(TableCell(text or NONE, strong) for text in texts)


@dataclass(frozen=True)
class Table:
    """A table; `align` has l or r per column, `note` below it explains the numbers."""

    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    align: str
    note: str = ""


@dataclass(frozen=True)
class Figure:
    name: str  # of its file, without suffix
    caption: str  # what it and its lines show
    draw: "Callable[[], Drawing]"  # imports matplotlib
    wide: bool = True  # whether it needs the full page width


@dataclass(frozen=True)
class Formula:
    """A displayed formula, in LaTeX as in `Math`; `source` is the paper, "" if it is common knowledge."""

    what: str
    latex: str
    source: str = ""


@dataclass(frozen=True)
class Listing:
    """Verbatim text: commands, a file, a model's output; a page folds a `long` one if it can."""

    text: str
    title: str = ""
    long: bool = False


Block = Heading | Paragraph | VerdictParagraph | Bullets | Table | Figure | Formula | Listing


@dataclass(frozen=True)
class Document:
    title: str
    subtitle: str
    language: str  # HTML language code: "en", "zh-Hans"
    contents: str  # title of the table of contents
    figure: str  # its label, with a gap for the number
    table: str  # the same
    blocks: tuple[Block, ...] = ()

    @property
    def figures(self) -> tuple[Figure, ...]:
        return tuple(block for block in self.blocks if isinstance(block, Figure))

    def numbered(self) -> Iterator[tuple[str, Block]]:
        """Each block with its label: `Figure 1`, `Table 2`, a section's number, else ""."""
        counts = Counter[str]()
        for block in self.blocks:
            kind = type(block).__name__ if not isinstance(block, Heading) or block.level == 1 else ""
            counts[kind] += 1
            form = {"Figure": self.figure, "Table": self.table, "Heading": "{n}"}.get(kind, "")
            yield form.format(n=counts[kind]), block
