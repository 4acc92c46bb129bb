"""From records to lines: what can be drawn, over which axis, how smooth. Pure; knows no widget."""

import bisect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from engine.measures import MEASURES, Measure
from engine.runs.records import LARGEST
from tui_transformer.lab.formatting import duration, short
from tui_transformer.lab.records.facts import Record, number, table

CHARTED = tuple(measure for measure in MEASURES if measure.charted)
AXES = ("step", "tokens", "seconds")
AXIS_LABELS = {"step": "steps", "tokens": "tokens", "seconds": "time", "distance": "characters back"}


@dataclass(frozen=True)
class Smoothing:
    """How far back a mean of the train loss reaches, as a share of the run; 0 is not at all."""

    label: str
    reach: float


SMOOTHINGS = (Smoothing("off", 0.0), Smoothing("some", 0.005), Smoothing("strong", 0.02))


@dataclass(frozen=True)
class Curve:
    """Points in order of x."""

    x: tuple[float, ...] = ()
    y: tuple[float, ...] = ()

    def near(self, x: float) -> int | None:
        if not self.x:
            return None
        at = bisect.bisect_left(self.x, x)
        return min((i for i in (at - 1, at) if 0 <= i < len(self.x)), key=lambda i: abs(self.x[i] - x))


@dataclass(frozen=True)
class Picture:
    """What one chart draws: a measure of a run.

    Args:
        raw: the train curve before it was smoothed; empty where it was not.
        floors: losses of perfect predictors: given its window first, then the whole past. Runs of earlier
            versions have only the latter.
        best: index into `validation`, None where there is none.
    """

    measure: Measure
    axis: str = "step"
    log: bool = False
    raw: Curve = Curve()
    train: Curve = Curve()
    validation: Curve = Curve()
    floors: tuple[float, ...] = ()
    best: int | None = None

    @property
    def empty(self) -> bool:
        return not (self.train.x or self.validation.x)


def value_of(record: Record, measure: Measure) -> float | None:
    """Return the value of a measure in an evaluation's record; None where it has none."""
    return number((table(record.get("probes")) if measure.probe else record).get(measure.key))


def known(measure: Measure, validation: Sequence[Record]) -> bool:
    """Whether a run's evaluations have this measure."""
    return measure.of_loss is not None or any(value_of(record, measure) is not None for record in validation[-1:])


def picture(
    measure: Measure,
    train: Sequence[Record],
    validation: Sequence[Record],
    *,
    axis: str,
    smoothing: Smoothing,
    log: bool,
    floors: Sequence[float],
) -> Picture:
    """The curves of a measure.

    Args:
        measure: which.
        train: records.
        validation: records.
        axis: one of `AXES`.
        smoothing: of the train curve.
        log: whether y is to be logarithmic.
        floors: of the loss.
    """
    of_loss = measure.of_loss
    raw = curve_of(train, axis, "loss") if of_loss is not None else Curve()
    smooth = smoothed(raw, smoothing)
    scored = _curve(validation, axis, partial(value_of, measure=measure))
    levels = () if of_loss is None else tuple(map(of_loss, floors))
    made = Picture(
        measure,
        axis,
        log,
        raw=_map(raw, of_loss) if smooth is not raw else Curve(),
        train=_map(smooth, of_loss),
        validation=scored,
        floors=levels,
        best=scored.y.index((min if measure.lower else max)(scored.y)) if scored.y else None,
    )
    return replace(made, log=log and _positive(made))


def _positive(made: Picture) -> bool:
    values = [*made.train.y, *made.validation.y]
    return bool(values) and min(values) > 0


def curve_of(records: Sequence[Record], axis: str, key: str) -> Curve:
    """A field of records over an axis, in its order; what is no number is left out."""
    return _curve(records, axis, lambda record: number(record.get(key)))


def _curve(records: Sequence[Record], axis: str, of: Callable[[Record], float | None]) -> Curve:
    points = []
    for record in records:
        x, y = number(record.get(axis)), of(record)
        if x is not None and y is not None and max(abs(x), abs(y)) <= LARGEST:
            points.append((x, y))
    points.sort(key=lambda point: point[0])
    return Curve(tuple(x for x, _ in points), tuple(y for _, y in points))


def _map(curve: Curve, of_loss: Callable[[float], float] | None) -> Curve:
    if of_loss is None:
        return curve
    pairs = [(x, of_loss(y)) for x, y in zip(curve.x, curve.y, strict=True)]
    pairs = [(x, y) for x, y in pairs if math.isfinite(y)]
    return Curve(tuple(x for x, _ in pairs), tuple(y for _, y in pairs))


def smoothed(curve: Curve, smoothing: Smoothing) -> Curve:
    """The curve as smooth as asked for; itself where there is nothing to smooth."""
    return _smooth(curve, smoothing.reach) if smoothing.reach and len(curve.x) > 2 else curve


def _smooth(curve: Curve, reach: float) -> Curve:
    """An exponential mean without its bias to the start; how dense the points are makes no difference."""
    span = (curve.x[-1] - curve.x[0]) * reach or 1.0
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
    if measure.share:
        return f"{value:.1%}"
    return f"{value:.4g}" if abs(value) < 10_000 else short(value).replace(" ", "")


def axis_text(axis: str, value: float) -> str:
    if axis == "seconds":
        return duration(value)
    return f"{value:,.0f}" if value < 1e6 else short(value).replace(" ", "")
