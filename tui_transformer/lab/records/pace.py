"""How fast a run goes, and how often to look at it. Pure: every time is given by the caller."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from engine.runs.records import MEASURED, TrainRecord

WARM_UP = 5  # train records before a time left means something
RECENT = 40  # train records that the pace is taken over
WATCHED = 10.0  # seconds of looking before what was seen counts
QUICK, SLOW = 0.25, 2.0  # seconds between two looks: the shortest, the longest
SHARE = 8.0  # a look waits this many times what the last one cost to draw
MOVING = ("training", "evaluating", "checkpointing", "warming-up")  # phases whose time counts
PATIENCE = 4  # looks without news before they get rarer


class Pace:
    """A run's time left: from its records, which leave evaluations out, or from watching it, whichever is longer.

    Only what belongs to the attempt at hand counts: a run may go on elsewhere than where it began.
    """

    def __init__(self) -> None:
        self._records: deque[tuple[int, float]] = deque(maxlen=RECENT)  # step, seconds of training
        self._watched, self._went = 0.0, 0
        self._attempt: int | None = None
        self._last: tuple[float, int] | None = None

    def take(self, train: Sequence[Mapping[str, Any]], *, reset: bool) -> None:
        """Take in the train records that came.

        Args:
            train: lines of metrics.jsonl, oldest first.
            reset: whether they are all there are, and none of those before count.
        """
        if reset:
            self._records.clear()
        for record in map(TrainRecord.read, train[-RECENT:]):
            if record.seconds is not None:
                self._records.append((record.step, record.seconds))

    def see(self, *, step: int, moving: bool, attempt: int, clock: float) -> None:
        """Take in where a run is now.

        Args:
            step: of its status.
            moving: whether it trains, evaluates or saves; a pause does not count.
            attempt: another one starts over.
            clock: seconds.
        """
        if attempt != self._attempt or (self._last is not None and step < self._last[1]):
            self._attempt, self._last = attempt, None
            self._watched, self._went = 0.0, 0
        if self._last is not None and moving:
            self._watched += clock - self._last[0]
            self._went += step - self._last[1]
        self._last = (clock, step) if moving else None

    def left(self, steps: int, step: int, *, since: int = 0) -> float | None:
        """Return the seconds left, or None while it warms up.

        Args:
            steps: of the whole run.
            step: that it is at.
            since: the step that its attempt began at.
        """
        recent = [record for record in self._records if record[0] > since]
        if len(recent) < WARM_UP:
            return None
        (from_step, from_second), (to_step, to_second) = recent[0], recent[-1]
        if to_step <= from_step or to_second < from_second:
            return None
        per_step = (to_second - from_second) / (to_step - from_step)
        if self._watched >= WATCHED and self._went > 0:
            per_step = max(per_step, self._watched / self._went)
        left = per_step * max(0, steps - step)
        return left if left <= MEASURED else None


class PollInterval:
    """The time between two looks: short while something changes and drawing is cheap, longer otherwise."""

    def __init__(self) -> None:
        self._quiet = 0  # looks without news

    def next(self, *, changed: bool, cost: float) -> float:
        """Return the seconds until the next look.

        Args:
            changed: whether the last look found anything new.
            cost: seconds that looking and drawing took.
        """
        self._quiet = 0 if changed else self._quiet + 1
        idle = QUICK * 2 ** max(0, self._quiet - PATIENCE) if self._quiet < 20 else SLOW
        return max(QUICK, min(SLOW, idle), min(4 * SLOW, SHARE * cost))
