"""The process's descriptors: what C libraries write to stderr stays off a full screen; is the terminal still there?"""

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def stderr_into(log: Path) -> Iterator[None]:
    """Send descriptor 2 into a file; `sys.__stderr__`, which Textual draws on, is stdout's terminal, wherever 2 led."""
    sys.stderr.flush()
    kept, before = os.dup(2), (sys.stderr, sys.__stderr__)
    screen = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace")
    with log.open("ab", buffering=0) as file:
        os.dup2(file.fileno(), 2)
    sys.__stderr__ = screen  # type: ignore[misc]  # the driver's way to the screen
    try:
        yield
    finally:
        with suppress(OSError):  # the terminal is gone
            screen.close()
        os.dup2(kept, 2)
        os.close(kept)
        sys.stderr, sys.__stderr__ = before  # type: ignore[misc]


def hung_up() -> bool:
    """Whether the terminal that keys come from is gone."""
    if not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(0, 0)
    return any(found & (select.POLLHUP | select.POLLNVAL) for _, found in poll.poll(0))
