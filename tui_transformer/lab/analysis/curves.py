"""The curves of a few runs over each other, and their difference to a baseline. Read in a thread; never raises."""

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.runs.tail import History, MetricsTail
from tui_transformer.lab.charts.curves import Curve, curve_of
from tui_transformer.lab.records.facts import Record

MOST = 8  # curves at once: as many as people can tell apart
POINTS = 1500  # train records kept of each, up to twice as many before they are thinned


@dataclass(frozen=True)
class Metrics:
    """What one run measured so far; `version` is another one whenever anything was added."""

    version: int = 0
    train: tuple[Record, ...] = ()
    validation: tuple[Record, ...] = ()


class _Followed:
    def __init__(self, run: Path) -> None:
        self._tail, self._history, self._loaded = MetricsTail(run), History(POINTS), False
        self.metrics = Metrics()

    def poll(self) -> Metrics:
        if self._loaded:
            reset, new = self._tail.poll()
        else:
            reset, new, self._loaded = True, self._tail.load(), True
        if reset or new.train or new.validation:
            (self._history.reset if reset else self._history.add)(new)
            columns = self._history.columns
            self.metrics = Metrics(self.metrics.version + 1, tuple(columns.train), tuple(columns.validation))
        return self.metrics


class Curves:
    """The metrics of the selected runs, read once and then as they grow."""

    def __init__(self) -> None:
        self._followed: dict[Path, _Followed] = {}

    def read(self, runs: Sequence[Path]) -> dict[Path, Metrics]:
        """What these have measured; runs that are no longer asked for are forgotten, but the newest few."""
        for run in runs:
            known = self._followed.pop(run) if run in self._followed else None
            self._followed[run] = known or _Followed(run)  # the newest last
        while len(self._followed) > max(2 * MOST, len(runs)):
            del self._followed[next(iter(self._followed))]
        return {run: self._followed[run].poll() for run in runs if run in self._followed}


def loss_curve(records: Sequence[Record], axis: str) -> Curve:
    """The loss over steps, tokens or seconds."""
    return curve_of(records, axis, "loss")


def difference(curve: Curve, baseline: Curve) -> Curve:
    """A curve minus the baseline, where both exist: the baseline is interpolated between its points, never beyond."""
    points = []
    for x, y in zip(curve.x, curve.y, strict=True):
        level = at(baseline, x)
        if level is not None:
            points.append((x, y - level))
    return Curve(tuple(x for x, _ in points), tuple(y for _, y in points))


def at(curve: Curve, x: float) -> float | None:
    """The height of a curve at x, between its points on a straight line; None outside of them."""
    if not curve.x or not curve.x[0] <= x <= curve.x[-1]:
        return None
    right = bisect.bisect_left(curve.x, x)
    if curve.x[right] == x:
        return curve.y[right]
    left = right - 1
    share = (x - curve.x[left]) / (curve.x[right] - curve.x[left])
    return curve.y[left] + share * (curve.y[right] - curve.y[left])
