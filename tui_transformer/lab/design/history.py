"""Undo and redo: the drafts of one design, one change apart."""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")
MOST = 200  # changes kept


@dataclass
class History(Generic[T]):
    now: T
    first: T = field(init=False)  # as it was chosen
    _before: list[T] = field(default_factory=list)
    _undone: list[T] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.first = self.now

    def put(self, new: T) -> None:
        """Note a change."""
        if new != self.now:
            self._before = [*self._before[-MOST:], self.now]
            self.now, self._undone = new, []

    def undo(self) -> bool:
        return self._turn(self._before, self._undone)

    def redo(self) -> bool:
        return self._turn(self._undone, self._before)

    def _turn(self, source: list[T], other: list[T]) -> bool:
        if source:
            other.append(self.now)
            self.now = source.pop()
            return True
        return False
