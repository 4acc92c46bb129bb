"""Lines with a cursor, one for each run: only those on the screen are drawn, so thousands cost no more than twenty."""

from pathlib import Path
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

STYLES = (
    *("live", "paused", "queued", "good", "ended", "bad"),  # as the states look
    *("warn", "name", "dim", "chosen", "chosen-focus"),
)


class LineList(ScrollView, can_focus=True):
    """A subclass says what stands on each line."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"line--{name}" for name in STYLES}
    DEFAULT_CSS = """
    LineList { background: $surface; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; overflow-x: hidden; }
    LineList .line--live { color: $accent; text-style: bold; }
    LineList .line--paused { color: $warning; }
    LineList .line--queued { color: $foreground 65%; }
    LineList .line--good { color: $success; }
    LineList .line--ended { color: $foreground 65%; }
    LineList .line--bad { color: $error; }
    LineList .line--warn { color: $warning; }
    LineList .line--name { color: $foreground; }
    LineList .line--dim { color: $foreground 65%; }
    LineList .line--chosen { background: $primary 20%; }
    LineList .line--chosen-focus { background: $primary 40%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "go(-1)", "up", show=False),
        Binding("down", "go(1)", "down", show=False),
        Binding("pageup", "go(-15)", "up", show=False),
        Binding("pagedown", "go(15)", "down", show=False),
        Binding("home", "go(-99999)", "first", show=False),
        Binding("end", "go(99999)", "last", show=False),
    ]

    class Chosen(Message):
        """The cursor went to another run."""

        def __init__(self, run: Path) -> None:
            super().__init__()
            self.run = run

    class Opened(Message):
        """A run was clicked twice."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.paths: list[Path] = []  # of the runs, by line
        self.at = 0  # the cursor

    def line(self, at: int, width: int) -> list[tuple[str, str]]:
        """Return texts with the names of their styles, from the left, for at most so many columns."""
        raise NotImplementedError

    def paint_row(self, at: int, width: int) -> Strip:
        """Return a line on the cursor's ground, where it is the cursor's."""
        over = Style()
        if at == self.at:
            chosen = self.get_component_rich_style("line--chosen-focus" if self.has_focus else "line--chosen")
            over = Style(bgcolor=chosen.bgcolor, bold=chosen.bold or None)
        line = self.line(at, width)
        segments = [Segment(text, self.get_component_rich_style(f"line--{style}") + over) for text, style in line]
        return Strip(segments).adjust_cell_length(width, self.rich_style + over)

    def render_line(self, y: int) -> Strip:
        width, at = self.scrollable_content_region.width, round(y + self.scroll_offset.y)
        return self.paint_row(at, width) if 0 <= at < len(self.paths) else Strip.blank(width, self.rich_style)

    def reveal(self) -> None:
        self.scroll_to_region(Region(0, self.at, 1, 1), animate=False, force=True)

    def action_go(self, by: int) -> None:
        at = max(0, min(len(self.paths) - 1, self.at + by))
        if self.paths and at != self.at:
            before, self.at = self.at, at
            self.reveal()
            self.refresh_lines(before)
            self.refresh_lines(at)
            self.post_message(self.Chosen(self.paths[at]))

    def on_click(self, event: Click) -> None:
        offset = event.get_content_offset(self)
        if offset is not None and 0 <= (at := round(offset.y + self.scroll_offset.y)) < len(self.paths):
            self.action_go(at - self.at)
            if event.chain == 2:
                self.post_message(self.Opened())

    def on_resize(self) -> None:
        self.virtual_size = Size(self.size.width, len(self.paths))
        self.reveal()

    def on_focus(self) -> None:
        self.refresh_lines(self.at)  # the cursor is brighter

    def on_blur(self) -> None:
        self.refresh_lines(self.at)
