"""`data fetch`: put the files of a corpus into the data folder, and say how far they can be trusted."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.clean import clean_line
from engine.command_line import command_line
from engine.data.catalogue import catalogue
from engine.data.download import Remote, fetch, recorded_sha256, sha256_of
from engine.data.entry import CorpusEntry, data_folders
from engine.errors import InputError, nearest
from tui_transformer.cli.exit_codes import ExitCode
from tui_transformer.cli.output import answer, emit, is_terminal, say, stderr

# How a file's hash was checked, and what that is worth.
CHECKED = {
    "known": "SHA-256 as it should be",
    "recorded": "SHA-256 as it was when it was first fetched",
    "first use": "SHA-256 {short}…, which nothing could be held against: recorded beside it, and checked from now on",
    "unchecked": "SHA-256 {short}…, which nothing could be held against, nor recorded beside it",
}


@dataclass(frozen=True)
class Fetched:
    """A file that is in its place.

    Args:
        checked: a key of `CHECKED`.
    """

    path: Path
    sha256: str
    checked: str


def fetch_command(name: str, *, as_json: bool, data_dir: Path | None) -> int:
    """Download a corpus into the data folder and check it."""
    known = catalogue()
    entry = known.get(name)
    if entry is None:
        hint = nearest(name, known) or f"; `{command_line('data', 'list')}` lists them"
        raise InputError(f"no corpus is called '{name[:80]}'{hint}")
    if not entry.remotes:
        say(f"{name} is built in: it is generated when it is needed")
        return ExitCode.DONE
    folder = data_folders(data_dir)[0] if data_dir is not None else data_folders(None)[-1]
    with _progress(entry) as watched:
        files = [_fetched(remote, folder, watched(remote)) for remote in entry.remotes]
    for file in files:
        if as_json:
            emit({"name": name, "path": str(file.path), "sha256": file.sha256, "checked": file.checked})
        else:
            answer(clean_line(f"{name}: {file.path}, {CHECKED[file.checked].format(short=file.sha256[:16])}"))
    if entry.licence and not as_json:
        say(f"{name} may be used under {entry.licence}")
    return ExitCode.DONE


def _fetched(remote: Remote, folder: Path, progress: Callable[[int, int], None]) -> Fetched:
    before = recorded_sha256(folder / remote.file)
    path = fetch(remote, folder, progress=progress)
    found = sha256_of(path)
    if remote.sha256 is not None:
        return Fetched(path, found, "known")
    if before is not None:
        return Fetched(path, found, "recorded")
    return Fetched(path, found, "first use" if recorded_sha256(path) == found else "unchecked")


@contextmanager
def _progress(entry: CorpusEntry[Any]) -> Iterator[Callable[[Remote], Callable[[int, int], None]]]:
    """What shows how far each file is: a bar on a terminal, else nothing."""
    if not is_terminal(sys.stderr):
        yield lambda remote: lambda done, size: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=stderr()) as bar:

        def watched(remote: Remote) -> Callable[[int, int], None]:
            task = bar.add_task(f"{entry.name}  {Path(remote.file).name}", total=None)
            return lambda done, size: bar.update(task, completed=done)

        yield watched
