"""Wait for a condition, never for a time: how long something takes says how fast the machine is, and nothing else."""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE = 300.0  # seconds, for every wait of every test: what takes a moment here may take minutes on a slow machine
POLL_INTERVAL = 0.01  # seconds between two looks

Found = TypeVar("Found")


def wait_for(claim: Callable[[], Found], what: str, state: Callable[[], object] = str) -> Found:
    """Poll until the condition is true, and return its value.

    Args:
        claim: the condition.
        what: what is waited for, for the message: "the run's first checkpoint".
        state: for the message as well: what there is instead.

    Raises:
        AssertionError: it did not come true within `PATIENCE`.
    """
    end = time.monotonic() + PATIENCE
    while not (found := value_of(claim)):
        if time.monotonic() > end:
            raise AssertionError(timeout_message(what, state))
        time.sleep(POLL_INTERVAL)
    return found


async def until(claim: Callable[[], Found], what: str, state: Callable[[], object] = str) -> Found:
    """`wait_for`, while the event loop goes on."""
    end = time.monotonic() + PATIENCE
    while not (found := value_of(claim)):
        if time.monotonic() > end:
            raise AssertionError(timeout_message(what, state))
        await asyncio.sleep(POLL_INTERVAL)
    return found


def value_of(claim: Callable[[], Found], *absent: type[Exception]) -> Found | None:
    """Ask a claim; one about what is not there yet (`absent` says so too) does not hold yet."""
    try:
        return claim()
    except (LookupError, *absent):
        return None


def timeout_message(what: str, state: Callable[[], object]) -> str:
    return f"timed out after {PATIENCE:.0f} s waiting for {what}\n{state()}"
