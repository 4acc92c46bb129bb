"""A run's charts: loss, with a second measure beside it if there is room, else one at a time; a study's mean losses."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import Horizontal

from engine.base.clean import clean_line
from engine.base.language import Message, tr
from engine.config.measures import Measure
from engine.runs.records import ValidationRecord
from tui_transformer.lab.analysis.chart_lines import (
    AXES,
    AXIS_LABELS,
    CHARTS,
    LOG,
    PROBES,
    SMOOTHINGS,
    THROUGHPUT,
    MeasureChart,
    axis_text,
    has_values,
    measure_chart,
    value_text,
)
from tui_transformer.lab.analysis.charts.canvas import (
    ON,
    Cell,
    ChartCanvas,
    ChartLine,
    Level,
    Mark,
    ShadedBand,
    Span,
    cells_of,
    draw,
    draw_grid,
    shade_bands,
    usual_top,
)
from tui_transformer.lab.analysis.charts.overlay import probes_over_time, study_loss_chart
from tui_transformer.lab.analysis.ghost import Ghost
from tui_transformer.lab.records.run_view import RunRow, RunView
from tui_transformer.lab.records.study_row import StudyRow
from tui_transformer.studio.compare.overlay_charts import OverlayDrawing
from tui_transformer.studio.shared.chart import (
    ALL_HIDDEN,
    HIDDEN,
    OFF,
    Chart,
    Drawing,
    parts_that_fit,
    title_line,
    zoomed_range_text,
)
from tui_transformer.studio.shared.keys import WORDS
from tui_transformer.studio.shared.run_states import why_no_curves

TOGGLED = ("train", "validation", "floor", "past", "ghost")  # what a click in the legend hides
FULL, USUAL, BRIEF, LEAST = range(4)  # how detailed a legend is
MEANS = WORDS["train"]
# Beside the lines, from so many columns
WHOLE_PAST, ROOM = Message("given the whole past"), 48
LONG = 3  # columns of a dash that is longer than the ghost's
LOSS = CHARTS[0]
TRAIN, VALIDATION = Message("train"), Message("validation")


@dataclass(frozen=True)
class RunDrawing:
    picture: MeasureChart
    unit: str  # of the loss
    ghost: str = ""  # the name of the run behind it
    hidden: frozenset[str] = frozenset()  # styles of what only the legend shows
    colourless: bool = False  # train is told from validation by long dashes

    def canvas(self, width: int, height: int, span: Span | None = None) -> ChartCanvas | None:
        made, hidden = self.picture, self.hidden
        curves = [made.train] * ("train" not in hidden) + [made.validation] * ("validation" not in hidden)
        if not any(curve.x for curve in curves):
            return None
        lines = [
            ChartLine(made.ghost.x, made.ghost.y, "ghost", dashed=True),
            ChartLine(made.raw.x, made.raw.y, "raw"),
            ChartLine(made.train.x, made.train.y, "train", dashed=self.colourless, dash=LONG),
            ChartLine(made.validation.x, made.validation.y, "validation", dots=True),
        ]
        lines = [line for line in lines if line.style.replace("raw", "train") not in hidden]
        floors = [floor for floor in self._floors if floor[2] not in hidden]
        low = min([level for _, level, _ in floors], default=min(y for curve in curves for y in curve.y))
        best = made.best if "validation" not in hidden else None
        labels = (tr("floor: the best possible"), tr(WHOLE_PAST)) if width >= ROOM else (tr("floor"), "")
        marks = [Mark(made.validation.x[best], made.validation.y[best], "★", "best")] if best is not None else []
        canvas = draw(
            lines,
            width=width,
            height=height,
            x_text=lambda x: axis_text(made.axis, x),
            x_label=AXIS_LABELS[made.axis],
            levels=[Level(level, style, labels[style == "past"]) for _, level, style in floors],
            marks=marks,
            top=usual_top(curves, low) if made.measure.lower_is_better and not made.log else float("inf"),
            log=made.log,
            also_y=(0.0,) if made.measure is THROUGHPUT and span is None else (),
            span=span,
        )
        if canvas is not None:
            if self._has_gap:
                shade_bands(canvas, [ShadedBand(*made.train_validation_gap, "gap")])
            draw_grid(canvas)
        return canvas

    def title(self, width: int, style: str, zoomed: ChartCanvas | None = None) -> list[Cell]:
        """The measure and its legend, in the longest form that fits; zoomed, the part that is seen."""
        made = self.picture
        name = tr(made.measure.name)
        if zoomed is not None:
            name = tr("{name}, {part}", name=name, part=zoomed_range_text(made.axis, zoomed))
        long = name
        if made.measure.key == "loss" and zoomed is None:
            long = tr("{name}, nats per {unit}", name=name, unit=tr(self.unit))
        forms = (
            (long, 3, FULL),
            (long, 3, USUAL),
            (name, 2, USUAL),
            (name, 2, BRIEF),
            (name, 2, LEAST),
            (name, 1, LEAST),
        )
        for label, gap, form in forms:
            legend = self._legend(made, form)
            if cell_len(label) + sum(cell_len(text) + gap for text, _ in legend) <= width:
                break
        else:
            while legend and cell_len(name) + sum(cell_len(text) + 1 for text, _ in legend) > width:
                legend.pop()
        return title_line(label, style, legend, width, gap)

    @property
    def explanation(self) -> str:
        made = self.picture
        drawn = {"floor": bool(made.floors), "★": made.best is not None, "ghost": bool(made.ghost.x)}
        named = {"ghost": tr("{name}, {means}", name=self.ghost, means=tr(MEANS["ghost"]))}
        words = ((word, named.get(word) or tr(MEANS[word])) for word, there in drawn.items() if there)
        said = [tr("{word}: {means}.", word=tr(word), means=means) for word, means in words]
        gap = tr(
            "train: {means}.\nvalidation: held-out text, without dropout. The curve can lie below train: "
            "training windows start without context, scored windows do not.\ngap: {means2}.",
            means=tr(MEANS["train"]),
            means2=tr(MEANS["gap"]),
        )
        return "\n".join([*([gap] if self._has_gap else []), *said])

    @property
    def _has_gap(self) -> bool:
        return bool(self.picture.train.x and self.picture.validation.x) and not self.hidden & {"train", "validation"}

    @property
    def _floors(self) -> list[tuple[str, float, str]]:
        made = self.picture
        if len(made.floors) == 2:
            reachable, past = made.floors
            return [(tr("reachable floor"), reachable, "floor"), (tr(WHOLE_PAST), past, "past")]
        return [(tr("floor"), level, "floor") for level in made.floors]

    def _legend(self, made: MeasureChart, form: int) -> list[Cell]:
        legend, brief = [], form >= BRIEF
        if made.train.x and made.measure is not THROUGHPUT:
            legend.append((f"{'╍' if self.colourless else '━'} {tr(TRAIN)}", "train"))
        if made.validation.x:
            legend.append((f"•━ {tr('val') if brief else tr(VALIDATION)}", "validation"))
        if made.best is not None:
            sign = "★ " if brief else f"★ {tr('best')} "
            legend.append((sign + value_text(made.measure, made.validation.y[made.best]), "best"))
        for name, level, style in self._floors[: 2 if form == FULL else 1]:
            short = tr("floor") if style == "floor" else tr("past")
            sign = "┄ " if form == LEAST else f"┄ {short if brief else name} "
            legend.append((sign + value_text(made.measure, level), style))
        if made.ghost.x:
            whose = tr("best other run: ") if form == FULL else tr("other run: ")
            legend.append((tr("╌ other run") if form == LEAST else f"╌ {whose}{self.ghost}", "ghost"))
        legend = [
            (f"{HIDDEN} {text.partition(' ')[2]}", f"dim{OFF}{of}") if of in self.hidden else (text, of)
            for text, of in legend
        ]
        if made.log:
            legend.append((tr(LOG), "dim"))
        if self._has_gap:  # the first to go where there is no room
            legend.append((tr(" train–validation gap ") if form == FULL else f" {tr('gap')} ", f"dim{ON}bandgap"))
        return legend

    def values(self, width: int, x: float | None) -> list[Cell]:
        made = self.picture
        if made.empty:
            return []
        named = {"train": made.train, "validation": made.validation}
        curves = [curve for style, curve in named.items() if curve.x and style not in self.hidden]
        if not curves:
            return []
        at = x if x is not None else max(curve.x[-1] for curve in curves)
        place = axis_text(made.axis, curves[0].x[curves[0].near(at) or 0])
        words = {"step": tr("step {place}", place=place), "tokens": tr("{place} tokens", place=place), "seconds": place}
        full, short = (tr(TRAIN), tr(VALIDATION)), (tr(TRAIN), tr("val"))
        values = [(curve, curve.near(at) if style not in self.hidden else None) for style, curve in named.items()]
        for now, names in ((tr("now "), full), ("", short), ("", ("", ""))):
            head = words[made.axis] if x is not None else now + words[made.axis]
            parts = [cells_of(head, "dim" if x is None else "cursor")]
            for (curve, index), name, style in zip(values, names, ("train", "validation"), strict=True):
                if index is not None:
                    there = axis_text(made.axis, curve.x[index])  # an evaluation may be far from the cursor
                    at_its = f" @ {there}" if there != place else ""
                    said = "" if made.measure is THROUGHPUT else f"{name} "
                    parts.append(cells_of(f"  {said}{value_text(made.measure, curve.y[index])}{at_its}", style))
            if sum(map(len, parts)) <= width:
                break
        return parts_that_fit(parts, width)


class RunCharts(Horizontal):
    """Draws only what is visible, and only what changed."""

    def __init__(self) -> None:
        super().__init__(id="charts")
        self.axis, self.smoothing, self.logarithmic = 0, "off", False  # the first an index
        self.wide = False  # whether there is room for both
        self.zoomed = False
        self._single = LOSS
        self._second: Measure | None = None  # as chosen; None: the most telling
        self._shown_data: tuple[RunRow | StudyRow | None, RunView | None, Ghost | None] = (None, None, None)
        self._first, self._beside = Chart(id="chart-first"), Chart(id="chart-second")
        self._drawn: dict[Chart, object] = {}
        self._hidden: frozenset[str] = frozenset()  # styles of what only the legends show

    def compose(self) -> ComposeResult:
        yield self._first
        yield self._beside

    @property
    def draw_seconds(self) -> float:
        return sum(chart.draw_seconds for chart in (self._first, self._beside) if chart.display)

    @property
    def _shows_both(self) -> bool:
        return self.wide and not self.zoomed and not isinstance(self._shown_data[0], StudyRow)

    def show(self, row: RunRow | StudyRow | None, view: RunView | None, ghost: Ghost | None = None) -> None:
        if row is None or self._shown_data[0] is None or row.path != self._shown_data[0].path:
            self.reset_zoom()
            self._hidden = frozenset(style for style in self._hidden if style in TOGGLED)
        self._shown_data = (row, view, ghost)
        if not self._shows_both and self._beside.has_focus:  # what is about to close cannot keep the focus
            self._first.focus()
        self._beside.display = self._shows_both
        if isinstance(row, StudyRow):
            self._draw_study(row)
            return
        self._draw(self._first, LOSS if self._shows_both else self._single)
        if self._shows_both:
            self._draw(self._beside, self._second or self._default_second_measure())

    def _default_second_measure(self) -> Measure:
        """The second chart, unless another is chosen: perplexity says what the loss says."""
        order = (*CHARTS[1:2], *CHARTS[4:-1], CHARTS[2])
        return next(measure for measure in order if has_values(measure, self._scores))

    @property
    def _scores(self) -> Sequence[ValidationRecord]:
        view = self._shown_data[1]
        return view.validation if view is not None else ()

    def _draw_study(self, row: StudyRow) -> None:
        now = (row.path, row.version, self.axis, self.logarithmic, self._hidden)
        if self._drawn.get(self._first) != now:
            self._drawn[self._first] = now
            made = study_loss_chart(row.scores, AXES[self.axis], log=self.logarithmic)
            drawing = OverlayDrawing(made, self._hidden_slots)
            self._first.show(drawing, tr(ALL_HIDDEN) if drawing.all_hidden else made.placeholder)

    def _draw(self, chart: Chart, measure: Measure) -> None:
        row, view, ghost = self._shown_data
        waiting = "" if not isinstance(row, RunRow) else why_no_curves(row, view)
        data = None if view is None else (view.path, view.version, view.floors)
        behind = None if ghost is None else (ghost.name, ghost.version)
        now = (measure, self.axis, self.smoothing, self.logarithmic, waiting, data, behind, self._hidden)
        if self._drawn.get(chart) == now:
            return
        self._drawn[chart] = now
        drawing: Drawing | None = None
        if view is not None and measure is PROBES:
            chances = {probe.name: probe.chance for probe in view.probes if probe.chance is not None}
            probes = OverlayDrawing(probes_over_time(view.validation, AXES[self.axis], chances), self._hidden_slots)
            drawing, waiting = probes, tr(ALL_HIDDEN) if probes.all_hidden else waiting
        elif view is not None:
            made = measure_chart(
                measure,
                view.train,
                view.validation,
                axis=AXES[self.axis],
                smoothing=self.smoothing,
                log=self.logarithmic,
                floors=[floor.known_nats_per_char for floor in view.floors],
                ghost=() if ghost is None else ghost.validation,
            )
            hidden = self._hidden if measure is not THROUGHPUT else frozenset()  # whose line has no name to click on
            name = "" if ghost is None else clean_line(ghost.name)
            drawing = RunDrawing(made, view.unit, name, hidden, colourless=self.app.no_color)
            waiting = waiting if made.empty else tr(ALL_HIDDEN)
        chart.show(drawing, waiting)

    def next_axis(self) -> None:
        self.axis = (self.axis + 1) % len(AXES)
        self.reset_zoom()
        self.on_chart_cursor_moved(Chart.CursorMoved(None))
        self.show(*self._shown_data)

    def next_smoothing(self) -> str:
        names = list(SMOOTHINGS)
        self.smoothing = names[(names.index(self.smoothing) + 1) % len(names)]
        self.show(*self._shown_data)
        return self.smoothing

    def toggle_log(self) -> None:
        self.logarithmic = not self.logarithmic
        self.show(*self._shown_data)

    def next_measure(self) -> None:
        choice = [measure for measure in CHARTS[1 if self._shows_both else 0 :] if has_values(measure, self._scores)]
        now = (self._second or self._default_second_measure()) if self._shows_both else self._single
        chosen = choice[(choice.index(now) + 1) % len(choice)] if now in choice else choice[0]
        if self._shows_both:
            self._second = chosen
        else:
            self._single = chosen
        self.show(*self._shown_data)

    def set_single_chart_mode(self, on: bool) -> None:
        if on and self._shows_both:
            self._single = (self._second or self._default_second_measure()) if self._beside.has_focus else LOSS
        self.zoomed = on
        self.show(*self._shown_data)
        if on:
            self._first.focus()

    @property
    def _hidden_slots(self) -> frozenset[int]:
        return frozenset(int(style[-1]) for style in self._hidden if style not in TOGGLED)

    @property
    def shows_part(self) -> bool:
        """Whether only a part of x is shown."""
        return any(chart.span is not None for chart in (self._first, self._beside))

    def reset_zoom(self) -> None:
        for chart in (self._first, self._beside):
            chart.zoom_to(None)

    def on_chart_zoomed(self, event: Chart.Zoomed) -> None:
        event.stop()
        for chart in (self._first, self._beside):
            chart.zoom_to(event.span)

    def on_chart_legend_clicked(self, event: Chart.LegendClicked) -> None:
        """Hide what was clicked on, or show it again."""
        event.stop()
        style = event.style.rpartition(OFF)[2]
        kind, slot = style[:-1], style[-1:]
        if kind in ("run", "raw") and slot.isdigit():
            style = f"run{slot}"
        elif style not in TOGGLED:
            return
        self._hidden ^= {style}
        self.show(*self._shown_data)

    def on_chart_cursor_moved(self, event: Chart.CursorMoved) -> None:
        event.stop()
        for chart in (self._first, self._beside):
            chart.move_cursor(event.x)
