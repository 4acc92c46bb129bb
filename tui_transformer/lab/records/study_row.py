"""A study as one row over its runs: progress, time left, and its evaluations so far."""

import socket
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from engine.base.errors import InputError
from engine.base.language import Message
from engine.runs.names import check_name
from engine.runs.records import ValidationRecord
from engine.runs.tail import Stamp, stamp
from tui_transformer.lab.records.run_view import RunRow
from tui_transformer.lab.work.launchers import pending_reason
from tui_transformer.lab.work.study import read_study, stage_chain
from tui_transformer.lab.work.study_files import SUFFIX

TIMING = Message("timing")
MIN_SHARE = 0.05  # share of a run after which its time so far says how long it takes
ASK, ANSWER = 30.0, 5.0  # seconds between two questions to Slurm, and to wait for the answer
ROUGH = 5.0  # seconds to which the time left is rounded


@dataclass(frozen=True)
class StudyRow:
    path: Path  # of its file
    runs: tuple[RunRow, ...]  # those that exist, by variant and seed; none while its variants are being timed
    total: int  # runs it will have
    eta: float | None = None  # seconds left; None if unknown or not training
    per_hour: float | None = None  # runs that its workers finish in an hour; None if unknown or not training
    waits_for: str = ""  # what workers wait for that have not begun; "" unless it is the chosen one and Slurm says so
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
    def workers(self) -> Counter[tuple[str, str]]:
        """How many train its runs, by machine and device."""
        return Counter((run.host, run.device) for run in self.runs if run.live)

    @property
    def is_remote(self) -> bool:
        """Whether another machine trains any of its runs."""
        return any(host not in ("", socket.gethostname()) for host, _ in self.workers)

    @property
    def unclaimed(self) -> int:
        """How many of its runs no worker has begun."""
        return self.total - sum(run.state != "queued" for run in self.runs)

    @property
    def share(self) -> float:
        return min(1.0, sum(run.share for run in self.runs) / max(1, self.total))

    @property
    def state(self) -> str:
        """The state of a run that stands for all: what they do now, or why they do not finish."""
        if not self.runs:
            return TIMING
        states = [run.state for run in self.runs]
        if "running" in states or not self.live:
            ended = next((end for end in ("failed", "lost", "interrupted", "stopped") if end in states), "stopped")
            return "running" if self.live else "finished" if self.finished == self.total else ended
        return next(state for state in ("paused", "starting", "handing-over") if state in states)


def study_rows(runs_dir: Path, rows: Sequence[RunRow], totals: "RunTotals", now: float) -> tuple[StudyRow, ...]:
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
        total = max(len(runs), totals.planned_runs(path))
        made.append(StudyRow(path, ordered, total, *_eta_and_runs_per_hour(ordered, total, now)))
    return tuple(made)


def _eta_and_runs_per_hour(runs: Sequence[RunRow], total: int, now: float) -> tuple[float | None, float | None]:
    """Seconds left, and runs an hour: by what a finished run took, or what the live ones seem to take; None if none
    trains.
    """
    live = [run for run in runs if run.live]
    took = [run.wall_seconds for run in runs if run.wall_seconds] or [
        (now - run.made / 1e9) / run.share for run in live if run.state == "running" and run.share >= MIN_SHARE
    ]
    if not live or not took:
        return None, None
    each, rest = median(took), total - sum(run.share if run.live else 1.0 for run in runs)
    left = ROUGH * round(each * max(0.0, rest) / len(live) / ROUGH)
    return left, len(live) * 3600 / each if each > 0 else None


class SlurmWaiting:
    """What a study's workers wait for, by Slurm, whose array has the study's name; it is queried at intervals."""

    def __init__(self) -> None:
        self._said: dict[Path, tuple[float, str]] = {}

    def reason(self, study: StudyRow, now: float) -> str:
        """`PENDING (Resources)`, in Slurm's words; "" if none waits, or Slurm does not say."""
        if study.finished == study.total or not (study.path.parent / f".{study.name}.slurm.sh").exists():
            return ""
        last, said = self._said.get(study.path, (-ASK, ""))
        if now - last >= ASK:
            said = pending_reason(study.name, ANSWER)
            self._said[study.path] = now, said
        return said


class RunTotals:
    """How many runs a study will have, by its file; 0 if that cannot be read."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[Stamp, int]] = {}

    def planned_runs(self, path: Path) -> int:
        now = stamp(path)
        if path not in self._known or self._known[path][0] != now:
            self._known[path] = now, _count_planned_runs(path)
        return self._known[path][1]


def _count_planned_runs(path: Path) -> int:
    try:
        check_name(path.name.removesuffix(SUFFIX))  # it comes from a run's file, and must not lead out of the folder
        study = read_study(path)
    except (InputError, OSError):
        return 0
    stages = sum(len(stage_chain(study.stages, variant.stages)) for variant in study.variants)
    return stages * len(study.seeds)


def visible_rows(
    rows: Sequence[RunRow], studies: Sequence[StudyRow], opened: Collection[Path]
) -> list[RunRow | StudyRow]:
    """The rows to show: a study stands in the place of its first run, with its runs below it if it is opened.

    Studies that have no runs yet come first.
    """
    of = {run.path: study for study in studies for run in study.runs}
    lines: dict[Path, RunRow | StudyRow] = {study.path: study for study in studies if not study.runs}
    for row in rows:
        study = of.get(row.path)
        if study is None:
            lines[row.path] = row
        elif study.path not in lines:
            lines[study.path] = study
            lines |= {run.path: run for run in study.runs if study.path in opened}
    return list(lines.values())
