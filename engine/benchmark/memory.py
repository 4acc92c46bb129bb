"""How much memory a piece of work needs beyond what is there before it."""

import ctypes
import platform
from collections.abc import Callable
from pathlib import Path

import psutil
import torch

CLEAR_PEAK = "5"  # Linux, proc(5): /proc/self/clear_refs


def peak_bytes(work: Callable[[], object], device: torch.device) -> int | None:
    """Bytes that `work` adds at its peak: allocated on a GPU, resident on a CPU; None where it cannot be asked."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        work()
        torch.cuda.synchronize(device)
        return int(torch.cuda.max_memory_allocated(device) - before)
    if platform.libc_ver()[0] != "glibc":
        return None
    ctypes.CDLL(None).malloc_trim(0)  # what earlier work has freed is not this one's
    try:
        Path("/proc/self/clear_refs").write_text(CLEAR_PEAK)
        before = psutil.Process().memory_info().rss
        work()
        peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return None
    return max(0, 1024 * int(peak.split()[1]) - before)
