"""A study as one row over its runs: progress, time left, and its evaluations so far."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from engine.errors import InputError
from engine.runs.names import check_name
from engine.runs.records import ValidationRecord
from engine.runs.tail import Stamp, stamp
from tui_transformer.lab.records.run_view import RunRow
from tui_transformer.lab.studies.study import SUFFIX, chain, read_study

TOLD = 0.05  # share of a run after which its time so far says how long it takes
ROUGH = 5.0  # seconds to which the time left is rounded


@dataclass(frozen=True)
class StudyRow:
    path: Path  # of its file
    runs: tuple[RunRow, ...]  # those that exist, by variant and seed
    total: int  # runs it will have
    eta: float | None = None  # seconds left; None if unknown or not training
    version: int = 0  # changes whenever `scores` does
    # its evaluations by variant and seed, of the final stage; empty unless it is the chosen one
    scores: Mapping[str, Mapping[int, Sequence[ValidationRecord]]] = field(default_factory=dict, compare=False)

    @property
    def name(self) -> str:
        return self.path.name.removesuffix(SUFFIX)

    @property
    def finished(self) -> int:
        return sum(run.state == "finished" for run in self.runs)

    @property
    def live(self) -> bool:
        return any(run.live for run in self.runs)

    @property
    def share(self) -> float:
        return min(1.0, sum(run.share for run in self.runs) / max(1, self.total))

    @property
    def state(self) -> str:
        """The state of a run that stands for all: what they do now, or why they do not finish."""
        states = [run.state for run in self.runs]
        if "running" in states or not self.live:
            ended = next(
                (state for state in ("failed", "lost", "interrupted", "stopped") if state in states), "stopped"
            )
            return "running" if self.live else "finished" if self.finished == self.total else ended
        return next(state for state in ("paused", "starting", "handing-over") if state in states)


def studies(runs_dir: Path, rows: Sequence[RunRow], totals: "Totals", now: float) -> tuple[StudyRow, ...]:
    """The studies that these runs belong to; `now` is the time of day in seconds."""
    found: dict[str, list[RunRow]] = {}
    for row in sorted(rows, key=lambda row: (row.created, row.made, row.name)):
        if row.study.name:
            found.setdefault(row.study.name, []).append(row)
    made = []
    for name, runs in found.items():
        variants = list(dict.fromkeys(run.study.variant for run in runs))
        ordered = tuple(sorted(runs, key=lambda run: (variants.index(run.study.variant), run.study.seed)))
        path = runs_dir / f"{name}{SUFFIX}"
        total = max(len(runs), totals.of(path))
        made.append(StudyRow(path, ordered, total, _left(ordered, total, now)))
    return tuple(made)


def _left(runs: Sequence[RunRow], total: int, now: float) -> float | None:
    """Seconds left: what a finished run took, or what the live ones seem to take, for the rest; None if none trains."""
    live = [run for run in runs if run.live]
    took = [run.took for run in runs if run.took] or [
        (now - run.made / 1e9) / run.share for run in live if run.state == "running" and run.share >= TOLD
    ]
    if not live or not took:
        return None
    rest = total - sum(run.share if run.live else 1.0 for run in runs)
    return ROUGH * round(median(took) * max(0.0, rest) / len(live) / ROUGH)


class Totals:
    """How many runs a study will have, by its file; 0 if that cannot be read."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[Stamp, int]] = {}

    def of(self, path: Path) -> int:
        now = stamp(path)
        if path not in self._known or self._known[path][0] != now:
            self._known[path] = now, _total(path)
        return self._known[path][1]


def _total(path: Path) -> int:
    try:
        check_name(path.name.removesuffix(SUFFIX))  # it comes from a run's file: it must not lead elsewhere
        study = read_study(path)
    except (InputError, OSError):
        return 0
    stages = sum(len(chain(study.stages, variant.stages)) for variant in study.variants)
    return stages * len(study.seeds)


def tree(rows: Sequence[RunRow], studies: Sequence[StudyRow], opened: Collection[Path]) -> list[RunRow | StudyRow]:
    """The runs, those of a study under it in the place of the first; not those of a study that is not opened."""
    of = {run.path: study for study in studies for run in study.runs}
    lines: dict[Path, RunRow | StudyRow] = {}
    for row in rows:
        study = of.get(row.path)
        if study is None:
            lines[row.path] = row
        elif study.path not in lines:
            lines[study.path] = study
            lines |= {run.path: run for run in study.runs if study.path in opened}
    return list(lines.values())
