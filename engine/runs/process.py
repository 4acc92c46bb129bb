"""Which process owns a run. Process ids are reused, so the start time is stored too.

On Linux it counts from boot: seconds since 1970 shift when the clock is set, and a live run would look lost.
"""

import socket
from pathlib import Path
from typing import TYPE_CHECKING

from engine.runs.records import Process

if TYPE_CHECKING:  # importing it takes 25 ms, which would delay the first screen
    import psutil

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")  # another one after each boot
PARENT_VARIABLE = "TUI_TRANSFORMER_PARENT"  # environment variable: the process that a started one must not outlive
EXACT = 1.0  # seconds; no two processes with the same id start this close together


def identity(pid: int | None = None) -> Process:
    """Return a process's unique identity here, by default this one's; `psutil.Error`: no such process."""
    import psutil

    process, boot = psutil.Process(pid), _boot()
    started = _started(process, boot)
    return Process(pid=process.pid, process_started=started, boot=boot, host=socket.gethostname())


def is_alive(recorded: Process) -> bool:
    """Return whether a process recorded on this machine still runs; False if the record is damaged."""
    if recorded.pid is None:
        return False
    import psutil

    try:
        process = psutil.Process(recorded.pid)
        if process.status() == psutil.STATUS_ZOMBIE:  # ended, but not reaped by its parent
            return False
        if recorded.boot and recorded.boot != _boot():
            return False
        return abs(_started(process, recorded.boot) - recorded.process_started) < EXACT
    except (psutil.Error, ValueError, OverflowError):
        return False


def _started(process: "psutil.Process", boot: str) -> float:
    import psutil

    since_boot = psutil.boot_time() if boot else 0.0  # read again each time: it shifts with the clock too
    return process.create_time() - since_boot


def _boot() -> str:
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
