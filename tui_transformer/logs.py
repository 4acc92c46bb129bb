"""The engine's log goes into the run's own file; a screen never sees it."""

import logging
from pathlib import Path


def log_to(path: Path) -> None:
    """Write what the engine says from now on into a file."""
    log = logging.getLogger("engine")
    log.propagate = False
    logging.raiseExceptions = False  # a log that finds no room is no reason to write over the screen
    for old in log.handlers:
        old.close()
    log.handlers = [logging.FileHandler(path, encoding="utf-8", errors="backslashreplace", delay=True)]
    log.handlers[0].setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
