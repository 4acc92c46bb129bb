"""A report before it has a format: blocks in order. Texts are plain and untrusted; each format escapes them its way."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_HYPHEN = re.compile(r"(?<![\w.\-])-(?=\d+\.\d)")


def typeset(text: str) -> str:
    """Text in which numbers with a point have a minus, not a hyphen, and no line ends before or after a ±."""
    return _HYPHEN.sub("\u2212", text).replace(" ± ", "\u00a0±\u00a0")


@dataclass(frozen=True)
class Strong:
    """Words that must not be missed."""

    text: str


@dataclass(frozen=True)
class Code:
    """A key, a name or a hash, letter for letter."""

    text: str


@dataclass(frozen=True)
class Math:
    """A formula within a line, in LaTeX; never made of anything but this program's own tables and numbers."""

    latex: str


Inline = str | Strong | Code | Math
Spans = tuple[Inline, ...]


@dataclass(frozen=True)
class Heading:
    """The title of a section (level 1) or of a part of one (level 2)."""

    text: str
    level: int = 1


@dataclass(frozen=True)
class Paragraph:
    spans: Spans


@dataclass(frozen=True)
class Verdict:
    """The first paragraph of a report; an `alarm` says that something makes a score void."""

    spans: Spans
    alarm: bool = False


@dataclass(frozen=True)
class Bullets:
    items: tuple[Spans, ...]


@dataclass(frozen=True)
class Cell:
    text: str
    strong: bool = False
    code: bool = False


@dataclass(frozen=True)
class Table:
    """A table; `align` has a letter a column, l or r, `note` says below it what its numbers mean."""

    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    align: str
    note: str = ""


@dataclass(frozen=True)
class Figure:
    """A picture, drawn when a format asks for it.

    Args:
        name: of its file, without an ending.
        caption: what it shows, and what its lines are.
        draw: makes it; imports matplotlib.
        wide: whether it needs the whole width of a page.
    """

    name: str
    caption: str
    draw: "Callable[[], Drawing]"
    wide: bool = True


@dataclass(frozen=True)
class Formula:
    """A formula on a line of its own, in LaTeX as in `Math`; `source` is the paper, "" where it is common knowledge."""

    what: str
    latex: str
    source: str = ""


@dataclass(frozen=True)
class Listing:
    """Text as it is: commands, a file, what a model wrote; a page folds a `long` one where it can."""

    text: str
    title: str = ""
    long: bool = False


Block = Heading | Paragraph | Verdict | Bullets | Table | Figure | Formula | Listing


@dataclass(frozen=True)
class Document:
    """A whole report.

    Args:
        language: of its words, as HTML has it: "en", "zh-Hans".
        contents: the title of the table of contents.
        figure, table: what one is called, with a gap for the number.
    """

    title: str
    subtitle: str
    language: str
    contents: str
    figure: str
    table: str
    blocks: tuple[Block, ...] = ()

    @property
    def figures(self) -> tuple[Figure, ...]:
        return tuple(block for block in self.blocks if isinstance(block, Figure))

    def numbered(self) -> Iterator[tuple[str, Block]]:
        """Each block with what it is called: `Figure 1`, `Table 2`, for a section its number, else ""."""
        counts = Counter[str]()
        for block in self.blocks:
            kind = type(block).__name__ if not isinstance(block, Heading) or block.level == 1 else ""
            counts[kind] += 1
            form = {"Figure": self.figure, "Table": self.table, "Heading": "{n}"}.get(kind, "")
            yield form.format(n=counts[kind]), block
