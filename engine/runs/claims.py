"""Claims: which of several workers, on whatever hosts, may write a run of a shared runs folder.

`RUNS/.claims/NAME/N` is the N-th claim on run NAME, which need not exist yet. It is created exclusively, so that one of
several takers wins; it says who holds it, and its time of modification is its heartbeat. The highest number counts: a
taker that was held up after listing the claims, while others came and went, finds a higher number than its own once it
has created its claim, and withdraws. Whoever takes over a run from a holder that is gone adds the next number and
removes the old one, and the processes of the old holder leave before they write again (`RunWriter`). No two clocks are
compared.
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

from engine.base.errors import RunTakenOver
from engine.base.language import Message, tr
from engine.base.plain_files import open_regular_file
from engine.runs.files import append_whole, parse_line
from engine.runs.names import check_name
from engine.runs.process import identity, is_alive
from engine.runs.reader import LOST_AFTER, Liveness, heartbeat_liveness
from engine.runs.records import Process, Text

FOLDER = ".claims"
CLAIM_VARIABLE = "TUI_TRANSFORMER_CLAIM"  # environment variable: the claim under which a process was started
BEAT = 10.0  # seconds between heartbeats
HOLDER_LOST_AFTER = LOST_AFTER + 3 * BEAT  # seconds; a network disk's clients may see everything up to a minute late
MAX_CLAIM_BYTES = 4096  # bytes of a claim
RELEASED = b"released\n"  # the last line of a released claim
GONE_ERRNOS = (errno.ENOENT, errno.ENOTDIR, errno.ESTALE)


class Holder(Process):
    """Who holds a claim."""

    id: Text = ""  # of the claim: numbers start again if somebody deletes the folder
    job: Text = ""  # the number that Slurm gave to the worker


@dataclass
class Claim:
    """A claim made by this process or by the one that started it."""

    path: Path
    id: str
    _beaten: float = 0.0

    @property
    def name(self) -> str:
        return self.path.parent.name

    @property
    def number(self) -> int:
        return int(self.path.name)

    @property
    def is_held(self) -> bool:
        """Whether nobody has taken the run over. Opens the file: on a network disk that asks the server."""
        data = _content(self.path)
        if data is None or self.id.encode() not in data or data.endswith(RELEASED):
            return False
        return max(_numbers(self.path.parent), default=0) <= self.number

    def require_held(self) -> None:
        """Raise `RunTakenOver` if it is no longer held."""
        if not self.is_held:
            by = _holder_now(self.path.parent)
            whom = tr("process {pid} on {host}", pid=by.pid, host=by.host) if by else tr("another process")
            raise RunTakenOver(
                Message(
                    "run '{name}' was taken over by {by}; this process stops writing to it", name=self.name, by=whom
                )
            )

    def beat(self) -> None:
        """Show that the holder is alive, at most once per `BEAT`."""
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
        return {CLAIM_VARIABLE: f"{self.id}:{self.path.resolve()}"}


def inherited_claim(run: Path) -> Claim | None:
    """Return the claim under which this process was started to write a run."""
    token, _, path = os.environ.get(CLAIM_VARIABLE, "").partition(":")
    found = Path(path)
    return Claim(found, token) if token and found.parents[1] == run.parent.resolve() / FOLDER else None


def claim(runs_dir: Path, name: str) -> Claim | None:
    """Claim a run; None if another process holds it, or may hold it. `OSError`: the folder cannot be written."""
    folder = runs_dir / FOLDER / check_name(name)
    for place in (folder.parent, folder):
        if not place.is_dir():
            place.mkdir(exist_ok=True)
            with suppress(OSError):  # what others may write in the runs folder, they may write here
                place.chmod(stat.S_IMODE(runs_dir.stat().st_mode))
    numbers = _numbers(folder)
    if numbers and _liveness(folder / str(numbers[-1])) != "dead":
        return None
    made = Claim(folder / str(max(numbers, default=0) + 1), uuid.uuid4().hex, time.monotonic())
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
        if _numbers(folder)[-1:] != [made.number]:  # this process was held up before it created its claim
            made.path.unlink(missing_ok=True)
            return None
        for number in numbers:  # before anything is written: a network disk may hide the new claim from the old holder
            (folder / str(number)).unlink(missing_ok=True)
    except OSError:
        with suppress(OSError):
            made.path.unlink()
        raise
    return made


def liveness(runs_dir: Path, name: str) -> Liveness:
    """Return whether the holder of a run is alive; `dead` if nobody holds it."""
    folder = runs_dir / FOLDER / name
    numbers = _numbers(folder)
    return _liveness(folder / str(numbers[-1])) if numbers else "dead"


def _numbers(folder: Path) -> list[int]:
    """The numbers of a run's claims, in ascending order."""
    with suppress(FileNotFoundError, NotADirectoryError):
        names = os.listdir(folder)  # noqa: PTH208 - names are enough
        return sorted(int(name) for name in names if name.isascii() and name.isdecimal())
    return []


def _holder_now(folder: Path) -> Holder | None:
    """The holder of a run, if it is or may be alive."""
    numbers = _numbers(folder)
    if not numbers or _liveness(folder / str(numbers[-1])) == "dead":
        return None
    return _holder(_content(folder / str(numbers[-1])) or b"")


def _content(path: Path) -> bytes | None:
    """A claim's bytes; None if it is gone."""
    try:
        with open_regular_file(path) as file:
            return file.read(MAX_CLAIM_BYTES)
    except OSError as error:
        if error.errno in GONE_ERRNOS:
            return None
        raise


def _holder(data: bytes) -> Holder:
    return Holder.read(parse_line(data[: data.find(b"\n") + 1]))


def _liveness(path: Path) -> Liveness:
    """Return whether a claim's holder is alive; a released claim has none."""
    try:
        with open_regular_file(path) as file:
            data, beat = file.read(MAX_CLAIM_BYTES), os.fstat(file.fileno()).st_mtime_ns
    except OSError:  # taken over just now, or unreadable
        return "unknown"
    if data.endswith(RELEASED):
        return "dead"
    holder = _holder(data)
    if (holder.host, holder.boot) == (socket.gethostname(), identity().boot):
        return "alive" if is_alive(holder) else "dead"
    return heartbeat_liveness(path, beat, HOLDER_LOST_AFTER)
