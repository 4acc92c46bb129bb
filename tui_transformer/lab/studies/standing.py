"""Where a cell of a study stands, from its run directory alone, and what going on with it means."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Literal

from engine.errors import InputError
from engine.runs.reader import LIVE_STATES, RunReader, list_runs
from tui_transformer.lab.studies.study import Cell

ABSENT, TORN = "absent", "torn"  # no directory yet; one that was killed before it was whole
SKIPPED = "skipped"  # no directory, and none will be made: the stage it starts from has failed
Verb = Literal["create", "begin", "resume", "anew", "wait", "done", "failed"]
# What going on means, by state. A run that ended early without a checkpoint has nothing to go on from.
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
class Standing:
    """A cell now.

    Args:
        cell: which.
        path: its run directory, there or to be made.
        state: of the run; `ABSENT`, `TORN` and `SKIPPED` besides.
        reason: why it ended, where it says so.
        step: it has come to, of `steps`.
        steps: 0 where unknown.
        attempt: 0 before the first.
        checkpoint: whether there is one to go on from.
        loss: the last validation loss.
        device: it is on.
    """

    cell: Cell
    path: Path
    state: str = ABSENT
    reason: str = ""
    step: int = 0
    steps: int = 0
    attempt: int = 0
    checkpoint: bool = False
    loss: float | None = None
    device: str = ""

    @property
    def verb(self) -> Verb:
        """What going on with it means."""
        verb = VERBS.get(self.state, "anew")
        return "anew" if verb == "resume" and not self.checkpoint else verb

    @property
    def share(self) -> float:
        """Of its steps that are done, 0 to 1."""
        if self.state == "finished":
            return 1.0
        return min(1.0, self.step / self.steps) if self.steps else 0.0


def directories(study: str, cells: Sequence[Cell], runs_dir: Path) -> dict[str, Path]:
    """The run directory of each cell by the cell's name: a renamed run is still the cell's, by what run.json says.

    Raises:
        InputError: a directory of that name is another run's, or its run was asked for something else.
    """
    born = {}
    for reader in list_runs(runs_dir):
        place = reader.run.study
        if place.name == study:
            born[place.variant, place.stage, place.seed] = reader.path
    found = {}
    for cell in cells:
        path = born.get((cell.variant, cell.stage, cell.seed), runs_dir / cell.name)
        if (path / "run.json").exists() and path not in born.values():
            raise InputError(f"run '{cell.name}' exists and is not of study '{study}'; give the study another --name")
        if (path / "config.toml").exists():
            _require_same(cell, RunReader(path))
        found[cell.name] = path
    return found


def _require_same(cell: Cell, reader: RunReader) -> None:
    try:
        changed = cell.differs(reader.config)
    except InputError as error:
        raise InputError(f"run '{reader.name}' of this study is damaged: {error}; delete it to train it anew") from None
    for key, (ran, asked) in changed.items():
        raise InputError(
            f"run '{reader.name}' was trained with {key} = {ran}, and the study now asks for {asked}; "
            "give the study another --name, or delete that run"
        )


def look(cell: Cell, path: Path, reader: RunReader | None = None) -> Standing:
    """Where a cell stands. Never raises: a damaged status is a torn run.

    Args:
        cell: which.
        path: its run directory.
        reader: of it, where one has watched it: a run of another host is known to live by how its beat moves.
    """
    if not path.exists():
        return Standing(cell, path)
    reader = reader or RunReader(path)
    status, last = reader.status, reader.summary.last
    if not status.model_fields_set or not (path / "config.toml").exists() or not (path / "run.json").exists():
        return Standing(cell, path, TORN)
    return Standing(
        cell,
        path,
        reader.state,
        status.reason,
        status.step,
        status.steps,
        status.attempt,
        _has_checkpoint(path),
        None if last is None else last.loss,
        status.device,
    )


def look_at_all(cells: Sequence[Cell], paths: Mapping[str, Path]) -> list[Standing]:
    """Where all cells of a study stand: what has not begun and waits for a stage that is not finished says so.

    Args:
        cells: each after the one whose weights it starts with.
        paths: run directories by a cell's name.
    """
    found: dict[str, Standing] = {}
    for cell in cells:
        now, before = look(cell, paths[cell.name]), found.get(cell.after)
        if before is not None and now.state == ABSENT and before.state != "finished":
            stage = f"its stage '{before.cell.stage}'"
            if before.verb == "failed":
                was = "was skipped" if before.state == SKIPPED else "failed"
                now = replace(now, state=SKIPPED, reason=f"{stage} {was}")
            elif before.state != ABSENT:
                now = replace(now, reason=f"{stage} is {before.state}")
        found[cell.name] = now
    return list(found.values())


def _has_checkpoint(path: Path) -> bool:
    return any((path / "checkpoints").glob("step-????????"))


def trained_seconds(path: Path) -> float | None:
    """Wall seconds that a finished run took, evaluations and all; None where that cannot be told."""
    times = []
    for record in RunReader(path).events():
        if record.event in ("started", "finished", "resumed", "paused"):
            times.append((record.event, record.time))
    if [event for event, _ in times] != ["started", "finished"]:  # it was interrupted in between
        return None
    try:
        began, ended = (datetime.fromisoformat(time) for _, time in times)
    except ValueError:
        return None
    return max(0.0, (ended - began).total_seconds())
