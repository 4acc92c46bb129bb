"""Keys are obeyed in the order they were typed, each where the one before it led.

Textual hands a key to what has the focus when it arrives, and the key's binding runs only after the key has gone from
widget to widget up to the app. What is typed faster than that would go to the pane, or the dialog, that is being left.
"""

import asyncio
from contextlib import suppress
from enum import Enum

from textual import _ansi_sequences
from textual.app import App
from textual.events import Event, Key
from textual.keys import key_to_character
from textual.screen import Screen

PATIENCE = 1.0  # seconds at most that a key waits for what the ones before it led to
GLANCE = 0.005  # seconds between two looks at a dialog that is being built


class AltDigit(Enum):
    """Alt with a digit, and escape with one typed right after it: a terminal sends the same for both."""

    ONE, TWO, THREE, FOUR = "alt+1", "alt+2", "alt+3", "alt+4"


def hear_alt_digits() -> None:
    """Let alt with a digit be that key: Textual takes it for the sign that a Mac's option key writes, ™ for alt+2."""
    table = _ansi_sequences.ANSI_SEQUENCES_KEYS
    assert isinstance(table, dict)
    table |= {f"\x1b{key.value[-1]}": (key,) for key in AltDigit}


class TypingOrder(App[None]):
    """An app that hears no key before the last one is obeyed.

    `keys_heard` counts them.
    """

    keys_heard = 0

    async def on_event(self, event: Event) -> None:
        """A key waits for what those before it have done."""
        if isinstance(event, Key) and not event.is_forwarded:
            await self._catch_up()
            self.keys_heard += 1
        await super().on_event(event)

    async def _check_bindings(self, key: str, priority: bool = False) -> bool:
        """A bound key is obeyed at once, unless what has the focus takes it as text."""
        if not priority:
            return await super()._check_bindings(key)
        if await super()._check_bindings(key, priority=True):
            return True
        focused = self.focused
        if focused is not None and focused.check_consume_key(key, key_to_character(key)):
            return False
        return await super()._check_bindings(key)

    async def _catch_up(self) -> None:
        """Until what was typed has arrived, and a dialog that it opened can be typed into."""
        before = None
        while before is not self.screen:
            before = self.screen
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE):
                    await _settle(before)
            await self._flush_next_callbacks()  # a dialog's answer, which may open another one


async def _settle(screen: Screen[object]) -> None:
    """Until the screen and what has the focus on it have heard all that was said to them so far."""
    for pump in screen.focused.ancestors_with_self if screen.focused is not None else [screen]:
        heard = asyncio.Event()
        if not isinstance(pump, App) and pump.is_running and pump.call_later(heard.set):
            await heard.wait()
    while screen.focused is None and not (screen.is_mounted and not screen.focus_chain):
        await asyncio.sleep(GLANCE)
