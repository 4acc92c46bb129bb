"""How a run is told to stop: a flag that a signal handler, the app or another thread sets, obeyed between steps."""

import threading
from enum import StrEnum


class Command(StrEnum):
    """What a run can be told."""

    STOP = "stop"


class Control:
    """Carries commands to the trainer. `request` does no I/O, so a signal handler may call it."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self.reason = ""
        self.interrupted = False

    def request(self, command: Command, reason: str = "", *, interrupted: bool = False) -> None:
        """Ask for a command to be obeyed at the next boundary.

        Args:
            command: what to do.
            reason: one sentence for the run's status.
            interrupted: it came from a signal, not from a person's wish to end the run here.
        """
        self.reason, self.interrupted = reason, interrupted
        if command is Command.STOP:
            self._stop.set()

    def poll(self) -> Command | None:
        """The command to obey now, if any."""
        return Command.STOP if self._stop.is_set() else None
