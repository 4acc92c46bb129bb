"""The engine's log goes into the run's own file; a screen never sees it, but for the last words of a process."""

import logging
from contextlib import suppress
from pathlib import Path

from engine.runs.tail import end_of

END = 1 << 20  # bytes at the end of a log to search for its last words


class _Log(logging.FileHandler):
    """A log that finds no room, or whose folder is gone, is no reason to fail, nor to write over the screen."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, if that is possible; opening the file is not covered by logging's own care."""
        with suppress(OSError):
            super().emit(record)

    def close(self) -> None:
        """Close the file, whatever is left to be written."""
        with suppress(OSError):
            super().close()


def log_to(path: Path) -> None:
    """Write what the engine says from now on into a file."""
    log = logging.getLogger("engine")
    log.propagate = False
    logging.raiseExceptions = False
    for old in log.handlers:
        old.close()
    log.handlers = [_Log(path, encoding="utf-8", errors="backslashreplace", delay=True)]
    log.handlers[0].setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))


def last_words(said: str) -> str:
    """The last line of what a process said that says anything; "" where it said nothing."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[-1].removeprefix("tui-transformer: ") if lines else ""


def last_words_in(log: Path) -> str:
    """The same of a log file, or what is the matter with it."""
    if not log.is_file():
        return "its log cannot be read"
    return last_words(end_of(log, END).decode("utf-8", "replace")) or "it said nothing"
