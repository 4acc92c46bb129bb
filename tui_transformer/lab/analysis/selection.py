"""Which runs are drawn, each with a letter that it keeps, and which one is the baseline."""

from dataclasses import dataclass, field
from pathlib import Path

from tui_transformer.lab.analysis.curves import MOST

LETTERS = "abcdefgh"
assert len(LETTERS) == MOST


@dataclass
class Selection:
    """Runs by the number of their letter and colour.

    Args:
        baseline: the pinned run; it may be drawn or not.
    """

    baseline: Path | None = None
    _slots: dict[Path, int] = field(default_factory=dict)

    @property
    def runs(self) -> tuple[Path, ...]:
        """Those that are drawn, in the order of their letters."""
        return tuple(sorted(self._slots, key=self._slots.__getitem__))

    @property
    def full(self) -> bool:
        """Whether there is no letter left."""
        return len(self._slots) >= MOST

    def slot(self, run: Path) -> int | None:
        """The number of its letter."""
        return self._slots.get(run)

    def turn(self, run: Path) -> bool:
        """Draw it, or no longer; False where there is no letter left."""
        if run in self._slots:
            del self._slots[run]
            return True
        if self.full:
            return False
        self._slots[run] = next(i for i in range(MOST) if i not in self._slots.values())
        return True

    def pin(self, run: Path) -> bool:
        """Make it the baseline and draw it, or take that back; whether it is the baseline now."""
        if self.baseline == run:
            self.baseline = None
            return False
        self.baseline = run
        if run not in self._slots and not self.full:
            self.turn(run)
        return True

    def clear(self) -> None:
        """Draw none; the baseline stays."""
        self._slots.clear()

    def keep(self, present: set[Path]) -> bool:
        """Forget runs that are gone; whether there were any."""
        gone = [run for run in self._slots if run not in present]
        for run in gone:
            del self._slots[run]
        if self.baseline is not None and self.baseline not in present:
            self.baseline = None
            return True
        return bool(gone)
