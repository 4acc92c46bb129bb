"""Runs that belong to nobody's window: in a thread of this process, in a process of their own, or handed over.

A process of its own has its own session and no terminal: a hang-up, a closed laptop or a crash of what started it does
not reach it. What it prints goes into the run's log.txt.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from engine.config.schema import RunConfig
from engine.errors import InputError
from engine.plain_files import refuse_links
from engine.runs.commands import Command
from engine.runs.lineage import INIT_FROM, found_again, located
from engine.runs.names import free_name
from engine.runs.process import identity
from engine.runs.reader import RunReader
from engine.runs.writer import RunWriter
from engine.training.control import Control
from tui_transformer.lab.launch.logs import last_words_in

if TYPE_CHECKING:
    from engine.training.assemble import Ready
    from engine.training.control import Outcome

LOOK = 0.05  # seconds between two looks at a run that is starting
GIVES_WAY = 5  # niceness; costs nothing where nobody else computes
PATIENCE = 120.0  # seconds for it to start: a large model, a cold disk


def enqueue(config: RunConfig, *, runs_dir: Path, name: str | None, command: str, **places: dict[str, object]) -> Path:
    """Make a run directory that waits for a process to begin it.

    Args:
        config: not yet resolved.
        runs_dir: the runs folder.
        name: of the run; by default the preset's, with a number if that is taken.
        command: the command line, for run.json.
        places: more entries of run.json: `queue` for a runner of a device (see `tui_transformer.lab.launch.queue`),
            `study` for one of a study (see `tui_transformer.lab.studies`).

    Raises:
        InputError: what cannot be combined, no run to start from, a bad name, or one that is taken.
    """
    from engine import capabilities  # these know every corpus, and take as long to import as everything else here
    from engine.data.catalogue import kind_by_name
    from engine.data.parallel.by_path import absolute

    capabilities.require(config, f"preset '{config.preset}'" if config.preset else "config")
    corpus = config.data.corpus  # whoever begins it may stand elsewhere
    if config.translates and kind_by_name(corpus) is None:
        config = capabilities.with_value(config, "data.corpus", absolute(corpus))
    elif kind_by_name(corpus) is None and Path(corpus).exists():
        config = capabilities.with_value(config, "data.corpus", str(Path(corpus).resolve()))
    if config.train.init_from is not None:
        reader, checkpoint = located(config.train.init_from, runs_dir)
        config = capabilities.with_value(config, INIT_FROM, found_again(reader, checkpoint, runs_dir))
    name = name if name is not None else free_name(runs_dir, config.preset or "run")
    writer = RunWriter.create(runs_dir, name, config, {"command": command} | places, state="queued")
    writer.release()
    return writer.path


def spawn(verb: str, run: Path, *options: str, device: str, data_dir: Path | None = None) -> "subprocess.Popen[bytes]":
    """Start a process of its own that begins or resumes a run. It gives way to what people type at this machine.

    Args:
        verb: `begin` or `resume`.
        run: its directory.
        options: more of the command line.
        device: as on the command line.
        data_dir: as on the command line.

    Raises:
        OSError: it could not be started.
        InputError: something in its directory is a link.
    """
    arguments = [sys.executable, "-m", "tui_transformer", verb, str(run.resolve()), "--device", device, *options]
    if data_dir is not None:
        arguments += ["--data-dir", str(data_dir.resolve())]
    refuse_links(run)
    with (run / "log.txt").open("ab") as log:
        process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    if os.name == "posix":
        with suppress(psutil.Error):
            psutil.Process(process.pid).nice(GIVES_WAY)
    return process


def await_start(reader: RunReader, process: "subprocess.Popen[bytes]", before: int) -> None:
    """Wait until the process trains the run.

    Args:
        reader: the run.
        process: which begins it or resumes it.
        before: the attempt that was the last one; 0 for a queued run.

    Raises:
        InputError: it ended without; says with what words.
    """
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        ended = process.poll() is not None
        status = reader.status
        taken = status.pid == process.pid and status.attempt > before
        if taken and status.state == "failed":
            raise InputError(f"run '{reader.name}' failed: {status.reason}")
        if taken and status.state not in ("queued", "starting"):
            return
        if ended:
            raise InputError(f"run '{reader.name}' did not start: {last_words_in(reader.path / 'log.txt')}")
        time.sleep(LOOK)
    raise InputError(
        f"run '{reader.name}' has not started within {PATIENCE:.0f} s; process {process.pid} may still try"
    )


class Training:
    """The one training thread of this process.

    Args:
        prepare: makes the run ready; called in the thread.
        device: for the process it may be handed to.
        data_dir: for that process.
    """

    _one = threading.Lock()

    def __init__(self, prepare: "Callable[[Control], Ready]", *, device: str, data_dir: Path | None = None) -> None:
        self.control = Control()
        self.path: Path | None = None
        self.outcome: Outcome | None = None
        self.error: BaseException | None = None
        self._prepare, self._device, self._data_dir = prepare, device, data_dir
        self._thread = threading.Thread(target=self._work, name="training", daemon=True)

    def start(self) -> None:
        """Begin.

        Raises:
            InputError: this process trains already; dropout and threads are settings of a process.
        """
        if not self._one.acquire(blocking=False):
            raise InputError("this process trains a run already; stop it first, or start the other one with --detach")
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def join(self, timeout: float | None = None) -> None:
        self._thread.join(timeout)

    def stop(self, reason: str = "", *, signal: int | None = None) -> None:
        """Ask for a checkpoint and the end."""
        self.control.request(Command.STOP, reason, signal=signal)

    def hand_over(self, reason: str = "handed over") -> "subprocess.Popen[bytes] | None":
        """Leave the run to a process of its own and wait until this one has let go of it.

        Returns:
            That process; None where there was nothing to hand over, or it could not be started: the run is then
            interrupted, with a checkpoint to resume from.
        """
        process = None
        if self.alive and self.path is not None:
            paused = ("--paused",) if RunReader(self.path).status.state == "paused" else ()
            options = ("--handed-over", *paused)
            try:
                process = spawn("resume", self.path, *options, device=self._device, data_dir=self._data_dir)
                self.control.hand_over(identity(process.pid), reason)
            except (OSError, psutil.Error) as error:
                process = None
                self.stop(f"could not be handed over: {error}", signal=0)
        elif self.alive:
            self.stop(reason, signal=0)
        self.join()
        return process

    def _work(self) -> None:
        try:
            ready = self._prepare(self.control)
            self.path = ready.path
            self.outcome = ready.trainer.run()
        except BaseException as error:
            self.error = error
        finally:
            import torch

            with suppress(RuntimeError):  # a device that is gone has nothing to give back
                if torch.cuda.is_available():
                    torch.cuda.empty_cache()
            self._one.release()
