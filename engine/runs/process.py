"""Which process has a run. A process id is used again, so the start time is stored too.

On Linux it counts from the machine's boot: seconds since 1970 move when somebody sets the clock, and a live run would
be taken for lost.
"""

import socket
from pathlib import Path

import psutil

from engine.runs.records import Process

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")  # another one after each boot
EXACT = 1.0  # seconds; no two processes of one id begin so close


def identity(pid: int | None = None) -> Process:
    """Return what tells a process of this machine from every other.

    Args:
        pid: its id; this process's by default.

    Raises:
        psutil.Error: there is no such process.
    """
    process, boot = psutil.Process(pid), _boot()
    started = _started(process, boot)
    return Process(pid=process.pid, process_started=started, boot=boot, host=socket.gethostname())


def is_alive(recorded: Process) -> bool:
    """Return whether a process recorded on this machine still runs; False if the record is damaged."""
    if recorded.pid is None:
        return False
    try:
        process = psutil.Process(recorded.pid)
        if process.status() == psutil.STATUS_ZOMBIE:  # ended, and its parent has not looked yet
            return False
        if recorded.boot and recorded.boot != _boot():
            return False
        return abs(_started(process, recorded.boot) - recorded.process_started) < EXACT
    except (psutil.Error, ValueError, OverflowError):
        return False


def _started(process: psutil.Process, boot: str) -> float:
    since_boot = psutil.boot_time() if boot else 0.0  # asked anew each time: it moves with the clock as well
    return process.create_time() - since_boot


def _boot() -> str:
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
