"""The two charts of the Compare pane, side by side where there is room, one at a time where not."""

from dataclasses import dataclass, replace

from textual.app import ComposeResult
from textual.containers import Horizontal

from tui_transformer.widgets.chart import Chart
from tui_transformer.widgets.compare.overlay import Drawn, Overlay, differences, overlaid
from tui_transformer.widgets.compare.overlay_chart import OverlayChart
from tui_transformer.widgets.curves import AXES

CURVES, DIFFERENCE = "curves", "difference"


@dataclass(frozen=True)
class Options:
    """How curves are drawn."""

    axis: str = AXES[0]
    train: bool = False
    log: bool = False


class CompareCharts(Horizontal):
    """Draws only what is seen, and only where something changed."""

    DEFAULT_CSS = """
    CompareCharts { height: 45%; min-height: 7; display: none; border-top: solid $foreground 20%; }
    CompareCharts.-drawn { display: block; }
    """

    def __init__(self) -> None:
        super().__init__(id="compare-charts")
        self.options = Options()
        self.two = False  # whether there is room for both
        self.single = CURVES
        self._of: Drawn | None = None
        self._curves, self._difference = OverlayChart(id="compare-curves"), OverlayChart(id="compare-difference")
        self._seen: dict[str, object] = {}

    def compose(self) -> ComposeResult:
        """Both."""
        yield self._curves
        yield self._difference

    @property
    def cost(self) -> float:
        """Seconds that the last drawing took."""
        return sum(chart.cost for chart in (self._curves, self._difference) if chart.display)

    def show(self, drawn: Drawn | None) -> None:
        """Draw the selected runs; without any, the charts go."""
        self._of = drawn
        self.set_class(drawn is not None, "-drawn")
        if drawn is None:
            return
        for name, chart in ((CURVES, self._curves), (DIFFERENCE, self._difference)):
            shown = self.two or self.single == name
            if not shown and chart.has_focus:  # what is about to go cannot keep the keys
                (self._difference if name == CURVES else self._curves).focus()
            chart.display = shown
            if shown:
                self._draw(name, chart, drawn)

    def _draw(self, name: str, chart: OverlayChart, drawn: Drawn) -> None:
        baseline = drawn.baseline.path if drawn.baseline is not None else None
        now = (self.options, drawn.versions, baseline)
        if self._seen.get(name) != now:
            self._seen[name] = now
            chart.draw(self._made(name, drawn))

    def _made(self, name: str, drawn: Drawn) -> Overlay:
        options = self.options
        if name == DIFFERENCE:
            return differences(drawn, options.axis)
        return overlaid(drawn, options.axis, train=options.train, log=options.log)

    def change(self, options: Options) -> None:
        """Draw the same otherwise."""
        if options.axis != self.options.axis:
            self.on_chart_pointed(Chart.Pointed(None))
        self.options = options
        self.show(self._of)

    def turn_axis(self) -> str:
        """The next x axis; gives back its name."""
        axis = AXES[(AXES.index(self.options.axis) + 1) % len(AXES)]
        self.change(replace(self.options, axis=axis))
        return axis

    def turn_single(self) -> None:
        """The other chart, where there is room for one."""
        self.single = DIFFERENCE if self.single == CURVES else CURVES
        self.show(self._of)

    def on_chart_pointed(self, event: Chart.Pointed) -> None:
        """The cursor stands at the same place in both."""
        event.stop()
        for chart in (self._curves, self._difference):
            chart.point_at(event.x)
