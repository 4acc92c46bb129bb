"""Process output: the engine's log goes to the run's own file, C libraries' stderr off the full screen."""

import logging
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from engine.base.language import Message
from engine.base.matched_messages import MatchedMessage
from engine.runs.tail import read_end

END = 1 << 20  # bytes at the end of a log to search for its last words


class _Log(logging.FileHandler):
    """A log that, on a full disk or a vanished folder, neither fails nor writes over the screen."""

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError):  # logging does not handle errors of opening the file
            super().emit(record)

    def close(self) -> None:
        with suppress(OSError):
            super().close()


def log_to(path: Path) -> None:
    log = logging.getLogger("engine")
    log.propagate = False
    logging.raiseExceptions = False
    for old in log.handlers:
        old.close()
    log.handlers = [_Log(path, encoding="utf-8", errors="backslashreplace", delay=True)]
    log.handlers[0].setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))


def last_line(said: str) -> str:
    """Return the last non-empty line of a process's output; "" if there is none."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[-1].removeprefix("tui-transformer: ") if lines else ""


def last_log_line(log: Path) -> str:
    """Return a log file's last line, which is English, or what is wrong with it."""
    if not log.is_file():
        return Message("its log cannot be read")
    return MatchedMessage(last_line(read_end(log, END).decode("utf-8", "replace")) or Message("its log is empty"))


@contextmanager
def redirect_stderr(log: Path) -> Iterator[None]:
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


def is_terminal_gone() -> bool:
    """Return whether stdin's terminal is gone."""
    if not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(0, 0)
    return any(found & (select.POLLHUP | select.POLLNVAL) for _, found in poll.poll(0))
