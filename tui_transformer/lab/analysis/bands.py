"""Curves of one variant over its seeds: their mean at each step, with the interval that so many seeds allow. Pure.

Seeds are held against each other at equal steps, where every one of them was scored: a mean that went on without the
seed that diverged would be a mean of those that did well. Intervals are Student's t, 95 %, each step by itself: of
twenty steps without any effect one may well leave zero out.
"""

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tui_transformer.lab.analysis.differences import differing
from tui_transformer.lab.analysis.entry import Entry
from tui_transformer.lab.analysis.statistics import Mean, mean_of
from tui_transformer.lab.charts.curves import Curve
from tui_transformer.lab.records.facts import LARGEST, Record, number

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
