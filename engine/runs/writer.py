"""RunWriter: the only writer of a run directory. It holds the lock; everyone else only reads."""

import errno
import logging
import os
import shutil
import socket
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, TypeVar

from filelock import FileLock, Timeout

from engine.base.errors import InputError, write_error
from engine.base.language import Message, tr
from engine.base.plain_files import require_regular_files
from engine.config.schema import RunConfig
from engine.config.toml import config_toml
from engine.runs.claims import inherited_claim
from engine.runs.commands import read_commands
from engine.runs.files import SCHEMA, append_whole, atomic_folder, json_line, write_atomic, write_json
from engine.runs.names import check_name
from engine.runs.process import identity, is_alive
from engine.runs.reader import WAITING_FOR_SPACE, RunReader
from engine.runs.record_version import RECORD_VERSION
from engine.runs.records import (
    Checks,
    Event,
    MetricRecord,
    Owner,
    Process,
    Record,
    RunFile,
    Sample,
    Status,
    VerdictRecord,
    read_file,
)
from engine.runs.verdict import Verdict

log = logging.getLogger(__name__)

STREAMS = ("metrics", "events", "samples")
DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT)
STATUS_INTERVAL = 0.5  # seconds between two writes of status.json while nothing but the step changes
T = TypeVar("T")


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _holds_no_run(path: Path) -> bool:
    """Return whether a folder with a run's name holds no run: nothing, or only the empty files a run begins with."""
    ours = {".lock", "checkpoints", *(f"{stream}.jsonl" for stream in STREAMS)}
    if not path.is_dir() or path.is_symlink():
        return False
    found = list(path.iterdir())
    return {one.name for one in found} <= ours and not any(
        any(one.iterdir()) if one.is_dir() else one.lstat().st_size for one in found
    )


def _name_taken_error(path: Path) -> InputError:
    return InputError(
        Message("run '{name}' already exists in {parent}; choose another --name", name=path.name, parent=path.parent)
    )


class RunWriter:
    """Appends to the files of one run. Made by `create`; closed once, by `close`.

    In a process that was started under a claim, `RunTakenOver` is raised instead of writing once it is another's.
    """

    def __init__(self, path: Path, *, wait: float = 0.0, launch: str = "thread") -> None:
        require_regular_files(path)  # of an existing run that is continued
        self.path, self.launch, self.claim = path, launch, inherited_claim(path)
        if self.claim is not None:
            self.claim.require_held()
        self._lock = FileLock(path / ".lock", timeout=wait, thread_local=False)  # released by a worker thread
        try:
            self._lock.acquire()
        except Timeout:
            by = tr("another process")  # the lock just acquired
            # Another host's lock may outlive its process on a network disk; there, the claim decides.
            elsewhere = self.claim and read_file(path, Owner).host not in ("", socket.gethostname())
            for owner in (RunReader(path).status, read_file(path, Owner)):
                if (owner.host != socket.gethostname() or is_alive(owner)) and owner.pid is not None and owner.host:
                    by = tr("process {pid} on {host}", pid=owner.pid, host=owner.host)
            if not elsewhere:
                message = Message(
                    "run '{name}' is being written by {by}; stop that process first, or choose another --name",
                    name=path.name,
                    by=by,
                )
                raise InputError(message) from None
        with suppress(OSError):  # status.json names the previous process until this one has loaded its data
            write_json(path / Owner.file, {"schema": SCHEMA, **identity().dump()})
        if self.claim is not None and self.claim.number > 1:
            self._replace_streams_by_copies()
        self._files: dict[str, IO[bytes]] = {
            stream: (path / f"{stream}.jsonl").open("ab", buffering=0) for stream in STREAMS
        }
        # Called while the disk is full, and may raise to give up; None gives up at once.
        self.wait_for_room: Callable[[], None] | None = None
        self.checkpoint_bytes = 0  # what the next checkpoint needs
        self._verdicts: list[VerdictRecord] = []
        self.current_status = Status()  # the content of status.json, or what it would be if the disk had room
        self._status_written = -STATUS_INTERVAL
        self.attempt = 1
        # Earlier commands were for an earlier attempt.
        self.last_command_id = max((number for number, _ in read_commands(path)), default=0)

    def _replace_streams_by_copies(self) -> None:
        """Continue in copies of the streams: an earlier holder's host may still write to the old files."""
        for path in (self.path / f"{stream}.jsonl" for stream in STREAMS):
            if path.exists():
                shutil.copyfile(path, path.with_name(f".{path.name}.new"))
                path.with_name(f".{path.name}.new").replace(path)

    def require_claim(self) -> None:
        """Raise `RunTakenOver` if the run was claimed for this process but is another's; called before every write."""
        if self.claim is not None and not self.why_folder_missing():
            self.claim.require_held()

    @classmethod
    def create(
        cls, root: Path, name: str, config: RunConfig, facts: Mapping[str, Any], *, state: str = "starting"
    ) -> "RunWriter":
        """Create a run directory for a resolved, complete config. `facts` are further entries of run.json; `state` is
        `queued` if another process will adopt it. `InputError`: a bad name, a run of that name, or
        a folder that cannot be written.
        """
        path = root / check_name(name)
        try:
            root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise write_error(tr("cannot create the runs folder {root}", root=str(root)[:200]), error) from None
        first = {"schema": SCHEMA, "id": str(uuid.uuid4()), "created": now(), "preset": config.preset}
        phase = "loading" if state == "starting" else ""
        status = Status(
            state=state, phase=phase, steps=config.train.steps, attempt=1, launch="thread", **identity().dump()
        )
        try:
            if path.exists() and not _holds_no_run(path):
                raise _name_taken_error(path)
            # It appears with its config, so that a killed process leaves either no run or one that can be started over.
            with atomic_folder(path) as staged:
                (staged / "checkpoints").mkdir()
                write_json(staged / "run.json", first | {"records": RECORD_VERSION} | dict(facts))
                write_atomic(staged / "config.toml", config_toml(config))
                write_json(staged / Status.file, {"schema": SCHEMA, **status.model_dump()})
                if path.exists():
                    shutil.rmtree(path)
        except OSError as error:
            if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):  # created meanwhile
                raise _name_taken_error(path) from None
            what = tr("cannot create {filename} in the runs folder", filename=str(error.filename or path)[:300])
            raise write_error(what, error) from None
        try:
            writer = cls(path)
            writer.current_status = status
            writer.update_status()
            return writer
        except OSError as error:
            shutil.rmtree(path, ignore_errors=True)  # nothing is in it yet; its name is free again
            what = tr("cannot write {filename}", filename=str(error.filename or path)[:300])
            raise write_error(what, error) from None

    @classmethod
    def adopt(cls, path: Path, *, launch: str = "process") -> "RunWriter":
        """Claim a queued run, setting `starting`; `InputError`: another process has it, or it is not queued."""
        writer = cls(path, launch=launch)
        status = RunReader(path).status
        if status.state != "queued":
            writer.release_lock()
            raise InputError(Message("run '{name}' is not queued", name=path.name))
        writer.current_status = status
        writer._start(attempt=status.attempt or 1)
        return writer

    def add_facts(self, facts: Mapping[str, Any]) -> None:
        """Add facts known only at the start to run.json; existing entries stay."""
        self.require_claim()
        before = RunReader(self.path).raw("run")
        write_json(self.path / "run.json", before | {key: value for key, value in facts.items() if key not in before})

    def write_config(self, config: RunConfig) -> None:
        """Write the config with values known only at the start filled in; before training."""
        self.require_claim()
        self.current_status = self.current_status.model_copy(update={"steps": config.train.steps})
        write_atomic(self.path / "config.toml", config_toml(config))

    def begin_attempt_from_checkpoint(self, offsets: Mapping[str, int], step: int) -> None:
        """Begin another attempt from a checkpoint: metrics and samples end where they did then (`offsets`, bytes),
        events stay; verdicts of its step or later are dropped, to be reached again.
        """
        self.require_claim()
        for stream in ("metrics", "samples"):
            file = self._files[stream]
            if stream not in offsets:
                message = Message(
                    "the checkpoint at step {step} does not record the length of {stream}.jsonl",
                    step=step,
                    stream=stream,
                )
                raise InputError(message)
            if file.seek(0, os.SEEK_END) < offsets[stream]:
                message = Message(
                    "{path}.jsonl is shorter than it was at step {step}: records are missing",
                    path=self.path / stream,
                    step=step,
                )
                raise InputError(message)
            file.truncate(offsets[stream])
        reader = RunReader(self.path)
        self._verdicts = [v for v in reader.verdicts if v.when == "before" or v.step < step]
        self.current_status = reader.status
        self._start(attempt=(self.current_status.attempt or 1) + 1, step=step, control_id=self.last_command_id)

    def begin_again(self) -> None:
        """Begin another attempt at a run that ended before its first checkpoint; nothing of it is kept."""
        self.require_claim()
        for stream in ("metrics", "samples"):
            self._files[stream].truncate(0)
        self._verdicts = []
        self.current_status = RunReader(self.path).status
        self._start(attempt=self.current_status.attempt + 1, step=0, checkpoint=None, control_id=self.last_command_id)

    def _start(self, attempt: int, **changes: Any) -> None:
        self.attempt = attempt
        first = {"state": "starting", "phase": "loading", "reason": "", "attempt": attempt, "launch": self.launch}
        self.current_status = self.current_status.model_copy(update=first | identity().dump() | changes)
        self.update_status()

    def write(self, file: RunFile) -> None:
        self._replace_json(file.file, file.dump())

    def text(self, name: str, text: str) -> None:
        self.retry_while_disk_full(lambda: write_atomic(self.path / name, text))

    def metrics(self, record: MetricRecord) -> None:
        self._append("metrics", record)

    def event(self, event: str, text: str = "", *, step: int = 0) -> None:
        self._append("events", Event.create(time=now(), attempt=self.attempt, step=step, event=event, text=text))

    def _event_if_room(self, event: str, text: str) -> bool:
        waiting, self.wait_for_room = self.wait_for_room, None
        try:
            self.event(event, text, step=self.current_status.step)
        except OSError:
            return False
        finally:
            self.wait_for_room = waiting
        return True

    def sample(self, record: Sample) -> None:
        self._append("samples", record)

    def verdict(self, found: Verdict) -> None:
        self._verdicts.append(VerdictRecord.create(**asdict(found)))
        self.write(Checks.create(verdicts=tuple(self._verdicts)))

    def last_verdict(self, check: str, default: str) -> str:
        return next((said.verdict for said in reversed(self._verdicts) if said.check == check), default)

    def update_status(self, **changes: Any) -> None:
        """Change status.json. If at most the step is new, it is written at most twice a second."""
        before, self.current_status = self.current_status, self.current_status.model_copy(update=changes)
        new = {key for key in changes if getattr(before, key) != getattr(self.current_status, key)}
        last = "step" in new and self.current_status.step == self.current_status.steps
        quiet = bool(changes) and new <= {"step", "slowest", "behind"} and not last
        clock = time.monotonic()
        if quiet and clock - self._status_written < STATUS_INTERVAL:
            return
        self._status_written = clock
        self.current_status = self.current_status.model_copy(update={"beat": self.current_status.beat + 1})
        if self.current_status.phase == WAITING_FOR_SPACE:
            self.require_claim()
            with suppress(OSError):  # it says that the disk is full, if the disk lets it
                write_json(self.path / Status.file, {"schema": SCHEMA, **self.current_status.model_dump()})
        else:
            self._replace_json(Status.file, self.current_status.model_dump())

    def sync(self) -> dict[str, int]:
        """Sync all appended data to disk; return each stream's length in bytes, part of every checkpoint."""
        offsets = {}
        for name, file in self._files.items():
            os.fsync(file.fileno())
            offsets[name] = file.seek(0, os.SEEK_END)
        return offsets

    def why_folder_missing(self) -> str:
        """Explain in a sentence why its folder is gone; "" if it is not."""
        if self.path.is_dir():
            return ""
        metrics = self._files["metrics"].fileno()
        with suppress(OSError):  # only Linux reports an open file's current path
            now = Path(os.readlink(f"/proc/self/fd/{metrics}"))  # noqa: PTH115
            if os.path.samestat(now.stat(), os.fstat(metrics)):
                return Message(
                    "its folder {path} was moved to {parent} during training", path=self.path, parent=now.parent
                )
        return Message("its folder {path} vanished", path=self.path)

    def release_lock(self) -> None:
        """Release the run without recording anything: it was opened but will not be written."""
        for file in self._files.values():
            file.close()
        self._lock.release()

    def discard(self) -> None:
        """Remove a run that could not begin: its directory goes, its name is free again."""
        self.release_lock()
        shutil.rmtree(self.path, ignore_errors=True)

    def close(self, state: str, reason: str = "", successor: Process | None = None) -> None:
        """Record how the run ended, if the disk has room, and release the lock; `successor` continues it."""
        self.wait_for_room = None
        owner = {}
        if successor is not None and state == "handing-over":
            owner = {**successor.dump(), "launch": "process"}
        try:
            self.update_status(state=state, phase="", reason=reason, **owner)
        except OSError as error:  # the run has ended all the same
            log.warning("%s: its end could not be written: %s", self.path, error.strerror or error)
        finally:
            self.release_lock()

    def retry_while_disk_full(self, write: Callable[[], T]) -> T:
        """Write; while the disk is full, pause the run and retry. A failed write must leave nothing behind."""
        paused, untold = False, ""  # what could not be written as an event
        while True:
            self.require_claim()
            try:
                result = write()
                break
            except OSError as error:
                if self.wait_for_room is None or error.errno not in DISK_FULL_ERRNOS:
                    raise
            free, needed = shutil.disk_usage(self.path).free / 1e6, self.checkpoint_bytes / 1e6
            reason = Message(
                "the disk holding {path} is full: {free:.1f} MB free, but the next checkpoint needs "
                "{needed:.1f} MB; training continues once there is room",
                path=self.path,
                free=free,
                needed=needed,
            )
            if not paused:
                log.warning("%s", reason)
                untold = "" if self._event_if_room("paused", reason) else reason
            paused = True
            self.update_status(state="paused", phase=WAITING_FOR_SPACE, reason=reason)
            self.wait_for_room()
        if paused:
            self.update_status(state="running", phase="training", reason="")
            if untold:
                self._event_if_room("paused", untold)
            self._event_if_room("continued", Message("there is room again"))
        return result

    def _append(self, stream: str, record: Record) -> None:
        data = json_line(record.dump()).encode("utf-8", "surrogatepass")
        self.retry_while_disk_full(lambda: append_whole(self._files[stream], data))

    def _replace_json(self, name: str, fields: Mapping[str, Any]) -> None:
        self.retry_while_disk_full(lambda: write_json(self.path / name, {"schema": SCHEMA, **fields}))
