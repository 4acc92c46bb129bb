"""The processes that train a study's cells: begun here, or left behind by a runner that was killed."""

import subprocess
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import psutil

from engine.runs.commands import Command, send
from engine.runs.reader import LIVE_STATES, RunReader
from tui_transformer.lab.studies.standing import Standing, look

VERBS = ("begin", "resume")


@dataclass
class Going:
    """A cell that a process trains.

    Args:
        before: how the cell stood when it began.
        device: it is on.
        process: begun by this runner; None for one that was found.
        pid: of one that was found, while its run does not say it yet.
    """

    before: Standing
    device: str
    process: "subprocess.Popen[bytes] | None" = None
    pid: int | None = None
    _told: bool = False

    def __post_init__(self) -> None:
        self._reader = RunReader(self.before.path)

    @property
    def found(self) -> bool:
        """Whether another runner began it."""
        return self.process is None

    def now(self) -> Standing:
        """How the cell stands."""
        return look(self.before.cell, self.before.path, self._reader)

    @property
    def ended(self) -> bool:
        """Whether its process is gone."""
        if self.process is not None:
            return self.process.poll() is not None
        if self.pid is not None and _trains(self.pid, self.before.path):
            return False
        return self.now().state not in LIVE_STATES

    def stop(self) -> None:
        """Ask for a checkpoint and the end, once."""
        if self._told:
            return
        self._told = True
        if self.process is not None:
            self.process.terminate()
        elif self.pid is not None and _trains(self.pid, self.before.path):
            with suppress(psutil.Error):
                psutil.Process(self.pid).terminate()
        elif self.now().state in LIVE_STATES:  # of another host: a signal does not get there
            send(self.before.path, Command.STOP)


def left_behind(paths: Iterable[Path]) -> dict[Path, int]:
    """Processes of this machine that begin or resume these runs, by run; some have not come so far as to say so."""
    wanted = {str(path.resolve()): path for path in paths}
    found = {}
    for process in psutil.process_iter(["cmdline", "status"]):
        words = process.info["cmdline"] or []
        if process.info["status"] == psutil.STATUS_ZOMBIE:
            continue
        for verb, run in pairwise(words):
            if verb in VERBS and run in wanted:
                found[wanted[run]] = process.pid
    return found


def _trains(pid: int, path: Path) -> bool:
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and str(path.resolve()) in process.cmdline()
    except psutil.Error:
        return False
