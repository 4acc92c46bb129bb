"""Measurements of runs over time and distance: curves, means over seeds with intervals, and differences.

Seeds are compared at equal steps where every one of them was scored: a mean that continued without a diverged seed
would be a mean of the survivors. Intervals are 95 %, pointwise: without any effect, about one step in twenty excludes
zero.

A probe asks for text some characters back. A model whose layers cannot reach that far cannot know it, however it is
trained. Drawing that reach in the chart explains why a line falls.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from engine.base.language import tr
from engine.config.model import MOST_KINDS
from engine.config.schemes import ATTENTIONS
from engine.config.visibility import Visibility
from engine.runs.records import MAX_COUNT, ValidationRecord
from engine.runs.tail import Metrics, MetricsHistory
from tui_transformer.lab.analysis.chart_lines import Curve
from tui_transformer.lab.analysis.colours import LETTERS
from tui_transformer.lab.analysis.entry import RunEntry
from tui_transformer.lab.analysis.groups import Grouping
from tui_transformer.lab.analysis.statistics import mean_of

MOST_CURVES = len(LETTERS)  # curves at once: as many as people can tell apart
POINTS = 1500  # train records kept per run; thinned when there are twice as many


class MetricsReader:
    """The metrics of the selected runs, read once, then incrementally."""

    def __init__(self) -> None:
        self._followed: dict[Path, MetricsHistory] = {}

    def read(self, runs: Sequence[Path]) -> dict[Path, Metrics]:
        """Return these runs' metrics; of runs no longer asked for, only the newest few stay cached."""
        for run in runs:
            followed = self._followed.pop(run, None) or MetricsHistory(run, POINTS)
            followed.poll()
            self._followed[run] = followed  # the newest last
        while len(self._followed) > max(2 * MOST_CURVES, len(runs)):
            del self._followed[next(iter(self._followed))]
        return {run: self._followed[run].metrics for run in runs}


PointsByStep = Mapping[float, tuple[float, float]]  # step -> x, y


@dataclass(frozen=True)
class SeedRuns:
    """The runs of one variant, one per seed."""

    label: str  # the variant; not cleaned
    runs: tuple[RunEntry, ...]  # in the order of their seeds

    @property
    def by_seed(self) -> dict[int, RunEntry]:
        """One run per seed; of two with the same seed, which are not independent, the first that finished."""
        found: dict[int, RunEntry] = {}
        for i, run in enumerate(self.runs):
            seed = run.seed if run.seed is not None else -1 - i
            if seed not in found or found[seed].state != "finished":
                found[seed] = run
        return found


@dataclass(frozen=True)
class Band(Curve):
    """A mean over seeds along a curve, with its 95 % interval at each point; one seed has none."""

    ends: tuple[tuple[float, float], ...] = ()  # of the interval; of shares, within [0, 1]
    half: tuple[float, ...] = ()  # half-width of a t interval; empty for shares, whose interval is asymmetric
    n: int = 0  # seeds with any score
    why_short: str = ""  # why it ends before some of its seeds; "" if it does not

    @property
    def excludes_zero(self) -> tuple[bool, ...]:
        """The points at which the interval excludes zero."""
        return tuple(low > 0 or high < 0 for low, high in self.ends)


def points_by_step(records: Sequence[ValidationRecord], axis: str, key: str = "loss") -> PointsByStep:
    """Map steps to axis position and score, without non-numbers; of two at one step, the first."""
    found = {}
    for record in reversed(records):
        step, x, y = (record.value(name) for name in ("step", axis, key))
        if step is not None and x is not None and y is not None and max(abs(x), abs(y)) <= MAX_COUNT:
            found[float(step)] = float(x), float(y)
    return found


def band(seeds: Mapping[int, PointsByStep]) -> Band:
    """Return the mean over seeds at the steps they all have; a seed without any score does not count yet."""
    known = {seed: points for seed, points in seeds.items() if points}
    if not known:
        return Band()
    steps = sorted(set.intersection(*(set(points) for points in known.values())))
    made = pointwise_mean_band([[points[step] for step in steps] for points in known.values()])
    ends = {seed: max(points) for seed, points in known.items()}
    first = min(ends, key=lambda seed: ends[seed])
    if ends[first] == max(ends.values()):
        return made
    name = tr("seed {first}", first=first) if first >= 0 else tr("one seed")
    if steps:
        return replace(made, why_short=tr("{name} ends at step {ends:,.0f}", name=name, ends=ends[first]))
    return replace(made, why_short=tr("its seeds have no step in common"))


def difference(curve: Curve, baseline: Curve) -> Band:
    """Return a curve minus the baseline where both exist; the baseline is interpolated, never extrapolated."""
    if not baseline.x:
        return Band()
    levels = np.interp(curve.x, baseline.x, baseline.y, left=math.nan, right=math.nan)
    pairs = zip(curve.x, curve.y, levels, strict=True)
    return Band.from_points((x, float(y - level)) for x, y, level in pairs if not math.isnan(level))


def difference_band(ours: Mapping[int, PointsByStep], baseline: Mapping[int, PointsByStep]) -> Band:
    """Return the mean over shared seeds of ours minus the baseline, paired by seed at equal steps."""
    both = {}
    for seed in ours:
        there = baseline.get(seed, {})
        shared = sorted(set(ours[seed]) & set(there))
        both[seed] = {step: (ours[seed][step][0], ours[seed][step][1] - there[step][1]) for step in shared}
    return band(both)


def pointwise_mean_band(seeds: Sequence[Sequence[tuple[float, float]]]) -> Band:
    """Return the mean of pointwise matching curves, all of the same length, one per seed."""
    columns = list(zip(*seeds, strict=True))
    means = [mean_of([y for _, y in points]) for points in columns]
    x = tuple(sum(x for x, _ in points) / len(points) for points in columns)
    half = tuple(mean.half for mean in means if mean.half is not None)
    y = tuple(mean.mean for mean in means)
    return Band(x, y, tuple((mean - h, mean + h) for mean, h in zip(y, half, strict=False)), half, len(seeds))


def group_seeds(chosen: Sequence[RunEntry], among: Sequence[RunEntry]) -> list[SeedRuns]:
    """Group each chosen run with all others that differ only in the seed, once."""
    groups = {run.path: group for group in Grouping().group(among) for run in group.runs}
    found = {}
    for run in chosen:
        group = groups.get(run.path)  # None for a run that others in its study start from
        label, runs = (group.name, group.runs) if group is not None else (run.name, (run,))
        found[runs[0].path] = SeedRuns(label, runs)
    return list(found.values())


MOST_BINS = 100  # per probe; a longer list is damage


@dataclass(frozen=True)
class DistanceBin:
    """Places in one range of distances, start ≤ distance < stop, in characters; `correct` of `total` were right."""

    start: float
    stop: float
    correct: float
    total: float

    @property
    def middle(self) -> float:
        return (self.start + self.stop) / 2

    @property
    def share(self) -> float:
        return self.correct / self.total


def newest_distance_bins(records: Sequence[ValidationRecord]) -> dict[str, tuple[DistanceBin, ...]]:
    """Map probes to their stretches, nearest first, in the last evaluation that has any; skips damaged ones."""
    found: dict[str, tuple[DistanceBin, ...]] = {}
    for record in reversed(records):
        for name, rows in record.by_distance.items():
            stretches = [DistanceBin(*map(float, row)) for row in rows[:MOST_BINS] if len(row) == 4]
            stretches = [s for s in stretches if 0 <= s.start < s.stop and 0 <= s.correct <= s.total and s.total > 0]
            if stretches:
                found[name] = tuple(sorted(stretches, key=lambda stretch: stretch.start))
        if found:
            break
    return found


def share_band(seeds: Sequence[Sequence[DistanceBin]]) -> Band:
    """Return the mean share over seeds, with its interval, in each stretch they all have.

    Seeds have equal weight; the interval covers seeds and the places in the stretch, which all seeds share.
    """
    known = [{(s.start, s.stop): s for s in stretches} for stretches in seeds if stretches]
    if not known:
        return Band()
    shared = sorted(set.intersection(*(set(stretches) for stretches in known)))
    made = pointwise_mean_band([[(stretches[at].middle, stretches[at].share) for at in shared] for stretches in known])
    ends = []
    for at in shared:
        shares, places = [each[at].share for each in known], min(each[at].total for each in known)
        mean = mean_of(shares, share=True, places=round(places))
        ends.append(mean.interval or (mean.mean, mean.mean))
    return replace(made, half=(), ends=tuple(ends) if len(known) > 1 else ())


@dataclass(frozen=True)
class Reach:
    tokens: int  # back from the token that is read
    why: str  # in a few words, as `2 × 15`


def reach(config: Mapping[str, Any]) -> Reach | None:
    """Return how far a model's layers carry with windowed attention, else its context; None if unknown."""
    kind, pattern = config.get("model.attention"), config.get("model.layers")
    sizes = (config.get(f"model.{key}") for key in ("window", "n_layers", "context_length", "link_every"))
    window, layers, context, link = (
        size if isinstance(size, int) and not isinstance(size, bool) and size > 0 else None for size in sizes
    )
    causal = config.get("model.causal") is not False
    carried = None
    given = ATTENTIONS[kind].settings if isinstance(kind, str) and kind in ATTENTIONS else ()
    if isinstance(pattern, list | tuple) and pattern and layers and isinstance(kind, str):
        entries = [str(pattern[i % len(pattern)]).split() for i in range(min(layers, MOST_KINDS))]
        own = [next((word for word in entry if word in ATTENTIONS), kind) for entry in entries]
        windowed = [name for name in own if name in ATTENTIONS and ATTENTIONS[name].settings == ("window",)]
        if window and len(windowed) == len(own) == layers:
            carried = Visibility(causal, window).reach(layers)
    elif "window" in given and window and layers:
        see = Visibility(causal, window, link if "link_every" in given else None)
        carried = see.reach(layers)
    if carried is not None and layers and (context is None or carried < context):
        return Reach(carried, f"{layers} × {carried // layers}")
    return Reach(context, "context") if context is not None else None
