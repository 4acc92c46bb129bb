"""One chart of a run: a title that is its legend, the lines, and a line of values at the cursor or now."""

import time
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click, Leave, MouseMove
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tui_transformer.charts import usual_top
from tui_transformer.widgets.canvas import BLANK, Canvas, Cell, Line, draw
from tui_transformer.widgets.curves import AXIS_LABELS, Picture, axis_text, value_text

FAR = 9999  # columns: to the end
STYLES = ("axis", "title", "focused", "train", "raw", "validation", "floor", "best", "cursor", "dim")


class RunChart(Widget, can_focus=True):
    """Draws a `Picture`; knows nothing of runs."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"chart--{name}" for name in STYLES}
    DEFAULT_CSS = """
    RunChart { width: 1fr; height: 1fr; padding: 0 1; }
    RunChart .chart--axis { color: $foreground 45%; }
    RunChart .chart--title { color: $foreground; text-style: bold; }
    RunChart .chart--focused { color: $accent; text-style: bold; }
    RunChart .chart--train { color: $primary; }
    RunChart .chart--raw { color: $primary 35%; }
    RunChart .chart--validation { color: $accent; }
    RunChart .chart--floor { color: $success; }
    RunChart .chart--best { color: $warning; text-style: bold; }
    RunChart .chart--cursor { color: $foreground 80%; }
    RunChart .chart--dim { color: $foreground 65%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "move(-1)", "cursor", show=False),
        Binding("right", "move(1)", "cursor", show=False),
        Binding("shift+left", "move(-10)", "cursor", show=False),
        Binding("shift+right", "move(10)", "cursor", show=False),
        Binding("home", f"move({-FAR})", "cursor", show=False),
        Binding("end", f"move({FAR})", "cursor", show=False),
    ]

    class Pointed(Message):
        """The cursor moved to x, or went away."""

        def __init__(self, x: float | None) -> None:
            super().__init__()
            self.x = x

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.cost = 0.0  # seconds that the last drawing took
        self.waiting = ""  # why there is nothing to draw
        self._unit = ""
        self._picture: Picture | None = None
        self._canvas: Canvas | None = None
        self._drawn: tuple[object, ...] = ()
        self._x: float | None = None  # of the cursor

    def draw(self, picture: Picture | None, unit: str, waiting: str = "") -> None:
        """Show another picture, or why there is none."""
        self._picture, self._unit, self.waiting = picture, unit, waiting
        self._drawn = ()
        self.refresh()

    def point_at(self, x: float | None) -> None:
        """Move the cursor to x; None takes it away."""
        if x != self._x:
            self._x = x
            self.refresh()

    def action_move(self, columns: int) -> None:
        """Move the cursor by columns."""
        canvas = self._canvas
        if canvas is None:
            return
        if self._x is not None:
            column = canvas.column_of(self._x) + columns
        else:  # it comes in from the side that it goes away from, or goes at once where home and end lead
            column = canvas.column_of(canvas.high) if columns in (-1, -10, FAR) else canvas.margin
        self.post_message(self.Pointed(canvas.x_at(column)))

    def on_mouse_move(self, event: MouseMove) -> None:
        """The cursor follows the mouse."""
        self._point(event)

    def on_click(self, event: Click) -> None:
        """The cursor goes where it was clicked."""
        self._point(event)

    def on_leave(self, event: Leave) -> None:
        """And goes when the mouse does."""
        if not self.has_focus:
            self.post_message(self.Pointed(None))

    def _point(self, event: MouseMove | Click) -> None:
        at = event.get_content_offset(self)
        if at is not None and self._canvas is not None and at.x >= self._canvas.margin:
            self.post_message(self.Pointed(self._canvas.x_at(at.x)))

    def on_focus(self) -> None:
        """The title says so."""
        self.refresh()

    def on_blur(self) -> None:
        """The title says so."""
        self.post_message(self.Pointed(None))

    def render_line(self, y: int) -> Strip:
        """One row."""
        width, height = self.content_size
        if self._drawn != (width, height, self.has_focus):
            started = time.perf_counter()
            self._paint(width, height)
            self._drawn = (width, height, self.has_focus)
            self.cost = time.perf_counter() - started
        if y == 0:
            return self._strip(self._title(width), width)
        if y == height - 1:
            return self._strip(self._values(width), width)
        canvas = self._canvas
        if canvas is None:
            return self._message(width) if y == height // 2 else Strip.blank(width, self.rich_style)
        cells = canvas.cells[y - 1]
        if self._x is not None and y - 1 < canvas.rows:
            column = canvas.column_of(self._x)
            if cells[column][0] in " ┄":
                cells = [*cells[:column], ("│", "cursor"), *cells[column + 1 :]]
        return self._strip(cells, width)

    def _paint(self, width: int, height: int) -> None:
        made, self._canvas = self._picture, None
        if made is None or made.empty or height < 5:
            return
        lines = [
            Line(made.raw.x, made.raw.y, "raw"),
            Line(made.train.x, made.train.y, "train"),
            Line(made.validation.x, made.validation.y, "validation", dots=True),
        ]
        values = [*made.train.y, *made.validation.y]
        low = made.floor if made.floor is not None else min(values)
        marks = []
        if made.best is not None:
            marks.append((made.validation.x[made.best], made.validation.y[made.best], "★", "best"))
        self._canvas = draw(
            lines,
            width=width,
            height=height - 2,
            x_text=lambda x: axis_text(made.axis, x),
            x_label=AXIS_LABELS[made.axis],
            levels=[(made.floor, "floor")] if made.floor is not None else [],
            marks=marks,
            top=usual_top(values, low) if made.measure.best is min and not made.log else float("inf"),
            log=made.log,
        )

    def _title(self, width: int) -> list[Cell]:
        """The measure and its legend, in the longest form that there is room for."""
        made = self._picture
        if made is None:
            return []
        name = made.measure.label
        long = f"{name}, nats per {self._unit}" if made.measure.key == "loss" else name
        for label, gap, brief in ((long, 3, False), (name, 2, False), (name, 2, True), (name, 1, True)):
            legend = self._legend(made, brief=brief)
            if len(label) + sum(len(text) + gap for text, _ in legend) <= width:
                break
        else:
            while legend and len(name) + sum(len(text) + 1 for text, _ in legend) > width:
                legend.pop()
        cells = _cells(label, "focused" if self.has_focus else "title")
        cells += [BLANK] * max(0, width - len(label) - sum(len(text) + gap for text, _ in legend))
        for text, style in legend:
            cells += [BLANK] * gap + _cells(text, style)
        return cells

    def _legend(self, made: Picture, *, brief: bool) -> list[Cell]:
        legend = []
        if made.train.x:
            legend.append(("━ train", "train"))
        if made.validation.x:
            legend.append(("━ val" if brief else "━ validation", "validation"))
        if made.best is not None:
            sign = "★ " if brief else "★ best "
            legend.append((sign + value_text(made.measure, made.validation.y[made.best]), "best"))
        if made.floor is not None:
            sign = "┄ " if brief else "┄ floor "
            legend.append((sign + value_text(made.measure, made.floor), "floor"))
        if made.log:
            legend.append(("log", "dim"))
        return legend

    def _values(self, width: int) -> list[Cell]:
        """What the lines are at the cursor, or at their ends."""
        made = self._picture
        if made is None or made.empty:
            return []
        curves = [c for c in (made.train, made.validation) if c.x]
        at = self._x if self._x is not None else max(curve.x[-1] for curve in curves)
        place = axis_text(made.axis, curves[0].x[curves[0].near(at) or 0])
        where = {"step": f"step {place}", "tokens": f"{place} tokens", "seconds": place}[made.axis]
        values = [(curve, curve.near(at)) for curve in (made.train, made.validation)]
        for now, names in (("now ", ("train", "validation")), ("", ("train", "val")), ("", ("", ""))):
            head = where if self._x is not None else now + where
            cells = _cells(head, "dim" if self._x is None else "cursor")
            for (curve, index), name, style in zip(values, names, ("train", "validation"), strict=True):
                if index is not None:
                    there = axis_text(made.axis, curve.x[index])  # an evaluation may be far from the cursor
                    at_its = f" @ {there}" if there != place else ""
                    cells += _cells(f"  {name} {value_text(made.measure, curve.y[index])}{at_its}", style)
            if len(cells) <= width:
                return cells
        return cells[:width]

    def _message(self, width: int) -> Strip:
        text = self.waiting[:width]
        return self._strip([*[BLANK] * ((width - len(text)) // 2), *_cells(text, "dim")], width)

    def _strip(self, cells: list[Cell], width: int) -> Strip:
        """Cells of one style in a row become one segment."""
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
        return self.get_component_rich_style(f"chart--{name}") if name else self.rich_style


def _cells(text: str, style: str) -> list[Cell]:
    return [(character, style) for character in text]
