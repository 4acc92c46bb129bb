"""A text view that colours each token and moves a cursor over tokens. Draws only what is in view.

Every token keeps its own cells. Lines break after spaces and at wide characters; appending rewraps only the last
line.
"""

import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from engine.base.clean import clean
from tui_transformer.lab.play.written import HIDDEN, SIGNS

BARE = "◌"  # carrier of a lone combining mark


@dataclass(frozen=True)
class TextCell:
    token: int
    text: str  # what is drawn; a space for a line end
    width: int
    ends: bool = False  # the line ends after it
    breaks: bool = False  # a line may break after it


def token_cells(token: int, text: str) -> list[TextCell]:
    """A token's cells: at least one, none that controls a terminal, none without width."""
    found: list[TextCell] = []
    for character in text:
        if character == "\n":
            found.append(TextCell(token, " ", 1, ends=True))
            continue
        shown = " " if character == "\t" else clean(character) or HIDDEN
        width = cell_len(shown)
        if width == 0 and unicodedata.category(character) == "Mn":
            if found and not found[-1].ends:  # it belongs to the character before it
                found[-1] = TextCell(token, found[-1].text + shown, found[-1].width, breaks=found[-1].breaks)
                continue
            shown, width = BARE + shown, 1
        elif width == 0:  # joiners and selectors: drawn, since a terminal would merge their neighbours
            shown, width = HIDDEN, 1
        found.append(TextCell(token, shown, width, breaks=shown == " " or width > 1))
    return found or [TextCell(token, HIDDEN, 1)]


class TextLayout:
    """Cells on lines of a width; one column is kept for a hanging space or line end."""

    def __init__(self, width: int = 80) -> None:
        self.width = width
        self.cells: list[TextCell] = []
        self.lines: list[tuple[int, int]] = [(0, 0)]  # of cells; the last one is open
        self.first_cells: list[int] = []  # by token: its first cell

    def extend(self, texts: Iterable[str]) -> None:
        for text in texts:
            self.first_cells.append(len(self.cells))
            self.cells += token_cells(len(self.first_cells) - 1, text)
        self._wrap(self.lines.pop()[0])

    def reflow(self, width: int) -> None:
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
        return bisect_right(self.lines, self.first_cells[token], 1, key=lambda line: line[0]) - 1

    def column_of(self, token: int) -> int:
        start = self.lines[self.line_of(token)][0]
        return sum(cell.width for cell in self.cells[start : self.first_cells[token]])

    def token_at(self, line: int, column: int) -> int | None:
        if not self.cells or not 0 <= line < len(self.lines):
            return None
        start, end = self.lines[line]
        x, found = 0, None
        for cell in self.cells[start:end]:
            if x > column:
                break
            found, x = cell.token, x + cell.width
        return found


WEIGHTS = 8  # shades of attention
STYLES = ("given", "unseen", *(f"p{i}" for i in range(5)), *(f"w{i}" for i in range(WEIGHTS + 1)), "cursor")
LOUD = ("p3", "p4")  # line ends of these levels are drawn as symbols


@dataclass(frozen=True)
class Token:
    text: str
    style: str  # of `STYLES`


class TokenText(ScrollView, can_focus=True):
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"token-text--{name}" for name in STYLES}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "step(-1)", "token", show=False),
        Binding("right", "step(1)", "token", show=False),
        Binding("up", "line(-1)", "line", show=False),
        Binding("down", "line(1)", "line", show=False),
        Binding("pageup", "line(-10)", "line", show=False),
        Binding("pagedown", "line(10)", "line", show=False),
        Binding("home", "step(-999999)", "first", show=False),
        Binding("end", "step(999999)", "last", show=False),
    ]

    @dataclass
    class Moved(Message):
        text: "TokenText"
        at: int

    def __init__(self) -> None:
        super().__init__()
        self.tokens: list[Token] = []
        self.cursor: int | None = None
        self._lines = TextLayout()
        self._followed = False  # whether a resize should keep the end in view

    def show(self, tokens: Sequence[Token], *, follow: bool = False) -> None:
        """Show these tokens; those already there are not laid out again."""
        old = len(self.tokens)
        grown = len(tokens) >= old and all(a.text == b.text for a, b in zip(self.tokens, tokens, strict=False))
        self.tokens = list(tokens)
        if not grown:
            self._lines = TextLayout(self._lines.width)
            old = 0
            if self.cursor is not None and self.cursor >= len(tokens):
                self.cursor = None
        self._lines.extend(token.text for token in tokens[old:])
        self._update_extent(follow=follow)

    def append_tokens(self, tokens: Sequence[Token]) -> None:
        """Add tokens at the end, which is kept in view if it was."""
        follow = self.scroll_offset.y >= self.max_scroll_y - 1
        self.tokens += tokens
        self._lines.extend(token.text for token in tokens)
        self._update_extent(follow=follow)

    def is_token_visible(self, at: int) -> bool:
        return 0 <= self._lines.line_of(at) - self.scroll_offset.y < self.size.height

    def move_cursor(self, at: int | None) -> None:
        self.cursor, self._followed = at, False
        if at is not None and self.tokens:
            y = self._lines.line_of(at)
            self.scroll_to_region(Region(0, y, 1, 1), animate=False, force=True)
        self.refresh()

    def _update_extent(self, *, follow: bool = False) -> None:
        self.virtual_size = Size(self.size.width, len(self._lines.lines))
        self._followed = follow
        if follow:
            self.scroll_to(y=len(self._lines.lines), animate=False, force=True)
        self.refresh()

    def watch_show_vertical_scrollbar(self, shown: bool) -> None:
        if shown:
            self.vertical_scrollbar.position = self.scroll_y  # Textual would leave it at the top

    def on_resize(self) -> None:
        self._lines.reflow(max(4, self.scrollable_content_region.width))
        self._update_extent(follow=self._followed)

    def on_focus(self) -> None:
        if self.cursor is None and self.tokens:
            self._move_cursor_and_post_moved(len(self.tokens) - 1)
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def action_step(self, by: int) -> None:
        if self.tokens:
            here = len(self.tokens) - 1 if self.cursor is None else self.cursor
            self._move_cursor_and_post_moved(max(0, min(len(self.tokens) - 1, here + by)))

    def action_line(self, by: int) -> None:
        if not self.tokens:
            return
        here = len(self.tokens) - 1 if self.cursor is None else self.cursor
        line = max(0, min(len(self._lines.lines) - 1, self._lines.line_of(here) + by))
        found = self._lines.token_at(line, self._lines.column_of(here))
        if found is not None:
            self._move_cursor_and_post_moved(found)

    def on_click(self, event: Click) -> None:
        offset = event.get_content_offset(self)
        if offset is not None:
            found = self._lines.token_at(offset.y + self.scroll_offset.y, offset.x)
            if found is not None:
                self._move_cursor_and_post_moved(found)

    def _move_cursor_and_post_moved(self, at: int) -> None:
        self.move_cursor(at)
        self.post_message(self.Moved(self, at))

    def render_line(self, y: int) -> Strip:
        width, at = self.scrollable_content_region.width, y + self.scroll_offset.y
        lines = self._lines.lines
        if not 0 <= at < len(lines):
            return Strip.blank(width, self.rich_style)
        base, segments = self.rich_style, []
        for cell in self._lines.cells[slice(*lines[at])]:
            name = self.tokens[cell.token].style
            style = self.get_component_rich_style(f"token-text--{name}")
            visible = SIGNS["\n"] if cell.ends else cell.text
            text = visible if name in LOUD else cell.text
            if cell.token == self.cursor:
                marked = self.get_component_rich_style("token-text--cursor")
                style += Style(reverse=True) if self.has_focus else Style(bgcolor=marked.bgcolor)
                text = visible
            segments.append(Segment(text, base + style))
        return Strip(Segment.simplify(segments)).adjust_cell_length(width, Style(bgcolor=base.bgcolor))
