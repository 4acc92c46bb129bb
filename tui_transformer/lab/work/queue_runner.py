"""The queue: runs in state `queued` that name a device, trained one after another by that device's runner.

The runner is a separate process that outlives the app or terminal that queued the runs; if killed, it leaves them
queued for the next one. It waits while any other run, however started, is on the device, paused or not. A failed run
does not hold up the rest, nor does one that the runner may not read or write. Whose turn it is: `device_queue.py`.
"""

import math
import os
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from engine.base.errors import InputError, error_message, process_start_error
from engine.base.language import Message, tr
from engine.config.schema import RunConfig
from engine.runs import claims
from engine.runs.claims import Claim
from engine.runs.commands import RunCommand, send
from engine.runs.files import SCHEMA, write_json
from engine.runs.reader import RunReader
from engine.runs.records import QueuePlace
from engine.runs.writer import RunWriter
from tui_transformer.lab.formatting import duration
from tui_transformer.lab.work.device_queue import DeviceQueue, QueuedRun, choose_next, queue_file
from tui_transformer.lab.work.logs import last_log_line
from tui_transformer.lab.work.processes import create_queued_run, spawn, start_detached, start_verb
from tui_transformer.lab.work.runner_lock import be_only_runner, has_runner

POLL_INTERVAL = 1.0  # seconds between checks for a free device
MAX_IDLE_TURNS = 3  # turns without a step after which a run leaves the queue
GRACE = 120.0  # seconds for a run to save a checkpoint at the end of its turn


def add_to_device_queue(
    config: RunConfig, *, runs_dir: Path, name: str | None, command: str, device: str, data_dir: Path | None
) -> Path:
    """Put a run at the end of its owner's queue for a device; see `create_queued_run`."""
    place = QueuePlace(device=device, data_dir=None if data_dir is None else str(data_dir.resolve()))
    return create_queued_run(config, runs_dir=runs_dir, name=name, command=command, queue=place.dump())


def ensure_runner(queued: Path, device: str) -> None:
    """Start a runner for a queued run in a separate process, unless one is running. Of two started at once, one exits.

    Raises InputError if no process can be started.
    """
    folder = queued.parent.resolve()
    if has_runner(queue_file(folder, device, "lock")):
        return
    log = folder / ".queue.log"
    if log.exists() and not os.access(log, os.W_OK):  # of another user
        log = queued / ".queue.log"
    try:
        start_detached(log, "queue", "--device", device, "--runs-dir", str(folder))
    except OSError as error:
        raise process_start_error(error, tr("{name} is queued, but ", name=queued.name)) from None


def train_queued(
    runs_dir: Path,
    device: str,
    report: Callable[[str], None],
    *,
    turn_limit: float | None = None,
    stay: bool = False,
    time_is_up: Callable[[], bool] = lambda: False,
) -> int:
    """Train the runs queued for a device until none is left, or for ever if told to `stay`; return how many there were.
    When time is up, the run in training is stopped with a checkpoint and goes back to the queue.

    After a turn of `turn_limit` seconds, a run is stopped with a checkpoint and goes to the end of its owner's queue.
    """
    begun = set[Path]()
    busy = tr(
        "another process is already working through the queue for {device} in {runs_dir}",
        device=device,
        runs_dir=runs_dir,
    )
    runner = QueueRunner(runs_dir, device, report, turn_limit, time_is_up)
    while True:
        with be_only_runner(queue_file(runs_dir, device, "lock"), busy):
            with suppress(OSError):  # only estimates read it
                write_json(queue_file(runs_dir, device, "json"), {"schema": SCHEMA, "limit": turn_limit})
            while not time_is_up() and (stay or runner.next() is not None):
                runner.wait_until_free()
                if time_is_up():
                    break
                if (found := runner.next()) is not None:  # some may have been removed meanwhile
                    begun |= {found.path} if runner.try_to_train(found) else set()
                elif stay:
                    time.sleep(POLL_INTERVAL)
        if time_is_up() or runner.next() is None:  # one may have come while the lock was released
            return len(begun)


class QueueRunner:
    def __init__(
        self,
        runs_dir: Path,
        device: str,
        said: Callable[[str], None],
        limit: float | None,
        time_is_up: Callable[[], bool],
    ) -> None:
        self.device, self.report, self.limit, self.time_is_up = device, said, limit, time_is_up
        self._queue = DeviceQueue(runs_dir, device)
        self._left: dict[Path, tuple[int, str]] = {}  # runs that stayed queued when tried: their `since` then
        self._idle: dict[Path, int] = {}  # turns in which a run made no step, since its last one
        self._skip_reasons: dict[Path, str] = {}  # why a run is passed over

    def next(self) -> QueuedRun | None:
        """The run whose turn it is, of those that can be trained; says once why another one cannot."""
        self._queue.refresh()
        for path in self._queue.unreadable:
            self._report_skip(path, tr("{path} cannot be read", path=path))
        waiting = [run for run in self._queue.waiting if self._left.get(run.path) != run.since]
        used = self._queue.seconds_by_owner
        while (found := choose_next(waiting, used)) is not None and (obstacle := found.why_untrainable):
            self._report_skip(found.path, obstacle)
            waiting.remove(found)
        return found

    def _report_skip(self, path: Path, why: str) -> None:
        if self._skip_reasons.get(path) != why:
            self._skip_reasons[path] = why
            self.report(tr("skipping {name}: {why}", name=path.name, why=why))

    def wait_until_free(self) -> None:
        """Wait until the device is free. The turn of a run that an earlier runner began ends too."""
        named, since, stopped = Path(), 0.0, set[Path]()
        while True:
            self._queue.refresh()
            others = self._queue.training
            for path in stopped - {run.path for run in others}:
                stopped.discard(path)
                if RunReader(path).state == "stopped":
                    self._end_turn(path, "queued", self._turn_over_reason)
            if not others or (self.time_is_up() and not stopped):
                return
            first = others[0]
            if named != first.path:
                named, since = first.path, time.monotonic()
                self.report(tr("waiting for {name}, which is using {device}", name=first.path.name, device=self.device))
            over = self.limit is not None and time.monotonic() - since >= self.limit
            if over and first.waits_for == self.device and first.path not in stopped:
                stopped.add(first.path)
                with suppress(InputError, OSError):
                    send(first.path, RunCommand.STOP)
            time.sleep(POLL_INTERVAL)

    def try_to_train(self, run: QueuedRun) -> bool:
        """Train a run until it ends or its turn does; return whether it was begun."""
        reader = RunReader(run.path)
        place = reader.run.queue or QueuePlace()
        how = start_verb(reader)
        said = tr("resuming {name}", name=reader.name) if how == "resume" else tr("starting {name}", name=reader.name)
        self.report(said)
        folder, over, claim = Path(place.data_dir) if place.data_dir else None, False, None
        try:
            claim = claims.claim(run.path.parent, run.path.name)
            if claim is None:
                raise InputError(Message("another process has claimed it"))
            process = spawn(how, reader.path, device=place.device, data_dir=folder, claim=claim, for_owner=True)
            over = _wait_and_terminate_at_limit(
                process, claim, self.limit, lambda: reader.status.step > run.step, self.time_is_up
            )
            reason = last_log_line(reader.path / "log.txt")
        except (OSError, InputError, ValueError) as error:  # no process, a link in its directory, an invalid name
            reason = error_message(error)
        finally:
            if claim is not None:
                claim.release()
        if over and reader.state in ("queued", "interrupted", "lost"):
            if self.time_is_up():
                text = Message("the queue ran out of time; the run resumes at its next turn")
                self._end_turn(reader.path, "queued", text)
                return True
            idle = 0 if reader.status.step > run.step else self._idle.get(reader.path, 0) + 1
            self._idle[reader.path] = idle
            if idle < MAX_IDLE_TURNS:
                self._end_turn(reader.path, "queued", self._turn_over_reason)
            else:
                self._end_turn(reader.path, "interrupted", Message("it took no step in its last {n} turns", n=idle))
            return True
        if reader.state == "queued" and claim is not None:  # its process ended before taking it
            try:
                RunWriter.adopt(reader.path).close("failed", reason)
            except (OSError, InputError) as error:
                reason = str(error)
        said = tr("{name}: {state}", name=reader.name, state=tr(reader.state))
        self.report(tr("{state}: {why}", state=said, why=tr(reason)) if reader.state == "queued" else said)
        if reader.state != "queued":
            return True
        self._queue.refresh()  # it cannot be written to: it is not tried again as it is
        self._left |= {one.path: one.since for one in self._queue.waiting if one.path == reader.path}
        return False

    def _end_turn(self, path: Path, state: str, reason: str) -> None:
        """Put a run whose turn is over at the end of its owner's queue, or out of it."""
        try:
            writer = RunWriter(path, launch="process")
            writer.current_status = RunReader(path).status
            writer.close(state, reason)
        except (OSError, InputError) as error:
            reason = str(error)
        self.report(tr("{name}: {text}", name=path.name, text=tr(reason)))

    @property
    def _turn_over_reason(self) -> str:
        return Message("its turn of {limit} is over; it resumes at its next one", limit=duration(self.limit or 0.0))


def _wait_and_terminate_at_limit(
    process: "subprocess.Popen[bytes]",
    claim: Claim,
    limit: float | None,
    moved: Callable[[], bool],
    time_is_up: Callable[[], bool],
) -> bool:
    """Wait for a process until its turn is over; return whether it had to be ended then, with a checkpoint."""
    for _ in range(2):  # on a busy machine, loading alone may take one
        if _wait_for_end(process, claim, limit, time_is_up):
            return False
        if moved() or time_is_up():
            break
    process.terminate()
    if not _wait_for_end(process, claim, GRACE):
        process.kill()
        process.wait()
    return True


def _wait_for_end(
    process: "subprocess.Popen[bytes]",
    claim: Claim,
    seconds: float | None,
    time_is_up: Callable[[], bool] = lambda: False,
) -> bool:
    """Wait at most so long for a process to end, and keep its claim's heartbeat going; return whether it ended."""
    end = math.inf if seconds is None else time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and not time_is_up():
        claim.beat()
        with suppress(subprocess.TimeoutExpired):
            process.wait(min(left, POLL_INTERVAL))
            return True
    return False
