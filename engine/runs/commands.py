"""control.json: numbered commands that readers leave for whoever trains a run; none is lost, none obeyed twice."""

from enum import StrEnum
from pathlib import Path

from filelock import FileLock, Timeout

from engine.errors import InputError
from engine.plain_files import refuse_links
from engine.runs.files import SCHEMA, read_json, write_json
from engine.runs.records import Control, Status, read_file

MOST_WAITING = 1000  # commands that nobody has obeyed yet
PATIENCE = 10.0  # seconds for others that write a command
MOST_BYTES = 1 << 20  # of them; a training run reads them again and again


class Command(StrEnum):
    """What a run can be told."""

    PAUSE = "pause"
    CONTINUE = "continue"
    STOP = "stop"
    CHECKPOINT = "checkpoint"


def control_file(run: Path) -> Path:
    """Where a run's commands stand."""
    return run / Control.file


def read_commands(run: Path) -> list[tuple[int, Command]]:
    """All commands there with their ids, oldest first; what is damaged is left out."""
    entries = Control.read(read_json(control_file(run), MOST_BYTES)).commands
    return sorted((entry.id, Command(entry.command)) for entry in entries)


def newest_command(run: Path) -> int:
    """The id of the last command there; 0 if there is none."""
    return max((number for number, _ in read_commands(run)), default=0)


def send(run: Path, command: Command) -> int:
    """Write a command for whoever trains this run; gives back its id. Several may write at once.

    Raises:
        InputError: so many wait already that nobody can be listening, somebody keeps all others from writing one, or
            something in its directory is a link.
    """
    refuse_links(run)
    lock = FileLock(run / ".control.lock", timeout=PATIENCE)
    try:
        with lock:
            return _append(run, command)
    except Timeout:
        raise InputError(f"run '{run.name}' takes no command: another process keeps {lock.lock_file} locked") from None


def _append(run: Path, command: Command) -> int:
    obeyed = read_file(run, Status).control_id
    there = read_commands(run)
    waiting = [(number, kind) for number, kind in there if number > obeyed]
    if len(waiting) >= MOST_WAITING:
        raise InputError(f"run '{run.name}' has not obeyed its last {len(waiting):,} commands; is its process well?")
    number = max((obeyed, *(number for number, _ in there))) + 1
    entries = [{"id": n, "command": kind.value} for n, kind in [*waiting, (number, command)]]
    write_json(control_file(run), {"schema": SCHEMA, "commands": entries})
    return number
