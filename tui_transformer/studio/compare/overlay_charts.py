"""Charts of several runs or variants, two side by side if there is room, else one at a time.

Curves are on the left; differences and recall by distance take turns on the right. Colours and letters identify the
runs in the lines, the legend and the values.
"""

from dataclasses import dataclass, replace

from rich.cells import cell_len
from textual import message
from textual.app import ComposeResult
from textual.containers import Horizontal

from engine.base.clean import clean_line
from engine.base.language import Message, tr
from tui_transformer.lab.analysis.chart_lines import AXES, LOG, Curve, axis_text
from tui_transformer.lab.analysis.charts.canvas import Cell, ChartCanvas, Span, cells_of
from tui_transformer.lab.analysis.charts.overlay import (
    DISTANCE,
    ChartedRuns,
    Overlay,
    Stroke,
    difference_chart,
    distance_chart,
    draw_overlay,
    loss_chart,
    probes_scored_by_distance,
    shading_notes,
)
from tui_transformer.lab.analysis.colours import LETTERS
from tui_transformer.lab.formatting import fit_to_width
from tui_transformer.studio.shared.chart import ALL_HIDDEN, HIDDEN, Chart, parts_that_fit, title_line, zoomed_range_text

WHERE = {"step": Message("step {place}"), "tokens": Message("{place} tokens"), DISTANCE: Message("{place} back")}
BRIEF = (("", 2, True), ("", 3, False), ("", 2, False))  # a value without its spread is still correct
MORE = "…"  # stands for runs that do not fit
SHORTEST = 6  # least columns of a meaningful name in the legend


@dataclass(frozen=True)
class OverlayDrawing:
    overlay: Overlay
    hidden: frozenset[int] = frozenset()  # numbers of letters that only the legend shows
    explanation: str = ""

    @property
    def all_hidden(self) -> bool:
        strokes = self.overlay.drawn_strokes
        return bool(strokes) and all(stroke.slot in self.hidden for stroke in strokes)

    def canvas(self, width: int, height: int, span: Span | None = None) -> ChartCanvas | None:
        seen = tuple(stroke for stroke in self.overlay.strokes if stroke.slot not in self.hidden)
        return draw_overlay(replace(self.overlay, strokes=seen), width, height, span)

    def title(self, width: int, style: str, zoomed: ChartCanvas | None = None) -> list[Cell]:
        """Return what y is, and the legend, whose names get the available room; zoomed, the part of x that is seen."""
        made = self.overlay
        if zoomed is not None:
            part = zoomed_range_text(made.axis, zoomed)
            made = replace(made, title=tr("{name}, {part}", name=made.brief or made.title, part=part), brief=part)
        drawn = [replace(s, sign=HIDDEN, seeds=None) if s.slot in self.hidden else s for s in made.drawn_strokes]
        names = [(stroke, clean_line(stroke.name)) for stroke in drawn]
        log = [(tr(LOG), "dim")] if made.log else []
        longest = max((cell_len(name) for _, name in names), default=0)
        brief = clean_line(made.brief)
        # With each, whether the legend says how many seeds.
        labels = [(clean_line(made.title), True), (brief, True), (brief, False)]
        if made.briefest and zoomed is None:
            labels += [(made.briefest, True), (made.briefest, False)]
        for label, seeds in (*labels, *([("", True)] if zoomed is None else [])):
            with_seeds = [(s if seeds else replace(s, seeds=None), name) for s, name in names]
            for room in range(longest, SHORTEST - 1, -1):
                legend = [
                    (" ".join(_legend_words(s, _shortened(name, room))), self._style(s)) for s, name in with_seeds
                ]
                taken = cell_len(label) + sum(cell_len(text) + 2 for text, _ in legend)
                if taken + sum(cell_len(text) + 1 for text, _ in log) <= width:
                    return title_line(label, style, [*legend, *log], width, 2)
        for words in (_legend_words(stroke, "") for stroke, _ in names), ([LETTERS[s.slot], s.sign] for s, _ in names):
            legend = [(" ".join(word), self._style(s)) for word, (s, _) in zip(words, names, strict=True)]
            if cell_len(made.brief) + sum(cell_len(text) + 2 for text, _ in (*legend, *log)) <= width:
                break
        return title_line(made.brief, style, [*legend, *log], width, 2)

    def _style(self, stroke: Stroke) -> str:
        return f"{'raw' if stroke.slot in self.hidden else 'run'}{stroke.slot}"

    def values(self, width: int, x: float | None) -> list[Cell]:
        made = self.overlay
        strokes = [stroke for stroke in made.drawn_strokes if stroke.curve.x and stroke.slot not in self.hidden]
        if not strokes:
            return []
        place = "" if x is None else axis_text(made.axis, x)
        where = tr(WHERE.get(made.axis, "{place}"), place=place)
        ends = [(s, s.curve.y[-1] if x is None else _value_at(s.curve, x)) for s in strokes]
        last = (tr("furthest"), tr("far")) if made.axis == DISTANCE else (tr("at the end"), tr("end"))
        for head, decimals, spread in ((last[0], 4, True), (last[1], 4, True), (last[1], 3, True), *BRIEF):
            parts = [cells_of(head, "dim") if x is None else cells_of(where, "cursor")]
            for stroke, value in ends:
                text = "–" if value is None else _format_value(made, value, decimals)
                half = None
                if spread and stroke.curve.half:
                    half = (
                        stroke.curve.half[-1] if x is None else _value_at(Curve(stroke.curve.x, stroke.curve.half), x)
                    )
                text += f" ± {_format_value(replace(made, zero=False), half, decimals)}" if half is not None else ""
                parts.append(cells_of(f"  {LETTERS[stroke.slot]} {text}", f"run{stroke.slot}"))
            if sum(map(len, parts)) <= width:
                break
        else:
            parts.append(cells_of(f"  {MORE}", "dim"))
            while len(parts) > 2 and sum(map(len, parts)) > width:
                del parts[-2]
        return parts_that_fit([*parts, *(cells_of(f"   {clean_line(note)}", "dim") for note in made.notes)], width)


def _legend_words(stroke: Stroke, name: str) -> list[str]:
    """Letter, symbol and name; the symbol is never cut."""
    seeds = f"n{stroke.seeds}" if stroke.seeds is not None else ""
    return [word for word in (LETTERS[stroke.slot], stroke.sign, name, seeds) if word]


def _format_value(made: Overlay, value: float, decimals: int) -> str:
    if made.share:
        return f"{value:.{max(0, decimals - 3)}%}".replace("%", " %" if decimals > 2 else "%")
    return f"{value:{'+' if made.zero else ''}.{decimals}f}"


def _value_at(curve: Curve, x: float) -> float | None:
    """The value at the evaluation nearest to x; None outside the run."""
    spacing = (curve.x[-1] - curve.x[0]) / max(1, len(curve.x) - 1)
    if not curve.x[0] - spacing <= x <= curve.x[-1] + spacing:
        return None
    near = curve.near(x)
    return None if near is None else curve.y[near]


def _shortened(text: str, width: int) -> str:
    return text if cell_len(text) <= width else fit_to_width(text, width)


CURVES, DIFFERENCE = "curves", "difference"
VIEWS = (CURVES, DIFFERENCE, DISTANCE)
ABOUT = {  # of means over seeds
    CURVES: Message("Each line is the mean over a variant's seeds; the shading is its 95 % interval."),
    DIFFERENCE: Message(
        "Each line is the mean difference from the baseline, paired by seed; the shading is its 95 % interval."
    ),
    DISTANCE: Message(
        "How often the model is right, by how far back it has to look. Dotted: chance. ┊ a model's reach."
    ),
}


@dataclass(frozen=True)
class ChartOptions:
    """Curve options. `probe`: the one drawn by distance; "" for the first."""

    axis: str = AXES[0]
    train: bool = False
    log: bool = False
    probe: str = ""


class CompareCharts(Horizontal):
    """Draws only what is visible, and only what changed."""

    @dataclass
    class Toggled(message.Message):
        """A legend's entry was clicked."""

        slot: int

    def __init__(self) -> None:
        super().__init__(id="compare-charts")
        self.options = ChartOptions()
        self.wide = False  # whether there is room for both
        self.zoomed = False  # whether one has it all
        self.hidden_slots: frozenset[int] = frozenset()  # numbers of the letters whose curves are not drawn
        self.single = CURVES
        self.right_view = DIFFERENCE  # what is on the right
        self._drawn: ChartedRuns | None = None
        self._curves, self._difference = Chart(id="compare-curves"), Chart(id="compare-difference")
        self._drawn_keys: dict[Chart, object] = {}

    def compose(self) -> ComposeResult:
        yield self._curves
        yield self._difference

    @property
    def draw_seconds(self) -> float:
        return sum(chart.draw_seconds for chart in (self._curves, self._difference) if chart.display)

    @property
    def shows_both(self) -> bool:
        return self.wide and not self.zoomed

    @property
    def visible_views(self) -> tuple[str, ...]:
        return (CURVES, self.right_view) if self.shows_both else (self.single,)

    def show(self, drawn: ChartedRuns | None) -> None:
        self._drawn = drawn
        self.set_class(drawn is not None, "-drawn")
        if drawn is None:
            return
        right = next((name for name in self.visible_views if name != CURVES), "")
        for name, chart, other in (
            (CURVES if CURVES in self.visible_views else "", self._curves, self._difference),
            (right, self._difference, self._curves),
        ):
            if not name and chart.has_focus:  # what is about to close cannot keep the focus
                other.focus()
            chart.display = bool(name)
            now = (name, self.options, self.hidden_slots, drawn.cache_key, drawn.baseline is not None)
            if name and self._drawn_keys.get(chart) != now:
                self._drawn_keys[chart] = now
                made = self._make_overlay(name, drawn)
                made = replace(made, notes=(*made.notes, *shading_notes(made.drawn_strokes)))
                about = tr(ABOUT[name]) if drawn.shows_means or name == DISTANCE else ""
                drawing = OverlayDrawing(made, self.hidden_slots, about)
                chart.show(drawing, tr(ALL_HIDDEN) if drawing.all_hidden else clean_line(made.placeholder))

    def _make_overlay(self, name: str, drawn: ChartedRuns) -> Overlay:
        options = self.options
        if name == DISTANCE:
            return distance_chart(drawn, options.probe)
        if name == DIFFERENCE:
            return difference_chart(drawn, options.axis)
        return loss_chart(drawn, options.axis, train=options.train, log=options.log)

    def set_options(self, options: ChartOptions) -> None:
        if options.axis != self.options.axis:
            self.reset_zoom()
            self.on_chart_cursor_moved(Chart.CursorMoved(None))
        self.options = options
        self.show(self._drawn)

    def toggle_curve(self, slot: int) -> None:
        """Hide a letter's curve, or show it again."""
        self.hidden_slots ^= {slot}
        self.show(self._drawn)

    def set_single_chart_mode(self, on: bool) -> None:
        """Show one chart, the focused one, or as many as there is room for."""
        if on and self.wide:
            self.single = self.right_view if self._difference.has_focus else CURVES
        self.zoomed = on
        self.show(self._drawn)

    def on_chart_legend_clicked(self, event: Chart.LegendClicked) -> None:
        event.stop()
        kind, slot = event.style[:-1], event.style[-1:]
        if kind in ("run", "raw") and slot.isdigit():
            self.post_message(self.Toggled(int(slot)))

    def next_axis(self) -> None:
        axis = AXES[(AXES.index(self.options.axis) + 1) % len(AXES)]
        self.set_options(replace(self.options, axis=axis))

    def next_view(self) -> None:
        """Show the next chart if one fits; else the next one on the right."""
        self.reset_zoom()
        self.on_chart_cursor_moved(Chart.CursorMoved(None))
        if self.shows_both:
            self.right_view = DISTANCE if self.right_view == DIFFERENCE else DIFFERENCE
        else:
            self.single = VIEWS[(VIEWS.index(self.single) + 1) % len(VIEWS)]
        self.show(self._drawn)

    def next_probe(self) -> None:
        """Show the next probe by distance; the first if another chart is there."""
        if DISTANCE not in self.visible_views:
            self.reset_zoom()
            self.on_chart_cursor_moved(Chart.CursorMoved(None))
            self.right_view = self.single = DISTANCE
            self.show(self._drawn)
        elif self._drawn is not None and (known := probes_scored_by_distance(self._drawn)):
            now = known.index(self.options.probe) if self.options.probe in known else 0
            self.set_options(replace(self.options, probe=known[(now + 1) % len(known)]))

    def on_chart_cursor_moved(self, event: Chart.CursorMoved) -> None:
        """Keep the cursor at the same x in both charts if they share an axis."""
        event.stop()
        for chart in (self._curves, self._difference):
            if event.x is None or event.chart is chart or self._shares_axis:
                chart.move_cursor(event.x)

    def on_chart_zoomed(self, event: Chart.Zoomed) -> None:
        """Show the same part of x in both charts if they share an axis."""
        event.stop()
        for chart in (self._curves, self._difference):
            if event.chart is chart or self._shares_axis:
                chart.zoom_to(event.span)

    @property
    def shows_part(self) -> bool:
        """Whether only a part of x is shown."""
        return any(chart.span is not None for chart in (self._curves, self._difference))

    def reset_zoom(self) -> None:
        for chart in (self._curves, self._difference):
            chart.zoom_to(None)

    @property
    def _shares_axis(self) -> bool:
        return len({DISTANCE if name == DISTANCE else self.options.axis for name in self.visible_views}) == 1
