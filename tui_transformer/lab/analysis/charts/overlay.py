"""Charts of several runs, or of variants over seeds: losses, differences from a baseline, probes by distance.

An `Overlay` holds what such a chart shows; `draw_overlay` draws it in characters.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.base.errors import comma_separated
from engine.base.language import tr
from engine.config.measures import name_without_band, probe_display_name
from engine.runs.records import ValidationRecord
from engine.runs.tail import Metrics
from tui_transformer.lab.analysis.chart_lines import AXIS_LABELS, Curve, axis_text, curve_of
from tui_transformer.lab.analysis.charts.canvas import (
    ChartCanvas,
    ChartLine,
    Level,
    Mark,
    ShadedBand,
    Span,
    draw,
    draw_grid,
    draw_horizontal,
    draw_vertical,
    shade_bands,
    usual_top,
)
from tui_transformer.lab.analysis.colours import LETTERS
from tui_transformer.lab.analysis.curves import (
    Band,
    DistanceBin,
    PointsByStep,
    SeedRuns,
    band,
    difference,
    difference_band,
    newest_distance_bins,
    points_by_step,
    reach,
    share_band,
)
from tui_transformer.lab.analysis.entry import RunEntry
from tui_transformer.lab.analysis.groups import differing_part, invalid_badge, other_measure_reason, unit_of
from tui_transformer.lab.records.badges import badge

# Axes on which two curves can be compared.
EQUAL = {"step": tr("steps"), "tokens": tr("tokens"), "seconds": tr("times")}
NO_METRICS, NO_CURVE = Metrics(), Curve()
MARKS_NOTE = tr("● interval excludes zero, ○ includes it")
SHADED = tr("shaded: 95 % interval")
DISTANCE = "distance"  # the axis
NOT_COUNTED = tr("no run here has probe scores by distance; they need a corpus with probes, such as playlets")
Point = tuple[float, float]  # x, y
MARK_EVERY = 6  # least columns between two marks on a line


@dataclass(frozen=True)
class Stroke:
    """The lines of a run, or a variant's mean over seeds."""

    slot: int  # the number of its letter and colour
    name: str  # of the run; not cleaned
    curve: Band
    train: Curve = NO_CURVE  # empty if not asked for
    sign: str = ""  # why its curve must not be compared with the others; "" if it may
    seeds: int | None = None  # runs that the curve averages; None for a single run
    on_top: bool = False  # drawn over the others: the baseline


@dataclass(frozen=True)
class Overlay:
    title: str = ""  # what y is; `brief` and `briefest` are shorter forms for narrow charts
    brief: str = ""
    axis: str = "step"  # of x
    strokes: tuple[Stroke, ...] = ()  # those with points are drawn
    zero: bool = False  # draws a line at zero, and signed values
    placeholder: str = ""  # what to show while nothing can be drawn
    log: bool = False  # whether y is logarithmic
    share: bool = False  # whether y is a share from 0 to 1
    probe: str = ""  # by distance; "" for other charts
    levels: tuple[float, ...] = ()  # other horizontal lines
    # vertical lines: x, and the letters on it
    reaches: tuple[tuple[float, tuple[int, ...]], ...] = ()
    notes: tuple[str, ...] = ()  # what else to know, shortest first; as many as fit
    briefest: str = ""

    @property
    def drawn_strokes(self) -> tuple[Stroke, ...]:
        return tuple(stroke for stroke in self.strokes if stroke.curve.x or stroke.train.x)


@dataclass(frozen=True)
class ChartedRuns:
    """The selected runs or variants and their measurements."""

    groups: tuple[tuple[int, SeedRuns], ...]  # by the number of their letter
    baseline: SeedRuns | None  # the baseline of differences
    metrics: Mapping[Path, Metrics]  # by run; missing until read
    shows_means: bool = True  # whether a line is a variant's mean over its seeds; else each group is one run

    @classmethod
    def from_runs(
        cls, runs: Iterable[tuple[int, RunEntry]], baseline: RunEntry | None, metrics: Mapping[Path, Metrics]
    ) -> "ChartedRuns":
        groups = tuple((slot, SeedRuns(run.name, (run,))) for slot, run in runs)
        level = SeedRuns(baseline.name, (baseline,)) if baseline is not None else None
        return cls(groups, level, metrics, shows_means=False)

    @property
    def runs(self) -> list[RunEntry]:
        return [run for _, group in self.groups for run in group.runs]

    @property
    def cache_key(self) -> tuple[object, ...]:
        """A value that changes whenever the drawing would."""
        groups = [*self.groups, *([(-1, self.baseline)] if self.baseline is not None else [])]
        return self.shows_means, tuple(
            (slot, group.label, run.path, run.protocol, tuple(run.badges), self.metrics_of(run).version)
            for slot, group in groups
            for run in group.runs
        )

    def placeholder_while_reading(self, otherwise: str) -> str:
        return otherwise if all(run.path in self.metrics for run in self.runs) else tr("reading…")

    def metrics_of(self, run: RunEntry) -> Metrics:
        return self.metrics.get(run.path, NO_METRICS)

    def distance_bins(self, run: RunEntry) -> dict[str, tuple[DistanceBin, ...]]:
        return newest_distance_bins(self.metrics_of(run).validation)

    def loss_points_by_seed(self, group: SeedRuns, axis: str) -> dict[int, PointsByStep]:
        return {seed: points_by_step(self.metrics_of(run).validation, axis) for seed, run in group.by_seed.items()}


def incomparable_sign(group: SeedRuns, baseline: SeedRuns | None) -> str:
    found = next((invalid_badge(run) for run in group.runs if invalid_badge(run)), "")
    if found:
        return badge(found).word
    return "≠" if baseline is not None and any(differing_part(run, baseline.runs[0]) for run in group.runs) else ""


def loss_chart(drawn: ChartedRuns, axis: str, *, train: bool, log: bool) -> Overlay:
    """Every run's validation loss, and its train loss if asked for; for variants, means over seeds."""
    train, strokes = train and not drawn.shows_means, []
    for slot, group in drawn.groups:
        made = band(drawn.loss_points_by_seed(group, axis))
        raw = curve_of(drawn.metrics_of(group.runs[0]).train, axis, "loss") if train else NO_CURVE
        seeds = made.n if drawn.shows_means else None
        on_top = drawn.baseline is not None and group.runs == drawn.baseline.runs
        strokes.append(Stroke(slot, group.label, made, raw, incomparable_sign(group, drawn.baseline), seeds, on_top))
    values = (y for s in strokes for y in (*s.curve.y, *(low for low, _ in s.curve.ends), *s.train.y))
    what = tr("mean validation loss") if drawn.shows_means else tr("validation loss")
    return Overlay(
        tr("{name}, {unit}", name=tr("validation and train loss") if train else what, unit=unit_of(drawn.runs)),
        tr("mean loss") if drawn.shows_means else tr("loss"),
        axis,
        tuple(strokes),
        placeholder=drawn.placeholder_while_reading(tr("no evaluation yet")),
        log=log and min(values, default=0.0) > 0,
        notes=_mean_curve_caveats(strokes) if drawn.shows_means else (),
    )


def difference_chart(drawn: ChartedRuns, axis: str) -> Overlay:
    """Every loss minus the baseline's, where that is meaningful.

    For runs, the baseline is interpolated between its evaluations; variants are paired by seed at equal steps.
    """
    baseline, means = drawn.baseline, drawn.shows_means
    if baseline is None:
        titles = tr("difference from a baseline"), tr("difference")
        return Overlay(*titles, axis, zero=True, placeholder=tr("p: set a run as the baseline"))
    brief = tr("loss difference, above 0: worse") if means else tr("Δ loss at equal {equal}", equal=EQUAL[axis])
    how = tr("by seed") if means else tr("at equal {equal}", equal=EQUAL[axis])
    unit = unit_of(baseline.runs)
    title = tr("validation loss − {baseline}'s {how}, {unit}", baseline=baseline.label, how=how, unit=unit)
    others = [(slot, group) for slot, group in drawn.groups if group.runs != baseline.runs]
    if not others:
        variants = tr("select variants (space) to compare to the baseline")
        waiting = variants if means else tr("select runs (space) to compare to the baseline")
        return Overlay(title, brief, axis, zero=True, placeholder=waiting)
    level, strokes, reasons = drawn.loss_points_by_seed(baseline, axis), [], []
    for slot, group in others:
        ours = drawn.loss_points_by_seed(group, axis)
        if reason := _reason(group, baseline, brief=means):
            reasons.append(f"{group.label}: {reason}")
        elif not means:
            strokes.append(Stroke(slot, group.label, difference(band(ours), band(level))))
        elif (made := difference_band(ours, level)).n:
            strokes.append(Stroke(slot, group.label, made, seeds=made.n))
        else:
            reasons.append(tr("{name}: no seed in common with {baseline}", name=group.label, baseline=baseline.label))
    apart = tr("the curves do not overlap on the {axis} axis", axis=AXIS_LABELS[axis])
    waiting = drawn.placeholder_while_reading(tr("no evaluation yet") if means else apart)
    if reasons and (means or not strokes):
        several = tr("nothing selected can be compared to {label}", label=baseline.label)
        alone = reasons[0] if len(reasons) == 1 else several
        waiting = drawn.placeholder_while_reading(alone) if means else alone
    marks = (MARKS_NOTE,) if any(stroke.curve.ends for stroke in strokes) else ()
    notes = (*(_mean_curve_caveats(strokes) if means else ()), *marks)
    briefest = tr("Δ loss, + is worse")
    return Overlay(title, brief, axis, tuple(strokes), zero=True, placeholder=waiting, notes=notes, briefest=briefest)


def _reason(group: SeedRuns, baseline: SeedRuns, *, brief: bool) -> str:
    for run in group.runs:
        for pinned in baseline.runs:
            alien, wrong = other_measure_reason(run, pinned), invalid_badge(run)
            if not wrong and (void := invalid_badge(pinned)):
                wrong = tr("baseline {void}", void=void)
            if wrong := wrong or (tr(alien) if alien is not None else ""):
                return tr("not comparable") if brief else tr("{wrong}, not comparable", wrong=wrong)
    return ""


def _mean_curve_caveats(strokes: Sequence[Stroke]) -> tuple[str, ...]:
    """Why a mean has no interval, or ends early."""
    single = comma_separated(stroke.name for stroke in strokes if stroke.seeds == 1)
    short = (f"{stroke.name}: {stroke.curve.why_short}" for stroke in strokes if stroke.curve.why_short)
    return (*([tr("one seed, no interval: {single}", single=single)] if single else []), *short)


def shading_notes(strokes: Sequence[Stroke]) -> tuple[str, ...]:
    """What the bands are, and the figures after ± if the values have any."""
    said = tr("± and shaded: 95 % interval") if any(stroke.curve.half for stroke in strokes) else SHADED
    return (said,) if any(stroke.curve.ends for stroke in strokes) else ()


def probes_scored_by_distance(drawn: ChartedRuns) -> tuple[str, ...]:
    """The probes that any of these runs counted by distance, in order."""
    return tuple(dict.fromkeys(name for run in drawn.runs for name in drawn.distance_bins(run)))


def distance_chart(drawn: ChartedRuns, probe: str) -> Overlay:
    """A probe's accuracy over distance, one line per variant; dotted: chance; vertical: a model's reach.

    If none of these runs has that probe family, the first available one.
    """
    known = probes_scored_by_distance(drawn)
    if not known:
        return Overlay(
            tr("recall by distance"), axis=DISTANCE, placeholder=drawn.placeholder_while_reading(NOT_COUNTED)
        )
    name = probe if probe in known else known[0]
    strokes = []
    many = any(len(group.runs) > 1 for _, group in drawn.groups)
    for slot, group in drawn.groups:
        made = share_band([drawn.distance_bins(run).get(name, ()) for run in group.by_seed.values()])
        strokes.append(Stroke(slot, group.label, made, seeds=made.n if many else None))
    furthest = max((stroke.curve.x[-1] for stroke in strokes if stroke.curve.x), default=0.0)
    reaches: dict[int, tuple[int, ...]] = {}
    for slot, group in drawn.groups:
        limit = reach(group.runs[0].config)
        if limit is not None and limit.tokens <= furthest:
            reaches[limit.tokens] = (*reaches.get(limit.tokens, ()), slot)
    looks = [
        tr("{value} can look {tokens} tokens back", value=" ".join(LETTERS[i] for i in slots), tokens=tokens)
        for tokens, slots in sorted(reaches.items())
    ]
    chances = {chance for run in drawn.runs for part, chance in run.chances.items() if name_without_band(part) == name}
    return Overlay(
        tr("{name} accuracy by distance", name=tr(name)),
        tr(name),
        DISTANCE,
        tuple(strokes),
        share=True,
        probe=name,
        levels=tuple(sorted(chances)),  # runs on other corpora may have another chance level
        reaches=tuple((float(tokens), slots) for tokens, slots in sorted(reaches.items())),
        placeholder=tr("no run here has {name} by distance", name=tr(name)),
        notes=(*looks, *_mean_curve_caveats(strokes)),
    )


def probes_over_time(validation: Sequence[ValidationRecord], axis: str, chances: Mapping[str, float]) -> Overlay:
    """A run's probes over its evaluations, one line each; dotted: chance."""
    names = list(validation[-1].probes)[: len(LETTERS)] if validation else []
    points = {name: [(r.value(axis), r.probes[name]) for r in validation if name in r.probes] for name in names}
    curves = [Band.from_points((float(x), y) for x, y in found if x is not None) for found in points.values()]
    strokes = tuple(Stroke(slot, tr(probe_display_name(names[slot])), curve) for slot, curve in enumerate(curves))
    return Overlay(
        tr("probe accuracy"),
        tr("probes"),
        axis,
        strokes,
        share=True,
        levels=tuple(sorted({chances[name] for name in names if name in chances})),
        placeholder=tr("no evaluation yet"),
    )


def study_loss_chart(
    variants: Mapping[str, Mapping[int, Sequence[ValidationRecord]]], axis: str, *, log: bool
) -> Overlay:
    """The validation losses of a study's variants so far, from evaluations by variant and seed.

    A line is the mean over the seeds that came furthest; a seed that is behind is drawn faintly by itself.
    """
    strokes = []
    for slot, (name, seeds) in enumerate(list(variants.items())[: len(LETTERS)]):
        known = {seed: found for seed, records in seeds.items() if (found := points_by_step(records, axis))}
        furthest = max((max(found) for found in known.values()), default=0.0)
        made = band({seed: found for seed, found in known.items() if max(found) == furthest})
        behind = [found for found in known.values() if max(found) < furthest]
        live = Curve.from_points(sorted(behind[-1].values())) if behind else NO_CURVE
        strokes.append(Stroke(slot, name, made, live, seeds=made.n))
    return Overlay(
        tr("mean validation loss over seeds"),
        tr("mean loss"),
        axis,
        tuple(strokes),
        placeholder=tr("no evaluation yet"),
        log=log and min((y for s in strokes for y in (*s.curve.y, *map(min, s.curve.ends))), default=0.0) > 0,
        notes=_mean_curve_caveats(strokes),
    )


def clearest_point(path: Sequence[Point], wanted: Point, others: Sequence[Curve]) -> Point:
    """The point of a path that is farthest from other curves, which would cover it; `wanted` if no curve is near it."""

    def room(point: Point) -> float:
        there = [other for other in others if other.x and other.x[0] <= point[0] <= other.x[-1]]
        return min((abs(point[1] - other.y[other.near(point[0]) or 0]) for other in there), default=math.inf)

    best = max(path, key=room)
    return best if room(wanted) < room(best) / 2 else wanted


def draw_overlay(made: Overlay, width: int, height: int, span: Span | None = None) -> ChartCanvas | None:
    """Draw train below validation, with a letter at a different place on each line; None if empty."""
    first, last = span or (-math.inf, math.inf)
    strokes = sorted(made.drawn_strokes, key=lambda stroke: stroke.on_top)
    if not strokes:
        return None
    lines = [ChartLine(s.train.x, s.train.y, f"raw{s.slot}") for s in strokes]
    dashed = len(strokes) > 1  # the baseline is dashed: recognizable without colours, and it hides no other line
    for s in strokes:
        lines.append(ChartLine(s.curve.x, s.curve.y, f"run{s.slot}", dashed=s.on_top and dashed, takes_turns=True))
    told = []
    for s in strokes if made.zero else ():  # one mark where its interval excludes zero, another where not; not too many
        points, style = list(zip(s.curve.x, s.curve.y, s.curve.excludes_zero, strict=False)), f"run{s.slot}"
        every = max(1, -(-len(points) * MARK_EVERY // max(1, width)))
        told += [Mark(x, y, "●" if apart else "○", style) for x, y, apart in points[::every]]
    letters = []
    for i, s in enumerate(strokes):  # further along for each line, so that letters do not overlap
        path, style = list(zip(s.curve.x, s.curve.y, strict=True)), f"run{s.slot}"
        path = [point for point in path if first <= point[0] <= last] or path
        at = min(len(path) - 1, round((i + 1) / (len(strokes) + 1) * (len(path) - 1) + 0.25 * len(path)))
        around = len(path) // (2 * len(strokes) + 2)
        others = [other.curve for other in strokes if other is not s]
        place = clearest_point(path[max(0, at - around) : at + around + 1], path[at], others) if path else None
        letters += [Mark(*place, LETTERS[s.slot], style)] if place is not None else []
    bands = []
    for s in strokes:
        faint = [not apart for apart in s.curve.excludes_zero] if made.zero else ()
        bands += [ShadedBand(s.curve.x, s.curve.ends, str(s.slot), faint)] if s.curve.ends else []
    bands.sort(key=lambda band: sum(low - high for low, high in band.ends) / len(band.ends))  # the narrow ones on top
    seen = [ends for band in bands for x, ends in zip(band.x, band.ends, strict=True) if first <= x <= last]
    edges = [y for ends in seen for y in ends if y > 0 or not made.log]
    also_y = [*edges, *([] if span else made.levels), *([0.0] if made.zero else [])]
    upper = [ChartLine(s.curve.x, [max(ends) for ends in s.curve.ends], "") for s in strokes if s.curve.ends]
    least = 0.0 if made.zero else min(y for line in lines for y in line.y)
    canvas = draw(
        lines,
        width=width,
        height=height,
        x_text=lambda x: axis_text(made.axis, x),
        x_label=AXIS_LABELS[made.axis],
        levels=[Level(0.0, "zero")] if made.zero else [],
        marks=[*told, *letters],
        top=math.inf if made.log or made.share else usual_top([*lines, *upper] if made.zero else lines, least),
        log=made.log,
        also_x=[x for x, _ in made.reaches],
        also_y=(0.0, 1.0) if made.share and span is None else also_y,
        span=span,
    )
    if canvas is not None:
        shade_bands(canvas, bands)
        draw_grid(canvas)
        for y in made.levels:
            draw_horizontal(canvas, y, "zero")
        for x, slots in made.reaches:
            style = f"run{slots[0]}" if len(slots) == 1 else "zero"
            draw_vertical(canvas, x, style, [(LETTERS[slot], f"run{slot}") for slot in slots])
    return canvas
