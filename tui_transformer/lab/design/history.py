"""Undo and redo: the drafts of one design, one change apart."""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")
MOST = 200  # changes kept


@dataclass
class UndoHistory(Generic[T]):
    current: T
    original: T = field(init=False)  # as it was chosen
    _before: list[T] = field(default_factory=list)
    _undone: list[T] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.original = self.current

    def record_change(self, new: T) -> None:
        """Note a change."""
        if new != self.current:
            self._before = [*self._before[-MOST:], self.current]
            self.current, self._undone = new, []

    def undo(self) -> bool:
        return self._move(self._before, self._undone)

    def redo(self) -> bool:
        return self._move(self._undone, self._before)

    def _move(self, source: list[T], other: list[T]) -> bool:
        if source:
            other.append(self.current)
            self.current = source.pop()
            return True
        return False
