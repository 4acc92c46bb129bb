"""The studio's actions on runs: launch, hand over, stop, resume. Knows no widgets.

Call from a worker thread: everything here may wait for a disk or a process. It returns one sentence or raises
`InputError`.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from engine.base.errors import InputError
from engine.base.language import Message, tr, trn
from engine.config.schema import RunConfig
from engine.runs.commands import RunCommand, send
from engine.runs.control import StopRequested
from engine.runs.reader import LIVE_STATES, RunReader
from tui_transformer.lab.work import queue_runner
from tui_transformer.lab.work.processes import TrainingThread, create_queued_run, spawn_and_await_start, start_verb
from tui_transformer.lab.work.runner_lock import has_runner
from tui_transformer.lab.work.study_files import stop_file, study_lock

LaunchMode = Literal["thread", "process", "queue"]


class RunActions:
    def __init__(self, runs_dir: Path, data_dir: Path | None, device: str = "auto") -> None:
        self.runs_dir, self.data_dir, self.device = runs_dir, data_dir, device
        self.training: TrainingThread | None = None  # the one in this process
        self._beginning: set[Path] = set()  # runs whose process is starting
        self._ranks: dict[Path, int] = {}  # of the runs made here

    @property
    def local_run(self) -> Path | None:
        """The run training in this process, if any."""
        return self.training.run if self.training is not None and self.training.alive else None

    def _require_free(self, instead: str) -> None:
        if (here := self.local_run) is not None:
            raise InputError(Message("{name} is already training here. {instead}.", name=here.name, instead=instead))

    def is_beginning(self, run: Path) -> bool:
        """Return whether this app is about to begin a run that still looks queued."""
        return run in self._beginning or self.local_run == run

    def create(self, config: RunConfig, how: LaunchMode, command: str, name: str | None = None, ranks: int = 1) -> Path:
        """Make a run directory, at once; `start` begins it. Without a name it is the preset's, numbered if taken."""
        if how == "queue" and ranks > 1:
            raise InputError(Message("a queued run trains on one device; train this one in the background (f6)"))
        if how == "thread":
            self._require_free(tr("Run this one in the background (f6) or queue it (Q)"))
        if how == "queue":
            device = self._device()
            return queue_runner.add_to_device_queue(
                config, runs_dir=self.runs_dir, name=name, command=command, device=device, data_dir=self.data_dir
            )
        run = create_queued_run(config, runs_dir=self.runs_dir, name=name, command=command)
        self._ranks[run] = ranks
        self._beginning.add(run)
        return run

    def start(self, run: Path, how: LaunchMode) -> str:
        """Start a run made by `create`. While it trains in this process: `local_run`; `outcome` says how it ended."""
        if how == "queue":
            queue_runner.ensure_runner(run, self._device())
            return tr("{name} is queued; it will start when {device} is free", name=run.name, device=self._device())
        try:
            if how == "thread":
                self._train_here("begin", run)
                return tr("{name} is training here", name=run.name)
            return self._spawn("begin", run)
        except InputError:
            self.delete_if_unsaved(run)
            raise
        finally:
            self._beginning.discard(run)

    def resume(self, run: Path, how: LaunchMode) -> str:
        """Resume a run that ended early, or begin a waiting one, here or in a separate process."""
        reader = RunReader(run)
        state = reader.state
        if state in (*LIVE_STATES, "finished"):
            raise InputError(Message("{name}: {state}; there is nothing to resume", name=run.name, state=tr(state)))
        verb = start_verb(reader) if state == "queued" else "resume"
        if how == "thread":
            self._require_free(tr("Resume this one in the background (f6)"))
            self._train_here(verb, run)
            return tr("{name} resumes here", name=run.name)
        return self._spawn(verb, run)

    def outcome(self) -> str:
        """Describe how the run that trained here ended. Raises InputError if it did not begin, or failed."""
        training = self.training
        assert training is not None
        run, error = training.run, training.error
        if isinstance(error, StopRequested):
            return tr("{name} was stopped before it started; press r to start it", name=run.name)
        if error is not None:
            if isinstance(error, InputError):
                if training.verb == "begin":
                    self.delete_if_unsaved(run)
                raise error
            text = Message("{name} failed: {name2}: {error}", name=run.name, name2=type(error).__name__, error=error)
            raise InputError(text)
        outcome = training.outcome
        assert outcome is not None
        if outcome.state == "handing-over":
            return ""  # `hand_over` has said it
        said = tr("{name}: {state} at step {step:,}", name=run.name, state=tr(outcome.state), step=outcome.step)
        if outcome.reason:
            said = tr("{state}: {why}", state=said, why=tr(outcome.reason))
        if outcome.state == "failed":
            raise InputError(said)
        return said

    def send_command(self, run: Path, command: RunCommand) -> None:
        """Send a command to a run's process; the run shows when it is obeyed. Raises InputError if none trains it."""
        reader = RunReader(run)
        if reader.state not in LIVE_STATES:
            text = Message(
                "{name}: {state}, so there is nothing to {value}",
                name=run.name,
                state=tr(reader.state),
                value=tr(command.value),
            )
            raise InputError(text)
        send(run, command)

    def send_study_command(self, name: str, runs: Sequence[Path], command: RunCommand) -> str:
        """Send a command to all runs of a study that train, and say how many. A stop also reaches whoever runs it, and
        workers on any machine: they begin no other run until the study is resumed.
        """
        live = [run for run in runs if RunReader(run).state in LIVE_STATES]
        if command is RunCommand.STOP:
            stop_file(self.runs_dir, name).touch()
        # A runner stops its runs itself.
        if command is not RunCommand.STOP or not has_runner(study_lock(self.runs_dir, name)):
            for run in live:
                send(run, command)
        if not live and command is not RunCommand.STOP:
            raise InputError(Message("none of {name}'s runs is training", name=name))
        return trn("{n:,} run", "{n:,} runs", len(live))

    def hand_over(self) -> str:
        training = self.training
        if training is None or not training.alive:
            return ""
        process = training.hand_over(Message("moved to the background by the studio"))
        reader = RunReader(training.run)
        state = reader.state
        if process is None or state not in ("handing-over", *LIVE_STATES):
            return tr("{name}: {state}; it can be resumed from its last checkpoint", name=reader.name, state=tr(state))
        watch = reader.command("watch")
        return tr(
            "{name} continues in the background (pid {pid}). Watch it: {command}",
            name=reader.name,
            pid=process.pid,
            command=watch,
        )

    def stop_here(self) -> str:
        training = self.training
        if training is None or not training.alive:
            return ""
        training.stop(Message("the studio was closed"))
        training.join()
        reader = RunReader(training.run)
        state, resume = tr(reader.state), reader.command("resume", data_dir=self.data_dir)
        return tr("{name} {state}; resume it with {command}", name=reader.name, state=state, command=resume)

    def delete_if_unsaved(self, run: Path) -> None:
        reader = RunReader(run)
        if reader.status.checkpoint is None and reader.state not in LIVE_STATES:
            shutil.rmtree(run, ignore_errors=True)

    def _train_here(self, verb: str, run: Path) -> None:
        training = TrainingThread(verb, run, device=self.device, data_dir=self.data_dir)
        training.start()
        self.training = training

    def _spawn(self, verb: str, run: Path) -> str:
        self._beginning.add(run)
        reader = RunReader(run)
        attempts = reader.environment.attempts
        ranks = self._ranks.get(run) or (attempts[-1].ranks if attempts else None) or 1
        try:
            process = spawn_and_await_start(verb, reader, device=self.device, data_dir=self.data_dir, ranks=ranks)
        finally:
            self._beginning.discard(run)
        return tr("{name} is training in the background (pid {pid})", name=run.name, pid=process.pid)

    def _device(self) -> str:
        from engine.model.devices import resolve_device

        return str(resolve_device(self.device))
