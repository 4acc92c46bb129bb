"""Choose a run's device, and describe this machine for environment.json."""

import ctypes
import os
import platform
import socket
from functools import cache
from pathlib import Path

import numpy
import psutil
import torch

from engine.base.errors import InputError
from engine.base.language import Message, trn
from engine.base.threads import COUNT_VARIABLES, usable_cores, wait_policy
from engine.config.schema import RunConfig
from engine.runs.records import Attempt

# Makes cuBLAS's results repeatable to the last bit. It must be set before CUDA starts.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
# torch respects CPU affinity but not CPU quotas
if not any(name in os.environ for name in COUNT_VARIABLES) and usable_cores() < torch.get_num_threads():
    torch.set_num_threads(usable_cores())
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8  # malloc.h


def resolve_device(wanted: str) -> torch.device:
    """Return the device; `auto` takes a CUDA GPU, then Apple's, then the CPU. Raise if it is not on this machine."""
    if wanted == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda", 0)
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(wanted)
    except RuntimeError:
        device = torch.device("meta")  # refused below
    if device.type not in ("cpu", "cuda", "mps"):
        raise InputError(Message("--device {wanted!r}: must be auto, cpu, cuda, cuda:0 or mps", wanted=wanted[:40]))
    if device.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if (device.index or 0) >= count:
            message = trn(
                "--device {wanted}: torch sees {n} CUDA device; --device cpu works",
                "--device {wanted}: torch sees {n} CUDA devices; --device cpu works",
                count,
                wanted=wanted,
            )
            raise InputError(message)
        return torch.device("cuda", device.index or 0)
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise InputError(Message("--device {wanted}: no Apple GPU here; --device cpu works", wanted=wanted))
    return torch.device(device.type)


def is_device_failure(error: BaseException) -> bool:
    """Return whether a device is lost: this process can no longer compute on it or read from it."""
    if isinstance(error, torch.OutOfMemoryError):
        return False
    from_driver = isinstance(error, RuntimeError) and str(error).startswith(("CUDA error", "HIP error"))
    return from_driver or isinstance(error, torch.AcceleratorError)


def keep_memory() -> None:
    """Let glibc keep freed memory for the next step: mapping and faulting in each block above 32 MiB anew costs an
    eighth of an fp32 step on two cores. One arena, because those of other threads cannot hold such blocks; memory stays
    at the process's peak.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    mallopt = ctypes.CDLL(None).mallopt
    for parameter, value in ((M_ARENA_MAX, 1), (M_MMAP_THRESHOLD, 2**30), (M_TRIM_THRESHOLD, 2**31 - 1)):
        mallopt(parameter, value)


@cache
def default_threads() -> int:
    """Return the default number of CPU threads: the usable cores, or what the environment sets."""
    return torch.get_num_threads()


def leave_cores_to_training() -> None:
    """Keep the calling thread to one core, where training runs in another thread of this process: two OpenMP pools on
    the same cores make libgomp's threads sleep at every barrier, and halve a small model's speed.
    """
    default_threads()
    torch.set_num_threads(1)


def device_name(device: torch.device) -> str:
    return f"cuda:{device.index or 0} {torch.cuda.get_device_name(device)}" if device.type == "cuda" else str(device)


def memory_in_use(device: torch.device) -> int:
    """Return the bytes allocated by torch on a GPU, or resident in this process on a CPU."""
    if device.type == "cuda":
        return int(torch.cuda.memory_allocated(device))
    return int(psutil.Process().memory_info().rss)


def device_load(device: torch.device) -> float | None:
    """Return the device's utilisation since the last call, 0 to 1; None if unknown."""
    if device.type == "cuda":
        try:
            return float(torch.cuda.utilization(device)) / 100.0
        except Exception:  # NVML raises its own errors, even for a missing library
            return None
    return psutil.cpu_percent(interval=None) / 100.0


def processor_description() -> str:
    """Return what decides the bits of a sum on the CPU: architecture, instruction set and, on Linux, the model.

    Two processors with the same instruction set may still be given different kernels.
    """
    try:
        rows = (line.partition(":") for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines())
        said = {key.strip(): value.strip() for key, _, value in rows}
    except (OSError, ValueError):
        said = {}
    name = said.get("model name") or platform.processor()
    numbers = ", ".join(f"{key} {said[key]}" for key in ("cpu family", "model") if key in said)
    known = " ".join(filter(None, (name, numbers and f"({numbers})")))
    return f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}" + (f", {known}" if known else "")


def environment(device: torch.device, config: RunConfig, attempt: int, ranks: int) -> Attempt:
    return Attempt(
        attempt=attempt,
        host=socket.gethostname(),
        python=platform.python_version(),
        platform=platform.platform(),
        processor=processor_description(),
        versions={"torch": str(torch.__version__), "numpy": numpy.__version__},
        device=device_name(device),
        threads=config.train.threads or 1,
        wait_policy=wait_policy(),
        ranks=ranks,
        cores=os.cpu_count(),
        memory_bytes=psutil.virtual_memory().total,
    )
