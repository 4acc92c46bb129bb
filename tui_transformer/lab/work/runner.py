"""The runner of a study: keeps cells running on the available devices until all are done. Shows nothing.

Each cell is a separate process. Whatever happens to the runner, the run directories alone record what is done, and the
next runner continues: finished cells are never repeated, live ones are waited for, those that ended early are resumed.
Several runners, on whatever hosts, share a study: each claims a cell before it touches it (`engine/runs/claims.py`).
"""

import subprocess
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from engine import capabilities
from engine.base.errors import InputError, MachineFault, process_start_error, write_error
from engine.base.language import Message, tr
from engine.runs import claims
from engine.runs.claims import Claim
from engine.runs.commands import RunCommand, send
from engine.runs.lineage import INIT_FROM, split_init_from
from engine.runs.manage import delete
from engine.runs.process import is_alive
from engine.runs.reader import LIVE_STATES, RunReader
from engine.runs.records import Process
from engine.runs.writer import RunWriter
from tui_transformer.lab.work.cells import CellStatus, Verb, cell_status, cell_statuses
from tui_transformer.lab.work.logs import last_log_line
from tui_transformer.lab.work.processes import create_queued_run, spawn, training_processes
from tui_transformer.lab.work.study import StudyCell
from tui_transformer.lab.work.study_files import stop_file, study_file

POLL_INTERVAL = 0.25  # seconds between polls of running cells
MAX_KILLS = 3  # times that a run is begun again if its process is killed before it takes the run
RETRY_INTERVAL = 1.0  # seconds until cells that could not be claimed are tried again
MAX_FAILURES = 3  # cells in a row that fail before their first step, after which a worker blames its machine


@dataclass
class RunningCell:
    status_before: CellStatus  # the cell's state when it began
    device: str  # that it runs on
    process: "subprocess.Popen[bytes] | None" = None  # begun by this runner; None if found running
    found: Process | None = None  # that trains it, as far as it was found on this machine
    claim: Claim | None = None  # under which this runner has begun it
    _stop_sent: bool = False

    def __post_init__(self) -> None:
        self._reader = RunReader(self.status_before.path)

    @property
    def was_found(self) -> bool:
        return self.process is None

    def current_status(self) -> CellStatus:
        return cell_status(self.status_before.cell, self.status_before.path, self._reader)

    @property
    def has_ended(self) -> bool:
        if self.process is not None:
            return self.process.poll() is not None
        return self._living_pid is None and self.current_status().state not in LIVE_STATES

    @property
    def _living_pid(self) -> int | None:
        """The process that was found, if it is still there."""
        return self.found.pid if self.found is not None and is_alive(self.found) else None

    @property
    def was_killed(self) -> bool:
        """Whether a signal has ended it."""
        return self.process is not None and (self.process.poll() or 0) < 0

    def stop(self) -> None:
        """Ask it to save a checkpoint and end, once."""
        if self._stop_sent:
            return
        self._stop_sent = True
        if self.process is not None:
            self.process.terminate()
        elif (pid := self._living_pid) is not None:
            with suppress(psutil.Error):
                psutil.Process(pid).terminate()
        elif self.current_status().state in LIVE_STATES:  # on another host: signals do not reach it
            send(self.status_before.path, RunCommand.STOP)


def _needs_no_training(before: CellStatus, now: CellStatus) -> bool:
    """Whether a cell that was to be trained needs it no more: finished, or failed or stopped by a person meanwhile."""
    ended = now.state in ("failed", "stopped") and (now.state, now.attempt) != (before.state, before.attempt)
    return now.verb == "done" or ended


class RunnerListener:
    """Is notified of a runner's progress; this base class ignores it."""

    def on_begin(self, cell: CellStatus, verb: Verb) -> None:
        """A process has been started for a cell, or found at work on it."""

    def on_end(self, cell: CellStatus) -> None:
        """A cell's process has ended, and no other is started. A worker does not report the cells of others."""

    def on_takeover(self, cell: CellStatus) -> None:
        """Another worker has taken a cell over."""

    def on_poll(self, running: Sequence[CellStatus]) -> None:
        """Another poll was made; these cells are running."""


@dataclass
class Runner:
    study: str
    cells: Sequence[StudyCell]  # seeds first
    paths: dict[str, Path]  # run directories by a cell's name
    listener: RunnerListener  # is notified
    runs_dir: Path  # where its runs are
    data_dir: Path | None  # searched first for named corpora
    devices: tuple[str, ...]  # cells are spread over them
    jobs: int  # cells at a time
    retry_failed: bool = False  # retry what failed before
    command: str = ""  # the command line, for run.json
    is_worker: bool = False  # one of several that may come and go: obeys an earlier stop, leaves others their cells
    time_is_up: Callable[[], bool] = lambda: False  # asked at each poll; it then stops
    failures_in_row: int = 0  # cells that failed before their first step
    _begun: set[str] = field(default_factory=set)  # cells that it has begun, or found running
    _running: list[RunningCell] = field(default_factory=list)
    _waiting: deque[CellStatus] = field(default_factory=deque)
    _stop: threading.Event = field(default_factory=threading.Event)
    _recorded: bool = False
    _next_try: float = 0.0  # by the monotonic clock
    _killed: Counter[str] = field(default_factory=Counter)  # how often processes were killed before they took a run
    _left_to_others: bool = False  # whether other workers have all that is left

    def stop(self) -> None:
        """Ask running cells to save a checkpoint and end; begin no other. No I/O: safe in signal handlers."""
        self._stop.set()

    def run(self) -> list[CellStatus]:
        """Train what remains; return every cell's final state.

        If a run directory cannot be made, running cells stop with a checkpoint first. Raises MachineFault if the runs
        folder vanished: it is not recreated, for it may be a disk that was removed.
        """
        self._recorded = study_file(self.runs_dir, self.study).exists()
        asked = stop_file(self.runs_dir, self.study)
        if not self.is_worker:
            asked.unlink(missing_ok=True)  # it stopped an earlier runner
        left = training_processes(self.paths.values())  # what a killed runner left at work is waited for
        try:
            for cell in self.cells:
                status = cell_status(cell, self.paths[cell.name])
                found = left.get(status.path)
                is_running = found is not None or (status.verb == "wait" and not self.is_worker)
                if is_running and claims.liveness(self.runs_dir, cell.name) == "dead":
                    self._running.append(RunningCell(status, status.device, found=found))
                    self._report_begin(status, "wait")
                elif status.verb != "done" and (status.verb != "failed" or self.retry_failed):
                    self._waiting.append(status)
            while self._running or (
                self._waiting and not self._stop.is_set() and not (self.is_worker and self._left_to_others)
            ):
                if asked.exists():
                    self._stop.set()
                while len(self._running) < self.jobs and not self._stop.is_set():
                    following = self._claim_next()
                    if following is None:
                        break
                    try:
                        self._running.append(self._spawn_cell(*following))
                    except BaseException:
                        following[1].release()
                        raise
                self._stop.wait(POLL_INTERVAL) if not self._stop.is_set() else time.sleep(POLL_INTERVAL)
                self._poll()
            self._require_folder()
        except BaseException:
            self._stop.set()
            self.listener = RunnerListener()  # it may be the one that failed
            while self._running:
                self._poll()
                time.sleep(POLL_INTERVAL)
            raise
        return cell_statuses(self.cells, self.paths)

    def _claim_next(self) -> tuple[CellStatus, Claim] | None:
        """Claim the first cell that can begin; drop what others have finished or failed, and what waits for a stage
        that nobody will finish.
        """
        if time.monotonic() < self._next_try:
            return None
        open_ = {status.cell.name for status in (*self._waiting, *(running.status_before for running in self._running))}
        others, self._left_to_others = True, False
        for before in list(self._waiting):
            name, after = before.cell.name, before.cell.parent_cell
            if after in open_ and before.verb != "resume":  # that needs only its own checkpoint
                others = False
                continue
            now = cell_status(before.cell, self.paths[name])
            theirs = claims.liveness(self.runs_dir, name)
            if now.verb == "wait" or theirs != "dead":
                others &= "alive" in (theirs, RunReader(now.path).liveness())
                continue
            waits = after and now.verb != "resume" and RunReader(self.paths[after]).state != "finished"
            if not waits and not _needs_no_training(before, now):
                claim = self._claim(name)
                if claim is None:
                    others = False
                    continue
                now = cell_status(before.cell, self.paths[name])  # it may have been another's until now
                if now.verb != "wait" and not _needs_no_training(before, now):
                    self._waiting.remove(before)
                    return now, claim
                claim.release()
            self._waiting.remove(before)
            if now.verb == "wait":
                self._waiting.append(before)
                others = False
                continue
            open_.discard(name)  # nor will what starts from it begin
            found = {status.cell.name: status for status in cell_statuses(self.cells, self.paths)} if waits else {}
            self._report_end(found.get(name, now))
        self._next_try, self._left_to_others = time.monotonic() + RETRY_INTERVAL, others
        return None

    def _claim(self, name: str) -> Claim | None:
        self._require_folder()
        try:
            return claims.claim(self.runs_dir, name)
        except OSError as error:
            text = tr("cannot claim run '{name}' in {runs_dir}", name=name, runs_dir=self.runs_dir)
            raise write_error(text, error) from None

    @property
    def _folder_exists(self) -> bool:
        return self.runs_dir.is_dir() and (not self._recorded or study_file(self.runs_dir, self.study).exists())

    def _require_folder(self) -> None:
        if not self._folder_exists:
            file = study_file(self.runs_dir, self.study)
            text = Message(
                "{file} disappeared while the study was running; run the same command again to redo what is missing",
                file=file,
            )
            raise MachineFault(text)

    def _spawn_cell(self, before: CellStatus, claim: Claim) -> RunningCell:
        on = Counter(running.device for running in self._running)
        device = min(self.devices, key=lambda name: on[name])
        verb: Verb = before.verb
        if verb == "failed":
            verb = "resume" if before.checkpoint else "anew"
        if verb == "anew":
            delete(RunReader(before.path))
        cell = before.cell
        if verb in ("anew", "create"):
            place = {"name": self.study, "variant": cell.variant, "seed": cell.seed}
            place |= {key: said for key, said in (("stage", cell.stage), ("after", cell.parent_stage)) if said}
            config, asked = cell.config, cell.config.train.init_from
            if cell.parent_cell and asked is not None:  # the other cell's run may have been renamed
                _, checkpoint = split_init_from(asked)
                config = capabilities.with_value(config, INIT_FROM, f"{self.paths[cell.parent_cell].name}@{checkpoint}")
            try:
                path = create_queued_run(
                    config, runs_dir=self.runs_dir, name=cell.name, command=self.command, study=place
                )
            except OSError as error:
                text = tr("cannot write run '{name}' in {runs_dir}", name=cell.name, runs_dir=self.runs_dir)
                raise write_error(text, error) from None
            self.paths[cell.name] = path
        before = cell_status(cell, self.paths[cell.name])
        started = "resume" if verb == "resume" else "begin"
        try:
            process = spawn(started, before.path, device=device, data_dir=self.data_dir, claim=claim)
        except OSError as error:
            raise process_start_error(error, f"run '{cell.name}': ") from None
        self._report_begin(before, verb)
        return RunningCell(before, device, process, claim=claim)

    def _poll(self) -> None:
        for running in list(self._running):
            if self._stop.is_set():
                running.stop()
            if running.claim is not None:
                running.claim.beat()
            if not running.has_ended:
                continue
            self._running.remove(running)
            now = running.current_status()
            if running.claim is not None and not running.claim.is_held:  # taken over: somebody believed this one dead
                self._waiting.append(now)
                if self._folder_exists:
                    self.listener.on_takeover(now)
                continue
            never_took = now.state == "queued" and not running.was_found and not self._stop.is_set()
            # A kill says nothing about the run: the machine may be short of memory, or be given to another job.
            again = never_took and running.was_killed and self._killed[now.cell.name] < MAX_KILLS
            self._killed[now.cell.name] += again
            if never_took and not again:
                with suppress(InputError, OSError):  # unless another process took it meanwhile
                    RunWriter.adopt(now.path).close("failed", last_log_line(now.path / "log.txt"))
                now = running.current_status()
            if running.claim is not None:
                running.claim.release()
                self._next_try = 0.0
            # A killed run is resumed as long as it makes progress; one that a person stopped stays stopped.
            killed = now.state == "lost" and now.step > running.status_before.step
            orphan = running.was_found and now.verb in ("begin", "resume", "anew") and now.state != "stopped"
            if (killed or orphan or again) and not self._stop.is_set():
                self._waiting.appendleft(now)
            else:
                self._report_end(now)
        self.listener.on_poll([running.current_status() for running in self._running])
        if self.time_is_up():
            self.stop()

    def _report_begin(self, cell: CellStatus, verb: Verb) -> None:
        self._begun.add(cell.cell.name)
        self.listener.on_begin(cell, verb)

    def _report_end(self, cell: CellStatus) -> None:
        if self.is_worker and cell.cell.name not in self._begun:
            return
        self.listener.on_end(cell)
        self.failures_in_row = self.failures_in_row + 1 if cell.state == "failed" and cell.step == 0 else 0
        if self.is_worker and self.failures_in_row >= MAX_FAILURES:
            self.stop()
