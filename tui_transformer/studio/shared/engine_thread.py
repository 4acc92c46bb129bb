"""The one thread for the studio's own torch work: started on first use, it leaves the cores to training."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import RLock
from typing import TypeVar

from engine.base.errors import InputError

T = TypeVar("T")
IMPORT_LOCK = (
    RLock()
)  # held to import what another thread may also be importing: a package imported twice at once can fail
FAILURES = (InputError, OSError, RuntimeError, ValueError, MemoryError)  # of work for the engine: shown, not raised


@cache
def _executor() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "engine", initializer=_initialise_thread)


def _initialise_thread() -> None:
    from engine.model.devices import leave_cores_to_training

    leave_cores_to_training()


async def run_in_engine_thread(work: Callable[[], T]) -> T:
    """Run `work` in that thread and return its result; work cancelled before its turn never runs."""
    return await asyncio.get_running_loop().run_in_executor(_executor(), work)
