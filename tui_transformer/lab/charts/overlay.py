"""What the two charts of the Compare pane draw: curves over each other, and their difference to the baseline. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tui_transformer.lab.analysis.curves import Metrics, difference, loss_curve
from tui_transformer.lab.analysis.entry import Entry
from tui_transformer.lab.analysis.groups import other, unit_of, void
from tui_transformer.lab.charts.curves import Curve
from tui_transformer.lab.records.badges import badge

EQUAL = {"step": "steps", "tokens": "tokens", "seconds": "times"}  # what two curves are held against each other at
NO_METRICS, NO_CURVE = Metrics(), Curve()


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
        """Whether there is an interval to draw."""
        return bool(self.half or self.ends)

    @property
    def low(self) -> tuple[float, ...]:
        """The lower edge of the band."""
        if self.ends:
            return tuple(low for low, _ in self.ends)
        return tuple(y - half for y, half in zip(self.curve.y, self.half, strict=False))

    @property
    def high(self) -> tuple[float, ...]:
        """The upper edge of the band."""
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
        """The strokes that have points."""
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
        waiting=_waiting(drawn, "no evaluation yet"),
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
    waiting = alone if not strokes else _waiting(drawn, f"they share no stretch of {axis}s")
    return Overlay(title, f"Δ at equal {EQUAL[axis]}", axis, tuple(strokes), zero=True, waiting=waiting)


def _waiting(drawn: Drawn, otherwise: str) -> str:
    return otherwise if all(entry.path in drawn.metrics for _, entry in drawn.entries) else "reading…"


def _sign(entry: Entry, baseline: Entry | None) -> str:
    """The badge that makes its loss void, or ≠ where it is another measure than the baseline's."""
    if void(entry):
        return badge(void(entry)).word
    return "≠" if baseline is not None and other(entry, baseline) else ""


def _reason(entry: Entry, baseline: Entry) -> str:
    wrong = void(entry) or (f"baseline {void(baseline)}" if void(baseline) else "")
    found = wrong or other(entry, baseline)
    return f"{found}, not comparable" if found else ""
