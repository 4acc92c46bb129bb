"""A report before it has a format: blocks in order. Texts are plain and untrusted; each format escapes them its way."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawn


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


_HYPHEN = re.compile(r"(?<![\w.\-])-(?=\d+\.\d)")


def typeset(text: str) -> str:
    """Text in which numbers with a point have a minus, not a hyphen, and no line ends before or after a ±."""
    return _HYPHEN.sub("\u2212", text).replace(" ± ", "\u00a0±\u00a0")


Inline = str | Strong | Code | Math
Spans = tuple[Inline, ...]


@dataclass(frozen=True)
class Heading:
    """A section's title; level 1 is a section, 2 a part of one."""

    text: str
    level: int = 1


@dataclass(frozen=True)
class Paragraph:
    """A paragraph."""

    spans: Spans


@dataclass(frozen=True)
class Verdict:
    """The first paragraph of a report.

    Args:
        spans: what it says.
        alarm: whether something makes a score void.
    """

    spans: Spans
    alarm: bool = False


@dataclass(frozen=True)
class Bullets:
    """A list."""

    items: tuple[Spans, ...]


@dataclass(frozen=True)
class Cell:
    """A cell of a table; `strong` is set off."""

    text: str
    strong: bool = False
    code: bool = False


@dataclass(frozen=True)
class Table:
    """A table.

    Args:
        caption: what it shows; a sentence.
        heads: of its columns.
        rows: as long as the heads.
        align: a letter a column: l, or r as numbers are.
        note: what its numbers mean, below it.
    """

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
    draw: "Callable[[], Drawn]"
    wide: bool = True


@dataclass(frozen=True)
class Formula:
    """A formula on a line of its own, with what it is.

    Args:
        what: a few words.
        latex: one line of it; never made of anything but this program's own tables and numbers.
        source: the paper; "" where it is common knowledge.
    """

    what: str
    latex: str
    source: str = ""


@dataclass(frozen=True)
class Listing:
    """Text as it is: commands, a file, what a model wrote.

    Args:
        text: in lines.
        title: above it.
        wrap: whether long lines may be broken.
        long: whether a page that can fold it should.
    """

    text: str
    title: str = ""
    wrap: bool = True
    long: bool = False


Block = Heading | Paragraph | Verdict | Bullets | Table | Figure | Formula | Listing


@dataclass(frozen=True)
class Document:
    """A whole report.

    Args:
        title: its first line.
        subtitle: what it is of, in a line.
        language: of its words, as HTML has it: "en", "zh-Hans".
        contents: the title of the table of contents.
        numbered: how a figure and a table are called, with a gap for the number.
        blocks: in order.
    """

    title: str
    subtitle: str
    language: str
    contents: str
    numbered: tuple[str, str]
    blocks: tuple[Block, ...] = field(default_factory=tuple)

    @property
    def figures(self) -> tuple[Figure, ...]:
        """Its pictures, in order."""
        return tuple(block for block in self.blocks if isinstance(block, Figure))
