"""A table of runs or variants, a line each, under sortable titles. Marks and name stay put; other columns scroll.

Only changed lines are repainted: hundreds of training runs change a few cells a second.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual import message
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Click, MouseMove
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from engine.base.clean import clean_line
from engine.base.language import Message, tr, trn
from tui_transformer.lab.analysis.charts.forest import DECIDED, with_verdict_sign
from tui_transformer.lab.analysis.colours import LETTERS
from tui_transformer.lab.analysis.columns import NONE
from tui_transformer.lab.analysis.verdict import INCOMPARABLE
from tui_transformer.lab.analysis.view import ViewRow, ViewTable
from tui_transformer.lab.formatting import elide_middle, fit_to_width
from tui_transformer.lab.records.badges import badge, explain, worst_first
from tui_transformer.lab.records.run_states import run_state
from tui_transformer.studio.shared.line_list import LineList

MARKS = 5  # columns: letter, pin, symbol, and space
LETTER = 1  # the column of the letter
CLICK = Message("Click: hide or show its curve.")
GAP = 2
NAME = ((150, 36), (100, 24), (0, 16))  # from so many screen columns, at most so many for the name
WIDEST = {"verdict": 32, "notes": 40, "tags": 24, "checks": 24, "corpus": 24, "expected": 32}
NARROWEST = {"verdict": 12, "expected": 14}  # a column that is cut rather than hidden
USUAL = 18  # the widest cell of any other column


@dataclass(frozen=True)
class ColumnPlace:
    index: int
    start: int
    width: int


@dataclass(frozen=True)
class TableLayout:
    places: tuple[ColumnPlace, ...] = ()  # from the left; the first is the name
    first_column: int = 1  # the column after the name
    columns_beyond: int = 0  # how many more columns are to the right

    def column_at(self, x: int) -> int | None:
        return next((p.index for p in self.places if p.start <= x < p.start + p.width + GAP), None)


def lay_out(shown: ViewTable, width: int, first: int) -> TableLayout:
    if not shown.columns or width <= MARKS:
        return TableLayout()
    widest_name = next(most for least, most in NAME if width >= least)
    name = max(8, min(shown.widths[0], widest_name))
    places, x = [ColumnPlace(0, MARKS, name)], MARKS + name + GAP
    first = max(1, min(first, len(shown.columns) - 1))
    for index in range(first, len(shown.columns)):
        key = shown.columns[index].key
        shortest = cell_len("✓ " + tr("better")) if key == "verdict" else 0
        wide = min(max(shown.widths[index], shortest), WIDEST.get(key, USUAL))
        room = width - x
        if wide > room:
            least = NARROWEST.get(key)
            if (least is None or room < least) and (len(places) > 1 or room < 4):
                return TableLayout(tuple(places), first, len(shown.columns) - index)
            wide = room
        places.append(ColumnPlace(index, x, wide))
        x += wide + GAP
    return TableLayout(tuple(places), first)


TITLES = ("title", "sorted", "more")


class TableHead(Widget):
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"table-head--{name}" for name in TITLES}

    @dataclass
    class Clicked(message.Message):
        key: str

    def __init__(self) -> None:
        super().__init__()
        self._shown, self._layout_of, self._reverse = ViewTable(), TableLayout(), False

    def show(self, shown: ViewTable, layout: TableLayout, *, reverse: bool) -> None:
        before = (self._shown.columns, self._shown.sorted_by, self._layout_of, self._reverse)
        self._shown, self._layout_of, self._reverse = shown, layout, reverse
        if before != (shown.columns, shown.sorted_by, layout, reverse):
            self.refresh()

    def on_mouse_move(self, event: MouseMove) -> None:
        index = self._layout_of.column_at(event.x)
        beyond = self._layout_of.columns_beyond
        if event.x == self.size.width - 1 and beyond:
            self.tooltip = Content(tr("{columns}: press → in the table.", columns=_more_columns(beyond)))
            return
        said = self._shown.columns[index].explained if index is not None else ""
        self.tooltip = Content(tr("{said} Click: sort by it.", said=clean_line(said))) if said else None

    def on_click(self, event: Click) -> None:
        index = self._layout_of.column_at(event.x)
        if index is not None:
            self.post_message(self.Clicked(self._shown.columns[index].key))

    def render_line(self, y: int) -> Strip:
        styles = {name: self.get_component_rich_style(f"table-head--{name}") for name in TITLES}
        segments = [Segment(fit_to_width(" ‹" if self._layout_of.first_column > 1 else "", MARKS), styles["more"])]
        sorted_by = self._shown.sorted_by.key if self._shown.sorted_by is not None else ""
        for place in self._layout_of.places:
            column = self._shown.columns[place.index]
            title, style = clean_line(column.head), styles["title"]
            if column.key == sorted_by:
                arrow = "↓" if self._reverse else "↑"
                title, style = fit_to_width(title, place.width - 1).rstrip() + arrow, styles["sorted"]
            segments.append(Segment(fit_to_width(title, place.width, right=column.right_aligned) + " " * GAP, style))
        width, more = self.size.width, self._layout_of.columns_beyond
        room = width - cell_len("".join(segment.text for segment in segments).rstrip()) - 1
        texts = (f"› {_more_columns(more)}: →", tr("› {more} more: →", more=more), f"{more} ›", "›") if more else (" ",)
        text = next((text for text in texts if cell_len(text) <= room), texts[-1])
        strip = Strip(segments).adjust_cell_length(width - cell_len(text), self.rich_style)
        return Strip([*strip, Segment(text, styles["more"])]).adjust_cell_length(width, self.rich_style)


def _more_columns(n: int) -> str:
    return trn("{n} more column", "{n} more columns", n)


PINNED = "◆"


class RunTable(LineList):
    COMPONENT_CLASSES: ClassVar[set[str]] = {"line--cell", "line--pin", *(f"line--run{i}" for i in range(len(LETTERS)))}
    DEFAULT_CSS = "".join(
        f"RunTable .line--run{i} {{ color: $run-{letter}; text-style: bold; }}\n" for i, letter in enumerate(LETTERS)
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "across(-1)", "columns", show=False),
        Binding("right", "across(1)", "columns", show=False),
    ]

    letter_column = LETTER

    class ColumnsMoved(message.Message):
        pass

    def __init__(self) -> None:
        super().__init__(self._parts, id="compare-table")
        self.shown = ViewTable()
        self.current_layout = TableLayout()
        self._marks: dict[Path, tuple[int | None, bool]] = {}
        self._first = 1
        self._drawn: tuple[object, ...] = ()

    @property
    def row(self) -> ViewRow | None:
        return self.shown.rows[self.cursor] if 0 <= self.cursor < len(self.shown.rows) else None

    @property
    def chosen(self) -> Path | None:
        return self.row.entry.path if self.row is not None else None

    @property
    def verdict_is_cut(self) -> bool:
        """Whether the verdict under the cursor is hidden or cut."""
        keys = [column.key for column in self.shown.columns]
        if self.row is None or "verdict" not in keys:
            return False
        index = keys.index("verdict")
        seen = next((place.width for place in self.current_layout.places if place.index == index), 0)
        return seen < self.row.widths[index]

    def show(self, shown: ViewTable, marks: dict[Path, tuple[int | None, bool]], chosen: Path | None) -> None:
        """Show these rows; if the chosen run is not among them, the cursor stays on its line.

        `marks` has the index of a run's letter, and whether it is the baseline.
        """
        before, marked, cursor = self.shown.rows, self._marks, self.cursor
        self.paths = [row.entry.path for row in shown.rows]
        at = next((i for i, path in enumerate(self.paths) if path == chosen), self.cursor)
        self.shown, self._marks = shown, dict(marks)
        self.cursor = max(0, min(at, len(shown.rows) - 1))
        self._lay_out()
        if len(before) != len(shown.rows):
            self.virtual_size = Size(self.size.width, len(shown.rows))
        drawn, self._drawn = self._drawn, self._full_repaint_key()
        if drawn != self._drawn:
            self.refresh()
        else:
            for i, (old, new) in enumerate(zip(before, shown.rows, strict=True)):
                alike = old is new or (old.cells == new.cells and old.entry.state == new.entry.state)
                if not alike or marked.get(new.entry.path) != marks.get(new.entry.path):
                    self.refresh_lines(i)
            if cursor != self.cursor:
                self.refresh_lines(cursor)
                self.refresh_lines(self.cursor)
        if cursor != self.cursor:
            self.scroll_to_cursor()

    def tooltip_at(self, at: int, x: int) -> str:
        row, index = self.shown.rows[at], self.current_layout.column_at(x)
        if x == LETTER and self._marks.get(row.entry.path, (None, False))[0] is not None:
            return tr(CLICK)
        return explain(worst_first(row.entry.badges)) if index and self.shown.columns[index].key == "checks" else ""

    def _full_repaint_key(self) -> tuple[object, ...]:
        """A value that changes when every line needs repainting."""
        return self.current_layout, tuple(column.key for column in self.shown.columns), len(self.shown.rows)

    def _lay_out(self) -> None:
        self.current_layout = lay_out(self.shown, self.scrollable_content_region.width - 1, self._first)

    def action_across(self, by: int) -> None:
        if by > 0 and not self.current_layout.columns_beyond:
            return
        first = max(1, self.current_layout.first_column + by)
        if first != self._first:
            self._first = first
            self._lay_out()
            self.refresh()
            self.post_message(self.ColumnsMoved())

    def on_resize(self) -> None:
        self._lay_out()
        self._drawn = self._full_repaint_key()  # all lines are painted now
        self.post_message(self.ColumnsMoved())

    def _parts(self, at: int, width: int) -> list[tuple[str, str]]:
        row = self.shown.rows[at]
        slot, pinned = self._marks.get(row.entry.path, (None, False))
        state = run_state(row.entry.state)
        letter = (LETTERS[slot], f"run{slot}") if slot is not None else (" ", "dim")
        parts = [(" ", "dim"), letter, (PINNED if pinned else " ", "pin"), (state.sign, state.style), (" ", "dim")]
        for place in self.current_layout.places:
            column, text = self.shown.columns[place.index], row.cells[place.index]
            kind = row.kinds[place.index]
            style = "name" if place.index == 0 else _cell_style(column.key, row, text, kind)
            if kind in DECIDED:
                text = with_verdict_sign(kind, text)
            if place.index == 0 and getattr(row.entry, "study", None) is not None:  # its runs differ at the end
                text = elide_middle(text, place.width)
            parts.append((fit_to_width(text, place.width, right=column.right_aligned) + " " * GAP, style))
        return parts


def _cell_style(key: str, row: ViewRow, text: str, kind: str) -> str:
    if text == NONE:
        return "dim"
    if key == "checks":
        names = [name for name in worst_first(row.entry.badges) if name not in row.entry.badges_acknowledged]
        return badge(names[0]).severity if names else "dim" if row.entry.badges else "good"
    if key == "verdict" or key.endswith(" verdict"):
        return DECIDED.get(kind, "warn" if kind == INCOMPARABLE else "dim")
    if key == "state":
        return run_state(row.entry.state).style
    return "cell"
