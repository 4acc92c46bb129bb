"""A full disk: what counts as one, and writing again once there is room."""

import errno
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

WAITING_FOR_SPACE = "waiting-for-space"  # the phase of a run paused because the disk is full
FULL = (errno.ENOSPC, errno.EDQUOT)
T = TypeVar("T")


class Waiting(Protocol):
    """What somebody does while the disk is full."""

    def wait(self, error: OSError) -> None:
        """Wait a moment, or raise to give up."""

    def over(self) -> None:
        """There is room again."""


class GiveUp:
    """Waits for nothing: the error goes on its way."""

    def wait(self, error: OSError) -> None:
        """Raise the error."""
        raise error

    def over(self) -> None:
        """Never happens."""


def patiently(write: Callable[[], T], waiting: Waiting) -> T:
    """Do a write; where the disk is full, wait and do it again. A write that fails must leave nothing half done."""
    waited = False
    while True:
        try:
            result = write()
        except OSError as error:
            if error.errno not in FULL:
                raise
            waiting.wait(error)
            waited = True
        else:
            if waited:
                waiting.over()
            return result


def full_text(path: Path, needed: int) -> str:
    """One sentence: which disk is full, what is free and what is needed, in bytes as people write them."""
    free = shutil.disk_usage(path).free
    return (
        f"the disk of {path} is full: {_megabytes(free)} free, the next checkpoint needs {_megabytes(needed)}; "
        "training goes on when there is room"
    )


def _megabytes(count: int) -> str:
    return f"{count / 1e6:.1f} MB"
