"""The charts of a run: loss beside a second measure where there is room, one at a time where not, or zoomed."""

from dataclasses import dataclass, replace

from textual.app import ComposeResult
from textual.containers import Horizontal

from engine.measures import Measure
from tui_transformer.lab.charts.curves import AXES, CHARTED, SMOOTHINGS, known, picture
from tui_transformer.lab.records.feed import RunRow
from tui_transformer.lab.records.run_view import RunView
from tui_transformer.studio.shared.chart import Chart
from tui_transformer.studio.shared.run_words import nothing_yet
from tui_transformer.studio.train.run_chart import RunChart


@dataclass(frozen=True)
class Options:
    """How curves are drawn; each is an index into its table."""

    axis: int = 0
    smoothing: int = 0
    log: bool = False


class RunCharts(Horizontal):
    """Draws only what is seen, and only where something changed."""

    DEFAULT_CSS = """
    RunCharts { height: 2fr; min-height: 5; }
    """

    def __init__(self) -> None:
        super().__init__(id="charts")
        self.options = Options()
        self.two = False  # whether there is room for both
        self.zoomed = False
        self._single, self._second = CHARTED[0], CHARTED[1]
        self._of: tuple[RunRow | None, RunView | None] = (None, None)
        self._first, self._beside = RunChart(id="chart-first"), RunChart(id="chart-second")
        self._drawn: dict[RunChart, object] = {}

    def compose(self) -> ComposeResult:
        """Both."""
        yield self._first
        yield self._beside

    @property
    def cost(self) -> float:
        """Seconds that the last drawing took."""
        return sum(chart.cost for chart in (self._first, self._beside) if chart.display)

    def show(self, row: RunRow | None, view: RunView | None) -> None:
        """Draw a run."""
        self._of = (row, view)
        both = self.two and not self.zoomed
        if not both and self._beside.has_focus:  # what is about to go cannot keep the keys
            self._first.focus()
        self._beside.display = both
        self._draw(self._first, CHARTED[0] if both else self._single)
        if both:
            self._draw(self._beside, self._second)

    def _draw(self, chart: RunChart, measure: Measure) -> None:
        row, view = self._of
        waiting = "" if row is None else nothing_yet(row, view)
        now = (measure, self.options, waiting, None if view is None else (view.path, view.version, view.floors))
        if self._drawn.get(chart) == now:
            return
        self._drawn[chart] = now
        if view is None:
            chart.draw(None, "", waiting)
            return
        made = picture(
            measure,
            view.train,
            view.validation,
            axis=AXES[self.options.axis],
            smoothing=SMOOTHINGS[self.options.smoothing],
            log=self.options.log,
            floors=[floor.nats for floor in view.floors],
        )
        chart.draw(made, view.unit, waiting)

    def change(self, options: Options) -> None:
        """Draw the same otherwise."""
        moved = options.axis != self.options.axis
        self.options = options
        if moved:
            self.on_chart_pointed(Chart.Pointed(None))
        self.show(*self._of)

    def turn_axis(self) -> str:
        """The next x axis; gives back its name."""
        self.change(replace(self.options, axis=(self.options.axis + 1) % len(AXES)))
        return AXES[self.options.axis]

    def turn_smoothing(self) -> str:
        """The next smoothing; gives back its name."""
        self.change(replace(self.options, smoothing=(self.options.smoothing + 1) % len(SMOOTHINGS)))
        return SMOOTHINGS[self.options.smoothing].label

    def turn_log(self) -> None:
        """A logarithmic y axis, or not."""
        self.change(replace(self.options, log=not self.options.log))

    def turn_measure(self) -> str:
        """The next measure that this run has, in the chart that can show any; gives back its name."""
        view = self._of[1]
        validation = view.validation if view is not None else ()
        both = self.two and not self.zoomed
        choice = [measure for measure in CHARTED[1 if both else 0 :] if known(measure, validation)]
        now = self._second if both else self._single
        chosen = choice[(choice.index(now) + 1) % len(choice)] if now in choice else choice[0]
        if both:
            self._second = chosen
        else:
            self._single = chosen
        self.show(*self._of)
        return chosen.name

    def zoom(self, on: bool) -> None:
        """One chart alone: the one that has the keys, or the first."""
        if on and self.two:
            self._single = self._second if self._beside.has_focus else CHARTED[0]
        self.zoomed = on
        self.show(*self._of)
        if on:
            self._first.focus()

    def on_chart_pointed(self, event: Chart.Pointed) -> None:
        """The cursor stands at the same place in both."""
        event.stop()
        for chart in (self._first, self._beside):
            chart.point_at(event.x)
