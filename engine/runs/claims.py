"""Claims: which of several workers, on whatever hosts, may write a run of a shared runs folder.

`RUNS/.claims/NAME.N` is the N-th claim on run NAME, which need not exist yet. It is created exclusively, so that one of
several takers wins; it says who holds it, and its time of modification is its heartbeat. The highest number counts.
Whoever takes a run over from a holder that is gone makes the next number and removes the old one, and the processes of
the old holder leave before they write again (`RunWriter`). No two clocks are compared.
"""

import errno
import json
import os
import socket
import stat
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from engine.errors import TakenOver
from engine.language import tr
from engine.plain_files import open_plain
from engine.runs.files import append_whole, parse_line
from engine.runs.names import check_name
from engine.runs.process import identity, is_alive
from engine.runs.reader import STILL, Liveness, watched
from engine.runs.records import Process, Text

FOLDER = ".claims"
CLAIM = "TUI_TRANSFORMER_CLAIM"  # environment variable: the claim under which a process was started
BEAT = 10.0  # seconds between heartbeats
PATIENCE = STILL + 3 * BEAT  # seconds; a network disk's clients may see everything up to a minute late
LONGEST = 4096  # bytes of a claim
RELEASED = b"released\n"  # the last line of one that was given back
GONE = (errno.ENOENT, errno.ENOTDIR, errno.ESTALE)


class Holder(Process):
    """Who holds a claim."""

    id: Text = ""  # of the claim: numbers start again if somebody deletes the folder
    job: Text = ""  # the number that Slurm gave to the worker


@dataclass
class Claim:
    """One that this process, or the one that started it, has made."""

    path: Path
    id: str
    _beaten: float = 0.0

    @property
    def name(self) -> str:
        return self.path.name.rpartition(".")[0]

    @property
    def attempt(self) -> int:
        return int(self.path.name.rpartition(".")[2])

    @property
    def held(self) -> bool:
        """Whether nobody has taken the run over. Opens the file: on a network disk that asks the server."""
        data = _content(self.path)
        if data is None or self.id.encode() not in data or data.endswith(RELEASED):
            return False
        return not self.path.with_name(f"{self.name}.{self.attempt + 1}").exists()

    def require(self) -> None:
        """Raise `TakenOver` if it is no longer held."""
        if not self.held:
            by = held(self.path.parent.parent).get(self.name)
            whom = tr("process {pid} on {host}", pid=by.pid, host=by.host) if by else tr("another process")
            raise TakenOver(
                tr("run '{name}' was taken over by {by}; nothing more is written here", name=self.name, by=whom)
            )

    def beat(self) -> None:
        """Show now and then that the holder is alive."""
        if time.monotonic() - self._beaten >= BEAT:
            self._beaten = time.monotonic()
            with suppress(OSError):
                os.utime(self.path)

    def release(self) -> None:
        """Give the run back: others may claim it at once."""
        with suppress(OSError), self.path.open("r+b", buffering=0) as file:  # never created: it may be another's by now
            append_whole(file, RELEASED)

    @property
    def variables(self) -> dict[str, str]:
        """The environment of processes that write the run under this claim."""
        return {CLAIM: f"{self.id}:{self.path.resolve()}"}


def inherited(run: Path) -> Claim | None:
    """Return the claim under which this process was started to write a run."""
    token, _, path = os.environ.get(CLAIM, "").partition(":")
    found = Path(path)
    return Claim(found, token) if token and found.parent == run.parent.resolve() / FOLDER else None


def claim(runs_dir: Path, name: str) -> Claim | None:
    """Claim a run; None if another process holds it, or may hold it. `OSError`: the folder cannot be written."""
    folder = runs_dir / FOLDER
    if not folder.is_dir():
        folder.mkdir(exist_ok=True)
        with suppress(OSError):
            folder.chmod(stat.S_IMODE(runs_dir.stat().st_mode))  # a folder that others may write is written by them
    numbers = _numbers(folder).get(check_name(name), [])
    if numbers and _liveness(folder / f"{name}.{numbers[-1]}") != "dead":
        return None
    made = Claim(folder / f"{name}.{max(numbers, default=0) + 1}", uuid.uuid4().hex, time.monotonic())
    holder = Holder(id=made.id, job=os.environ.get("SLURM_JOB_ID", ""), **identity().dump())
    try:
        handle = os.open(made.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o644)
    except FileExistsError:
        return None
    try:
        with os.fdopen(handle, "wb", buffering=0) as file:
            append_whole(file, json.dumps(holder.dump()).encode() + b"\n")
        with suppress(OSError):
            made.path.chmod(0o644)  # everybody has to see who holds it
        for number in numbers:  # before anything is written: a network disk may hide the new claim from the old holder
            (folder / f"{name}.{number}").unlink(missing_ok=True)
    except OSError:
        with suppress(OSError):
            made.path.unlink()
        raise
    return made if made.held else None


def held(runs_dir: Path) -> dict[str, Holder]:
    """Return the runs that are claimed, and by whom."""
    folder, found = runs_dir / FOLDER, {}
    for name, numbers in _numbers(folder).items():
        path = folder / f"{name}.{numbers[-1]}"
        if _liveness(path) != "dead":
            found[name] = _holder(_content(path) or b"")
    return found


def liveness(runs_dir: Path, name: str) -> Liveness:
    """Tell whether the holder of a run lives; it is dead where nobody holds it."""
    numbers = _numbers(runs_dir / FOLDER).get(name)
    return _liveness(runs_dir / FOLDER / f"{name}.{numbers[-1]}") if numbers else "dead"


def _numbers(folder: Path) -> dict[str, list[int]]:
    """The numbers of each run's claims, in ascending order."""
    found: dict[str, list[int]] = {}
    with suppress(FileNotFoundError):
        for one in os.listdir(folder):  # noqa: PTH208 - names are enough
            name, _, number = one.rpartition(".")
            if name and number.isascii() and number.isdecimal():
                found.setdefault(name, []).append(int(number))
    return {name: sorted(numbers) for name, numbers in found.items()}


def _content(path: Path) -> bytes | None:
    """A claim's bytes; None if it is gone."""
    try:
        with open_plain(path) as file:
            return file.read(LONGEST)
    except OSError as error:
        if error.errno in GONE:
            return None
        raise


def _holder(data: bytes) -> Holder:
    return Holder.read(parse_line(data[: data.find(b"\n") + 1]))


def _liveness(path: Path) -> Liveness:
    """Tell whether a claim's holder lives; one that was given back has none."""
    try:
        with open_plain(path) as file:
            data, beat = file.read(LONGEST), os.fstat(file.fileno()).st_mtime_ns
    except OSError:  # taken over just now, or unreadable
        return "unknown"
    if data.endswith(RELEASED):
        return "dead"
    holder = _holder(data)
    if (holder.host, holder.boot) == (socket.gethostname(), identity().boot):
        return "alive" if is_alive(holder) else "dead"
    return watched(path, beat, PATIENCE)
