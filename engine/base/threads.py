"""CPU threads: how many this process may use, and how they wait for each other. Needs no torch.

Imported with the package: libgomp and libomp read the variables below once, when torch loads them.
"""

import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath

ROOT = Path("/")  # of /proc and /sys
COUNT_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")  # a user's own number of threads
# How threads wait, if the user has chosen: GNU OpenMP (Linux), LLVM OpenMP (macOS).
WAIT_VARIABLES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
SPIN_COUNT = 1500  # rounds; measured in docs/benchmarks.md


def set_wait_policy() -> None:
    """Have threads that wait for each other sleep early, unless the user's variables say otherwise.

    By default libgomp's threads spin for milliseconds. If another program is busy, they occupy the core that the thread
    they wait for needs.
    """
    if "torch" not in sys.modules and not any(name in os.environ for name in WAIT_VARIABLES):
        os.environ["GOMP_SPINCOUNT"] = str(SPIN_COUNT)


def wait_policy() -> dict[str, str]:
    """Return the variables in force that say how threads wait."""
    return {name: os.environ[name] for name in WAIT_VARIABLES if name in os.environ}


def usable_cpus() -> list[int]:
    """Return the logical CPUs that this process may run on."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))


def usable_cores() -> int:
    """Return how many threads can run at once: the physical cores, limited by affinity and CPU quota.

    A quota of 1.5 cores counts as 1: with two threads, each would wait while the other is throttled.
    """
    return max(1, int(min(physical_cores(), len(usable_cpus()), *_quotas())))


@cache
def physical_cores() -> int:
    """Return how many cores the machine has. Asked once: psutil reads files of every CPU."""
    import psutil

    return psutil.cpu_count(logical=False) or os.cpu_count() or 1


def default_count() -> int:
    """Return how many threads a run gets if its config does not say, as far as that is known without torch."""
    given = [os.environ[name] for name in COUNT_VARIABLES if os.environ.get(name, "").isdecimal()]
    return max(1, int(given[0])) if given else usable_cores()


def _quotas() -> Iterator[float]:
    """Yield the CPU quotas of this process's control groups and of those above them, in cores."""
    mounts = ROOT / "sys/fs/cgroup"
    for line in _lines(ROOT / "proc/self/cgroup"):
        _, _, named = line.partition(":")
        controllers, _, path = named.partition(":")
        group = PurePosixPath("/", path)
        # In a container, the path may be the host's: then only the last of these folders is there.
        places = [place.relative_to("/") for place in (group, *group.parents) if ".." not in group.parts]
        if not controllers:  # version 2
            files = [mount / place / "cpu.max" for place in places for mount in (mounts, mounts / "unified")]
            limits = [" ".join(_lines(file)).split() for file in files]
        elif "cpu" in controllers.split(","):
            folders = [mount / place for place in places for mount in (mounts / controllers, mounts / "cpu")]
            names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
            limits = [[word for name in names for word in _lines(folder / name)] for folder in folders]
        else:
            continue
        for limit in limits:
            if len(limit) == 2 and all(word.isdecimal() for word in limit) and int(limit[1]) > 0:  # else "max" or -1
                yield int(limit[0]) / int(limit[1])


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return []
