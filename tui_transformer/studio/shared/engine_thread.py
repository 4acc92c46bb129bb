"""The one thread for the studio's own torch work: made when first needed, and it leaves the cores to training."""

import asyncio
import gc
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from typing import TypeVar

T = TypeVar("T")


@cache
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "engine", initializer=_prepare)


def _prepare() -> None:
    from engine.training.devices import leave_cores_to_training

    leave_cores_to_training()


async def in_engine_thread(work: Callable[[], T]) -> T:
    """Return the result of `work`, done in that thread; what is cancelled before its turn is never done."""
    result = await asyncio.get_running_loop().run_in_executor(_thread(), work)
    _spare_the_collector(len(sys.modules))
    return result


@lru_cache(maxsize=1)
def _spare_the_collector(modules: int) -> None:
    """Leave what was imported out of collections: with torch's modules, each would stop the screen for long."""
    gc.freeze()
