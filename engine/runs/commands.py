"""control.json: numbered commands from readers to a run's trainer; none is lost or executed twice."""

from enum import StrEnum
from pathlib import Path

from filelock import FileLock, Timeout

from engine.base.errors import InputError
from engine.base.language import Message, tr
from engine.base.plain_files import require_regular_files
from engine.runs.files import SCHEMA, read_json, write_json
from engine.runs.records import ControlFile, Status, read_file

MOST_WAITING = 1000  # pending commands
LOCK_TIMEOUT = 10.0  # seconds to wait for other writers
MOST_BYTES = 1 << 20  # of them; a training run rereads them often


class RunCommand(StrEnum):
    PAUSE = Message("pause")
    CONTINUE = Message("continue")
    STOP = Message("stop")
    CHECKPOINT = Message("checkpoint")


def control_file(run: Path) -> Path:
    return run / ControlFile.file


def read_commands(run: Path) -> list[tuple[int, RunCommand]]:
    """Return all commands with their ids, oldest first; damaged ones are skipped."""
    entries = ControlFile.read(read_json(control_file(run), MOST_BYTES)).commands
    return sorted((entry.id, RunCommand(entry.command)) for entry in entries)


def send(run: Path, command: RunCommand) -> int:
    """Write a command for this run's trainer, and return its id. `InputError`: so many are pending that nobody can be
    listening, another process holds the lock, or something in its directory is a link.
    """
    require_regular_files(run)
    lock = FileLock(run / ".control.lock", timeout=LOCK_TIMEOUT)
    try:
        with lock:
            obeyed, there = read_file(run, Status).control_id, read_commands(run)
            waiting = [(number, kind) for number, kind in there if number > obeyed]
            if len(waiting) >= MOST_WAITING:
                silent = tr("has not acted on its last {n:,} commands", n=len(waiting))
                message = Message("run '{name}' {silent}; is its process still working?", name=run.name, silent=silent)
                raise InputError(message)
            number = max((obeyed, *(number for number, _ in there))) + 1
            entries = [{"id": n, "command": kind.value} for n, kind in [*waiting, (number, command)]]
            write_json(control_file(run), {"schema": SCHEMA, "commands": entries})
            return number
    except Timeout:
        message = Message(
            "run '{name}' cannot take commands now: another process holds the lock {lock_file}",
            name=run.name,
            lock_file=lock.lock_file,
        )
        raise InputError(message) from None
