"""Pausing and stopping a run, and the ways it can end. No torch.

Commands come as a flag from a signal handler or the app, or numbered from control.json.
"""

import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from engine.runs.commands import RunCommand, control_file, read_commands
from engine.runs.records import Process

POLLS_PER_SECOND = 20
PAUSE_SLEEP = 0.1  # seconds between polls while paused


class StopRequested(Exception):
    """A stop came during work that can be dropped; `why`, if it came to another rank."""

    def __init__(self, why: str = "") -> None:
        super().__init__(why)
        self.why = why


class Diverged(Exception):
    """The loss or a gradient is not finite."""


class RankLost(Exception):
    """Another rank of the run has ended or failed."""


class Leaking(Exception):
    """The probe found, before the first step, that the model sees what it must predict."""


class OutOfMemory(Exception):
    """A step does not fit into the device's memory."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended: `finished`, `stopped`, `interrupted`, `handing-over`, `failed`, or `lost` to another worker."""

    state: str
    step: int
    reason: str = ""


class Control:
    """Carries commands to the trainer. `request` does no I/O, so a signal handler may call it."""

    def __init__(self) -> None:
        self._requests: deque[RunCommand] = deque()
        self._run: Path | None = None
        self._seen: tuple[int, int] | None = None
        self._next_poll = 0.0
        self._file_commands: deque[tuple[int, RunCommand]] = deque()
        self.last_command_id = 0
        self.reason = ""
        self.signal: int | None = None
        self.successor: Process | None = None

    def attach(self, run: Path, *, after: int = 0) -> None:
        """Listen to a run's control.json; commands up to number `after` were meant for an earlier attempt."""
        self._run, self.last_command_id = run, after

    def enqueue_command(self, command: RunCommand, reason: str = "", *, received_signal: int | None = None) -> None:
        """Request a command at the next boundary; `reason` is one sentence for the run's status, `signal` its source if
        no user asked to end the run here.
        """
        if reason:
            self.reason = reason
        if received_signal is not None:
            self.signal = received_signal
        self._requests.append(command)

    def hand_over(self, successor: Process, reason: str = "") -> None:
        """Request a checkpoint, then leave the run to a process waiting for its lock."""
        self.successor = successor
        self.enqueue_command(RunCommand.STOP, reason)

    def poll(self) -> RunCommand | None:
        self._read_file()
        if self._requests:
            return self._requests.popleft()
        if self._file_commands:
            self.last_command_id, command = self._file_commands.popleft()
            return command
        return None

    def raise_if_stopped(self) -> None:
        """Raise `StopRequested` if the next command is a stop. Called between pieces of work that may take long."""
        self._read_file()
        if RunCommand.STOP in self._requests or (self._file_commands and self._file_commands[0][1] is RunCommand.STOP):
            raise StopRequested

    def stop_is_queued(self) -> bool:
        self._read_file()
        return RunCommand.STOP in (*self._requests, *(command for _, command in self._file_commands))

    def _read_file(self) -> None:
        clock = time.monotonic()
        if self._run is None or clock < self._next_poll:
            return
        self._next_poll = clock + 1.0 / POLLS_PER_SECOND
        try:
            stat = control_file(self._run).stat()
        except OSError:
            return
        seen = (stat.st_mtime_ns, stat.st_ino)
        if seen != self._seen:
            self._seen = seen
            newest = self._file_commands[-1][0] if self._file_commands else self.last_command_id
            self._file_commands.extend(entry for entry in read_commands(self._run) if entry[0] > newest)
