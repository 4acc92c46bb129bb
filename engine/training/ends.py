"""How a run can end, and what may come up in the middle of a step."""

from dataclasses import dataclass

PAUSE_INTERVAL = 0.1  # seconds between two looks while paused


class StopRequested(Exception):
    """A stop came in the middle of something that can be dropped."""


class Diverged(Exception):
    """The loss or a gradient is no longer a number."""


class Leaking(Exception):
    """The probe found, before the first step, that the model sees what it has to predict."""


class OutOfMemory(Exception):
    """A step does not fit into the device's memory."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended: `finished`, `stopped`, `interrupted` or `failed`, at which step, and why."""

    state: str
    step: int
    reason: str = ""
