"""A chart widget: a title that is its legend, the lines, and a line of values at the cursor or the end.

It handles keys, mouse, cursor and cells; what it shows is a `Drawing`.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Protocol

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import on
from textual.binding import Binding, BindingType
from textual.events import Click, Leave, MouseMove
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tui_transformer.lab.charts.canvas import BEHIND, BLANK, ON, Canvas, Cell
from tui_transformer.lab.charts.colours import LETTERS

FAR = 9999  # columns: to the end
STYLES = (
    *("axis", "grid", "title", "focused", "cursor", "dim"),
    *("train", "raw", "validation", "bandgap", "ghost", "floor", "floor-row", "past", "best", "zero"),
    *(f"{kind}{i}" for kind in ("run", "raw", "band", "faint") for i in range(len(LETTERS))),  # for one of several runs
)
LEAST = 5  # rows


class Drawing(Protocol):
    def canvas(self, width: int, height: int) -> Canvas | None:
        """Draw the lines in `width` columns and `height` rows; return None if there is nothing to draw."""

    def title(self, width: int, style: str) -> list[Cell]: ...

    def values(self, width: int, x: float | None) -> list[Cell]:
        """Return the last line: the values at the cursor, or at the lines' ends."""
        ...


class Chart(Widget, can_focus=True):
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"chart--{name}" for name in STYLES}
    DEFAULT_CSS = "".join(
        f"Chart .chart--run{i} {{ color: $run-{letter}; }}\n"
        f"Chart .chart--raw{i} {{ color: $run-{letter} 35%; }}\n"
        f"Chart .chart--band{i} {{ background: $run-{letter} 22%; }}\n"
        f"Chart .chart--faint{i} {{ background: $run-{letter} 11%; }}\n"
        for i, letter in enumerate(LETTERS)
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "move(-1)", "cursor", show=False),
        Binding("right", "move(1)", "cursor", show=False),
        Binding("shift+left", "move(-10)", "cursor", show=False),
        Binding("shift+right", "move(10)", "cursor", show=False),
        Binding("home", f"move({-FAR})", "cursor", show=False),
        Binding("end", f"move({FAR})", "cursor", show=False),
    ]

    @dataclass
    class Pointed(Message):
        """The cursor moved to x, or was hidden."""

        x: float | None
        chart: "Chart | None" = None

    @dataclass
    class LegendClicked(Message):
        """A click on the title line, on a part in this style."""

        style: str

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.cost = 0.0  # seconds the last drawing took
        self._drawing: Drawing | None = None
        self._waiting = ""
        self._canvas: Canvas | None = None
        self._drawn: tuple[object, ...] = ()
        self._x: float | None = None  # of the cursor

    def show(self, drawing: Drawing | None, waiting: str = "") -> None:
        """Show a drawing, or the text `waiting` while there is nothing to draw."""
        self._drawing, self._waiting, self._drawn = drawing, waiting, ()
        self.refresh()

    def point_at(self, x: float | None) -> None:
        if x != self._x:
            self._x = x
            self.refresh()

    def action_move(self, columns: int) -> None:
        canvas = self._canvas
        if canvas is None:
            return
        if self._x is not None:
            column = canvas.column_of(self._x) + columns
        else:  # it enters from the side it moves away from; home and end jump
            column = canvas.column_of(canvas.high) if columns in (-1, -10, FAR) else canvas.margin
        self.post_message(self.Pointed(canvas.x_at(column), self))

    def on_leave(self, event: Leave) -> None:
        if not self.has_focus:
            self.post_message(self.Pointed(None))

    @on(MouseMove)
    @on(Click)
    def _point(self, event: MouseMove | Click) -> None:
        at = event.get_content_offset(self)
        if at is not None and at.y == 0 and isinstance(event, Click) and self._drawing is not None:
            title = self._drawing.title(self.content_size.width, "title")
            self.post_message(self.LegendClicked(title[at.x][1] if at.x < len(title) else ""))
        elif at is not None and self._canvas is not None and at.x >= self._canvas.margin:
            self.post_message(self.Pointed(self._canvas.x_at(at.x), self))

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.post_message(self.Pointed(None))

    def render_line(self, y: int) -> Strip:
        (width, height), drawing = self.content_size, self._drawing
        if self._drawn != (width, height, self.has_focus):
            started = time.perf_counter()
            self._canvas = drawing.canvas(width, height - 2) if drawing is not None and height >= LEAST else None
            self._drawn = (width, height, self.has_focus)
            self.cost = time.perf_counter() - started
        if y == 0:
            style = "focused" if self.has_focus else "title"
            return self._strip(drawing.title(width, style) if drawing is not None else [], width)
        if y == height - 1:
            return self._strip(drawing.values(width, self._x) if drawing is not None else [], width)
        canvas = self._canvas
        if canvas is None:
            if y != height // 2:
                return Strip.blank(width, self.rich_style)
            text = self._waiting[:width]
            return self._strip([*[BLANK] * ((width - len(text)) // 2), *cells_of(text, "dim")], width)
        cells = canvas.cells[y - 1]
        if self._x is not None and y - 1 < canvas.rows:
            column = canvas.column_of(self._x)
            if cells[column][0] in BEHIND:
                cells = [*cells[:column], ("│", "cursor"), *cells[column + 1 :]]
        return self._strip(cells, width)

    def _strip(self, cells: list[Cell], width: int) -> Strip:
        segments: list[Segment] = []
        run, of = "", ""
        for character, style in cells:
            if style != of:
                if run:
                    segments.append(Segment(run, self._style(of)))
                run, of = "", style
            run += character
        if run:
            segments.append(Segment(run, self._style(of)))
        return Strip(segments).adjust_cell_length(width, self.rich_style)

    def _style(self, name: str) -> Style:
        name, on, band = name.partition(ON)
        style = self.get_component_rich_style(f"chart--{name}") if name else self.rich_style
        return style + Style(bgcolor=self.get_component_rich_style(f"chart--{band}").bgcolor) if on else style


def whole(parts: Iterable[list[Cell]], width: int) -> list[Cell]:
    """Return the first parts that fit, each in full: a truncated number is a different number."""
    cells: list[Cell] = []
    for part in parts:
        if len(cells) + len(part) > width:
            break
        cells += part
    return cells


def cells_of(text: str, style: str) -> list[Cell]:
    return [(character, style) for character in text]


def title_line(label: str, style: str, legend: list[tuple[str, str]], width: int, gap: int) -> list[Cell]:
    """Return a label at the left and a legend of (text, style) at the right, a gap before each part of it."""
    cells = cells_of(label, style)
    cells += [BLANK] * (width - cell_len(label) - sum(cell_len(text) + gap for text, _ in legend))
    for text, of in legend:
        cells += [BLANK] * gap + cells_of(text, of)
    return cells
