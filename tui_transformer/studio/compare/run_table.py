"""Runs, or their variants, as a table of a line each, under titles that sort. Marks and name stay, columns move past.

Only lines that say something else are painted again: hundreds of runs that train change a few cells a second.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from engine.clean import clean_line
from tui_transformer.lab.analysis.columns import NONE
from tui_transformer.lab.analysis.view import Row, Shown
from tui_transformer.lab.charts.colours import LETTERS
from tui_transformer.lab.records.badges import badge, worst_first
from tui_transformer.studio.shared.line_list import LineList
from tui_transformer.studio.shared.run_states import STATES, UNKNOWN

MARKS = 5  # columns: letter, pin, sign, and air
GAP = 2
NAME = ((150, 36), (100, 24), (0, 16))  # from so many columns of the screen, at most so many for the name
WIDEST = {"verdict": 32, "notes": 40, "tags": 24, "checks": 24, "corpus": 24, "expected": 32}
NARROWEST = {"verdict": 12, "expected": 14}  # a column that is rather cut than not shown
USUAL = 18  # the widest cell of any other column


@dataclass(frozen=True)
class Place:
    """A column on the screen: which, where it begins, how wide it is."""

    index: int
    start: int
    width: int


@dataclass(frozen=True)
class Layout:
    """What is seen of a table.

    Args:
        places: from the left; the first is the name.
        first: the column after the name.
        more: whether there are columns further right.
    """

    places: tuple[Place, ...] = ()
    first: int = 1
    more: bool = False

    def width_of(self, index: int) -> int:
        """Return the columns of the screen that a column of the table has; 0 where it is not seen."""
        return next((place.width for place in self.places if place.index == index), 0)

    def at(self, x: int) -> int | None:
        return next((p.index for p in self.places if p.start <= x < p.start + p.width + GAP), None)


def lay_out(shown: Shown, width: int, first: int) -> Layout:
    """Return the columns that there is room for, from `first` on."""
    if not shown.columns or width <= MARKS:
        return Layout()
    widest_name = next(most for least, most in NAME if width >= least)
    name = max(8, min(shown.widths[0], widest_name))
    places, x = [Place(0, MARKS, name)], MARKS + name + GAP
    first = max(1, min(first, len(shown.columns) - 1))
    for index in range(first, len(shown.columns)):
        wide = min(shown.widths[index], WIDEST.get(shown.columns[index].key, USUAL))
        room = width - x
        if wide > room:
            least = NARROWEST.get(shown.columns[index].key)
            if (least is None or room < least) and (len(places) > 1 or room < 4):
                return Layout(tuple(places), first, True)
            wide = room
        places.append(Place(index, x, wide))
        x += wide + GAP
    return Layout(tuple(places), first, False)


def fitted(text: str, width: int, *, right: bool = False) -> str:
    """Return a text exactly so wide; what is longer ends in an ellipsis."""
    size = cell_len(text)
    if size > width:
        return set_cell_size(text, max(0, width - 1)) + "…" if width > 0 else ""
    return " " * (width - size) + text if right else text + " " * (width - size)


TITLES = ("title", "sorted", "more")


class TableHead(Widget):
    """One line."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"table-head--{name}" for name in TITLES}
    DEFAULT_CSS = """
    TableHead { height: 1; background: $panel; }
    TableHead .table-head--title { color: $foreground 80%; }
    TableHead .table-head--sorted { color: $accent; text-style: bold; }
    TableHead .table-head--more { color: $accent; }
    """

    class Clicked(Message):
        """Sort by this column."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self) -> None:
        super().__init__()
        self._shown, self._layout_of, self._reverse = Shown(), Layout(), False

    def show(self, shown: Shown, layout: Layout, *, reverse: bool) -> None:
        before = (self._shown.columns, self._shown.sorted_by, self._layout_of, self._reverse)
        self._shown, self._layout_of, self._reverse = shown, layout, reverse
        if before != (shown.columns, shown.sorted_by, layout, reverse):
            self.refresh()

    def on_click(self, event: Click) -> None:
        index = self._layout_of.at(event.x)
        if index is not None:
            self.post_message(self.Clicked(self._shown.columns[index].key))

    def render_line(self, y: int) -> Strip:
        styles = {name: self.get_component_rich_style(f"table-head--{name}") for name in TITLES}
        segments = [Segment(fitted(" ‹" if self._layout_of.first > 1 else "", MARKS), styles["more"])]
        sorted_by = self._shown.sorted_by.key if self._shown.sorted_by is not None else ""
        for place in self._layout_of.places:
            column = self._shown.columns[place.index]
            title, style = clean_line(column.title), styles["title"]
            if column.key == sorted_by:
                arrow = "↓" if self._reverse else "↑"
                title, style = fitted(title, place.width - 1).rstrip() + arrow, styles["sorted"]
            segments.append(Segment(fitted(title, place.width, right=column.right) + " " * GAP, style))
        width = self.size.width
        strip = Strip(segments).adjust_cell_length(width - 1, self.rich_style)
        last = Segment("›" if self._layout_of.more else " ", styles["more"])
        return Strip([*strip, last]).adjust_cell_length(width, self.rich_style)


VERDICTS = {"better": "good", "worse": "bad"}
PINNED = "◆"


class RunTable(LineList):
    """A line for each row of what is shown."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *("line--cell", "line--pin"),
        *(f"line--run{i}" for i in range(len(LETTERS))),
    }
    DEFAULT_CSS = """
    RunTable { height: 1fr; }
    RunTable .line--bad, RunTable .line--name { text-style: bold; }
    RunTable .line--cell { color: $foreground; }
    RunTable .line--pin { color: $accent; }
    """ + "".join(
        f"RunTable .line--run{i} {{ color: $run-{letter}; text-style: bold; }}\n" for i, letter in enumerate(LETTERS)
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "across(-1)", "columns", show=False),
        Binding("right", "across(1)", "columns", show=False),
    ]

    class Moved(Message):
        """Other columns are seen."""

    def __init__(self) -> None:
        super().__init__(id="compare-table")
        self.shown = Shown()
        self.layout_of = Layout()
        self._marks: dict[Path, tuple[int | None, bool]] = {}
        self._first = 1
        self._drawn: tuple[object, ...] = ()

    @property
    def row(self) -> Row | None:
        return self.shown.rows[self.at] if 0 <= self.at < len(self.shown.rows) else None

    @property
    def chosen(self) -> Path | None:
        return self.row.entry.path if self.row is not None else None

    @property
    def verdict_is_cut(self) -> bool:
        """Whether the verdict under the cursor is not seen, or not all of it."""
        keys = [column.key for column in self.shown.columns]
        if self.row is None or "verdict" not in keys:
            return False
        index = keys.index("verdict")
        return self.layout_of.width_of(index) < self.row.widths[index]

    def show(self, shown: Shown, marks: dict[Path, tuple[int | None, bool]], chosen: Path | None) -> None:
        """Show these.

        Args:
            shown: the runs.
            marks: of each that has any: the number of its letter, and whether it is the baseline.
            chosen: where the cursor stands; where that run is not shown, it stays on its line.
        """
        before, marked, cursor = self.shown.rows, self._marks, self.at
        self.paths = [row.entry.path for row in shown.rows]
        at = next((i for i, path in enumerate(self.paths) if path == chosen), self.at)
        self.shown, self._marks = shown, dict(marks)
        self.at = max(0, min(at, len(shown.rows) - 1))
        self._lay_out()
        if len(before) != len(shown.rows):
            self.virtual_size = Size(self.size.width, len(shown.rows))
        drawn, self._drawn = self._drawn, self._what_is_where()
        if drawn != self._drawn:
            self.refresh()
        else:
            for i, (old, new) in enumerate(zip(before, shown.rows, strict=True)):
                alike = old is new or (old.cells == new.cells and old.entry.state == new.entry.state)
                if not alike or marked.get(new.entry.path) != marks.get(new.entry.path):
                    self.refresh_lines(i)
            if cursor != self.at:
                self.refresh_lines(cursor)
                self.refresh_lines(self.at)
        if cursor != self.at:
            self.reveal()

    def _what_is_where(self) -> tuple[object, ...]:
        """Another value where every line has to be painted again."""
        return self.layout_of, tuple(column.key for column in self.shown.columns), len(self.shown.rows)

    def _lay_out(self) -> None:
        self.layout_of = lay_out(self.shown, self.scrollable_content_region.width - 1, self._first)

    def action_across(self, by: int) -> None:
        if by > 0 and not self.layout_of.more:
            return
        first = max(1, self.layout_of.first + by)
        if first != self._first:
            self._first = first
            self._lay_out()
            self.refresh()
            self.post_message(self.Moved())

    def on_resize(self) -> None:
        self._lay_out()
        self._drawn = self._what_is_where()  # all lines are painted now
        self.post_message(self.Moved())

    def line(self, at: int, width: int) -> list[tuple[str, str]]:
        """Letter, pin, state, and the columns that there is room for."""
        row = self.shown.rows[at]
        slot, pinned = self._marks.get(row.entry.path, (None, False))
        state = STATES.get(row.entry.state, UNKNOWN)
        letter = (LETTERS[slot], f"run{slot}") if slot is not None else (" ", "dim")
        parts = [(" ", "dim"), letter, (PINNED if pinned else " ", "pin"), (state.sign, state.style), (" ", "dim")]
        for place in self.layout_of.places:
            column, text = self.shown.columns[place.index], row.cells[place.index]
            style = "name" if place.index == 0 else _cell_style(column.key, row, text)
            parts.append((fitted(text, place.width, right=column.right) + " " * GAP, style))
        return parts


def _cell_style(key: str, row: Row, text: str) -> str:
    if text == NONE:
        return "dim"
    if key == "checks":
        names = worst_first(row.entry.badges)
        return badge(names[0]).severity if names else "good"
    if key == "verdict" or key.endswith(" verdict"):
        return VERDICTS.get(text, "warn" if text.endswith("not comparable") else "dim")
    if key == "state":
        return STATES.get(row.entry.state, UNKNOWN).style
    return "cell"
