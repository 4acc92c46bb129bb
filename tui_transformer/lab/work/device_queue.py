"""The queue of a device: which queued run is next, and when each one's turn comes.

The next run is that of the owner whose runs have trained on the device for the least time; of several, of the one who
has waited longest. An owner's own runs go first come, first served. The owner of a run is the owner of its folder.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

from engine.base.language import tr
from engine.runs.files import read_json
from engine.runs.reader import LIVE_STATES, RunReader
from engine.runs.records import TrainRecord
from engine.runs.scan import REST_INTERVAL, RunsScan
from engine.runs.tail import newest_records, stamp
from tui_transformer.lab.work.cells import finished_run_wall_seconds

WRITTEN = (".lock", "log.txt", "metrics.jsonl", "events.jsonl", "samples.jsonl", "checkpoints")  # by whoever trains it
END = 1 << 16  # bytes at the end of its metrics that hold a record
MOST_TURNS = 10  # of a run, on average, that are looked ahead


def owner_of(run: Path) -> str:
    """The user who owns a run's folder: what its files say may have been written by anyone."""
    user = run.lstat().st_uid
    try:
        import pwd

        return pwd.getpwuid(user).pw_name
    except (ImportError, KeyError):  # Windows; a user of another machine
        return str(user)


def queue_file(runs_dir: Path, device: str, ending: str) -> Path:
    """A file of a device's queue, in the runs folder."""
    return runs_dir / f".queue-{re.sub('[^a-z0-9]', '-', device)}.{ending}"


@dataclass(frozen=True)
class QueuedRun:
    """A run in the folder, queued or not, as far as a queue depends on it."""

    path: Path
    owner: str = ""
    state: str = ""
    waits_for: str = ""  # the device whose queue it was added to
    device: str = ""  # that it trains or trained on
    since: tuple[int, str] = (0, "")  # when it entered its state; when it was made, which breaks ties
    seconds: float = 0.0  # trained so far
    total_seconds: float = 0.0  # the same with evaluations, as far as that is known
    step: int = 0
    steps: int = 0
    preset: str = ""

    @property
    def live(self) -> bool:
        return self.state in LIVE_STATES

    @property
    def seconds_per_step(self) -> float | None:
        """Seconds a step so far."""
        return self.total_seconds / self.step if self.step > 0 and self.total_seconds > 0 else None

    @property
    def why_untrainable(self) -> str:
        """Why this process cannot train it; "" if nothing is known to be in its way."""
        for path in (self.path, *(self.path / name for name in WRITTEN)):
            if path.is_symlink():
                return tr("{path} is a link", path=path)
            if path == self.path and not os.access(path, os.R_OK | os.X_OK):
                return tr("{path} cannot be read", path=path)
            if path.exists() and not os.access(path, os.W_OK):
                where = tr("{path} cannot be written", path=path)
                return tr("it belongs to {owner}, and {where}", owner=self.owner, where=where)
        return ""


class QueuePosition(NamedTuple):
    """A queued run's place in the queue, from 1, and the seconds until its turn; None if unknown."""

    run: QueuedRun
    place: int
    wait: float | None


def choose_next(waiting: Sequence[QueuedRun], used: Mapping[str, float]) -> QueuedRun | None:
    """The run whose turn is next; `used` are the seconds that the device has been used, by owner."""
    first: dict[str, QueuedRun] = {}
    for run in sorted(waiting, key=lambda run: run.since):
        first.setdefault(run.owner, run)
    return min(first.values(), key=lambda run: used.get(run.owner, 0.0), default=None)


class DeviceQueue:
    def __init__(self, runs_dir: Path, device: str) -> None:
        self.device, self._rules = device, queue_file(runs_dir, device, "json")
        files = ("status.json", "metrics.jsonl")
        self._scan = RunsScan(runs_dir, files, _read_run, moving=lambda run: run.live, broke=lambda run, before: False)
        self._looks = 0

    def refresh(self, now: float | None = None) -> None:
        """Read what has changed; without a time, look at every run."""
        self._looks += 1
        self._scan.update(self._looks * REST_INTERVAL if now is None else now)

    @property
    def unreadable(self) -> list[Path]:
        return self._scan.unreadable

    @property
    def waiting(self) -> list[QueuedRun]:
        return [run for run in self._scan.runs if run.state == "queued" and run.waits_for == self.device]

    @property
    def training(self) -> list[QueuedRun]:
        """The runs that use the device, the newest first."""
        live = [run for run in self._scan.runs if run.live and run.device == self.device]
        return sorted(live, key=lambda run: run.since[1], reverse=True)

    @property
    def seconds_by_owner(self) -> dict[str, float]:
        """Seconds of training on this device by owner, whatever became of the runs."""
        found: dict[str, float] = {}
        for run in self._scan.runs:
            if run.device == self.device:
                found[run.owner] = found.get(run.owner, 0.0) + run.seconds
        return found

    @property
    def turn_limit(self) -> float | None:
        """The longest turn, in seconds, that the newest runner gives a run; None if it has no limit."""
        found = read_json(self._rules)
        limit = found.get("limit") if isinstance(found, dict) else None
        return float(limit) if isinstance(limit, int | float) and limit >= 1 else None

    def positions(self) -> list[QueuePosition]:
        """The queued runs in the order of their turns, if no other run is added.

        A run is expected to train as fast as it has, or else as others of its preset, or as all others.
        """
        left_of, used = self._remaining_estimator(), self.seconds_by_owner
        at_work, limit = self.training, self.turn_limit
        waiting = {run.path: run for run in self.waiting}
        left = {run.path: left_of(run) for run in (*waiting.values(), *at_work)}
        known, wait, found, whole = True, 0.0, dict[Path, QueuePosition](), len(waiting)

        def taken(run: QueuedRun) -> float:
            nonlocal known
            rest = left[run.path]
            known = known and rest is not None
            took = 1.0 if rest is None else rest if limit is None else min(limit, rest)
            used[run.owner] = used.get(run.owner, 0.0) + took
            left[run.path] = None if rest is None else rest - took
            return took

        wait = max((taken(run) for run in at_work), default=0.0)
        for turn in range(MOST_TURNS * whole):
            if len(found) == whole or (run := choose_next([*waiting.values()], used)) is None:
                break
            found.setdefault(run.path, QueuePosition(run, len(found) + 1, wait if known else None))
            wait += taken(run)
            if left[run.path]:  # it goes behind its owner's other runs
                waiting[run.path] = replace(run, since=(1 << 63, f"{turn:09d}"))
            else:
                del waiting[run.path]
        return list(found.values())

    def _remaining_estimator(self) -> Callable[[QueuedRun], float | None]:
        """How to estimate the seconds that a run still needs."""
        paces: dict[str, list[float]] = {}
        for run in self._scan.runs:
            if run.device == self.device and run.seconds_per_step is not None:
                paces.setdefault(run.preset, []).append(run.seconds_per_step)
        everything = [pace for found in paces.values() for pace in found]

        def left(run: QueuedRun) -> float | None:
            found = [run.seconds_per_step] if run.seconds_per_step is not None else paces.get(run.preset) or everything
            return median(found) * max(0, run.steps - run.step) if found else None

        return left


def _read_run(run: Path) -> QueuedRun:
    try:
        owner = owner_of(run)
    except OSError:  # gone
        return QueuedRun(run)
    reader = RunReader(run)
    status, born = reader.status, reader.run
    records = newest_records(run / "metrics.jsonl", TrainRecord, 1, END)
    seconds, state = max(0.0, (records[-1].seconds or 0.0) if records else 0.0), reader.state
    return QueuedRun(
        path=run,
        owner=owner,
        state=state,
        waits_for=born.queue.device if born.queue is not None else "",
        device="" if run.is_symlink() else status.device,  # the target of a link is counted in its own folder
        since=((stamp(run / "status.json") or (0,))[0], born.created + run.name),
        seconds=seconds,
        total_seconds=(finished_run_wall_seconds(run) if state == "finished" else None) or seconds,
        step=status.step,
        steps=status.steps,
        preset=born.preset or "",
    )
