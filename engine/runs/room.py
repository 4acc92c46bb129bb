"""Full disks: detect one, and retry a write once there is room."""

import errno
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

WAITING_FOR_SPACE = "waiting-for-space"  # the phase of a run paused because the disk is full
FULL = (errno.ENOSPC, errno.EDQUOT)
T = TypeVar("T")


class Waiting(Protocol):
    def wait(self, error: OSError) -> None:
        """Wait a moment, or raise to give up."""

    def over(self) -> None:
        """Called once there is room again."""


def patiently(write: Callable[[], T], waiting: Waiting | None) -> T:
    """Do a write, and retry once a full disk has room. A failed write must leave nothing half done."""
    waited = False
    while True:
        try:
            result = write()
        except OSError as error:
            if waiting is None or error.errno not in FULL:
                raise
            waiting.wait(error)
            waited = True
        else:
            if waiting is not None and waited:
                waiting.over()
            return result


def full_text(path: Path, needed: int) -> str:
    free = shutil.disk_usage(path).free
    return (
        f"the disk of {path} is full: {free / 1e6:.1f} MB free, the next checkpoint needs {needed / 1e6:.1f} MB; "
        "training goes on when there is room"
    )
