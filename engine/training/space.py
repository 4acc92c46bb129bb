"""What a run does while its disk is full: it waits, says so, and still hears `stop`."""

import logging
import time

from engine.runs.room import WAITING_FOR_SPACE, full_text
from engine.runs.writer import RunWriter
from engine.training.control import Control
from engine.training.ends import PAUSE_INTERVAL, StopRequested

log = logging.getLogger(__name__)


class WaitingForSpace:
    """The run is paused while its disk is full, still hears `stop`, and goes on when there is room."""

    def __init__(self, writer: RunWriter, control: Control, needed: int) -> None:
        self.writer, self.control, self.needed = writer, control, needed
        self._said = False
        self._untold = ""  # what could not be written to the events

    def wait(self, error: OSError) -> None:
        """Say so once, look for a stop, wait a moment."""
        reason = full_text(self.writer.path, self.needed)
        if not self._said:
            log.warning("%s", reason)
            self._untold = "" if self.writer.event_if_room("paused", reason) else reason
        self._said = True
        self.writer.status(state="paused", phase=WAITING_FOR_SPACE, reason=reason)
        if self.control.stopping():
            raise StopRequested from error
        time.sleep(PAUSE_INTERVAL)

    def over(self) -> None:
        """Go on."""
        self._said = False
        self.writer.status(state="running", phase="training", reason="")
        if self._untold:
            self.writer.event_if_room("paused", self._untold)
        self.writer.event_if_room("continued", "there is room again")
