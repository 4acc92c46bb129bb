"""Chart lines from records: what can be drawn, over which axis, how smooth. Pure; no widgets."""

import bisect
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Self, TypeVar

from engine.base.language import Message, tr
from engine.config.measures import MEASURES, Measure
from engine.runs.records import MAX_COUNT, NumericRecord, TrainRecord, ValidationRecord
from tui_transformer.lab.formatting import duration, si_number

CHARTED = tuple(measure for measure in MEASURES if measure.charted)
PROBES = Measure("probes", Message("probes"), is_share=True)  # all of them in one chart, see `overlay.probes_over_time`
THROUGHPUT = Measure("tokens_per_second", Message("tokens per second"))  # of train records alone
CHARTS = (*CHARTED[:1], PROBES, *(measure for measure in CHARTED[1:] if not measure.is_probe), THROUGHPUT)
R = TypeVar("R", bound=NumericRecord)
AXES = ("step", "tokens", "seconds")
AXIS_LABELS = {"step": tr("steps"), "tokens": tr("tokens"), "seconds": tr("time"), "distance": tr("characters back")}
LOG = Message.in_context("axis", "log")
# How far back the train-loss mean reaches, as a share of the run.
SMOOTHINGS: dict[str, float] = {Message("off"): 0.0, Message("some"): 0.005, Message("strong"): 0.02}


@dataclass(frozen=True)
class Curve:
    x: tuple[float, ...] = ()
    y: tuple[float, ...] = ()

    @classmethod
    def from_points(cls, points: Iterable[tuple[float, float]]) -> Self:
        x, y = zip(*points, strict=True) if (points := list(points)) else ((), ())
        return cls(x, y)

    def near(self, x: float) -> int | None:
        if not self.x:
            return None
        at = bisect.bisect_left(self.x, x)
        return min((i for i in (at - 1, at) if 0 <= i < len(self.x)), key=lambda i: abs(self.x[i] - x))


@dataclass(frozen=True)
class MeasureChart:
    measure: Measure
    axis: str = "step"
    log: bool = False
    raw: Curve = Curve()  # the train curve before smoothing; empty if not smoothed
    train: Curve = Curve()
    validation: Curve = Curve()
    ghost: Curve = Curve()  # another run's, behind these
    # losses of perfect predictors: given the window, then the whole past. Runs of earlier versions have only the
    # latter
    floors: tuple[float, ...] = ()
    best: int | None = None  # index into `validation`; None if there is none

    @property
    def empty(self) -> bool:
        return not (self.train.x or self.validation.x)

    @property
    def train_validation_gap(self) -> tuple[Sequence[float], Sequence[tuple[float, float]]]:
        """What lies between train and validation, at the evaluations: x, and the lower and upper edge."""
        train, scored = smooth_curve(self.train, SMOOTHINGS["strong"]), self.validation
        known = [i for i, x in enumerate(scored.x) if train.x and train.x[0] <= x <= train.x[-1]]
        ends = [sorted((train.y[train.near(scored.x[i]) or 0], scored.y[i])) for i in known]
        return [scored.x[i] for i in known], [(low, high) for low, high in ends]


def value_of(record: ValidationRecord, measure: Measure) -> float | None:
    return record.probes.get(measure.key) if measure.is_probe else record.value(measure.key)


def has_values(measure: Measure, validation: Sequence[ValidationRecord]) -> bool:
    if measure is PROBES:
        return any(record.probes for record in validation[-1:])
    always = measure.of_loss is not None or measure is THROUGHPUT
    return always or any(value_of(record, measure) is not None for record in validation[-1:])


def measure_chart(
    measure: Measure,
    train: Sequence[TrainRecord],
    validation: Sequence[ValidationRecord],
    *,
    axis: str,
    smoothing: str,
    log: bool,
    floors: Sequence[float],
    ghost: Sequence[ValidationRecord] = (),
) -> MeasureChart:
    """The curves of a measure, the train curve smoothed; `floors` are of the loss, `ghost` another run's scores."""
    of_loss = measure.of_loss
    raw = curve_of(train, axis, "loss" if of_loss is not None else measure.key)
    smooth = smooth_curve(raw, SMOOTHINGS[smoothing])
    scored = _curve(validation, axis, partial(value_of, measure=measure))
    end = max([*raw.x[-1:], *scored.x[-1:]], default=0.0)  # a longer run must not squeeze this one
    behind = _curve(ghost, axis, partial(value_of, measure=measure))
    levels = () if of_loss is None else tuple(map(of_loss, floors))
    made = MeasureChart(
        measure,
        axis,
        log,
        raw=_map(raw, of_loss) if smooth is not raw else Curve(),
        train=_map(smooth, of_loss),
        validation=scored,
        ghost=Curve.from_points((x, y) for x, y in zip(behind.x, behind.y, strict=True) if x <= end),
        floors=levels,
        best=scored.y.index((min if measure.lower_is_better else max)(scored.y)) if scored.y else None,
    )
    return replace(made, log=log and min([*made.train.y, *made.validation.y], default=0.0) > 0)


def curve_of(records: Sequence[NumericRecord], axis: str, key: str) -> Curve:
    """A field of records over an axis, in axis order, without non-numbers."""
    return _curve(records, axis, lambda record: record.value(key))


def _curve(records: Sequence[R], axis: str, of: Callable[[R], float | None]) -> Curve:
    points = []
    for record in records:
        x, y = record.value(axis), of(record)
        if x is not None and y is not None and max(abs(x), abs(y)) <= MAX_COUNT:
            points.append((float(x), float(y)))
    return Curve.from_points(sorted(points, key=lambda point: point[0]))


def _map(curve: Curve, of_loss: Callable[[float], float] | None) -> Curve:
    if of_loss is None:
        return curve
    pairs = [(x, of_loss(y)) for x, y in zip(curve.x, curve.y, strict=True)]
    return Curve.from_points((x, y) for x, y in pairs if math.isfinite(y))


def smooth_curve(curve: Curve, span_fraction: float) -> Curve:
    """Return a bias-corrected exponential mean, independent of the points' spacing; the curve itself at `reach` 0."""
    if not span_fraction or len(curve.x) <= 2:
        return curve
    span = (curve.x[-1] - curve.x[0]) * span_fraction or 1.0
    total = weight = 0.0
    before, smooth = curve.x[0], []
    for x, y in zip(curve.x, curve.y, strict=True):
        kept = math.exp(-(x - before) / span)
        fresh = max(1e-6, 1.0 - kept) if weight else 1.0
        total, weight = kept * total + fresh * y, kept * weight + fresh
        smooth.append(total / weight)
        before = x
    return Curve(curve.x, tuple(smooth))


def value_text(measure: Measure, value: float) -> str:
    if measure.is_share:
        return f"{value:.1%}"
    return f"{value:.4g}" if abs(value) < 10_000 else si_number(value).replace(" ", "")


def span_text(axis: str, low: float, high: float, end: float) -> str:
    """`steps 200–800 of 1,200`: the part of an axis that is seen."""
    named, (first, last, of) = tr("distance"), (axis_text(axis, x) for x in (low, high, end))
    if axis != "distance":
        named = AXIS_LABELS[axis]
    return tr("{axis} {first}–{last} of {of}", axis=named, first=first, last=last, of=of)


def axis_text(axis: str, value: float) -> str:
    if axis == "seconds":
        return duration(value)
    return f"{value:,.0f}" if value < 1e6 else si_number(value).replace(" ", "")
