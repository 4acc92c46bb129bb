"""A chart widget: a title that is its legend, the lines, and a line of values at the cursor or the end.

It handles keys, mouse, cursor and cells; what it shows is a `Drawing`. A drag or the wheel zooms to a part of x.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Protocol

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import message, on
from textual.binding import Binding, BindingType
from textual.color import Color
from textual.content import Content
from textual.events import Click, Leave, MouseDown, MouseMove, MouseScrollDown, MouseScrollUp, MouseUp
from textual.strip import Strip
from textual.widget import Widget

from engine.base.language import Message, tr
from tui_transformer.lab.analysis.chart_lines import span_text
from tui_transformer.lab.analysis.charts.canvas import BLANK, ON, Cell, ChartCanvas, Span, cells_of, may_cover
from tui_transformer.lab.analysis.colours import LETTERS

FAR = 9999  # columns: to the end
STYLES = (
    *("axis", "grid", "title", "focused", "cursor", "dim", "selection"),
    *("train", "raw", "validation", "bandgap", "ghost", "floor", "floor-row", "past", "past-row", "best", "zero"),
    *(f"run{i}" for i in range(len(LETTERS))),  # for one of several runs
)
# Mixed from a run's colour and the background, so not component classes: Textual styles each anew at every change.
SHARES = {"raw": 0.35, "band": 0.22, "faint": 0.11}
LEAST = 5  # rows
OFF = "#"  # `dim#train`: the legend's entry of a hidden curve, in the style before the sign
ALMOST = 0.97  # share of the whole from which all of it is shown
LEAST_DRAG = 2  # columns; less is a click
WHEEL, NEAREST = 0.8, 0.002  # what is left of the span at each notch; the least share of the whole
MOUSE = Message(
    "Drag across the chart to zoom in, or use the wheel; double-click or press esc to see the whole chart "
    "again.\nClick a curve's name here to hide or show the curve."
)
HIDDEN = "×"  # stands for the line of a hidden curve in the legend
ALL_HIDDEN = Message("all curves are hidden: click a name above")


class Drawing(Protocol):
    @property
    def explanation(self) -> str:
        """What its lines mean, in sentences; "" if the legend says it."""
        ...

    def canvas(self, width: int, height: int, span: Span | None = None) -> ChartCanvas | None:
        """Draw the lines, or a span of them, in `width` columns and `height` rows; None if there is nothing to draw."""

    def title(self, width: int, style: str, zoomed: ChartCanvas | None = None) -> list[Cell]:
        """Return what y is, the part of x that is seen if not all is, and the legend."""
        ...

    def values(self, width: int, x: float | None) -> list[Cell]:
        """Return the last line: the values at the cursor, or at the lines' ends."""
        ...


class Chart(Widget, can_focus=True):
    ALLOW_SELECT = False  # a drag zooms
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"chart--{name}" for name in STYLES}
    DEFAULT_CSS = (
        "".join(f"Chart .chart--run{i} {{ color: $run-{letter}; }}\n" for i, letter in enumerate(LETTERS))
        + "Chart .chart--selection { background: $foreground 20%; }\n"
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "move(-1)", "cursor", show=False),
        Binding("right", "move(1)", "cursor", show=False),
        Binding("shift+left", "move(-10)", "cursor", show=False),
        Binding("shift+right", "move(10)", "cursor", show=False),
        Binding("home", f"move({-FAR})", "cursor", show=False),
        Binding("end", f"move({FAR})", "cursor", show=False),
        Binding("plus", "nearer(3)", Message("zoom in"), show=False),
        Binding("minus", "nearer(-3)", Message("zoom out"), show=False),
    ]

    @dataclass
    class CursorMoved(message.Message):
        """The cursor moved to x, or was hidden."""

        x: float | None
        chart: "Chart | None" = None

    @dataclass
    class LegendClicked(message.Message):
        """A click on the title line, on a part in this style."""

        style: str

    @dataclass
    class Zoomed(message.Message):
        """Only this part of x is wanted; all of it if None."""

        span: Span | None
        chart: "Chart"

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.draw_seconds = 0.0  # seconds the last drawing took
        self._drawing: Drawing | None = None
        self._waiting = ""
        self._canvas: ChartCanvas | None = None
        self._canvas_key: tuple[object, ...] = ()
        self._x: float | None = None  # of the cursor
        self.span: Span | None = None  # the part of x that is shown; None for all
        self._pressed: int | None = None  # the column where the mouse was pressed
        self._dragged: int | None = None  # the column it was dragged to
        self._mixed: dict[tuple[str, Color, Color], Style] = {}

    def show(self, drawing: Drawing | None, waiting: str = "") -> None:
        """Show a drawing, or the text `waiting` while there is nothing to draw."""
        self._drawing, self._waiting, self._canvas_key = drawing, waiting, ()
        self.refresh()

    def move_cursor(self, x: float | None) -> None:
        if x != self._x:
            self._x = x
            self.refresh()

    def zoom_to(self, span: Span | None) -> None:
        if span != self.span:
            self.span, self._canvas_key = span, ()
            self.refresh()

    @property
    def zoomed(self) -> bool:
        return self._canvas is not None and self._canvas.zoomed

    def action_nearer(self, notches: int) -> None:
        """Zoom in around the cursor, or the middle; out if negative."""
        canvas = self._canvas
        if canvas is not None:
            self._zoom_around(self._x if self._x is not None else (canvas.low + canvas.high) / 2, notches)

    def _zoom_around(self, x: float, notches: int) -> None:
        canvas = self._canvas
        if canvas is None:
            return
        size = WHEEL**notches
        if notches < 0 or (canvas.high - canvas.low) * size >= NEAREST * (canvas.whole[1] - canvas.whole[0]):
            self._request_zoom(x + (canvas.low - x) * size, x + (canvas.high - x) * size)

    def _request_zoom(self, low: float, high: float) -> None:
        if self._canvas is not None:
            first, last = self._canvas.whole
            low, high = max(first, low), min(last, high)
            part = high - low < ALMOST * (last - first)
            self.post_message(self.Zoomed((low, high) if part else None, self))

    def action_move(self, columns: int) -> None:
        canvas = self._canvas
        if canvas is None:
            return
        if self._x is not None:
            column = canvas.column_of(self._x) + columns
        else:  # no cursor yet: moving right starts at the left edge, and vice versa; home and end jump
            column = canvas.column_of(canvas.high) if columns in (-1, -10, FAR) else canvas.margin
        self.post_message(self.CursorMoved(canvas.x_at(column), self))

    def on_leave(self, event: Leave) -> None:
        if not self.has_focus:
            self.post_message(self.CursorMoved(None))

    def on_mouse_down(self, event: MouseDown) -> None:
        at, self._dragged = event.get_content_offset(self), None
        if at is not None and at.y > 0 and self._canvas is not None and event.button < 2:
            self._pressed = max(self._canvas.margin, at.x)
            self.capture_mouse()

    def on_mouse_move(self, event: MouseMove) -> None:
        at, canvas = event.get_content_offset(self), self._canvas
        on_title = at is not None and at.y == 0 and self._pressed is None
        about = self._drawing.explanation if self._drawing is not None else ""
        self.tooltip = Content("\n\n".join(filter(None, (about, tr(MOUSE))))) if on_title else None
        if self._pressed is not None and canvas is not None:
            column = max(canvas.margin, min(event.x - self.gutter.left, self.content_size.width - 1))
            if self._dragged is not None or abs(column - self._pressed) >= LEAST_DRAG:
                self._dragged = column
                self.refresh()
            self.post_message(self.CursorMoved(canvas.x_at(column), self))
        elif at is not None and canvas is not None and at.x >= canvas.margin:
            self.post_message(self.CursorMoved(canvas.x_at(at.x), self))

    def on_mouse_up(self, event: MouseUp) -> None:
        if self._pressed is None:
            return
        self.release_mouse()
        start, end, canvas = self._pressed, self._dragged, self._canvas
        self._pressed = None
        if end is None or canvas is None:
            return
        if abs(end - start) >= LEAST_DRAG:
            first, last = (canvas.x_at(column) for column in sorted((start, end)))
            least = NEAREST * (canvas.whole[1] - canvas.whole[0]) / 2
            self._request_zoom(min(first, (first + last) / 2 - least), max(last, (first + last) / 2 + least))
        self.refresh()

    def on_click(self, event: Click) -> None:
        at, canvas = event.get_content_offset(self), self._canvas
        if self._dragged is not None:  # the end of a drag
            self._dragged = None
        elif at is not None and at.y == 0 and self._drawing is not None:
            title = self._title("title")
            self.post_message(self.LegendClicked(title[at.x][1] if at.x < len(title) else ""))
        elif event.chain == 2:
            self.post_message(self.Zoomed(None, self))
        elif at is not None and canvas is not None and at.x >= canvas.margin:
            self.post_message(self.CursorMoved(canvas.x_at(at.x), self))

    @on(MouseScrollUp)
    @on(MouseScrollDown)
    def _zoom_by_wheel(self, event: MouseScrollUp | MouseScrollDown) -> None:
        event.stop()
        at, canvas = event.get_content_offset(self), self._canvas
        if at is not None and canvas is not None:
            self._zoom_around(canvas.x_at(at.x), 1 if isinstance(event, MouseScrollUp) else -1)

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.post_message(self.CursorMoved(None))

    def render_line(self, y: int) -> Strip:
        (width, height), drawing = self.content_size, self._drawing
        if self._canvas_key != (width, height, self.has_focus):
            started = time.perf_counter()
            drawn = drawing is not None and height >= LEAST
            self._canvas = drawing.canvas(width, height - 2, self.span) if drawing is not None and drawn else None
            self._canvas_key = (width, height, self.has_focus)
            self.draw_seconds = time.perf_counter() - started
        if y == 0:
            style = "focused" if self.has_focus else "title"
            return self._strip(self._title(style), width)
        if y == height - 1:
            return self._strip(drawing.values(width, self._x) if drawing is not None else [], width)
        canvas = self._canvas
        if canvas is None:
            if y != height // 2:
                return Strip.blank(width, self.rich_style)
            cells = cells_of(self._waiting, "dim")
            return self._strip([*[BLANK] * ((width - len(cells)) // 2), *cells], width)
        cells = canvas.cells[y - 1]
        if self._pressed is not None and self._dragged is not None and y - 1 < canvas.rows:
            cells = _cells_with_selection_highlighted(cells, *sorted((self._pressed, self._dragged)))
        if self._x is not None and y - 1 < canvas.rows:
            column = canvas.column_of(self._x)
            if may_cover(cells[column]):
                cells = [*cells[:column], ("│", "cursor"), *cells[column + 1 :]]
        return self._strip(cells, width)

    def _title(self, style: str) -> list[Cell]:
        zoomed = self._canvas if self.zoomed else None
        return self._drawing.title(self.content_size.width, style, zoomed) if self._drawing is not None else []

    def _strip(self, cells: list[Cell], width: int) -> Strip:
        segments: list[Segment] = []
        run, of = "", ""
        for character, style in cells:
            if style != of:
                if run:
                    segments.append(Segment(run, self._parse_cell_style(of)))
                run, of = "", style
            run += character
        if run:
            segments.append(Segment(run, self._parse_cell_style(of)))
        return Strip(segments).adjust_cell_length(width, self.rich_style)

    def _parse_cell_style(self, name: str) -> Style:
        name, on, band = name.partition(OFF)[0].partition(ON)
        style = self._component_or_mixed_style(name) if name else self.rich_style
        return style + Style(bgcolor=self._component_or_mixed_style(band).bgcolor) if on else style

    def _component_or_mixed_style(self, name: str) -> Style:
        run = name.lstrip("abcdefghijklmnopqrstuvwxyz-")
        kind = name.removesuffix(run)
        if not run or kind not in SHARES:
            return self.get_component_rich_style(f"chart--{name}")
        behind, colour = self.background_colors[1], self.get_component_styles(f"chart--run{run}").color
        if (key := (name, behind, colour)) not in self._mixed:
            mixed = behind.blend(colour, SHARES[kind]).rich_color
            self._mixed[key] = self.rich_style + (Style(color=mixed) if kind == "raw" else Style(bgcolor=mixed))
        return self._mixed[key]


def _cells_with_selection_highlighted(cells: list[Cell], first: int, last: int) -> list[Cell]:
    """Cells with those between two columns selected; their ends are also seen without colours."""
    made = list(cells)
    for column in range(first, min(last, len(cells) - 1) + 1):
        sign, style = cells[column]
        edge = column in (first, last) and may_cover(cells[column])
        made[column] = ("│" if edge else sign, f"{'cursor' if edge else style.partition(ON)[0]}{ON}selection")
    return made


def parts_that_fit(parts: Iterable[list[Cell]], width: int) -> list[Cell]:
    """Return the first parts that fit, each in full: a truncated number is a different number."""
    cells: list[Cell] = []
    for part in parts:
        if len(cells) + len(part) > width:
            break
        cells += part
    return cells


def zoomed_range_text(axis: str, canvas: ChartCanvas) -> str:
    return tr("{part} (esc: all)", part=span_text(axis, canvas.low, canvas.high, canvas.whole[1]))


def title_line(label: str, style: str, legend: list[tuple[str, str]], width: int, gap: int) -> list[Cell]:
    """Return a label at the left and a legend of (text, style) at the right, a gap before each part of it."""
    cells = cells_of(label, style)
    cells += [BLANK] * (width - cell_len(label) - sum(cell_len(text) + gap for text, _ in legend))
    for text, of in legend:
        cells += [BLANK] * gap + cells_of(text, of)
    return cells
