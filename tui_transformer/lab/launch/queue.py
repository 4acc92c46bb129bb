"""The queue: runs in state `queued` that name a device, trained one after another by that device's runner.

The runner is a separate process that outlives the app or terminal that queued the runs; if killed, it leaves them
queued for the next one. It waits while any other run, however started, is on the device, paused or not. A failed run
does not hold up the rest.
"""

import re
import time
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock, Timeout

from engine.config.schema import RunConfig
from engine.errors import InputError, no_process
from engine.language import tr
from engine.retelling import told
from engine.runs.reader import LIVE_STATES, RunReader, list_runs
from engine.runs.records import QueuePlace
from engine.runs.writer import RunWriter
from tui_transformer.lab.launch.launch import detached, enqueue, spawn
from tui_transformer.lab.launch.logs import last_words_in

LOOK = 1.0  # seconds between checks for a free device


def add(
    config: RunConfig, *, runs_dir: Path, name: str | None, command: str, device: str, data_dir: Path | None
) -> Path:
    """Put a run at the end of a device's queue; see `launch.enqueue`."""
    place = QueuePlace(device=device, data_dir=None if data_dir is None else str(data_dir.resolve()))
    return enqueue(config, runs_dir=runs_dir, name=name, command=command, queue=place.dump())


def waiting(runs_dir: Path, device: str) -> list[RunReader]:
    return [
        reader
        for reader in list_runs(runs_dir)
        if reader.state == "queued" and (place := reader.run.queue) is not None and place.device == device
    ]


def at_work(runs_dir: Path, device: str) -> list[RunReader]:
    return [reader for reader in list_runs(runs_dir) if reader.state in LIVE_STATES and reader.status.device == device]


def _lock(runs_dir: Path, device: str) -> FileLock:
    return FileLock(runs_dir / f".queue-{re.sub('[^a-z0-9]', '-', device)}.lock", timeout=0)


def ensure_runner(queued: Path, device: str) -> None:
    """Start a runner for a queued run in a separate process, unless one is running. Of two started at once, one exits.

    Raises InputError if no process can be started.
    """
    folder = queued.parent.resolve()
    try:
        detached(folder / ".queue.log", "queue", "--device", device, "--runs-dir", str(folder))
    except OSError as error:
        raise no_process(error, tr("{name} is queued, but ", name=queued.name)) from None


def work(runs_dir: Path, device: str, said: Callable[[str], None]) -> int:
    """Train the runs queued for a device until none is left; return how many there were."""
    lock, done, left = _lock(runs_dir, device), 0, set[Path]()

    def next_one() -> RunReader | None:
        return next((reader for reader in waiting(runs_dir, device) if reader.path not in left), None)

    while True:
        try:
            lock.acquire()
        except Timeout:
            raise InputError(
                tr(
                    "another process is already working through the queue for {device} in {runs_dir}",
                    device=device,
                    runs_dir=runs_dir,
                )
            ) from None
        try:
            while next_one() is not None:
                named = ""
                while others := at_work(runs_dir, device):
                    if named != others[0].name:
                        named = others[0].name
                        said(tr("waiting for {name}, which is using {device}", name=named, device=device))
                    time.sleep(LOOK)
                if (found := next_one()) is not None:  # some may have been removed meanwhile
                    _train(found, said)
                    left.add(found.path)  # if still queued, it cannot be written to
                    done += found.state != "queued"
        finally:
            lock.release()
        if next_one() is None:  # one may have come while the lock was released
            return done


def _train(reader: RunReader, said: Callable[[str], None]) -> None:
    place = reader.run.queue or QueuePlace()
    said(tr("starting {name}", name=reader.name))
    folder = Path(place.data_dir) if place.data_dir else None
    try:
        process = spawn("begin", reader.path, device=place.device, data_dir=folder)
        process.wait()
        reason = last_words_in(reader.path / "log.txt")
    except (OSError, InputError, ValueError) as error:  # no process, a link in its directory, an invalid name
        reason = str(error)
    if reader.state == "queued":  # its process ended before taking it
        try:
            RunWriter.adopt(reader.path).close("failed", reason)
        except (OSError, InputError) as error:
            reason = str(error)
    why = f": {told(reason)}" if reader.state == "queued" else ""
    said(tr("{name}: {state}{why}", name=reader.name, state=told(reader.state), why=why))
