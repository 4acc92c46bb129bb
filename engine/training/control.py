"""How a trainer hears: a flag that a signal handler or the app sets, or a numbered command in control.json."""

import time
from collections import deque
from pathlib import Path

from engine.runs.commands import Command, control_file, read_commands
from engine.runs.records import Process

LOOKS_PER_SECOND = 20


class Control:
    """Carries commands to the trainer. `request` does no I/O, so a signal handler may call it."""

    def __init__(self) -> None:
        self._requests: deque[Command] = deque()
        self._run: Path | None = None
        self._seen: tuple[int, int] | None = None
        self._next_look = 0.0
        self._read: deque[tuple[int, Command]] = deque()
        self.obeyed = 0
        self.reason = ""
        self.signal: int | None = None
        self.successor: Process | None = None

    def attach(self, run: Path, *, after: int = 0) -> None:
        """Listen to a run's control.json; commands up to number `after` were for an earlier attempt."""
        self._run, self.obeyed = run, after

    def request(self, command: Command, reason: str = "", *, signal: int | None = None) -> None:
        """Ask for a command to be obeyed at the next boundary.

        Args:
            command: what to do.
            reason: one sentence for the run's status.
            signal: the signal it came from, if it was no person's wish to end the run here.
        """
        if reason:
            self.reason = reason
        if signal is not None:
            self.signal = signal
        self._requests.append(command)

    def hand_over(self, successor: Process, reason: str = "") -> None:
        """Ask for a checkpoint and for the run to be left to a process that waits for its lock."""
        self.successor = successor
        self.request(Command.STOP, reason)

    def poll(self) -> Command | None:
        """The next command to obey, if any."""
        self._look()
        if self._requests:
            return self._requests.popleft()
        if self._read:
            self.obeyed, command = self._read.popleft()
            return command
        return None

    def stop_waits(self) -> bool:
        """True if the next command is a stop. Asked in the middle of a piece of work, which it ends."""
        self._look()
        return Command.STOP in self._requests or bool(self._read and self._read[0][1] is Command.STOP)

    def stopping(self) -> bool:
        """True if a stop is waiting, perhaps behind other commands; nothing is taken from the queue."""
        self._look()
        return Command.STOP in self._requests or any(command is Command.STOP for _, command in self._read)

    def _look(self) -> None:
        clock = time.monotonic()
        if self._run is None or clock < self._next_look:
            return
        self._next_look = clock + 1.0 / LOOKS_PER_SECOND
        try:
            stat = control_file(self._run).stat()
        except OSError:
            return
        seen = (stat.st_mtime_ns, stat.st_ino)
        if seen != self._seen:
            self._seen = seen
            newest = self._read[-1][0] if self._read else self.obeyed
            self._read.extend((number, command) for number, command in read_commands(self._run) if number > newest)
