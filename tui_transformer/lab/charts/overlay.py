"""The charts of several runs, or of variants over their seeds: losses, differences to a baseline, probes by distance.

An `Overlay` is what such a chart shows, whoever draws it; `paint` draws it in characters. Needs no screen.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.measures import family
from tui_transformer.lab.analysis.curves import (
    Band,
    Group,
    Metrics,
    Points,
    Reach,
    Stretch,
    band,
    difference,
    difference_band,
    families,
    loss_curve,
    newest,
    reach,
    scored,
    share_band,
)
from tui_transformer.lab.analysis.entry import Entry
from tui_transformer.lab.analysis.groups import comparable, other, unit_of, void
from tui_transformer.lab.charts.canvas import Canvas, Line, Mark, Shade, across, draw, shade, upright, usual_top
from tui_transformer.lab.charts.colours import LETTERS
from tui_transformer.lab.charts.curves import AXIS_LABELS, Curve, axis_text
from tui_transformer.lab.records.badges import badge

EQUAL = {"step": "steps", "tokens": "tokens", "seconds": "times"}  # what two curves are held against each other at
NO_METRICS, NO_CURVE = Metrics(), Curve()
EACH = "● zero outside the interval, ○ inside"
DISTANCE = "distance"  # the axis
NOT_COUNTED = "no run here counted its probes by distance: they need a corpus with probes (playlets)"
MARK_EVERY = 6  # columns, at least, between two marks on a line


@dataclass(frozen=True)
class Stroke:
    """The lines of a run, or of a variant's mean over its seeds.

    Args:
        slot: the number of its letter and colour.
        name: of the run; not cleaned.
        sign: why its curve must not be held against the others; "" if it may.
        train: empty where it is not asked for.
        seeds: how many the curve is a mean of; None where it is one run's own.
        half: half the width of the interval at each point of the curve; empty where there is none.
        ends: for shares, both ends of the interval instead.
    """

    slot: int
    name: str
    curve: Curve
    train: Curve = NO_CURVE
    sign: str = ""
    seeds: int | None = None
    half: tuple[float, ...] = ()
    ends: tuple[tuple[float, float], ...] = ()

    @property
    def banded(self) -> bool:
        return bool(self.half or self.ends)

    @property
    def low(self) -> tuple[float, ...]:
        if self.ends:
            return tuple(low for low, _ in self.ends)
        return tuple(y - half for y, half in zip(self.curve.y, self.half, strict=False))

    @property
    def high(self) -> tuple[float, ...]:
        if self.ends:
            return tuple(high for _, high in self.ends)
        return tuple(y + half for y, half in zip(self.curve.y, self.half, strict=False))

    @property
    def apart(self) -> tuple[bool, ...]:
        """At which points the interval leaves zero out."""
        return tuple(abs(y) > half for y, half in zip(self.curve.y, self.half, strict=False))


@dataclass(frozen=True)
class Overlay:
    """One chart.

    Args:
        title: what y is; `brief` where there is little room.
        axis: of x.
        strokes: those with points are drawn.
        zero: whether there is a line at zero, and values have a sign.
        waiting: what stands there while nothing can be drawn.
        log: whether y is logarithmic.
        share: whether y is a share from 0 to 1.
        levels: other horizontal lines.
        reaches: upright lines: x, the numbers of the letters that stand on it.
        notes: what else must be known, shortest first; as many as there is room for.
    """

    title: str = ""
    brief: str = ""
    axis: str = "step"
    strokes: tuple[Stroke, ...] = ()
    zero: bool = False
    waiting: str = ""
    log: bool = False
    share: bool = False
    levels: tuple[float, ...] = ()
    reaches: tuple[tuple[float, tuple[int, ...]], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def drawn(self) -> tuple[Stroke, ...]:
        return tuple(stroke for stroke in self.strokes if stroke.curve.x or stroke.train.x)


@dataclass(frozen=True)
class Drawn:
    """The selected runs with what they measured.

    Args:
        entries: by the number of their letter.
        metrics: by run; missing while they are read.
    """

    entries: tuple[tuple[int, Entry], ...]
    baseline: Entry | None
    metrics: Mapping[Path, Metrics]

    @property
    def versions(self) -> tuple[object, ...]:
        """Another value whenever something else would be drawn."""
        runs = [*self.entries, *([(-1, self.baseline)] if self.baseline is not None else [])]
        return tuple((slot, e.path, e.protocol, tuple(e.badges), self._of(e).version) for slot, e in runs)

    def waiting(self, otherwise: str) -> str:
        return otherwise if all(entry.path in self.metrics for _, entry in self.entries) else "reading…"

    def _of(self, entry: Entry) -> Metrics:
        return self.metrics.get(entry.path, NO_METRICS)


def overlaid(drawn: Drawn, axis: str, *, train: bool, log: bool) -> Overlay:
    """Every selected run's validation loss."""
    strokes = []
    for slot, entry in drawn.entries:
        metrics = drawn.metrics.get(entry.path, NO_METRICS)
        curve = loss_curve(metrics.validation, axis)
        raw = loss_curve(metrics.train, axis) if train else NO_CURVE
        strokes.append(Stroke(slot, entry.name, curve, raw, _sign(entry, drawn.baseline)))
    lowest = min((min(c.y) for s in strokes for c in (s.curve, s.train) if c.y), default=0.0)
    what = "validation and train loss" if train else "validation loss"
    return Overlay(
        f"{what}, {unit_of([entry for _, entry in drawn.entries])}",
        "loss",
        axis,
        tuple(strokes),
        waiting=drawn.waiting("no evaluation yet"),
        log=log and lowest > 0,
    )


def differences(drawn: Drawn, axis: str) -> Overlay:
    """Every selected run's validation loss minus the baseline's, where that means anything."""
    baseline = drawn.baseline
    if baseline is None:
        return Overlay("difference to a baseline", "difference", axis, zero=True, waiting="p pins the baseline")
    title = f"validation loss − {baseline.name}'s at equal {EQUAL[axis]}, {unit_of([baseline])}"
    others = [(slot, entry) for slot, entry in drawn.entries if entry.path != baseline.path]
    if not others:
        waiting = "space selects runs to hold against it"
        return Overlay(title, f"Δ at equal {EQUAL[axis]}", axis, zero=True, waiting=waiting)
    level = loss_curve(drawn.metrics.get(baseline.path, NO_METRICS).validation, axis)
    strokes, reasons = [], []
    for slot, entry in others:
        reason = _reason(entry, baseline)
        if reason:
            reasons.append(f"{entry.name}: {reason}")
            continue
        curve = loss_curve(drawn.metrics.get(entry.path, NO_METRICS).validation, axis)
        strokes.append(Stroke(slot, entry.name, difference(curve, level)))
    alone = reasons[0] if len(reasons) == 1 else f"none of these can be held against {baseline.name}"
    waiting = alone if not strokes else drawn.waiting(f"they share no stretch of {axis}s")
    return Overlay(title, f"Δ at equal {EQUAL[axis]}", axis, tuple(strokes), zero=True, waiting=waiting)


def _sign(entry: Entry, baseline: Entry | None) -> str:
    """The badge that makes its loss void, or ≠ where it is another measure than the baseline's."""
    if void(entry):
        return badge(void(entry)).word
    return "≠" if baseline is not None and other(entry, baseline) else ""


def _reason(entry: Entry, baseline: Entry) -> str:
    wrong = void(entry) or (f"baseline {void(baseline)}" if void(baseline) else "")
    found = wrong or other(entry, baseline)
    return f"{found}, not comparable" if found else ""


@dataclass(frozen=True)
class DrawnGroups:
    """The selected variants with what their runs measured.

    Args:
        groups: by the number of their letter.
        baseline: the variant that differences are to.
        metrics: by run; missing while they are read.
    """

    groups: tuple[tuple[int, Group], ...]
    baseline: Group | None
    metrics: Mapping[Path, Metrics]

    @classmethod
    def of(cls, drawn: Drawn) -> "DrawnGroups":
        """Each run as a variant of its own."""
        own = {entry.path: Group(entry.name, (entry,)) for _, entry in drawn.entries}
        baseline = drawn.baseline
        pinned = None if baseline is None else own.get(baseline.path, Group(baseline.name, (baseline,)))
        return cls(tuple((slot, own[entry.path]) for slot, entry in drawn.entries), pinned, drawn.metrics)

    @property
    def versions(self) -> tuple[object, ...]:
        """Another value whenever something else would be drawn."""
        groups = [*self.groups, *([(-1, self.baseline)] if self.baseline is not None else [])]
        return tuple(
            (slot, group.label, run.path, run.protocol, tuple(run.badges), self.of_run(run.path).version)
            for slot, group in groups
            for run in group.runs
        )

    def waiting(self, otherwise: str) -> str:
        known = all(run.path in self.metrics for _, group in self.groups for run in group.runs)
        return otherwise if known else "reading…"

    def of_run(self, run: Path) -> Metrics:
        return self.metrics.get(run, NO_METRICS)

    def points(self, group: Group, axis: str) -> dict[int, Points]:
        """Its validation losses by seed."""
        return {seed: scored(self.of_run(run.path).validation, axis) for seed, run in group.by_seed.items()}


def sign(group: Group, baseline: Group | None) -> str:
    """The badge that makes the loss of one of its runs void, or ≠ where it is another measure than the baseline's."""
    found = next((void(run) for run in group.runs if void(run)), "")
    if found:
        return badge(found).word
    return "≠" if baseline is not None and any(other(run, baseline.runs[0]) for run in group.runs) else ""


def mean_curves(drawn: DrawnGroups, axis: str, *, log: bool) -> Overlay:
    """Every variant's validation loss: its mean over the seeds."""
    found = [(slot, group, band(drawn.points(group, axis))) for slot, group in drawn.groups]
    strokes = tuple(_stroke(slot, group, made, sign(group, drawn.baseline)) for slot, group, made in found)
    lowest = min((y for stroke in strokes for y in (*stroke.curve.y, *stroke.low)), default=0.0)
    return Overlay(
        f"mean validation loss, {unit_of([run for _, group in drawn.groups for run in group.runs])}",
        "mean loss",
        axis,
        strokes,
        waiting=drawn.waiting("no evaluation yet"),
        log=log and lowest > 0,
        notes=_notes([(group, made) for _, group, made in found]),
    )


def mean_differences(drawn: DrawnGroups, axis: str) -> Overlay:
    """Every variant minus the baseline, paired by seed at equal steps, where that means anything."""
    baseline = drawn.baseline
    if baseline is None:
        return Overlay("difference to a baseline", "difference", axis, zero=True, waiting="p pins the baseline")
    title = f"validation loss − {baseline.label}'s by seed, {unit_of(baseline.runs)}"
    others = [(slot, group) for slot, group in drawn.groups if group.runs != baseline.runs]
    if not others:
        waiting = "space selects variants to hold against it"
        return Overlay(title, "difference", axis, zero=True, waiting=waiting)
    level, found, reasons = drawn.points(baseline, axis), [], []
    for slot, group in others:
        if not all(comparable(run, pinned) for run in group.runs for pinned in baseline.runs):
            reasons.append(f"{group.label}: not comparable")
            continue
        made = difference_band(drawn.points(group, axis), level)
        if not made.n:
            reasons.append(f"{group.label}: no seed in common with {baseline.label}")
            continue
        found.append((slot, group, made))
    alone = reasons[0] if len(reasons) == 1 else f"none of these can be held against {baseline.label}"
    apart = (EACH,) if any(made.half for *_, made in found) else ()
    return Overlay(
        title,
        "difference",
        axis,
        tuple(_stroke(slot, group, made) for slot, group, made in found),
        zero=True,
        waiting=drawn.waiting(alone if reasons else "no evaluation yet"),
        notes=(*_notes([(group, made) for _, group, made in found]), *apart),
    )


def _stroke(slot: int, group: Group, made: Band, sign: str = "") -> Stroke:
    return Stroke(slot, group.label, made.curve, sign=sign, seeds=made.n, half=made.half)


def _notes(found: list[tuple[Group, Band]]) -> tuple[str, ...]:
    """Why a mean ends early, and where there is no interval."""
    short = [f"{group.label}: {made.short}" for group, made in found if made.short]
    single = [group.label for group, made in found if made.n == 1]
    alone = [f"one seed, no interval: {', '.join(single)}"] if single else []
    return (*alone, *short)


def probes_of(drawn: DrawnGroups) -> tuple[str, ...]:
    return families(newest(drawn.of_run(run.path).validation) for _, group in drawn.groups for run in group.runs)


def distances(drawn: DrawnGroups, probe: str) -> Overlay:
    """The share right of a probe over distance, one line a variant; dotted: chance; upright: what a model can reach.

    Args:
        drawn: the variants, or runs.
        probe: its family; the first that there is where none of these runs has it.
    """
    known = probes_of(drawn)
    if not known:
        return Overlay("recall by distance", axis=DISTANCE, waiting=drawn.waiting(NOT_COUNTED))
    name = probe if probe in known else known[0]
    strokes, single = [], []
    many = any(len(group.runs) > 1 for _, group in drawn.groups)
    for slot, group in drawn.groups:
        made = share_band([_stretches(drawn, run, name) for run in group.by_seed.values()])
        strokes.append(Stroke(slot, group.label, made.curve, seeds=made.n if many else None, ends=made.ends))
        if many and made.n == 1:
            single.append(group.label)
    shown = [stroke for stroke in strokes if stroke.curve.x]
    furthest = max((stroke.curve.x[-1] for stroke in shown), default=0.0)
    reaches: dict[int, tuple[int, ...]] = {}
    for slot, group in drawn.groups:
        limit = reach_of(group)
        if limit is not None and limit.tokens <= furthest:
            reaches[limit.tokens] = (*reaches.get(limit.tokens, ()), slot)
    alone = (f"one seed, no interval: {', '.join(single)}",) if single else ()
    return Overlay(
        f"{name} by distance, share right",
        name,
        DISTANCE,
        tuple(strokes),
        share=True,
        levels=tuple(_chances(drawn, name)),
        reaches=tuple((float(tokens), slots) for tokens, slots in sorted(reaches.items())),
        waiting=f"no run here has {name} by distance",
        notes=(*_reaching(reaches), *alone),
    )


def reach_of(group: Group) -> Reach | None:
    return reach(group.runs[0].config)


def _reaching(reaches: Mapping[int, Sequence[int]]) -> list[str]:
    return [
        f"{' '.join(LETTERS[slot] for slot in slots)} can look {tokens} back"
        for tokens, slots in sorted(reaches.items())
    ]


def _stretches(drawn: DrawnGroups, run: Entry, name: str) -> Sequence[Stretch]:
    return newest(drawn.of_run(run.path).validation).get(name, ())


def _chances(drawn: DrawnGroups, name: str) -> list[float]:
    """What guessing scores; of runs on other corpora it may be another share."""
    return sorted(
        {
            chance
            for _, group in drawn.groups
            for run in group.runs
            for part, chance in run.chances.items()
            if family(part) == name
        }
    )


def paint(made: Overlay, width: int, height: int) -> Canvas | None:
    """Train below, validation above, a letter on each line, each at another place along it; None with nothing to draw.

    Args:
        made: what to draw.
        width: columns in all.
        height: rows in all.
    """
    strokes = made.drawn
    if not strokes:
        return None
    lines = [Line(s.train.x, s.train.y, f"raw{s.slot}") for s in strokes]
    lines += [Line(s.curve.x, s.curve.y, f"run{s.slot}") for s in strokes]
    values = [y for s in strokes for y in (*s.curve.y, *s.train.y)]
    told = [mark for stroke in strokes for mark in _told_apart(stroke, width)] if made.zero else []
    letters = [_letter(stroke, i, len(strokes)) for i, stroke in enumerate(strokes) if stroke.curve.x]
    bands = [
        Shade(s.curve.x, s.low, s.high, f"band{s.slot}", s.apart if made.zero else ()) for s in strokes if s.banded
    ]
    edges = [y for band in bands for y in (*band.low, *band.high) if y > 0 or not made.log]
    canvas = draw(
        lines,
        width=width,
        height=height,
        x_text=lambda x: axis_text(made.axis, x),
        x_label=AXIS_LABELS[made.axis],
        levels=[(0.0, "zero")] if made.zero else [],
        marks=[*told, *letters],
        top=_top(made, values),
        log=made.log,
        also_x=[x for x, _ in made.reaches],
        also_y=(0.0, 1.0) if made.share else [*edges, *made.levels],
    )
    if canvas is not None:
        shade(canvas, bands)
        for y in made.levels:
            across(canvas, y, "zero")
        for x, slots in made.reaches:
            style = f"run{slots[0]}" if len(slots) == 1 else "zero"
            upright(canvas, x, style, [(LETTERS[slot], f"run{slot}") for slot in slots])
    return canvas


def _letter(stroke: Stroke, index: int, count: int) -> Mark:
    """A letter on a line, further along for each of several lines so that they do not meet."""
    curve = stroke.curve
    at = min(len(curve.x) - 1, round((index + 1) / (count + 1) * (len(curve.x) - 1) + 0.25 * len(curve.x)))
    style = f"run{stroke.slot}"
    return Mark(curve.x[at], curve.y[at], LETTERS[stroke.slot], style, on=style)


def _told_apart(stroke: Stroke, width: int) -> list[Mark]:
    """A mark on the mean where its interval leaves zero out, another one where it does not; not too many."""
    every = max(1, -(-len(stroke.apart) * MARK_EVERY // max(1, width)))
    points, style = list(zip(stroke.curve.x, stroke.curve.y, stroke.apart, strict=False)), f"run{stroke.slot}"
    return [Mark(x, y, "●" if apart else "○", style, on=style) for x, y, apart in points[::every]]


def _top(made: Overlay, values: list[float]) -> float:
    """Where the chart ends; the steep fall of the first steps is cut off."""
    if made.zero or made.log or made.share:
        return math.inf
    return usual_top(values, min(values))
