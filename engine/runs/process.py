"""Which process has a run. Process ids are given again, so its start is kept too, and setting the clock moves that not.

Where the system counts from its boot (Linux), so is the start: one told in seconds since 1970 moves with the clock,
and a living run would be taken for lost as soon as somebody sets that.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")  # another one after each boot
EXACT = 1.0  # seconds; no two processes of one id begin so close


def identity(pid: int | None = None) -> dict[str, Any]:
    """A process's id, its start in seconds, and the boot those count from, "" where they count from 1970.

    Args:
        pid: of a process of this machine; this one where none is given.

    Raises:
        psutil.Error: there is no such process.
    """
    process, boot = psutil.Process(pid), _boot()
    return {"pid": process.pid, "process_started": _started(process, boot), "boot": boot}


def is_alive(recorded: Mapping[str, Any]) -> bool:
    """Whether a process of this machine is still the one that was recorded; a damaged record is no process."""
    try:
        process, began = psutil.Process(int(recorded["pid"])), float(recorded.get("process_started", 0))
        if process.status() == psutil.STATUS_ZOMBIE:  # ended, and its parent has not looked yet
            return False
        boot = recorded.get("boot", "")
        if boot and boot != _boot():
            return False
        return abs(_started(process, boot) - began) < EXACT
    except (psutil.Error, KeyError, TypeError, ValueError, OverflowError):
        return False


def _started(process: psutil.Process, boot: str) -> float:
    since_boot = psutil.boot_time() if boot else 0.0  # asked anew each time: it moves with the clock as well
    return process.create_time() - since_boot


def _boot() -> str:
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
