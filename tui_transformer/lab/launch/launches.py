"""What the studio does with runs, apart from showing them: launch, hand over, stop, resume. Knows no widget.

Call from a worker thread: everything here may wait for a disk or a process. It returns one sentence or raises
`InputError`.
"""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from engine.config.schema import RunConfig
from engine.errors import InputError, no_process
from engine.runs.commands import Command, send
from engine.runs.reader import LIVE_STATES, RunReader
from engine.training.control import StopRequested
from tui_transformer.lab.launch import queue
from tui_transformer.lab.launch.launch import Training, await_start, enqueue, spawn
from tui_transformer.lab.launch.logs import log_to

if TYPE_CHECKING:
    from engine.training.assemble import Ready
    from engine.training.control import Control

LaunchMode = Literal["thread", "process", "queue"]


class Launches:
    """The runs that this app started.

    Args:
        runs_dir: where runs are.
        data_dir: where named corpora are looked for first.
        device: to train on, as on the command line.
    """

    def __init__(self, runs_dir: Path, data_dir: Path | None, device: str = "auto") -> None:
        self.runs_dir, self.data_dir, self.device = runs_dir, data_dir, device
        self.training: Training | None = None  # the one in this process
        self.here: Path | None = None  # its run
        self._new = False  # whether this is its first start
        self._beginning: set[Path] = set()  # runs that a process is being started for

    @property
    def busy(self) -> bool:
        """Whether a run trains in this process."""
        return self.training is not None and self.training.alive

    def _require_free(self, instead: str) -> None:
        if self.busy:
            raise InputError(f"{self.here.name if self.here else 'a run'} trains here already: {instead}")

    def begins(self, run: Path) -> bool:
        """Whether this app is about to begin a run that still looks as if it waited for somebody."""
        return run in self._beginning or (self.busy and self.here == run)

    def create(self, config: RunConfig, how: LaunchMode, command: str) -> Path:
        """Make a run directory, at once; `start` begins it.

        Raises:
            InputError: what cannot be combined, or a run trains here already and `how` is "thread".
        """
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
        """Begin a run made by `create`. Where it trains here, `busy` says until when, and `outcome` how it ended.

        Raises:
            InputError: it could not be begun; nothing is left behind.
        """
        if how == "queue":
            try:
                queue.ensure_runner(self.runs_dir, self._device())
            except OSError as error:
                raise no_process(error, f"{run.name} is queued, but ") from None
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
        """Go on with a run that ended early, or begin one that waits, here or in a process of its own.

        Raises:
            InputError: it is alive, or cannot be taken up.
        """
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
        """Say what became of the run that trained here.

        Raises:
            InputError: it could not be begun, or failed.
        """
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
        """Send a command to whoever trains a run; the run shows when it is obeyed.

        Raises:
            InputError: nobody does.
        """
        reader = RunReader(run)
        if reader.state not in LIVE_STATES:
            raise InputError(f"{run.name} is {reader.state}: there is nothing to {command.value}")
        send(run, command)

    def hand_over(self) -> str:
        """Leave the run that trains here to a process of its own."""
        training, run = self.training, self.here
        if training is None or run is None or not training.alive:
            return ""
        process = training.hand_over("handed over by the studio")
        state = RunReader(run).state
        if process is None or state not in ("handing-over", *LIVE_STATES):
            return f"{run.name} is {state}; its last checkpoint can be resumed"
        return f"{run.name} continues in the background (process {process.pid}): {RunReader(run).command('watch')}"

    def stop_here(self, reason: str = "the studio was left") -> str:
        """Stop the run that trains here, with a checkpoint."""
        training, run = self.training, self.here
        if training is None or run is None or not training.alive:
            return ""
        training.stop(reason)
        training.join()
        reader = RunReader(run)
        return f"{run.name} {reader.state}: {reader.command('resume', data_dir=self.data_dir)} resumes it"

    def forget(self, run: Path) -> None:
        """Remove a run that never began."""
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
        reader = RunReader(run)
        before = reader.status.attempt if verb == "resume" else 0
        try:
            process = spawn(verb, run, device=self.device, data_dir=self.data_dir)
        except OSError as error:
            raise no_process(error) from None
        self._beginning.add(run)
        try:
            await_start(reader, process, before)
        finally:
            self._beginning.discard(run)
        return f"{run.name} trains in a process of its own ({process.pid}); it outlives this window"

    def _device(self) -> str:
        from engine.training.devices import resolve_device

        return str(resolve_device(self.device))
