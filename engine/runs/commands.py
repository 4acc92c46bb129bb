"""control.json: numbered commands that readers leave for whoever trains a run; none is lost, none obeyed twice."""

from enum import StrEnum
from pathlib import Path

from filelock import FileLock

from engine.runs.files import SCHEMA, read_json, write_json

KEPT = 100  # commands that stay in control.json


class Command(StrEnum):
    """What a run can be told."""

    PAUSE = "pause"
    CONTINUE = "continue"
    STOP = "stop"
    CHECKPOINT = "checkpoint"


def control_file(run: Path) -> Path:
    """Where a run's commands stand."""
    return run / "control.json"


def read_commands(run: Path) -> list[tuple[int, Command]]:
    """All commands there with their ids, oldest first; what is damaged is left out."""
    data = read_json(control_file(run))
    entries = data.get("commands") if isinstance(data, dict) else None
    found = []
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and isinstance(entry.get("id"), int) and entry.get("command") in set(Command):
            found.append((entry["id"], Command(entry["command"])))
    return sorted(found)


def newest_command(run: Path) -> int:
    """The id of the last command there; 0 if there is none."""
    return max((number for number, _ in read_commands(run)), default=0)


def send(run: Path, command: Command) -> int:
    """Write a command for whoever trains this run; gives back its id. Several may write at once."""
    with FileLock(run / ".control.lock", timeout=10):
        before = read_commands(run)
        number = newest_command(run) + 1
        entries = [{"id": n, "command": c.value} for n, c in [*before[-KEPT:], (number, command)]]
        write_json(control_file(run), {"schema": SCHEMA, "commands": entries})
    return number
