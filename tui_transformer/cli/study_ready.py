"""A study made ready to be run: what is asked held against what was started, its cells, and what they will cost."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tui_transformer.cli.output import warn
from tui_transformer.lab.studies.plan import Plan, measured
from tui_transformer.lab.studies.record import (
    THREADS,
    CellStatus,
    directories,
    gone_on_with,
    look_at_all,
    recorded,
    trained_seconds,
)
from tui_transformer.lab.studies.study import Cell, Study


@dataclass(frozen=True)
class How:
    """How a study is to be run, as on the command line.

    Args:
        device: `auto`, or devices with commas between.
        jobs: cells at a time; None as the machine bears.
        failed: what to do with what has failed: "retry", "skip", or "" to skip and say so with the exit code.
        as_json: one JSON object a line.
        runs_dir: where runs are.
        data_dir: where named corpora are looked for first.
    """

    device: str
    jobs: int | None
    failed: str
    as_json: bool
    runs_dir: Path
    data_dir: Path | None


@dataclass(frozen=True)
class Ready:
    """A study with its plan, and how its cells stand."""

    study: Study
    plan: Plan
    cells: Sequence[Cell]
    paths: dict[str, Path]
    standings: Sequence[CellStatus]

    @property
    def first(self) -> list[Cell]:
        """The cells of the first seed."""
        return [cell for cell in self.cells if cell.seed == self.study.seeds[0]]

    @property
    def open(self) -> list[CellStatus]:
        """The cells that are still to be run."""
        return [standing for standing in self.standings if standing.state != "finished"]


def make_ready(asked: Study, how: How) -> Ready:
    """The study to go on with, and its plan: all that can be wrong is found before a run directory exists."""
    before = recorded(how.runs_dir, asked.name)
    study = asked if before is None else gone_on_with(asked, before)
    if before is not None and len(study.seeds) > len(before.seeds):
        added = len(study.seeds) - len(before.seeds)
        warn(f"{added} more seeds than it was started with: added until something differs, they will make it differ")
    cells = study.cells()
    paths = directories(study.name, cells, how.runs_dir)
    standings = look_at_all(cells, paths)
    took: dict[str, float] = {}
    for standing in standings:
        seconds = trained_seconds(standing.path) if standing.state == "finished" else None
        if seconds:
            took[standing.cell.kind] = seconds
    todo = sum(standing.state != "finished" for standing in standings)
    plan = measured(study, device=how.device, jobs=how.jobs, cells=max(1, todo), took=took, data_dir=how.data_dir)
    if THREADS not in study.changes and not any(THREADS in variant.changes for variant in study.variants):
        study = replace(study, changes={**study.changes, THREADS: plan.threads})
        cells = study.cells()
    return Ready(study, plan, cells, paths, look_at_all(cells, paths))
