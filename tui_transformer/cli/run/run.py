"""`run`, `resume`, `begin`: train here, in a separate process, or when the device is free.

Training here runs in a worker thread while this one shows the run directory's progress.
"""

import math
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from engine import capabilities
from engine.base.command_line import DEFAULT_RUNS_DIR, command_line, current_command_line
from engine.base.errors import InputError
from engine.base.language import Message, tr, trn
from engine.config import presets
from engine.config.keys import parse_overrides
from engine.config.schema import RunConfig
from engine.runs.commands import RunCommand
from engine.runs.control import Control, Outcome, StopRequested
from engine.runs.reader import LIVE_STATES, RunReader
from tui_transformer.cli.commands import command, examples
from tui_transformer.cli.options import (
    ConfigFile,
    Corpus,
    DataDir,
    Detach,
    Device,
    Json,
    On,
    PresetName,
    RanksOption,
    RunArgument,
    RunsDir,
    Set,
)
from tui_transformer.cli.output import ExitCode, is_terminal, print_error, print_info, print_result, show_progress, warn
from tui_transformer.lab.work import queue_runner
from tui_transformer.lab.work.device_queue import DeviceQueue
from tui_transformer.lab.work.logs import log_to
from tui_transformer.lab.work.processes import create_queued_run, spawn_and_await_start

if TYPE_CHECKING:
    from engine.training.assemble import ReadyRun

POLL_INTERVAL = 0.1  # seconds between checks for a ready run
STOP_TIMEOUT = 2.0  # seconds for a run in preparation to stop
PIPE = 13  # SIGPIPE's number; Windows has no name for it


@dataclass(frozen=True)
class Request:
    preset: str | None
    config: Path | None
    on: str | None
    overrides: tuple[str, ...]
    corpus: str | None
    seed: int | None

    def source(self) -> presets.Preset:
        if self.preset is None and self.config is None:
            raise InputError(Message("pass --preset NAME or --config FILE, e.g. --preset demo"))
        if self.preset is not None and self.config is not None:
            raise InputError(
                Message(
                    "--preset and --config both say what to build; keep one of them (a config can name a preset "
                    "with `extends`)"
                )
            )
        return presets.find(self.preset) if self.preset is not None else presets.load(Path(str(self.config)))

    def resolve(self) -> RunConfig:
        tables = parse_overrides(self.overrides)
        if self.corpus is not None:
            tables.append({"data": {"corpus": self.corpus}})
        if self.seed is not None:
            tables.append({"seed": self.seed})
        where = str(self.config) if self.config is not None else tr("preset '{name}'", name=self.preset)
        return presets.resolve(self.source(), on=self.on, overrides=tables, where=where)


@command(10)
@examples(
    {
        "run --preset demo": "Train the demo in a minute or two.",
        "run --preset shakespeare-cpu --corpus my-text.txt": "Train on your own text.",
        "run --preset rope --on demo --seed 2 --detach": (
            "Apply a change to the demo, with another seed, in the background."
        ),
    }
)
def run(
    preset: PresetName = None,
    config: ConfigFile = None,
    on: On = None,
    set_: Set = None,
    corpus: Corpus = None,
    seed: Annotated[int | None, typer.Option("--seed", help="The run's seed.")] = None,
    name: Annotated[str | None, typer.Option("--name", help="The run's name; defaults to the preset's.")] = None,
    detach: Detach = False,
    queue: Annotated[bool, typer.Option("--queue", help="Train when the device is free, and return at once.")] = False,
    ranks: RanksOption = 1,
    device: Device = "auto",
    json: Json = False,
    runs_dir: RunsDir = DEFAULT_RUNS_DIR,
    data_dir: DataDir = None,
) -> int:
    """Train a model. Ctrl-c stops at the next step and saves a checkpoint."""
    if _is_follower_rank():
        return train_as_follower(device, data_dir)
    asked, command = Request(preset, config, on, tuple(set_ or ()), corpus, seed).resolve(), current_command_line()
    capabilities.require_even_ranks(asked, ranks)
    if queue and ranks > 1:
        raise InputError(Message("--queue trains with one rank; leave out --ranks, or use --detach instead"))
    if queue:
        device = resolve_device_name(device)
        queued = queue_runner.add_to_device_queue(
            asked, runs_dir=runs_dir, name=name, command=command, device=device, data_dir=data_dir
        )
        waiting = DeviceQueue(runs_dir, device)
        waiting.refresh()
        before = [position.run.path for position in waiting.positions()].index(queued) + len(waiting.training)
        queue_runner.ensure_runner(queued, device)
        record = {"kind": "run", "name": queued.name, "path": str(queued), "state": "queued", "before": before}
        shown = command_line("runs", runs_dir=runs_dir)
        print_result(
            record,
            tr(
                "{name} is queued, with {ahead} ahead of it; {command} lists the runs",
                name=queued.name,
                ahead=trn("{n:,} run", "{n:,} runs", before),
                command=shown,
            ),
            as_json=json,
        )
        return ExitCode.DONE
    if detach or ranks > 1:
        reader = RunReader(create_queued_run(asked, runs_dir=runs_dir, name=name, command=command))
        train_it = _detach if detach else _train_ranks
        try:
            return train_it("begin", reader, device=device, as_json=json, data_dir=data_dir, ranks=ranks)
        except InputError:
            if reader.status.checkpoint is None and reader.state not in LIVE_STATES:
                shutil.rmtree(reader.path)  # a run that cannot begin leaves nothing behind
            raise

    def prepare(control: Control) -> "ReadyRun":
        from engine.training.assemble import assemble

        return assemble(
            asked, runs_dir=runs_dir, name=name, data_dir=data_dir, device=device, command=command, control=control
        )

    return train(prepare, as_json=json, data_dir=data_dir)


@command(60, hidden=True)
def begin(
    run: RunArgument, device: Device = "auto", runs_dir: RunsDir = DEFAULT_RUNS_DIR, data_dir: DataDir = None
) -> int:
    """Train a queued run; started by `run --detach`."""
    if _is_follower_rank():
        return train_as_follower(device, data_dir)
    reader = RunReader.resolve(run, runs_dir)

    def prepare(control: Control) -> "ReadyRun":
        from engine.training.assemble import begin

        return begin(reader.path, data_dir=data_dir, device=device, control=control)

    return train(prepare, as_json=False, data_dir=data_dir)


@command(40)
@examples({"resume": "Resume the newest run.", "resume demo --detach": "Resume a run in the background."})
def resume(
    run: RunArgument = "last",
    detach: Detach = False,
    handed_over: Annotated[bool, typer.Option("--handed-over", hidden=True)] = False,
    paused: Annotated[bool, typer.Option("--paused", hidden=True)] = False,
    ranks: RanksOption = 1,
    device: Device = "auto",
    json: Json = False,
    runs_dir: RunsDir = DEFAULT_RUNS_DIR,
    data_dir: DataDir = None,
) -> int:
    """Resume a stopped, interrupted, failed or lost run, bit for bit."""
    # `handed_over`: wait for the process that hands the run over, take no other; `paused`: stay paused.
    if _is_follower_rank():
        return train_as_follower(device, data_dir)
    reader = RunReader.resolve(run, runs_dir)
    if detach or ranks > 1:
        if reader.state in LIVE_STATES:
            raise InputError(Message("run '{name}' is already {state}", name=reader.name, state=tr(reader.state)))
        capabilities.require_even_ranks(reader.config, ranks)
        train_it = _detach if detach else _train_ranks
        return train_it("resume", reader, device=device, as_json=json, data_dir=data_dir, ranks=ranks)
    launch = "thread" if is_terminal(sys.stderr) else "process"

    def prepare(control: Control) -> "ReadyRun":
        from engine.training.assemble import resume

        if paused:
            control.enqueue_command(RunCommand.PAUSE, Message("it was paused when it moved to the background"))
        return resume(
            reader.path, data_dir=data_dir, device=device, control=control, launch=launch, handed_over=handed_over
        )

    return train(prepare, as_json=json, data_dir=data_dir)


def resolve_device_name(device: str) -> str:
    """Resolve the device: `auto` and `cuda` have no queue of their own."""
    with show_progress(tr("checking devices")):
        from engine.model.devices import resolve_device

        return str(resolve_device(device))


def _train_ranks(verb: str, reader: RunReader, *, device: str, as_json: bool, data_dir: Path | None, ranks: int) -> int:
    """Train a run with several ranks, and show its run directory; return the exit code."""
    came: list[int] = []

    def stop(number: int) -> None:
        came.append(number)
        pid = reader.status.pid
        if len(came) > 1:  # a rank that hangs keeps the others from stopping: torch kills what is left after 30 s
            process.terminate()
        elif pid is not None and process.poll() is None:
            with suppress(OSError):
                os.kill(pid, number)

    with show_progress(tr("starting {n} ranks", n=ranks)):
        process = spawn_and_await_start(verb, reader, device=device, data_dir=data_dir, ranks=ranks, attached=True)
    from tui_transformer.cli.run.progress import follow

    with handle_signals(stop):
        try:
            follow(reader, lambda: process.poll() is None, as_json=as_json)
        except BaseException:  # e.g. a pipe's reader left: stop with a checkpoint first
            stop(signal.SIGTERM)
            raise
        finally:
            process.wait()
    state, status = reader.state, reader.status
    lost = state not in ("finished", "stopped", "interrupted", "failed")
    why = status.reason or Message("its process is gone")
    outcome = Outcome("failed", status.step, why) if lost else Outcome(state, status.step, status.reason)
    return _print_end(reader, outcome, as_json=as_json, data_dir=data_dir, number=came[0] if came else None)


def _detach(verb: str, reader: RunReader, *, device: str, as_json: bool, data_dir: Path | None, ranks: int = 1) -> int:
    with show_progress(tr("starting")):
        process = spawn_and_await_start(verb, reader, device=device, data_dir=data_dir, ranks=ranks)
    name, pid = reader.name, process.pid
    record = {"kind": "run", "name": name, "path": str(reader.path), "pid": pid, "state": reader.state}
    text = tr(
        "{name} is training in the background (process {pid}); to watch it: {command}",
        name=name,
        pid=pid,
        command=reader.command("watch"),
    )
    print_result(record, text, as_json=as_json)
    return ExitCode.DONE


def train(prepare: "Callable[[Control], ReadyRun]", *, as_json: bool, data_dir: Path | None) -> int:
    """Prepare a trainer and run it, both in one thread, and show its run directory; return the exit code."""
    control = Control()
    # One thread for both: a second pool of OpenMP threads would take cores away from training.
    worker = ThreadPoolExecutor(1, thread_name_prefix="training")

    def prepared() -> "ReadyRun":
        from engine.model.devices import leave_cores_to_training

        leave_cores_to_training()
        return prepare(control)

    def stop(number: int) -> None:
        control.enqueue_command(RunCommand.STOP, signal.Signals(number).name, received_signal=number)

    with handle_signals(stop, lambda: control.enqueue_command(RunCommand.CHECKPOINT)):
        deadline = math.inf
        with show_progress(tr("loading the engine, the corpus and the model")):
            preparing = worker.submit(copy_context().run, prepared)  # listeners here also hear of work in that thread
            while not preparing.done() and time.monotonic() <= deadline:
                if control.signal is not None:
                    deadline = min(deadline, time.monotonic() + STOP_TIMEOUT)
                wait((preparing,), timeout=POLL_INTERVAL)
        stuck = not preparing.done()  # in a library that ignores signals
        if stuck or isinstance(preparing.exception(), StopRequested):
            print_info(tr("{reason}: stopped before training began", reason=tr(control.reason)))
            if stuck:
                os._exit(128 + (control.signal or signal.SIGINT))  # `resume` starts over what it leaves behind
            return 128 + (control.signal or signal.SIGINT)
        ready = preparing.result()
        for lint in ready.lints:
            warn(tr(lint.message))
        log_to(ready.path / "log.txt")
        from tui_transformer.cli.run.progress import follow

        reader = RunReader(ready.path)
        training = worker.submit(ready.trainer.run)
        try:
            status = lambda: ready.trainer.writer.current_status
            follow(reader, lambda: not training.done(), as_json=as_json, status=status)
        except BaseException as error:  # e.g. a pipe's reader left: stop with a checkpoint first
            control.enqueue_command(RunCommand.STOP, type(error).__name__, received_signal=PIPE)
            raise
        finally:
            wait((training,))
        outcome = training.result()
    return _print_end(reader, outcome, as_json=as_json, data_dir=data_dir, number=control.signal)


def _print_end(reader: RunReader, outcome: Outcome, *, as_json: bool, data_dir: Path | None, number: int | None) -> int:
    """Say how a run ended, with the number of the signal that ended it; return the exit code."""
    if outcome.state == "lost":  # to another worker
        print_error(outcome.reason)
        return ExitCode.TAKEN_OVER
    if outcome.state == "failed":
        print_error(tr("run '{name}' failed: {reason}", name=reader.name, reason=tr(outcome.reason)))
        return ExitCode.FAILED

    from tui_transformer.cli.run.summary import print_summary

    print_summary(reader, as_json=as_json, data_dir=data_dir)
    if outcome.state == "interrupted":
        saved = reader.status.checkpoint is not None
        said = (
            tr("{reason}: stopped at step {step:,} with a checkpoint in {path}")
            if saved
            else tr("{reason}: stopped at step {step:,} before the first checkpoint")
        )
        print_info(said.format(reason=tr(outcome.reason), step=outcome.step, path=reader.path))
        again = reader.command("resume", data_dir=data_dir)
        said = tr("{command} resumes the run") if saved else tr("{command} starts the run over")
        print_info(said.format(command=again))
        return 128 + (number or signal.SIGINT)
    return ExitCode.DONE


def _is_follower_rank() -> bool:
    """Whether torchrun started this process as one of the ranks that rank 0 leads."""
    return os.environ.get("WORLD_SIZE", "1") != "1" and os.environ.get("RANK", "0") != "0"


def train_as_follower(device: str, data_dir: Path | None) -> int:
    """Train as one of the ranks that rank 0 leads; only rank 0 prints anything."""
    from engine.model.devices import leave_cores_to_training
    from engine.ranks import ProcessGroup, join_ranks
    from engine.runs.control import RankLost
    from engine.training.assemble import train_follower_rank

    def work() -> None:
        leave_cores_to_training()
        ranks = join_ranks(device)
        assert isinstance(ranks, ProcessGroup)
        group.append(ranks)
        train_follower_rank(ranks, data_dir)

    def stop(number: int) -> None:
        if not group:  # nobody waits for this rank yet
            os._exit(128 + number)
        group[0].stop_signal = signal.Signals(number).name

    group: list[ProcessGroup] = []
    worker = ThreadPoolExecutor(1, thread_name_prefix="training")
    with handle_signals(stop):
        training = worker.submit(work)
        while not training.done():
            wait((training,), timeout=POLL_INTERVAL)
    if isinstance(training.exception(), RankLost):
        return ExitCode.FAILED
    training.result()
    return ExitCode.DONE


@contextmanager
def handle_signals(stop: Callable[[int], None], save: Callable[[], None] | None = None) -> Iterator[list[int]]:
    """Call `stop` with the number of a terminating signal, `save` at USR1; a second ctrl-c exits at once. A signal that
    was ignored when this process started (`nohup`) stays ignored. Yields the numbers of the signals received so far.
    """
    heard: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        if heard and number == signal.SIGINT:
            os._exit(128 + number)
        heard.append(number)
        stop(number)

    handlers: dict[str, Callable[[int, FrameType | None], None]] = dict.fromkeys(("SIGINT", "SIGTERM", "SIGHUP"), end)
    if save is not None:
        handlers["SIGUSR1"] = lambda number, frame: save()
    numbers = {getattr(signal, name): handler for name, handler in handlers.items() if hasattr(signal, name)}
    if threading.current_thread() is not threading.main_thread():
        numbers = {}  # only the main thread may set handlers
    before = {n: signal.signal(n, h) for n, h in numbers.items() if signal.getsignal(n) is not signal.SIG_IGN}
    try:
        yield heard
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
