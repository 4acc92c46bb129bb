"""A list with a cursor, one line per run, and a line that filters a list.

Only visible lines are drawn, so thousands cost no more than twenty.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Blur, Click, Focus, MouseMove
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Input

STYLES = (
    *("live", "paused", "queued", "good", "ended", "bad"),  # as the states look
    *("warn", "name", "dim", "chosen", "chosen-focus"),
)


class LineList(ScrollView, can_focus=True):
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"line--{name}" for name in STYLES}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "go(-1)", "up", show=False),
        Binding("down", "go(1)", "down", show=False),
        Binding("pageup", "go(-15)", "up", show=False),
        Binding("pagedown", "go(15)", "down", show=False),
        Binding("home", "go(-99999)", "first", show=False),
        Binding("end", "go(99999)", "last", show=False),
    ]

    @dataclass
    class Chosen(Message):
        run: Path

    class Opened(Message):
        """A run was clicked twice."""

    @dataclass
    class LetterClicked(Message):
        """The letter of a run's curve was clicked."""

        run: Path

    letter_column: ClassVar[int | None] = None  # the column of a letter, if lines have any

    def __init__(
        self,
        line: Callable[[int, int], list[tuple[str, str]]],
        *,
        id: str,
        tip: Callable[[int, int, int], str] = lambda at, width, x: "",
    ) -> None:
        """`line` takes a line's number and width, and returns its parts from the left: text and style name.

        `tip` takes the same and a column, and returns what to tell while the mouse is over it.
        """
        super().__init__(id=id)
        self._line, self._tip = line, tip
        self.paths: list[Path] = []  # of the runs, by line
        self.cursor = 0  # the cursor

    def show_lines(self, paths: list[Path], at: int) -> None:
        """Show other lines, with the cursor on one of them."""
        moved, self.paths, self.cursor = at != self.cursor, paths, at
        self.virtual_size = Size(self.size.width, len(paths))
        if moved:
            self.scroll_to_cursor()
        self.refresh()

    def paint_row(self, at: int, width: int) -> Strip:
        over = Style()
        if at == self.cursor:
            chosen = self.get_component_rich_style("line--chosen-focus" if self.has_focus else "line--chosen")
            over = Style(bgcolor=chosen.bgcolor, bold=chosen.bold or None)
        line = self._line(at, width)
        segments = [Segment(text, self.get_component_rich_style(f"line--{style}") + over) for text, style in line]
        return Strip(segments).adjust_cell_length(width, self.rich_style + over)

    def render_line(self, y: int) -> Strip:
        width, at = self.scrollable_content_region.width, round(y + self.scroll_offset.y)
        return self.paint_row(at, width) if 0 <= at < len(self.paths) else Strip.blank(width, self.rich_style)

    def scroll_to_cursor(self) -> None:
        self.scroll_to_region(Region(0, self.cursor, 1, 1), animate=False, force=True)

    def action_go(self, by: int) -> None:
        at = max(0, min(len(self.paths) - 1, self.cursor + by))
        if self.paths and at != self.cursor:
            before, self.cursor = self.cursor, at
            self.scroll_to_cursor()
            self.refresh_lines(before)
            self.refresh_lines(at)
            self.post_message(self.Chosen(self.paths[at]))

    def tooltip_at(self, at: int, x: int) -> str:
        """What to tell about a column of a line that the mouse is over; "" for nothing."""
        return self._tip(at, self.scrollable_content_region.width, x)

    def on_mouse_move(self, event: MouseMove) -> None:
        offset, said = event.get_content_offset(self), ""
        if offset is not None and 0 <= (at := round(offset.y + self.scroll_offset.y)) < len(self.paths):
            said = self.tooltip_at(at, offset.x)
        self.tooltip = Content(said) if said else None

    def on_click(self, event: Click) -> None:
        offset = event.get_content_offset(self)
        if offset is not None and 0 <= (at := round(offset.y + self.scroll_offset.y)) < len(self.paths):
            self.action_go(at - self.cursor)
            if offset.x == self.letter_column:
                self.post_message(self.LetterClicked(self.paths[at]))
            elif event.chain == 2:
                self.post_message(self.Opened())

    def on_resize(self) -> None:
        self.virtual_size = Size(self.size.width, len(self.paths))
        self.scroll_to_cursor()

    @on(Focus)
    @on(Blur)
    def _repaint_cursor(self) -> None:
        self.refresh_lines(self.cursor)  # it is brighter while the list has the focus


class SearchLine(Input):
    """Filters while typing; escape clears it, enter and down go to the results.

    `leave` focuses the filtered list at once, so that the next key goes where it is meant to.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,down", "leave", "list", show=False, priority=True),
        Binding("escape", "clear", "clear", show=False, priority=True),
    ]

    def __init__(self, placeholder: str, leave: Callable[[], object], *, id: str | None = None) -> None:
        super().__init__(placeholder=placeholder, select_on_focus=False, id=id)
        self._leave = leave

    def action_leave(self) -> None:
        self._leave()

    def action_clear(self) -> None:
        self.value = ""
        self._leave()
