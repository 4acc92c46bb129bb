"""Handle keys in the order they were typed, each where the previous one led.

Textual sends a key to the widget that has the focus when it arrives, and runs the key's binding only after the key has
bubbled up to the app. Anything typed faster than that would go to the pane or dialog that is just closing.
"""

import asyncio
from contextlib import suppress
from enum import Enum
from weakref import WeakKeyDictionary

from textual import keys
from textual.app import App
from textual.events import Event, Key
from textual.screen import Screen
from textual.widget import Widget

from tui_transformer.studio.shared.textual_private import KeyBindings, has_screen, register_sequence, run_callbacks

PATIENCE = 1.0  # most seconds a key waits for the effects of earlier keys
GLANCE = 0.005  # seconds between checks on a dialog that is being built


class AltDigit(Enum):
    """Alt plus a digit; a terminal sends the same for escape followed at once by a digit."""

    ONE, TWO, THREE, FOUR, FIVE = "alt+1", "alt+2", "alt+3", "alt+4", "alt+5"
    SIX, SEVEN, EIGHT, NINE = "alt+6", "alt+7", "alt+8", "alt+9"


def register_alt_and_symbol_keys() -> None:
    """Read alt plus a digit as that key: Textual reads it as the character of a Mac's option key, ™ for alt+2.

    And let a line take / + - @ \\ _ as text even where they are bound: Textual has no character for their short names.
    """
    for key in AltDigit:
        register_sequence(f"\x1b{key.value[-1]}", key)
    names = keys.KEY_TO_UNICODE_NAME
    names |= {short: names.get(name, name) for short, name in keys.REPLACED_KEYS.items()}
    keys.key_to_character.cache_clear()


def accepts_as_text(widget: Widget | None, key: str) -> bool:
    """Whether a widget, if it has the focus, takes a key as text."""
    return widget is not None and widget.check_consume_key(key, keys.key_to_character(key))


class TypingOrderApp(KeyBindings):
    """An app that handles no key before the previous one has taken effect.

    `key_count` counts keys.
    """

    key_count = 0

    def __init__(self) -> None:
        super().__init__()
        self._focus_at_typing: WeakKeyDictionary[Key, Widget | None] = WeakKeyDictionary()

    async def on_event(self, event: Event) -> None:
        if isinstance(event, Key) and not event.is_forwarded:
            before = None
            while has_screen(self) and before is not self.screen:
                before = self.screen
                with suppress(TimeoutError):
                    async with asyncio.timeout(PATIENCE):
                        await _wait_until_settled(before)
                await run_callbacks(self)  # a dialog's answer may open another dialog
            if not has_screen(self):  # the app is closing
                return
            self.key_count += 1
            self._focus_at_typing[event] = self.focused
        await super().on_event(event)

    def on_key(self, event: Key) -> None:
        """Ignore a key that has bubbled up unused if a later one has moved the focus: it was not meant for this."""
        if self._focus_at_typing.get(event) is not self.focused:
            event.prevent_default()

    async def run_binding(self, key: str, *, priority: bool) -> bool:
        """Run a bound key at once, unless the focused widget takes it as text, or the screen asks for a key."""
        if getattr(self.screen, "takes_every_key", False):
            return False
        if not priority:
            return await super().run_binding(key, priority=False)
        if await super().run_binding(key, priority=True):
            return True
        if accepts_as_text(self.focused, key):
            return False
        return await super().run_binding(key, priority=False)


async def _wait_until_settled(screen: Screen[object]) -> None:
    for pump in screen.focused.ancestors_with_self if screen.focused is not None else [screen]:
        heard = asyncio.Event()
        if not isinstance(pump, App) and pump.is_running and pump.call_later(heard.set):
            await heard.wait()
    while screen.focused is None and not (screen.is_mounted and not screen.focus_chain):
        await asyncio.sleep(GLANCE)
