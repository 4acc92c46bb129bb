"""The charts of the Compare pane, two side by side where there is room, one at a time where not.

Curves stand on the left; differences and recall by distance take turns on the right.
"""

from dataclasses import dataclass, replace

from textual.app import ComposeResult
from textual.containers import Horizontal

from tui_transformer.lab.charts.curves import AXES
from tui_transformer.lab.charts.overlay import (
    Drawn,
    DrawnGroups,
    Overlay,
    differences,
    distances,
    mean_curves,
    mean_differences,
    overlaid,
    probes_of,
)
from tui_transformer.studio.compare.overlay_chart import OverlayChart
from tui_transformer.studio.shared.chart import Chart

CURVES, DIFFERENCE, DISTANCE = VIEWS = ("curves", "difference", "distance")


@dataclass(frozen=True)
class Options:
    """How curves are drawn. `probe`: whose distances are; "" for the first."""

    axis: str = AXES[0]
    train: bool = False
    log: bool = False
    probe: str = ""


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
        self.beside = DIFFERENCE  # what stands on the right
        self._of: Drawn | DrawnGroups | None = None
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

    @property
    def views(self) -> tuple[str, ...]:
        """What is seen, from the left."""
        return (CURVES, self.beside) if self.two else (self.single,)

    def show(self, drawn: Drawn | DrawnGroups | None) -> None:
        """Draw the selected runs, or variants; without any, the charts go."""
        self._of = drawn
        self.set_class(drawn is not None, "-drawn")
        if drawn is None:
            return
        curves = CURVES in self.views
        right = next((name for name in self.views if name != CURVES), "")
        for name, chart, other in (
            (CURVES if curves else "", self._curves, self._difference),
            (right, self._difference, self._curves),
        ):
            if not name and chart.has_focus:  # what is about to go cannot keep the keys
                other.focus()
            chart.display = bool(name)
            if name:
                self._draw(name, chart, drawn)

    def _draw(self, name: str, chart: OverlayChart, drawn: Drawn | DrawnGroups) -> None:
        now = (name, self.options, type(drawn), drawn.versions, drawn.baseline is not None)
        if self._seen.get(chart.id or "") != now:
            self._seen[chart.id or ""] = now
            chart.draw(self._made(name, drawn))

    def _made(self, name: str, drawn: Drawn | DrawnGroups) -> Overlay:
        options, variants = self.options, drawn if isinstance(drawn, DrawnGroups) else DrawnGroups.of(drawn)
        if name == DISTANCE:
            return distances(variants, options.probe)
        if isinstance(drawn, DrawnGroups):
            if name == DIFFERENCE:
                return mean_differences(drawn, options.axis)
            return mean_curves(drawn, options.axis, log=options.log)
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

    def turn_view(self) -> None:
        """The next chart, where there is room for one; else the next one on the right."""
        self.on_chart_pointed(Chart.Pointed(None))
        if self.two:
            self.beside = DISTANCE if self.beside == DIFFERENCE else DIFFERENCE
        else:
            self.single = VIEWS[(VIEWS.index(self.single) + 1) % len(VIEWS)]
        self.show(self._of)

    def turn_probe(self) -> None:
        """The next probe by distance; the first one where another chart stands there."""
        if DISTANCE not in self.views:
            self.on_chart_pointed(Chart.Pointed(None))
            self.beside = self.single = DISTANCE
            self.show(self._of)
            return
        drawn = self._of
        if drawn is None:
            return
        known = probes_of(drawn if isinstance(drawn, DrawnGroups) else DrawnGroups.of(drawn))
        now = known.index(self.options.probe) if self.options.probe in known else 0
        if known:
            self.change(replace(self.options, probe=known[(now + 1) % len(known)]))

    def on_chart_pointed(self, event: Chart.Pointed) -> None:
        """The cursor stands at the same place in both, where x is the same in both."""
        event.stop()
        for chart in (self._curves, self._difference):
            if event.x is None or event.chart is chart or len(self._axes) == 1:
                chart.point_at(event.x)

    @property
    def _axes(self) -> set[str]:
        return {DISTANCE if name == DISTANCE else self.options.axis for name in self.views}
