"""The cells of a started study, as they stand: each state comes from the cell's run directory alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from engine.base.errors import InputError
from engine.base.language import Message, tr
from engine.runs.reader import LIVE_STATES, RunReader, list_runs

if TYPE_CHECKING:  # the studio's first screen needs none of it
    from tui_transformer.lab.work.study import StudyCell

ABSENT, TORN = "absent", "torn"  # no directory yet; killed before it was complete
SKIPPED = "skipped"  # no directory, and none will be made: the stage it starts from has failed
Verb = Literal["create", "begin", "resume", "anew", "wait", "done", "failed"]
# How to resume, by state. A run that ended early without a checkpoint has nothing to resume from.
VERBS: Mapping[str, Verb] = {
    ABSENT: "create",
    TORN: "anew",
    "queued": "begin",
    "finished": "done",
    "failed": "failed",
    SKIPPED: "failed",
    **dict.fromkeys(LIVE_STATES, "wait"),
    **dict.fromkeys(("stopped", "interrupted", "lost"), "resume"),
}


@dataclass(frozen=True)
class CellStatus:
    cell: "StudyCell"
    path: Path  # its run directory, existing or not
    state: str = ABSENT  # of the run; `ABSENT`, `TORN` and `SKIPPED` besides
    reason: str = ""  # why it ended, if recorded
    step: int = 0  # reached, of `steps`
    steps: int = 0  # 0 where unknown
    attempt: int = 0  # 0 before the first
    checkpoint: bool = False  # whether there is one to resume from
    loss: float | None = None  # the last validation loss
    device: str = ""

    @property
    def verb(self) -> Verb:
        verb = VERBS.get(self.state, "anew")
        return "anew" if verb == "resume" and not self.checkpoint else verb

    @property
    def share(self) -> float:
        if self.state == "finished":
            return 1.0
        return min(1.0, self.step / self.steps) if self.steps else 0.0


def cell_folders(study: str, cells: "Sequence[StudyCell]", runs_dir: Path) -> dict[str, Path]:
    """Each cell's run directory by cell name: a renamed run is still the cell's, according to run.json."""
    born = {}
    for reader in list_runs(runs_dir):
        place = reader.run.study
        if place.name == study:
            born[place.variant, place.stage, place.seed] = reader.path
    found = {}
    for cell in cells:
        own = cell.variant, cell.stage, cell.seed
        path = born.get(own, runs_dir / cell.name)
        if own not in born and (path / "run.json").exists():
            place = RunReader(path).run.study  # a worker may have made it since
            if (place.name, place.variant, place.stage, place.seed) == (study, *own):
                born[own] = path
        if (path / "run.json").exists() and path not in born.values():
            text = Message(
                "run '{name}' exists but does not belong to study '{study}'; give the study a different --name",
                name=cell.name,
                study=study,
            )
            raise InputError(text)
        if (path / "config.toml").exists():
            reader = RunReader(path)
            try:
                changed = cell.config_differences(reader.config)
            except InputError as error:
                damaged = Message(
                    "run '{name}' of this study is damaged: {error}; delete it to train it again",
                    name=reader.name,
                    error=error,
                )
                raise InputError(damaged) from None
            for key, (ran, asked) in changed.items():
                text = Message(
                    "run '{name}' was trained with {key} = {ran}, but the study now asks for {asked}; give the "
                    "study a different --name, or delete that run",
                    name=reader.name,
                    key=key,
                    ran=ran,
                    asked=asked,
                )
                raise InputError(text)
        found[cell.name] = path
    return found


def cell_status(cell: "StudyCell", path: Path, reader: RunReader | None = None) -> CellStatus:
    """Return a cell's state. Never raises: a damaged status is a torn run.

    A `reader` that has watched a run on another host can tell that it lives by its moving heartbeat.
    """
    if not path.exists():
        return CellStatus(cell, path)
    reader = reader or RunReader(path)
    status, last = reader.status, reader.summary.last
    if not status.model_fields_set or not (path / "config.toml").exists() or not (path / "run.json").exists():
        return CellStatus(cell, path, TORN)
    return CellStatus(
        cell,
        path,
        reader.state,
        tr(status.reason),
        status.step,
        status.steps,
        status.attempt,
        any((path / "checkpoints").glob("step-????????")),
        None if last is None else last.loss,
        status.device,
    )


def cell_statuses(cells: "Sequence[StudyCell]", paths: Mapping[str, Path]) -> list[CellStatus]:
    """Return all cells' states; one that has not begun and waits for an unfinished stage says so.

    Each cell comes after the one whose weights it starts with; `paths` are run directories by cell name.
    """
    found: dict[str, CellStatus] = {}
    for cell in cells:
        now, before = cell_status(cell, paths[cell.name]), found.get(cell.parent_cell)
        if before is not None and now.state == ABSENT and before.state != "finished":
            stage = before.cell.stage
            if before.verb == "failed":
                why = tr("its stage '{stage}' failed", stage=stage)
                if before.state == SKIPPED:
                    why = tr("its stage '{stage}' was skipped", stage=stage)
                now = replace(now, state=SKIPPED, reason=why)
            elif before.state != ABSENT:
                now = replace(now, reason=tr("its stage '{stage}' is {state}", stage=stage, state=tr(before.state)))
        found[cell.name] = now
    return list(found.values())


def finished_run_wall_seconds(path: Path) -> float | None:
    """A finished run's wall seconds, evaluations included; None if unknown."""
    turns = [e for e in RunReader(path).events() if e.event in ("started", "finished", "resumed", "paused")]
    if [event.event for event in turns] != ["started", "finished"]:  # it was interrupted in between
        return None
    try:
        began, ended = (datetime.fromisoformat(event.time) for event in turns)
    except ValueError:
        return None
    return max(0.0, (ended - began).total_seconds())
