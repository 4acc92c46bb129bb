"""What runs measured over time and distance: their curves, means over seeds with intervals, and differences.

Seeds are held against each other at equal steps, where every one of them was scored: a mean that went on without the
seed that diverged would be a mean of those that did well. Intervals are 95 %, each step by itself: of twenty steps
without any effect one may well leave zero out.

A probe asks for what stood some characters back. A model whose layers cannot reach that far cannot know it, whatever it
is trained on. A chart that draws its reach says why a line falls.
"""

import bisect
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.model.visibility import Visibility
from engine.runs.records import LARGEST
from engine.runs.tail import History, MetricsTail
from tui_transformer.lab.analysis.columns import differing
from tui_transformer.lab.analysis.entry import Entry
from tui_transformer.lab.analysis.statistics import Mean, mean_of
from tui_transformer.lab.charts.colours import LETTERS
from tui_transformer.lab.charts.curves import Curve, curve_of
from tui_transformer.lab.records.facts import Record, first_probes, number

MOST = len(LETTERS)  # curves at once: as many as people can tell apart
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


_OF_A_SEED = re.compile(r"[-._ ]*(s|seed)?[-._ ]*$", re.IGNORECASE)

_NO_CURVE = Curve()

Points = Mapping[float, tuple[float, float]]  # step -> x, y


@dataclass(frozen=True)
class Group:
    """The runs of one variant, one for each seed.

    Args:
        label: the variant; not cleaned.
        runs: in the order of their seeds.
    """

    label: str
    runs: tuple[Entry, ...]

    @property
    def by_seed(self) -> dict[int, Entry]:
        """One run a seed: of two with the same seed, which are no two draws, the later one."""
        return {run.seed if run.seed is not None else -1 - i: run for i, run in enumerate(self.runs)}


@dataclass(frozen=True)
class Band:
    """A mean over seeds along a curve.

    Args:
        curve: the mean.
        half: half the width of the 95 % t interval at each point; empty with one seed.
        ends: for shares, both ends of the 95 % interval at each point instead, within 0 and 1.
        n: seeds that were scored at all.
        short: why it ends before some of its seeds do; "" if it does not.
    """

    curve: Curve = _NO_CURVE
    half: tuple[float, ...] = ()
    ends: tuple[tuple[float, float], ...] = ()
    n: int = 0
    short: str = ""


def scored(records: Sequence[Record], axis: str, key: str = "loss") -> dict[float, tuple[float, float]]:
    """Step -> place on the axis and score; what is no number is left out, and of two at one step the first."""
    found = {}
    for record in reversed(records):
        step, x, y = (number(record.get(name)) for name in ("step", axis, key))
        if step is not None and x is not None and y is not None and max(abs(x), abs(y)) <= LARGEST:
            found[step] = x, y
    return found


def band(seeds: Mapping[int, Points]) -> Band:
    """The mean over seeds at every step that all of them have; a seed without any score does not count yet."""
    known = {seed: points for seed, points in seeds.items() if points}
    if not known:
        return Band()
    steps = sorted(set.intersection(*(set(points) for points in known.values())))
    made = stacked([[points[step] for step in steps] for points in known.values()])
    return replace(made, short=_short(known, steps))


def difference_band(ours: Mapping[int, Points], baseline: Mapping[int, Points]) -> Band:
    """Ours minus the baseline seed by seed at equal steps, then the mean over the seeds that both have."""
    both = {}
    for seed in ours:
        there = baseline.get(seed, {})
        shared = sorted(set(ours[seed]) & set(there))
        both[seed] = {step: (ours[seed][step][0], ours[seed][step][1] - there[step][1]) for step in shared}
    return band(both)


def stacked(seeds: Sequence[Sequence[tuple[float, float]]]) -> Band:
    """The mean of points that belong together one by one: the same number of each seed."""
    columns = list(zip(*seeds, strict=True))
    means: list[Mean] = [mean_of([y for _, y in points]) for points in columns]
    x = tuple(sum(x for x, _ in points) / len(points) for points in columns)
    half = tuple(mean.half for mean in means if mean.half is not None)
    return Band(Curve(x, tuple(mean.mean for mean in means)), half, n=len(seeds))


def _short(known: Mapping[int, Points], steps: Sequence[float]) -> str:
    ends = {seed: max(points) for seed, points in known.items()}
    first = min(ends, key=lambda seed: ends[seed])
    if ends[first] == max(ends.values()):
        return ""
    name = f"seed {first}" if first >= 0 else "one seed"
    return f"{name} ends at step {ends[first]:,.0f}" if steps else "its seeds share no step"


def seeds_of(chosen: Sequence[Entry], among: Sequence[Entry]) -> list[Group]:
    """Each chosen run with all others that differ in nothing but the seed, once.

    Args:
        chosen: runs.
        among: where the others are looked for.
    """
    groups: list[Group] = []
    for run in chosen:
        if any(run in group.runs for group in groups):
            continue
        alike = [other for other in among if other == run or _only_the_seed(run, other)]
        alike.sort(key=lambda entry: (entry.seed if entry.seed is not None else -1, entry.created))
        groups.append(Group(_label(alike), tuple(alike)))
    return groups


def _only_the_seed(run: Entry, other: Entry) -> bool:
    quick = (run.preset, run.steps, run.parameters) == (other.preset, other.steps, other.parameters)
    if not quick or not run.config or not other.config or _place(run) != _place(other):
        return False
    return set(differing([run, other])) <= {"seed"}


def _place(run: Entry) -> tuple[str, str] | None:
    return None if run.study is None else (run.study.name, run.study.variant)


def _label(runs: Sequence[Entry]) -> str:
    """The variant of a study; else what the names of its runs have in common."""
    if runs[0].study is not None:
        return runs[0].study.variant
    if len(runs) == 1:
        return runs[0].name
    alike = itertools.takewhile(lambda letters: len(set(letters)) == 1, zip(*(run.name for run in runs), strict=False))
    return _OF_A_SEED.sub("", "".join(letters[0] for letters in alike)) or runs[0].name


FIELD = "by_distance"  # of a validation record
MOST_STRETCHES = 100  # of a probe; a longer list is damage


@dataclass(frozen=True)
class Stretch:
    """Places whose distances lie together: start ≤ distance < stop, characters; `right` of `of` were right."""

    start: float
    stop: float
    right: float
    of: float

    @property
    def middle(self) -> float:
        return (self.start + self.stop) / 2

    @property
    def share(self) -> float:
        return self.right / self.of


def by_distance(record: Record) -> dict[str, tuple[Stretch, ...]]:
    """Probe -> its stretches, nearest first; {} of a record that has none. What is damaged is left out."""
    found = {}
    for name, listed in first_probes(record.get(FIELD)).items():
        rows = listed[:MOST_STRETCHES] if isinstance(listed, list) else []
        stretches = sorted(filter(None, map(_stretch, rows)), key=lambda stretch: stretch.start)
        if stretches:
            found[name] = tuple(stretches)
    return found


def newest(records: Sequence[Record]) -> dict[str, tuple[Stretch, ...]]:
    """Of the last evaluation that has it."""
    return next((found for record in reversed(records) if (found := by_distance(record))), {})


def _stretch(row: Any) -> Stretch | None:
    values = [number(value) for value in row] if isinstance(row, list) and len(row) == 4 else []
    start, stop, right, of = [*values, None, None, None, None][:4]
    if start is None or stop is None or right is None or of is None:
        return None
    return Stretch(start, stop, right, of) if 0 <= start < stop and 0 <= right <= of and of > 0 else None


def families(runs: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """The probes that any of these runs has, in their order."""
    return tuple(dict.fromkeys(name for run in runs for name in run))


def share_band(seeds: Sequence[Sequence[Stretch]]) -> Band:
    """The mean share over seeds in each stretch that all of them have, with its interval.

    Seeds have equal weight; the interval covers seeds and the places in the stretch, which all seeds share.
    """
    known = [{(s.start, s.stop): s for s in stretches} for stretches in seeds if stretches]
    if not known:
        return Band()
    shared = sorted(set.intersection(*(set(stretches) for stretches in known)))
    made = stacked([[(stretches[at].middle, stretches[at].share) for at in shared] for stretches in known])
    ends = []
    for at in shared:
        shares, places = [each[at].share for each in known], min(each[at].of for each in known)
        mean = mean_of(shares, share=True, places=round(places))
        ends.append(mean.interval or (mean.mean, mean.mean))
    return replace(made, half=(), ends=tuple(ends) if len(known) > 1 else ())


@dataclass(frozen=True)
class Reach:
    """How far back a model can know anything.

    Args:
        tokens: back from the token that is read.
        why: in a few words, as `2 × 15`.
    """

    tokens: int
    why: str


def reach(config: Mapping[str, Any]) -> Reach | None:
    """What a model's layers can carry, where its attention has a window; else its context; None where not known.

    Args:
        config: every setting, by its dotted key.
    """
    kind = config.get("model.attention")
    window, layers, context, link = (
        _count(config.get(f"model.{key}")) for key in ("window", "n_layers", "context_length", "link_every")
    )
    causal = config.get("model.causal") is not False
    carried = None
    if kind in ("window", "sparse") and window and layers:
        see = Visibility(causal, window, link if kind == "sparse" else None)
        carried = see.reach(layers)
    if carried is not None and layers and (context is None or carried < context):
        return Reach(carried, f"{layers} × {carried // layers}")
    return Reach(context, "context") if context is not None else None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
