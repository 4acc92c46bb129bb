"""Tokens on lines: every token keeps cells of its own, so that a cursor can stand on it. No Textual.

Breaks come after spaces and at wide characters; growing at the end wraps only the last line again.
"""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from rich.cells import cell_len

from engine.clean import clean
from tui_transformer.lab.play.written import HIDDEN, SIGNS

BARE = "◌"  # what carries a mark that stands alone


@dataclass(frozen=True)
class Cell:
    """A character of a token, as it is drawn.

    Args:
        token: whose it is.
        text: what is drawn; of a line end a space.
        width: columns.
        ends: the line ends after it.
        breaks: a line may be broken after it.
    """

    token: int
    text: str
    width: int
    ends: bool = False
    breaks: bool = False


def cells(token: int, text: str) -> list[Cell]:
    """How a token is drawn: at least one cell, nothing that commands a terminal, nothing without a width."""
    found: list[Cell] = []
    for character in text:
        if character == "\n":
            found.append(Cell(token, " ", 1, ends=True))
            continue
        shown = " " if character == "\t" else clean(character) or HIDDEN
        width = cell_len(shown)
        if width == 0 and unicodedata.category(character) == "Mn":
            if found and not found[-1].ends:  # it belongs to the character before it
                found[-1] = Cell(token, found[-1].text + shown, found[-1].width, breaks=found[-1].breaks)
                continue
            shown, width = BARE + shown, 1
        elif width == 0:  # joiners and selectors: drawn, since a terminal would melt their neighbours together
            shown, width = HIDDEN, 1
        found.append(Cell(token, shown, width, breaks=shown == " " or width > 1))
    return found or [Cell(token, HIDDEN, 1)]


class Layout:
    """Cells on lines of a width.

    Args:
        width: columns; one of them is kept for a space or line end that hangs over.
    """

    def __init__(self, width: int = 80) -> None:
        self.width = width
        self.cells: list[Cell] = []
        self.lines: list[tuple[int, int]] = [(0, 0)]  # of cells; the last one is open
        self.first: list[int] = []  # by token: its first cell

    def clear(self) -> None:
        """No tokens."""
        self.cells, self.lines, self.first = [], [(0, 0)], []

    def extend(self, texts: Iterable[str]) -> None:
        """More tokens at the end."""
        for text in texts:
            self.first.append(len(self.cells))
            self.cells += cells(len(self.first) - 1, text)
        self._wrap(self.lines.pop()[0])

    def reflow(self, width: int) -> None:
        """Another width."""
        if width != self.width:
            self.width, self.lines = width, []
            self._wrap(0)

    def _wrap(self, start: int) -> None:
        room = max(2, self.width - 1)
        at, x, after = start, 0, start
        while at < len(self.cells):
            cell = self.cells[at]
            hangs = cell.text == " " and x <= room
            if x + cell.width > room and at > start and not hangs:
                cut = after if start < after else at
                self.lines.append((start, cut))
                start, after = cut, cut
                x = sum(one.width for one in self.cells[cut:at])
                continue
            x += cell.width
            at += 1
            if cell.ends:
                self.lines.append((start, at))
                start, after, x = at, at, 0
            elif cell.breaks:
                after = at
        self.lines.append((start, at))

    def line_of(self, token: int) -> int:
        """The line that a token begins on."""
        cell = self.first[token]
        low, high = 0, len(self.lines) - 1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.lines[middle][0] <= cell else (low, middle - 1)
        return low

    def column_of(self, token: int) -> int:
        """The column that a token begins at."""
        start = self.lines[self.line_of(token)][0]
        return sum(cell.width for cell in self.cells[start : self.first[token]])

    def token_at(self, line: int, column: int) -> int | None:
        """The token at a place, or the nearest before it on that line."""
        if not self.cells or not 0 <= line < len(self.lines):
            return None
        start, end = self.lines[line]
        x, found = 0, None
        for cell in self.cells[start:end]:
            if x > column:
                break
            found, x = cell.token, x + cell.width
        return found


def sign_of(cell: Cell) -> str:
    """A line end as something that can be seen."""
    return SIGNS["\n"] if cell.ends else cell.text
