"""The studio's actions on runs: launch, hand over, stop, resume. Knows no widgets.

Call from a worker thread: everything here may wait for a disk or a process. It returns one sentence or raises
`InputError`.
"""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from engine.config.schema import RunConfig
from engine.errors import InputError
from engine.runs.commands import Command, send
from engine.runs.reader import LIVE_STATES, RunReader
from engine.training.control import StopRequested
from tui_transformer.lab.launch import queue
from tui_transformer.lab.launch.launch import Training, enqueue, started
from tui_transformer.lab.launch.logs import log_to

if TYPE_CHECKING:
    from engine.training.assemble import Ready
    from engine.training.control import Control

LaunchMode = Literal["thread", "process", "queue"]


class Launches:
    def __init__(self, runs_dir: Path, data_dir: Path | None, device: str = "auto") -> None:
        self.runs_dir, self.data_dir, self.device = runs_dir, data_dir, device
        self.training: Training | None = None  # the one in this process
        self.here: Path | None = None  # its run
        self._new = False  # whether this is its first start
        self._beginning: set[Path] = set()  # runs whose process is starting

    @property
    def busy(self) -> bool:
        return self.training is not None and self.training.alive

    def _require_free(self, instead: str) -> None:
        if self.busy:
            raise InputError(f"{self.here.name if self.here else 'a run'} trains here already: {instead}")

    def begins(self, run: Path) -> bool:
        """Return whether this app is about to begin a run that still looks queued."""
        return run in self._beginning or (self.busy and self.here == run)

    def create(self, config: RunConfig, how: LaunchMode, command: str) -> Path:
        """Make a run directory, at once; `start` begins it."""
        if how == "thread":
            self._require_free("launch this one detached (f6), or queue it (a)")
        if how == "queue":
            device = self._device()
            return queue.add(
                config, runs_dir=self.runs_dir, name=None, command=command, device=device, data_dir=self.data_dir
            )
        run = enqueue(config, runs_dir=self.runs_dir, name=None, command=command)
        self._beginning.add(run)
        return run

    def start(self, run: Path, how: LaunchMode) -> str:
        """Begin a run made by `create`. If it trains here, `busy` tells while it does, and `outcome` how it ended."""
        if how == "queue":
            queue.ensure_runner(run, self._device())
            return f"{run.name} is queued; it trains when {self._device()} is free"
        try:
            if how == "thread":
                self._train_here(run, "begin")
                return f"{run.name} trains here"
            return self._spawned("begin", run)
        except InputError:
            self.forget(run)
            raise
        finally:
            self._beginning.discard(run)

    def resume(self, run: Path, how: LaunchMode) -> str:
        """Resume a run that ended early, or begin a waiting one, here or in a separate process."""
        reader = RunReader(run)
        state = reader.state
        if state in (*LIVE_STATES, "finished"):
            raise InputError(f"{run.name} is {state}: there is nothing to resume")
        verb = "begin" if state == "queued" else "resume"
        if how == "thread":
            self._require_free("resume this one detached (R)")
            self._train_here(run, verb)
            return f"{run.name} goes on here"
        return self._spawned(verb, run)

    def outcome(self) -> str:
        """Describe how the run that trained here ended. Raises InputError if it did not begin, or failed."""
        training, run = self.training, self.here
        assert training is not None and run is not None
        if isinstance(training.error, StopRequested):
            return f"{run.name} was stopped before it started; `r` starts it"
        if training.error is not None:
            if isinstance(training.error, InputError):
                if self._new:
                    self.forget(run)
                raise training.error
            raise InputError(f"{run.name} failed: {type(training.error).__name__}: {training.error}")
        outcome = training.outcome
        assert outcome is not None
        if outcome.state == "handing-over":
            return ""  # `hand_over` has said it
        reason = f": {outcome.reason}" if outcome.reason else ""
        said = f"{run.name} {outcome.state} at step {outcome.step:,}{reason}"
        if outcome.state == "failed":
            raise InputError(said)
        return said

    def tell(self, run: Path, command: Command) -> None:
        """Send a command to a run's process; the run shows when it is obeyed. Raises InputError if none trains it."""
        reader = RunReader(run)
        if reader.state not in LIVE_STATES:
            raise InputError(f"{run.name} is {reader.state}: there is nothing to {command.value}")
        send(run, command)

    def hand_over(self) -> str:
        training, run = self.training, self.here
        if training is None or run is None or not training.alive:
            return ""
        process = training.hand_over("handed over by the studio")
        state = RunReader(run).state
        if process is None or state not in ("handing-over", *LIVE_STATES):
            return f"{run.name} is {state}; its last checkpoint can be resumed"
        return f"{run.name} continues in the background (process {process.pid}): {RunReader(run).command('watch')}"

    def stop_here(self) -> str:
        training, run = self.training, self.here
        if training is None or run is None or not training.alive:
            return ""
        training.stop("the studio was left")
        training.join()
        reader = RunReader(run)
        return f"{run.name} {reader.state}: {reader.command('resume', data_dir=self.data_dir)} resumes it"

    def forget(self, run: Path) -> None:
        reader = RunReader(run)
        if reader.status.checkpoint is None and reader.state not in LIVE_STATES:
            shutil.rmtree(run, ignore_errors=True)

    def _train_here(self, run: Path, verb: str) -> None:
        def prepare(control: "Control") -> "Ready":
            from engine.training import assemble

            take_up = assemble.begin if verb == "begin" else assemble.resume
            ready = take_up(run, data_dir=self.data_dir, device=self.device, control=control, launch="thread")
            log_to(run / "log.txt")
            return ready

        training = Training(prepare, device=self.device, data_dir=self.data_dir)
        training.start()
        self.training, self.here, self._new = training, run, verb == "begin"

    def _spawned(self, verb: str, run: Path) -> str:
        self._beginning.add(run)
        try:
            process = started(verb, RunReader(run), device=self.device, data_dir=self.data_dir)
        finally:
            self._beginning.discard(run)
        return f"{run.name} trains in a process of its own ({process.pid}); it outlives this window"

    def _device(self) -> str:
        from engine.training.devices import resolve_device

        return str(resolve_device(self.device))
