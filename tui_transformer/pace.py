"""How fast a run goes, and how often to look at it. Pure: every time is given by the caller."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tui_transformer.facts import number

WARM_UP = 5  # train records before a time left means something
RECENT = 40  # train records that the pace is taken over
WATCHED = 10.0  # seconds of looking before what was seen counts
QUICK, SLOW = 0.25, 2.0  # seconds between two looks: the shortest, the longest
SHARE = 8.0  # a look waits this many times what the last one cost to draw
PATIENCE = 4  # looks without news before they get rarer


@dataclass
class Pace:
    """A run's time left: from its records, which leave evaluations out, or from watching it, whichever is longer."""

    _watched: float = 0.0
    _went: int = 0
    _last: tuple[float, int, Any] | None = field(default=None)

    def see(self, *, step: int, moving: bool, attempt: Any, clock: float) -> None:
        """Take in where a run is now.

        Args:
            step: of its status.
            moving: whether it trains, evaluates or saves; a pause does not count.
            attempt: another one starts over.
            clock: seconds.
        """
        if self._last is not None and moving:
            before, from_step, of = self._last
            if of != attempt or step < from_step:
                self._watched, self._went = 0.0, 0
            else:
                self._watched += clock - before
                self._went += step - from_step
        self._last = (clock, step, attempt) if moving else None

    def left(self, steps: int, step: int, train: Sequence[Mapping[str, Any]]) -> float | None:
        """Seconds left, or None while it warms up."""
        recent = train[-RECENT:]
        if len(recent) < WARM_UP:
            return None
        first, last = recent[0], recent[-1]
        ends = [number(record.get(key)) for key in ("step", "seconds") for record in (first, last)]
        if None in ends:
            return None
        from_step, to_step, from_second, to_second = (end or 0.0 for end in ends)
        if to_step <= from_step or to_second < from_second:
            return None
        per_step = (to_second - from_second) / (to_step - from_step)
        if self._watched >= WATCHED and self._went > 0:
            per_step = max(per_step, self._watched / self._went)
        return number(per_step * max(0, steps - step))


@dataclass
class Rhythm:
    """The time between two looks: short while something changes and drawing is cheap, longer otherwise."""

    _quiet: int = 0

    def next(self, *, changed: bool, cost: float) -> float:
        """Seconds until the next look.

        Args:
            changed: whether the last look found anything new.
            cost: seconds that looking and drawing took.
        """
        self._quiet = 0 if changed else self._quiet + 1
        idle = QUICK * 2 ** max(0, self._quiet - PATIENCE) if self._quiet < 20 else SLOW
        return max(QUICK, min(SLOW, idle), min(4 * SLOW, SHARE * cost))
