"""What a studio under test shows, and waiting for it."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from textual.app import App
from textual.pilot import Pilot

PATIENCE = 30.0  # seconds: what takes a moment here may take many on a busy machine


def shown(app: App[Any]) -> str:
    """The text on the screen."""
    return "\n".join("".join(part.text for part in line) for line in app.screen._compositor.render_strips())


async def until(pilot: Pilot[Any], claim: Callable[[], bool]) -> None:
    """Let the studio work until the claim holds."""
    end = time.monotonic() + PATIENCE
    while True:
        await pilot.pause()
        if claim():
            return
        if time.monotonic() > end:
            raise AssertionError(f"it never came:\n{shown(pilot.app)}")
        await asyncio.sleep(0.01)
