"""`run`: train one model in a worker thread while this one shows what the run directory says."""

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from engine.command_line import as_typed
from engine.config import presets
from engine.config.keys import parse_overrides
from engine.config.schema import RunConfig
from engine.errors import InputError
from engine.runs.commands import Command
from engine.runs.reader import RunReader
from engine.training.control import Control, StopRequested
from tui_transformer.cli.exit_codes import ExitCode
from tui_transformer.cli.output import complain, is_terminal, say, stderr, warn
from tui_transformer.lab.launch.logs import log_to

if TYPE_CHECKING:
    from engine.training.assemble import Ready
    from engine.training.control import Outcome

LOOK = 0.1  # seconds between checks whether a run is ready
PATIENCE = 2.0  # seconds a run has to stop while it is being prepared
PIPE = 13  # SIGPIPE's number; Windows has no name for it


@dataclass(frozen=True)
class Request:
    """What the command line asks to be built."""

    preset: str | None
    config: Path | None
    on: str | None
    overrides: tuple[str, ...]
    corpus: str | None
    seed: int | None

    def source(self) -> presets.Preset:
        """The preset or config file that is meant.

        Raises:
            InputError: neither or both.
        """
        if self.preset is None and self.config is None:
            raise InputError("say what to build: --preset NAME or --config FILE, e.g. --preset demo")
        if self.preset is not None and self.config is not None:
            raise InputError(
                "--preset and --config both say what to build; keep one of them (a config may `extends` one)"
            )
        return presets.find(self.preset) if self.preset is not None else presets.load(Path(str(self.config)))

    def without_changes(self) -> RunConfig | None:
        """The same without --set, where there is one: what its switches are held against."""
        return presets.resolve(self.source(), on=self.on) if self.overrides else None

    def resolve(self) -> RunConfig:
        """The complete config, command line last."""
        tables = parse_overrides(self.overrides)
        if self.corpus is not None:
            tables.append({"data": {"corpus": self.corpus}})
        if self.seed is not None:
            tables.append({"seed": self.seed})
        where = str(self.config) if self.config is not None else f"preset '{self.preset}'"
        return presets.resolve(self.source(), on=self.on, overrides=tables, where=where)


def run_command(
    request: Request,
    *,
    name: str | None,
    device: str,
    as_json: bool,
    runs_dir: Path,
    data_dir: Path | None,
) -> int:
    """Train, showing progress on stderr, then print what came out on stdout."""
    config = request.resolve()
    command = as_typed()

    def prepare(control: Control) -> "Ready":
        from engine.training.assemble import assemble

        return assemble(
            config,
            runs_dir=runs_dir,
            name=name,
            data_dir=data_dir,
            device=device,
            command=command,
            control=control,
        )

    return train(prepare, as_json=as_json, data_dir=data_dir)


def begin_command(run: str, *, device: str, runs_dir: Path, data_dir: Path | None) -> int:
    """Train a queued run."""
    reader = RunReader.resolve(run, runs_dir)

    def prepare(control: Control) -> "Ready":
        from engine.training.assemble import begin

        return begin(reader.path, data_dir=data_dir, device=device, control=control)

    return train(prepare, as_json=False, data_dir=data_dir)


def resume_command(
    run: str,
    *,
    device: str,
    as_json: bool,
    runs_dir: Path,
    data_dir: Path | None,
    handed_over: bool = False,
    paused: bool = False,
) -> int:
    """Go on with a run that ended early, from its newest intact checkpoint.

    Args:
        run: which.
        device: to train on.
        as_json: one JSON object a line.
        runs_dir: where runs are.
        data_dir: where corpora are.
        handed_over: wait for the process that hands it over, and take no other run.
        paused: begin with a pause, as it was left.
    """
    reader = RunReader.resolve(run, runs_dir)
    launch = "thread" if is_terminal(sys.stderr) else "process"

    def prepare(control: Control) -> "Ready":
        from engine.training.assemble import resume

        if paused:
            control.request(Command.PAUSE, "paused when it was handed over")
        return resume(
            reader.path, data_dir=data_dir, device=device, control=control, launch=launch, handed_over=handed_over
        )

    return train(prepare, as_json=as_json, data_dir=data_dir)


def train(prepare: "Callable[[Control], Ready]", *, as_json: bool, data_dir: Path | None) -> int:
    """Prepare a trainer and run it, both in one thread, and show its run directory; return the exit code."""
    control = Control()
    # One thread for both: a second pool of OpenMP threads would take cores away from training.
    worker = ThreadPoolExecutor(1, thread_name_prefix="training")
    with listening(control):
        preparing = worker.submit(_prepared, prepare, control)
        with loading("loading the engine, the corpus and the model"):
            stuck = not _in_time(preparing, control)
        if stuck or isinstance(preparing.exception(), StopRequested):
            say(f"{control.reason}: stopped before training began")
            if stuck:  # in a library that ignores signals; `resume` starts over what it leaves behind
                os._exit(128 + (control.signal or signal.SIGINT))
            return 128 + (control.signal or signal.SIGINT)
        ready = preparing.result()
        for lint in ready.lints:
            warn(f"{lint.key}: {lint.text}")
        log_to(ready.path / "log.txt")
        from tui_transformer.cli.progress import follow

        reader = RunReader(ready.path)
        training = worker.submit(ready.trainer.run)
        status = lambda: ready.trainer.writer.said
        outcome = _watched(training, lambda alive: follow(reader, alive, as_json=as_json, status=status), control)
    if outcome.state == "failed":
        complain(f"run '{reader.name}' failed: {outcome.reason}")
        return ExitCode.FAILED

    from tui_transformer.cli.summary import print_summary

    print_summary(reader, as_json=as_json, data_dir=data_dir)
    if outcome.state == "interrupted":
        saved = reader.status.checkpoint is not None
        where = f"with a checkpoint in {ready.path}" if saved else "before the first checkpoint"
        say(f"{outcome.reason}: stopped at step {outcome.step:,} {where}")
        say(f"{reader.command('resume', data_dir=data_dir)} {'resumes it' if saved else 'starts it over'}")
        return 128 + (control.signal or signal.SIGINT)
    return ExitCode.DONE


def _prepared(prepare: "Callable[[Control], Ready]", control: Control) -> "Ready":
    from engine.training.devices import leave_cores_to_training

    leave_cores_to_training()
    return prepare(control)


def _in_time(work: "Future[Ready]", control: Control) -> bool:
    """Wait for work, but at most `PATIENCE` after a stop was requested; return whether it ended."""
    deadline = math.inf
    while not work.done():
        if control.signal is not None:
            deadline = min(deadline, time.monotonic() + PATIENCE)
        if time.monotonic() > deadline:
            return False
        wait((work,), timeout=LOOK)
    return True


def _watched(work: "Future[Outcome]", watch: Callable[[Callable[[], bool]], None], control: Control) -> "Outcome":
    """Watch work until it ends and return its result.

    Where watching fails (the reader of a pipe left), the run stops with a checkpoint before that is passed on.
    """
    try:
        watch(lambda: not work.done())
    except BaseException as error:
        control.request(Command.STOP, type(error).__name__, signal=PIPE)
        raise
    finally:
        wait((work,))
    return work.result()


@contextmanager
def listening(control: Control) -> Iterator[None]:
    """The first signal asks the run to stop at its next step, a second ctrl-c leaves at once, USR1 saves and goes on.

    A signal that was ignored when this process started (`nohup`) stays ignored.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        if control.signal is not None and number == signal.SIGINT:
            os._exit(128 + number)
        control.request(Command.STOP, signal.Signals(number).name, signal=number)

    def save(number: int, frame: FrameType | None) -> None:
        control.request(Command.CHECKPOINT)

    handlers = {"SIGINT": stop, "SIGTERM": stop, "SIGHUP": stop, "SIGUSR1": save}
    numbers = {getattr(signal, name): handler for name, handler in handlers.items() if hasattr(signal, name)}
    if threading.current_thread() is not threading.main_thread():
        numbers = {}  # only the main thread may set handlers
    before = {n: signal.signal(n, h) for n, h in numbers.items() if signal.getsignal(n) is not signal.SIG_IGN}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def loading(what: str) -> Iterator[None]:
    """A spinner on a terminal while something is loaded."""
    if is_terminal(sys.stderr):
        with stderr().status(f"{what} …"):
            yield
    else:
        yield
