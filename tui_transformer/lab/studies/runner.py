"""The runner of a study: keeps so many cells going on the devices at hand until all are done. Shows nothing.

Each cell is a process of its own. Whatever happens to the runner, the run directories alone say what is done, so the
next one goes on from there: what is finished is never repeated, what lives is waited for, what ended early is resumed.
"""

import subprocess
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import psutil

from engine import capabilities
from engine.errors import InputError, MachineFault, no_process, refused
from engine.runs.commands import Command, send
from engine.runs.lineage import INIT_FROM, split_init_from
from engine.runs.manage import delete
from engine.runs.reader import LIVE_STATES, RunReader
from engine.runs.writer import RunWriter
from tui_transformer.lab.launch.launch import enqueue, spawn
from tui_transformer.lab.launch.logs import last_words_in
from tui_transformer.lab.studies.record import CellStatus, Verb, look, look_at_all, study_file
from tui_transformer.lab.studies.study import Cell

LOOK = 0.25  # seconds between two looks at what runs
VERBS = ("begin", "resume")  # of the processes that train cells


@dataclass
class Going:
    """A cell that a process trains."""

    before: CellStatus  # how the cell stood when it began
    device: str  # it is on
    process: "subprocess.Popen[bytes] | None" = None  # begun by this runner; None for one that was found
    pid: int | None = None  # of one that was found, while its run does not say it yet
    _told: bool = False

    def __post_init__(self) -> None:
        self._reader = RunReader(self.before.path)

    @property
    def found(self) -> bool:
        return self.process is None

    def now(self) -> CellStatus:
        return look(self.before.cell, self.before.path, self._reader)

    @property
    def ended(self) -> bool:
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


@dataclass(frozen=True)
class Orders:
    """How a study is to be run."""

    study: str
    runs_dir: Path  # where its runs are
    data_dir: Path | None  # where named corpora are looked for first
    devices: tuple[str, ...]  # cells are spread over them
    jobs: int  # cells at a time
    retry_failed: bool = False  # take up what has failed before
    command: str = ""  # the command line, for run.json


class Audience(Protocol):
    """Whoever shows what happens."""

    def begun(self, cell: CellStatus, verb: Verb) -> None:
        """A process has been started for a cell, or found at work on it."""

    def ended(self, cell: CellStatus) -> None:
        """A cell's process is gone, and no other is started for it."""

    def looked(self, going: Sequence[CellStatus]) -> None:
        """Another look was taken; these cells are at work."""


@dataclass
class Runner:
    """One run through a study."""

    orders: Orders  # how
    cells: Sequence[Cell]  # seeds first
    paths: dict[str, Path]  # run directories by a cell's name
    audience: Audience  # is told
    _going: list[Going] = field(default_factory=list)
    _waiting: deque[CellStatus] = field(default_factory=deque)
    _stop: threading.Event = field(default_factory=threading.Event)
    _recorded: bool = False

    def stop(self) -> None:
        """Ask the cells at work for a checkpoint and their end, begin no other. No I/O: for signal handlers."""
        self._stop.set()

    def run(self) -> list[CellStatus]:
        """Train what is to be trained; how every cell stands then.

        Raises:
            InputError: a run directory cannot be made; what was at work has then stopped with a checkpoint.
            MachineFault: the runs folder vanished. It is not made anew: it may be a disk that somebody took away.
        """
        self._recorded = study_file(self.orders.runs_dir, self.orders.study).exists()
        try:
            self._take_stock()
            while self._going or (self._waiting and not self._stop.is_set()):
                while len(self._going) < self.orders.jobs and not self._stop.is_set():
                    status = self._next()
                    if status is None:
                        break
                    self._going.append(self._begun(status))
                self._stop.wait(LOOK) if not self._stop.is_set() else time.sleep(LOOK)
                self._look()
            self._require_place()
        except BaseException:
            self._stop.set()
            self.audience = _Nobody()  # it may be the one that failed
            while self._going:
                self._look()
                time.sleep(LOOK)
            raise
        return look_at_all(self.cells, self.paths)

    def _take_stock(self) -> None:
        """Sort the cells by what going on with them means; what a killed runner left at work is waited for."""
        found = left_behind(self.paths.values())
        for cell in self.cells:
            status = look(cell, self.paths[cell.name])
            pid = found.get(status.path)
            if pid is not None or status.verb == "wait":
                self._going.append(Going(status, status.device, pid=pid))
                self.audience.begun(status, "wait")
            elif status.verb == "failed":
                if self.orders.retry_failed:
                    self._waiting.append(status)
            elif status.verb != "done":
                self._waiting.append(status)

    def _next(self) -> CellStatus | None:
        """The first cell that can be begun; what waits for a stage that nobody will finish is let go."""
        open_ = {status.cell.name for status in (*self._waiting, *(going.before for going in self._going))}
        for status in list(self._waiting):
            after = status.cell.after
            if after and status.verb != "resume":  # its own checkpoint is all that it needs
                if after in open_:
                    continue
                if RunReader(self.paths[after]).state != "finished":
                    self._waiting.remove(status)
                    open_.discard(status.cell.name)  # nor will what starts from it
                    found = {now.cell.name: now for now in look_at_all(self.cells, self.paths)}
                    self.audience.ended(found[status.cell.name])
                    continue
            self._waiting.remove(status)
            return status
        return None

    def _require_place(self) -> None:
        file = study_file(self.orders.runs_dir, self.orders.study)
        if not self.orders.runs_dir.is_dir() or (self._recorded and not file.exists()):
            raise MachineFault(f"{file} vanished while the study ran; the same command begins anew what is not there")

    def _begun(self, before: CellStatus) -> Going:
        """Start a process for a cell, with a run directory for it where there is none."""
        self._require_place()
        on = Counter(going.device for going in self._going)
        device = min(self.orders.devices, key=lambda name: on[name])
        verb: Verb = before.verb
        if verb == "failed":
            verb = "resume" if before.checkpoint else "anew"
        if verb == "anew":
            delete(RunReader(before.path))
        if verb in ("anew", "create"):
            self.paths[before.cell.name] = self._create(before.cell)
        before = look(before.cell, self.paths[before.cell.name])
        path = before.path
        try:
            process = spawn(
                "resume" if verb == "resume" else "begin", path, device=device, data_dir=self.orders.data_dir
            )
        except OSError as error:
            raise no_process(error, f"run '{before.cell.name}': ") from None
        self.audience.begun(before, verb)
        return Going(before, device, process)

    def _create(self, cell: Cell) -> Path:
        place: dict[str, Any] = {"name": self.orders.study, "variant": cell.variant, "seed": cell.seed}
        place |= {"stage": cell.stage} if cell.stage else {}
        place |= {"after": cell.begins_with} if cell.after else {}
        config, asked = cell.config, cell.config.train.init_from
        if cell.after and asked is not None:  # the other cell's run may have been renamed
            _, checkpoint = split_init_from(asked)
            config = capabilities.with_value(config, INIT_FROM, f"{self.paths[cell.after].name}@{checkpoint}")
        runs_dir, command = self.orders.runs_dir, self.orders.command
        try:
            return enqueue(config, runs_dir=runs_dir, name=cell.name, command=command, study=place)
        except OSError as error:
            raise refused(f"cannot write run '{cell.name}' in {runs_dir}", error) from None

    def _look(self) -> None:
        """Take a look at what is at work; pass on what has ended."""
        for going in list(self._going):
            if self._stop.is_set():
                going.stop()
            if going.ended:
                self._going.remove(going)
                self._settle(going)
        self.audience.looked([going.now() for going in self._going])

    def _settle(self, going: Going) -> None:
        """What becomes of a cell whose process is gone."""
        now = going.now()
        if now.state == "queued" and not going.found and not self._stop.is_set():  # it never took its run
            with suppress(InputError, OSError):  # unless somebody else has taken it meanwhile
                RunWriter.adopt(now.path).close("failed", last_words_in(now.path / "log.txt"))
            now = going.now()
        # What was killed goes on as long as that gets it further; what a person stopped stays so.
        killed = now.state == "lost" and now.step > going.before.step
        orphan = going.found and now.verb in ("begin", "resume", "anew") and now.state != "stopped"
        if (killed or orphan) and not self._stop.is_set():
            self._waiting.appendleft(now)
        else:
            self.audience.ended(now)


class _Nobody:
    """An audience that has left."""

    def begun(self, cell: CellStatus, verb: Verb) -> None: ...

    def ended(self, cell: CellStatus) -> None: ...

    def looked(self, going: Sequence[CellStatus]) -> None: ...
