"""Start training: in a thread of this process, in a separate process, or handed over from one to the other.

A separate process has its own session and no terminal: a hang-up, a closed laptop or a crash of its parent does not
reach it. Its output goes into the run's log.txt: it runs the command `begin` or `resume`, so that its log, exit codes
and signals are those of a run in a terminal.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from engine.base.errors import InputError, process_start_error
from engine.base.language import Message, tr
from engine.base.plain_files import OWNER_VARIABLE, require_regular_files
from engine.config.schema import RunConfig
from engine.runs.claims import Claim
from engine.runs.commands import RunCommand
from engine.runs.control import Control
from engine.runs.lineage import INIT_FROM, find_init_run, portable_init_from
from engine.runs.names import free_name
from engine.runs.process import PARENT_VARIABLE, identity
from engine.runs.reader import RunReader
from engine.runs.records import Process
from engine.runs.writer import RunWriter
from tui_transformer.lab.work.logs import last_log_line, log_to

if TYPE_CHECKING:
    from engine.runs.control import Outcome

POLL_INTERVAL = 0.05  # seconds between polls of a starting run
VERBS = ("begin", "resume")  # commands that train a run
NICENESS = 10  # niceness; costs nothing on an idle machine


def create_queued_run(
    config: RunConfig, *, runs_dir: Path, name: str | None, command: str, **places: Mapping[str, object]
) -> Path:
    """Make a run directory that waits for a process to begin it.

    Its name defaults to the preset's, numbered if taken. `places` are further entries of run.json: `queue` for a
    device's runner, `study` for a study's. Raises InputError if it cannot be trained or named so.
    """
    from engine import capabilities  # these load every corpus, and double the import time
    from engine.data.catalogue import portable_name

    capabilities.require_valid(config, f"preset '{config.preset}'" if config.preset else "config")
    corpus = portable_name(config.data.corpus, config.task.corpus)  # it may be started from another folder
    if corpus != config.data.corpus:
        config = capabilities.with_value(config, "data.corpus", corpus)
    if config.train.init_from is not None:
        reader, checkpoint = find_init_run(config.train.init_from, runs_dir)
        config = capabilities.with_value(config, INIT_FROM, portable_init_from(reader, checkpoint, runs_dir))
    name = name if name is not None else free_name(runs_dir, config.preset or "run")
    writer = RunWriter.create(runs_dir, name, config, {"command": command} | places, state="queued")
    writer.release_lock()
    return writer.path


def start_detached(
    log: Path, *words: str, ranks: int = 1, attached: bool = False, variables: Mapping[str, str] | None = None
) -> "subprocess.Popen[bytes]":
    """Start a command in a separate process, or in several `ranks` under an agent that watches them, that outlives this
    one unless `attached`. Raises OSError if it cannot be started.

    It writes English, because its output is kept in its log.
    """
    command = [sys.executable, "-m", "tui_transformer", "--language", "en", *words]
    if ranks > 1:
        agent = ["engine.training.elastic", *(["--attached"] if attached else [])]
        command[1:2] = ["-m", *agent, "--standalone", "--nproc-per-node", str(ranks), "-m"]
    environment = os.environ | ({PARENT_VARIABLE: str(os.getpid())} if attached else {}) | dict(variables or {})
    with log.open("ab") as file:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True, env=environment
        )


def start_verb(reader: RunReader) -> Literal["begin", "resume"]:
    """Return how to start a queued run: one that has had a turn before is resumed."""
    return "resume" if reader.environment.attempts else "begin"


def spawn(
    verb: str,
    run: Path,
    *options: str,
    device: str,
    data_dir: Path | None = None,
    ranks: int = 1,
    attached: bool = False,
    claim: Claim | None = None,
    for_owner: bool = False,
) -> "subprocess.Popen[bytes]":
    """Start a separate process that begins or resumes a run, at low priority so that the machine stays usable; it
    leaves the run when `claim` is no longer held. With `for_owner`, it reads only what the run's owner may read too.
    """
    folder = () if data_dir is None else ("--data-dir", str(data_dir.resolve()))
    require_regular_files(run)
    words = (verb, str(run.resolve()), "--device", device, *options, *folder)
    variables = claim.variables if claim else {}
    if for_owner and hasattr(os, "getuid") and (owner := run.lstat().st_uid) != os.getuid():
        variables |= {OWNER_VARIABLE: f"{owner}:{run.resolve()}"}
    process = start_detached(run / "log.txt", *words, ranks=ranks, attached=attached, variables=variables)
    if os.name == "posix":
        import psutil

        with suppress(psutil.Error):
            psutil.Process(process.pid).nice(NICENESS)
        # Linux schedules sessions as groups (`man sched`), so the niceness of a process in one of its own says nothing
        with suppress(OSError):
            Path(f"/proc/{process.pid}/autogroup").write_text(str(NICENESS), encoding="ascii")
    return process


def training_processes(runs: Iterable[Path]) -> dict[Path, Process]:
    """Find the processes on this machine that begin or resume these runs, even before the runs record them."""
    import psutil

    wanted = {str(run.resolve()): run for run in runs}
    found = {}
    for process in psutil.process_iter(["cmdline", "status"]):
        if process.info["status"] == psutil.STATUS_ZOMBIE:
            continue
        for verb, run in pairwise(process.info["cmdline"] or []):
            if verb in VERBS and run in wanted:
                with suppress(psutil.Error):
                    found[wanted[run]] = identity(process.pid)
    return found


def spawn_and_await_start(
    verb: str, reader: RunReader, *, device: str, data_dir: Path | None, ranks: int = 1, attached: bool = False
) -> "subprocess.Popen[bytes]":
    """Spawn the process that begins or resumes a run, and wait until training starts; `InputError` if it does not."""
    before = reader.status.attempt if verb == "resume" else 0
    try:
        process = spawn(verb, reader.path, device=device, data_dir=data_dir, ranks=ranks, attached=attached)
    except OSError as error:
        raise process_start_error(error) from None
    await_start(reader, process, before)
    return process


def await_start(reader: RunReader, process: "subprocess.Popen[bytes]", last_attempt: int) -> None:
    """Wait until the process trains the run; `before` is its last attempt so far, 0 for a queued run.

    There is no time limit while the process lives: on a busy machine, several ranks may take minutes to start. Raises
    InputError if it ends first.
    """
    while True:
        ended = process.poll() is not None
        status = reader.status
        taken = status.attempt > last_attempt and _is_process_or_child(process.pid, status.pid)
        if taken and status.state == "failed":
            raise InputError(Message("run '{name}' failed: {reason}", name=reader.name, reason=tr(status.reason)))
        if taken and status.state not in ("queued", "starting"):
            return
        if ended:
            words = tr(last_log_line(reader.path / "log.txt"))
            raise InputError(
                Message("run '{name}' did not start: {last_words_in}", name=reader.name, last_words_in=words)
            )
        time.sleep(POLL_INTERVAL)


def _is_process_or_child(parent: int, process: int | None) -> bool:
    """Whether a process is another one or was started by it, as rank 0 is."""
    if process is None or process == parent:
        return process == parent
    import psutil

    with suppress(psutil.Error):
        return psutil.Process(process).ppid() == parent
    return False


BUSY = tr("this process is already training a run; stop that run first, or start the other with --detach")


class TrainingThread:
    """This process's one training thread, which starts or resumes a run."""

    _one = threading.Lock()

    def __init__(self, verb: str, run: Path, *, device: str, data_dir: Path | None = None) -> None:
        self.verb, self.run = verb, run
        self.control = Control()
        self.outcome: Outcome | None = None
        self.error: BaseException | None = None
        self._device, self._data_dir, self._taken = device, data_dir, False
        self._thread = threading.Thread(target=self._work, name="training", daemon=True)

    def start(self) -> None:
        """Begin. Raises InputError if this process already trains: dropout and threads are process-wide settings."""
        if not self._one.acquire(blocking=False):
            raise InputError(BUSY)
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def join(self, timeout: float | None = None) -> None:
        self._thread.join(timeout)

    def stop(self, reason: str = "", *, signal: int | None = None) -> None:
        self.control.enqueue_command(RunCommand.STOP, reason, received_signal=signal)

    def hand_over(self, reason: str = Message("handed over")) -> "subprocess.Popen[bytes] | None":
        """Hand the run to a separate process, which is returned, and wait until this one has released it.

        None if there was nothing to hand over, or it could not be started: the run is then interrupted, with a
        checkpoint to resume from.
        """
        import psutil

        process = None
        if self.alive and self._taken:
            paused = ("--paused",) if RunReader(self.run).status.state == "paused" else ()
            options = ("--handed-over", *paused)
            try:
                process = spawn("resume", self.run, *options, device=self._device, data_dir=self._data_dir)
                self.control.hand_over(identity(process.pid), reason)
            except (OSError, psutil.Error) as error:
                process = None
                self.stop(Message("could not be moved to the background: {error}", error=error), signal=0)
        elif self.alive:
            self.stop(reason, signal=0)
        self.join()
        return process

    def _work(self) -> None:
        try:
            from engine.training import assemble

            start = assemble.begin if self.verb == "begin" else assemble.resume
            ready = start(self.run, device=self._device, data_dir=self._data_dir, control=self.control, launch="thread")
            log_to(self.run / "log.txt")
            self._taken = True
            self.outcome = ready.trainer.run()
        except BaseException as error:
            self.error = error
        finally:
            import torch

            with suppress(RuntimeError):  # a lost device has nothing to release
                if torch.cuda.is_available():
                    torch.cuda.empty_cache()
            self._one.release()
