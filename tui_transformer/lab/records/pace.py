"""A run's pace, and how often to poll it. Pure: the caller gives every time."""

from collections import deque
from collections.abc import Sequence

from engine.runs.records import MAX_NUMBER, TrainRecord

WARM_UP = 5  # train records before the time left is meaningful
RECENT = 40  # train records averaged for the pace
WATCHED = 10.0  # seconds of watching before they count
# Seconds between looks: shortest, longest; a key pressed during a look waits until it is drawn.
MIN_INTERVAL, MAX_INTERVAL = 0.5, 2.0
DRAWING_FACTOR = 8.0  # a look waits this multiple of the last one's drawing time
MOVING = ("training", "evaluating", "checkpointing", "warming-up")  # phases whose time counts
PATIENCE = 4  # looks without news before slowing down


class Pace:
    """A run's time left: from its records, which exclude evaluations, or from watching it, whichever is longer.

    Only the current attempt counts: a run may resume on another machine.
    """

    def __init__(self) -> None:
        self._records: deque[tuple[int, float]] = deque(maxlen=RECENT)  # step, seconds of training
        self._watched, self._watched_steps = 0.0, 0
        self._attempt: int | None = None
        self._last: tuple[float, int] | None = None

    def add_records(self, train: Sequence[TrainRecord], *, reset: bool) -> None:
        """Take in new train records, oldest first; `reset` drops the earlier ones."""
        if reset:
            self._records.clear()
        for record in train[-RECENT:]:
            if record.seconds is not None:
                self._records.append((record.step, record.seconds))

    def observe(self, *, step: int, moving: bool, attempt: int, clock: float) -> None:
        """Note a run's step at `clock` seconds; it is `moving` if it trains, evaluates or saves."""
        if attempt != self._attempt or (self._last is not None and step < self._last[1]):
            self._attempt, self._last = attempt, None
            self._watched, self._watched_steps = 0.0, 0
        if self._last is not None and moving:
            self._watched += clock - self._last[0]
            self._watched_steps += step - self._last[1]
        self._last = (clock, step) if moving else None

    def seconds_left(self, steps: int, step: int, *, attempt_start_step: int = 0) -> float | None:
        """Return the seconds left, None while warming up; the attempt began at step `since`."""
        recent = [record for record in self._records if record[0] > attempt_start_step]
        if len(recent) < WARM_UP:
            return None
        (from_step, from_second), (to_step, to_second) = recent[0], recent[-1]
        if to_step <= from_step or to_second < from_second:
            return None
        per_step = (to_second - from_second) / (to_step - from_step)
        if self._watched >= WATCHED and self._watched_steps > 0:
            per_step = max(per_step, self._watched / self._watched_steps)
        left = per_step * max(0, steps - step)
        return left if left <= MAX_NUMBER else None


class PollInterval:
    """The time between looks: short while something changes and drawing is cheap, else longer."""

    def __init__(self) -> None:
        self._quiet = 0  # looks without news

    def next(self, *, changed: bool, cost: float) -> float:
        """Return the seconds until the next look, after one that took so many to look and draw."""
        self._quiet = 0 if changed else self._quiet + 1
        idle = MIN_INTERVAL * 2 ** max(0, self._quiet - PATIENCE) if self._quiet < 20 else MAX_INTERVAL
        return max(MIN_INTERVAL, min(MAX_INTERVAL, idle), min(4 * MAX_INTERVAL, DRAWING_FACTOR * cost))
