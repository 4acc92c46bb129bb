"""Progress of work that takes minutes: it tells listeners how far along it is, and they may raise to stop it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Called with what is being done, the share that is done, and the seconds left if known.
Listener = Callable[[str, float, float | None], None]
MIN_ELAPSED = 2.0  # seconds before an estimate means anything

_listeners: ContextVar[tuple[Listener, ...]] = ContextVar("listeners", default=())


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Have a listener called, besides those already listening, by work in this thread."""
    token = _listeners.set((*_listeners.get(), listener))
    try:
        yield
    finally:
        _listeners.reset(token)


class Progress:
    """How far along a piece of work is: `done` of `total`, of which `before` was done earlier."""

    def __init__(self, what: str, total: int, before: int = 0) -> None:
        self.what, self.total, self.before, self._begun = what, max(1, total), before, time.monotonic()

    def update(self, done: int) -> None:
        elapsed, gained = time.monotonic() - self._begun, done - self.before
        left = None
        if elapsed >= MIN_ELAPSED and gained > 0:
            left = elapsed / gained * max(0, self.total - done)
        for listener in _listeners.get():
            listener(self.what, min(1.0, done / self.total), left)
