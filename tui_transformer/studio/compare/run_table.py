"""Runs, or their variants, as a table of a line each. Only lines that say something else are painted again."""

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

from tui_transformer.lab.analysis.columns import NONE
from tui_transformer.lab.analysis.view import Row, Shown
from tui_transformer.lab.charts.colours import LETTERS
from tui_transformer.lab.records.badges import badge, worst_first
from tui_transformer.studio.compare.layout import GAP, Layout, fitted, lay_out
from tui_transformer.studio.shared.run_words import look

STYLES = (
    *("live", "paused", "queued", "good", "ended", "bad"),  # as the states look
    *("name", "cell", "dim", "pin", "warn", "chosen", "chosen-focus"),
    *(f"run{i}" for i in range(len(LETTERS))),
)
_VERDICTS = {"better": "good", "worse": "bad"}
PINNED = "◆"
PAGE = 15  # lines


class RunTable(ScrollView, can_focus=True):
    """Only the lines on the screen are drawn, so hundreds cost no more than twenty."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"run-table--{name}" for name in STYLES}
    DEFAULT_CSS = """
    RunTable { height: 1fr; background: $surface; overflow-x: hidden; scrollbar-size-vertical: 1;
        scrollbar-size-horizontal: 0; }
    RunTable .run-table--live { color: $accent; text-style: bold; }
    RunTable .run-table--paused { color: $warning; }
    RunTable .run-table--queued { color: $foreground 65%; }
    RunTable .run-table--good { color: $success; }
    RunTable .run-table--ended { color: $foreground 65%; }
    RunTable .run-table--bad { color: $error; text-style: bold; }
    RunTable .run-table--warn { color: $warning; }
    RunTable .run-table--name { color: $foreground; text-style: bold; }
    RunTable .run-table--cell { color: $foreground; }
    RunTable .run-table--dim { color: $foreground 65%; }
    RunTable .run-table--pin { color: $accent; }
    RunTable .run-table--chosen { background: $primary 20%; }
    RunTable .run-table--chosen-focus { background: $primary 40%; }
    """ + "".join(
        f"RunTable .run-table--run{i} {{ color: $run-{letter}; text-style: bold; }}\n"
        for i, letter in enumerate(LETTERS)
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "go(-1)", "up", show=False),
        Binding("down", "go(1)", "down", show=False),
        Binding("pageup", f"go(-{PAGE})", "up", show=False),
        Binding("pagedown", f"go({PAGE})", "down", show=False),
        Binding("home", "go(-99999)", "first", show=False),
        Binding("end", "go(99999)", "last", show=False),
        Binding("left", "across(-1)", "columns", show=False),
        Binding("right", "across(1)", "columns", show=False),
    ]

    class Chosen(Message):
        """The cursor went to another run."""

        def __init__(self, run: Path) -> None:
            super().__init__()
            self.run = run

    class Opened(Message):
        """A run was clicked twice."""

    class Moved(Message):
        """Other columns are seen."""

    def __init__(self) -> None:
        super().__init__(id="compare-table")
        self.shown = Shown()
        self.layout_of = Layout()
        self._marks: dict[Path, tuple[int | None, bool]] = {}
        self._at = 0
        self._first = 1
        self._drawn: tuple[object, ...] = ()

    @property
    def row(self) -> Row | None:
        """The line under the cursor."""
        return self.shown.rows[self._at] if 0 <= self._at < len(self.shown.rows) else None

    @property
    def verdict_is_cut(self) -> bool:
        """Whether the verdict under the cursor is not seen, or not all of it."""
        keys = [column.key for column in self.shown.columns]
        if self.row is None or "verdict" not in keys:
            return False
        index = keys.index("verdict")
        return self.layout_of.width_of(index) < self.row.widths[index]

    @property
    def chosen(self) -> Path | None:
        """The run or variant under the cursor."""
        return self.row.entry.path if self.row is not None else None

    def show(self, shown: Shown, marks: dict[Path, tuple[int | None, bool]], chosen: Path | None) -> None:
        """Show these.

        Args:
            shown: the runs.
            marks: of each that has any: the number of its letter, and whether it is the baseline.
            chosen: where the cursor stands; where that run is not shown, it stays on its line.
        """
        before, marked, cursor = self.shown.rows, self._marks, self._at
        at = next((i for i, row in enumerate(shown.rows) if row.entry.path == chosen), self._at)
        self.shown, self._marks = shown, dict(marks)
        self._at = max(0, min(at, len(shown.rows) - 1))
        self._lay_out()
        if len(before) != len(shown.rows):
            self.virtual_size = Size(self.size.width, len(shown.rows))
        drawn, self._drawn = self._drawn, self._what_is_where()
        if drawn != self._drawn:
            self.refresh()
        else:
            for i, (old, new) in enumerate(zip(before, shown.rows, strict=True)):
                path = new.entry.path
                if not _alike(old, new) or marked.get(path) != marks.get(path):
                    self.refresh_lines(i)
            if cursor != self._at:
                self.refresh_lines(cursor)
                self.refresh_lines(self._at)
        if cursor != self._at:
            self._reveal()

    def _what_is_where(self) -> tuple[object, ...]:
        """Another value where every line has to be painted again."""
        return self.layout_of, tuple(column.key for column in self.shown.columns), len(self.shown.rows)

    def _lay_out(self) -> None:
        self.layout_of = lay_out(self.shown, self.scrollable_content_region.width - 1, self._first)

    def action_go(self, by: int) -> None:
        """Move the cursor."""
        self._go(self._at + by)

    def action_across(self, by: int) -> None:
        """Other columns."""
        if by > 0 and not self.layout_of.more:
            return
        first = max(1, self.layout_of.first + by)
        if first != self._first:
            self._first = first
            self._lay_out()
            self.refresh()
            self.post_message(self.Moved())

    def on_click(self, event: Click) -> None:
        """Choose the run under the mouse; twice opens it."""
        offset = event.get_content_offset(self)
        if offset is not None and 0 <= offset.y + self.scroll_offset.y < len(self.shown.rows):
            self._go(round(offset.y + self.scroll_offset.y))
            if event.chain == 2:
                self.post_message(self.Opened())

    def _go(self, at: int) -> None:
        at = max(0, min(len(self.shown.rows) - 1, at))
        if self.shown.rows and at != self._at:
            before, self._at = self._at, at
            self._reveal()
            self.refresh_lines(before)
            self.refresh_lines(at)
            self.post_message(self.Chosen(self.shown.rows[at].entry.path))

    def _reveal(self) -> None:
        self.scroll_to_region(Region(0, self._at, 1, 1), animate=False, force=True)

    def on_resize(self) -> None:
        """Other columns have room; the cursor stays on the screen."""
        self.virtual_size = Size(self.size.width, len(self.shown.rows))
        self._lay_out()
        self._drawn = self._what_is_where()  # all lines are painted now
        self._reveal()
        self.post_message(self.Moved())

    def on_focus(self) -> None:
        """The cursor is brighter."""
        self.refresh_lines(self._at)

    def on_blur(self) -> None:
        """Or darker."""
        self.refresh_lines(self._at)

    def render_line(self, y: int) -> Strip:
        """One run."""
        width, at = self.scrollable_content_region.width, round(y + self.scroll_offset.y)
        if not 0 <= at < len(self.shown.rows):
            return Strip.blank(width, self.rich_style)
        return self.paint_row(at, width)

    def paint_row(self, at: int, width: int) -> Strip:
        """The line of a run."""
        over = Style()
        if at == self._at:
            name = "chosen-focus" if self.has_focus else "chosen"
            over = Style(bgcolor=self.get_component_rich_style(f"run-table--{name}").bgcolor)
        parts = [*self._signs(self.shown.rows[at]), *self._texts(self.shown.rows[at])]
        segments = [Segment(text, self._style(style) + over) for text, style in parts]
        return Strip(segments).adjust_cell_length(width, self.rich_style + over)

    def _signs(self, row: Row) -> list[tuple[str, str]]:
        """Letter, pin, state."""
        slot, pinned = self._marks.get(row.entry.path, (None, False))
        seen = look(row.entry.state)
        letter = (LETTERS[slot], f"run{slot}") if slot is not None else (" ", "dim")
        return [(" ", "dim"), letter, (PINNED if pinned else " ", "pin"), (seen.sign, seen.style), (" ", "dim")]

    def _texts(self, row: Row) -> list[tuple[str, str]]:
        parts = []
        for place in self.layout_of.places:
            column, text = self.shown.columns[place.index], row.cells[place.index]
            style = "name" if place.index == 0 else self._cell_style(column.key, row, text)
            parts.append((fitted(text, place.width, right=column.right) + " " * GAP, style))
        return parts

    def _cell_style(self, key: str, row: Row, text: str) -> str:
        if text == NONE:
            return "dim"
        if key == "checks":
            names = worst_first(row.entry.badges)
            return badge(names[0]).severity if names else "good"
        if key == "verdict" or key.endswith(" verdict"):
            return _VERDICTS.get(text, "warn" if text.endswith("not comparable") else "dim")
        if key == "state":
            return look(row.entry.state).style
        return "cell"

    def _style(self, name: str) -> Style:
        return self.get_component_rich_style(f"run-table--{name}")


def _alike(old: Row, new: Row) -> bool:
    """Whether two rows look the same."""
    return old is new or (old.cells == new.cells and old.entry.state == new.entry.state)
