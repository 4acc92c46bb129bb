"""A run's charts: loss beside a second measure if there is room, else one at a time, or zoomed."""

from dataclasses import dataclass

from textual.app import ComposeResult
from textual.containers import Horizontal

from engine.measures import Measure
from tui_transformer.lab.charts.canvas import Canvas, Cell, Line, Mark, draw, usual_top
from tui_transformer.lab.charts.curves import (
    AXES,
    AXIS_LABELS,
    CHARTED,
    SMOOTHINGS,
    Picture,
    axis_text,
    known,
    picture,
    value_text,
)
from tui_transformer.lab.records.run_view import RunRow, RunView
from tui_transformer.studio.shared.chart import Chart, cells_of, title_line, whole
from tui_transformer.studio.shared.run_states import nothing_yet

FULL, USUAL, BRIEF = range(3)  # how detailed a legend is


@dataclass(frozen=True)
class RunDrawing:
    made: Picture
    unit: str  # of the loss

    def canvas(self, width: int, height: int) -> Canvas | None:
        made = self.made
        if made.empty:
            return None
        lines = [
            Line(made.raw.x, made.raw.y, "raw"),
            Line(made.train.x, made.train.y, "train"),
            Line(made.validation.x, made.validation.y, "validation", dots=True),
        ]
        values = [*made.train.y, *made.validation.y]
        low = min(made.floors, default=min(values))
        marks = []
        if made.best is not None:
            marks.append(Mark(made.validation.x[made.best], made.validation.y[made.best], "★", "best", on="validation"))
        return draw(
            lines,
            width=width,
            height=height,
            x_text=lambda x: axis_text(made.axis, x),
            x_label=AXIS_LABELS[made.axis],
            levels=[(level, style) for _, level, style in reversed(self._floors(made))],
            marks=marks,
            top=usual_top(values, low) if made.measure.lower and not made.log else float("inf"),
            log=made.log,
        )

    def title(self, width: int, style: str) -> list[Cell]:
        """The measure and its legend, in the longest form that fits."""
        made = self.made
        name = made.measure.name
        long = f"{name}, nats per {self.unit}" if made.measure.key == "loss" else name
        forms = ((long, 3, FULL), (long, 3, USUAL), (name, 2, USUAL), (name, 2, BRIEF), (name, 1, BRIEF))
        for label, gap, form in forms:
            legend = self._legend(made, form)
            if len(label) + sum(len(text) + gap for text, _ in legend) <= width:
                break
        else:
            while legend and len(name) + sum(len(text) + 1 for text, _ in legend) > width:
                legend.pop()
        return title_line(label, style, legend, width, gap)

    def _floors(self, made: Picture) -> list[tuple[str, float, str]]:
        if len(made.floors) == 2:
            reachable, past = made.floors
            return [("reachable floor", reachable, "floor"), ("given the whole past", past, "past")]
        return [("floor", level, "floor") for level in made.floors]

    def _legend(self, made: Picture, form: int) -> list[Cell]:
        legend, brief = [], form == BRIEF
        if made.train.x:
            legend.append(("━ train", "train"))
        if made.validation.x:
            legend.append(("━ val" if brief else "━ validation", "validation"))
        if made.best is not None:
            sign = "★ " if brief else "★ best "
            legend.append((sign + value_text(made.measure, made.validation.y[made.best]), "best"))
        for name, level, style in self._floors(made)[: 2 if form == FULL else 1]:
            sign = "┄ " if brief else f"┄ {name} "
            legend.append((sign + value_text(made.measure, level), style))
        if made.log:
            legend.append(("log", "dim"))
        return legend

    def values(self, width: int, x: float | None) -> list[Cell]:
        made = self.made
        if made.empty:
            return []
        curves = [c for c in (made.train, made.validation) if c.x]
        at = x if x is not None else max(curve.x[-1] for curve in curves)
        place = axis_text(made.axis, curves[0].x[curves[0].near(at) or 0])
        where = {"step": f"step {place}", "tokens": f"{place} tokens", "seconds": place}[made.axis]
        values = [(curve, curve.near(at)) for curve in (made.train, made.validation)]
        for now, names in (("now ", ("train", "validation")), ("", ("train", "val")), ("", ("", ""))):
            head = where if x is not None else now + where
            parts = [cells_of(head, "dim" if x is None else "cursor")]
            for (curve, index), name, style in zip(values, names, ("train", "validation"), strict=True):
                if index is not None:
                    there = axis_text(made.axis, curve.x[index])  # an evaluation may be far from the cursor
                    at_its = f" @ {there}" if there != place else ""
                    parts.append(cells_of(f"  {name} {value_text(made.measure, curve.y[index])}{at_its}", style))
            if sum(map(len, parts)) <= width:
                break
        return whole(parts, width)


class RunCharts(Horizontal):
    """Draws only what is visible, and only what changed."""

    def __init__(self) -> None:
        super().__init__(id="charts")
        self.axis, self.smoothing, self.logarithmic = 0, "off", False  # the first an index
        self.two = False  # whether there is room for both
        self.zoomed = False
        self._single, self._second = CHARTED[0], CHARTED[1]
        self._of: tuple[RunRow | None, RunView | None] = (None, None)
        self._first, self._beside = Chart(id="chart-first"), Chart(id="chart-second")
        self._drawn: dict[Chart, object] = {}

    def compose(self) -> ComposeResult:
        yield self._first
        yield self._beside

    @property
    def cost(self) -> float:
        return sum(chart.cost for chart in (self._first, self._beside) if chart.display)

    def show(self, row: RunRow | None, view: RunView | None) -> None:
        self._of = (row, view)
        both = self.two and not self.zoomed
        if not both and self._beside.has_focus:  # what is about to close cannot keep the focus
            self._first.focus()
        self._beside.display = both
        self._draw(self._first, CHARTED[0] if both else self._single)
        if both:
            self._draw(self._beside, self._second)

    def _draw(self, chart: Chart, measure: Measure) -> None:
        row, view = self._of
        waiting = "" if row is None else nothing_yet(row, view)
        data = None if view is None else (view.path, view.version, view.floors)
        now = (measure, self.axis, self.smoothing, self.logarithmic, waiting, data)
        if self._drawn.get(chart) == now:
            return
        self._drawn[chart] = now
        if view is None:
            chart.show(None, waiting)
            return
        made = picture(
            measure,
            view.train,
            view.validation,
            axis=AXES[self.axis],
            smoothing=self.smoothing,
            log=self.logarithmic,
            floors=[floor.nats for floor in view.floors],
        )
        chart.show(RunDrawing(made, view.unit), waiting)

    def turn_axis(self) -> None:
        self.axis = (self.axis + 1) % len(AXES)
        self.on_chart_pointed(Chart.Pointed(None))
        self.show(*self._of)

    def turn_smoothing(self) -> str:
        names = list(SMOOTHINGS)
        self.smoothing = names[(names.index(self.smoothing) + 1) % len(names)]
        self.show(*self._of)
        return self.smoothing

    def turn_log(self) -> None:
        self.logarithmic = not self.logarithmic
        self.show(*self._of)

    def turn_measure(self) -> None:
        view, both = self._of[1], self.two and not self.zoomed
        validation = view.validation if view is not None else ()
        choice = [measure for measure in CHARTED[1 if both else 0 :] if known(measure, validation)]
        now = self._second if both else self._single
        chosen = choice[(choice.index(now) + 1) % len(choice)] if now in choice else choice[0]
        if both:
            self._second = chosen
        else:
            self._single = chosen
        self.show(*self._of)

    def zoom(self, on: bool) -> None:
        if on and self.two:
            self._single = self._second if self._beside.has_focus else CHARTED[0]
        self.zoomed = on
        self.show(*self._of)
        if on:
            self._first.focus()

    def on_chart_pointed(self, event: Chart.Pointed) -> None:
        event.stop()
        for chart in (self._first, self._beside):
            chart.point_at(event.x)
