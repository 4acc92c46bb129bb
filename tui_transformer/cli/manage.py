"""`rename`, `delete`, `note`: what a person does with runs besides training them."""

import sys
import time
from collections.abc import Iterable
from pathlib import Path

from engine.clean import clean, clean_line
from engine.errors import InputError
from engine.runs import manage
from engine.runs.reader import STILL, RunReader
from tui_transformer.cli.output import answer, emit, is_terminal, say

LOOK = 0.2  # seconds between two looks


def _settle(readers: Iterable[RunReader]) -> None:
    """Of a run of another host it is known only after a while whether it still lives."""
    doubted = [reader for reader in readers if reader.liveness() == "unknown"]
    if doubted:
        names = ", ".join(clean_line(reader.name) for reader in doubted)
        say(f"{names}: of another machine; watching for up to {STILL:.0f} s whether it still trains")
    while any(reader.liveness() == "unknown" for reader in doubted):
        time.sleep(LOOK)


def rename_command(run: str, name: str, *, as_json: bool, runs_dir: Path) -> int:
    """Give a run another name."""
    reader = RunReader.resolve(run, runs_dir)
    _settle([reader])
    path = manage.rename(reader, name)
    if as_json:
        emit({"run": path.name, "was": reader.name, "path": str(path)})
    else:
        answer(clean_line(f"{reader.name} is now {path.name}"))
    return 0


def delete_command(runs: list[str], *, yes: bool, as_json: bool, runs_dir: Path) -> int:
    """Delete runs, all or none of those named that exist; asks first."""
    readers = [RunReader.resolve(run, runs_dir) for run in runs]
    names = ", ".join(reader.name for reader in readers)
    if not yes:
        if not is_terminal(sys.stdin):
            raise InputError(f"deleting {names} cannot be undone; --yes says that you mean it")
        if input(f"delete {names} with all checkpoints? [y/N] ").strip().lower() not in ("y", "yes"):
            return 0
    _settle(readers)
    for reader in readers:
        manage.delete(reader)
        if as_json:
            emit({"deleted": reader.name})
        else:
            answer(clean_line(f"deleted {reader.name}"))
    return 0


def note_command(
    run: str, text: str | None, add: list[str], remove: list[str], *, as_json: bool, runs_dir: Path
) -> int:
    """Show or change a run's notes and tags."""
    reader = RunReader.resolve(run, runs_dir)
    if text is None and not add and not remove:
        notes = reader.notes
    else:
        notes = manage.write_notes(reader.path, text=text, add=add, remove=remove)
    if as_json:
        emit({"run": reader.name, "text": notes.text, "tags": notes.tags})
    elif not notes.text and not notes.tags:
        answer(f"{reader.name} has no notes; {reader.command('note', 'what you saw', '--tag', 'good')}")
    else:
        answer(clean("\n".join(part for part in (notes.text, " ".join(f"#{tag}" for tag in notes.tags)) if part)))
    return 0
