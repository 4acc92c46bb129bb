"""Every use of Textual's private parts, with its reason. `tests/test_private_parts.py` tries each."""

from collections.abc import Awaitable
from typing import Any

from textual import _ansi_sequences
from textual._context import active_message_pump
from textual.app import App
from textual.command import CommandList, CommandPalette
from textual.css.query import NoMatches
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.worker import WorkerFailed, get_current_worker


def register_sequence(sequence: str, *keys: object) -> None:
    """Read a terminal's sequence as keys. Textual's own table cannot be extended in public."""
    table = _ansi_sequences.ANSI_SEQUENCES_KEYS
    assert isinstance(table, dict)
    table[sequence] = keys


def has_screen(app: App[Any]) -> bool:
    """Return whether an app shows a screen: `app.screen` raises if not, as while it closes."""
    return bool(app._screen_stack)


async def run_callbacks(app: App[Any]) -> None:
    """Run what was put off until the next refresh; there is no public way to wait for it."""
    await app._flush_next_callbacks()


def mount_hidden_screen(app: App[Any], name: str) -> tuple[Screen[Any], Awaitable[Any]]:
    """Mount an installed screen without showing it, which no public method does; await the second before `lay_out`."""
    return app._get_screen(name)


def lay_out(screen: Screen[Any], app: App[Any]) -> None:
    """Lay out a screen that is not shown; Textual would do it when it is."""
    screen._refresh_layout(app.size)


def text_of(screen: Screen[Any]) -> str:
    """Return what is on a screen as plain text; in public there are only pictures."""
    strips = screen._compositor.render_strips()
    return "\n".join("".join(part.text for part in strip) for strip in strips)


class SafeCommandPalette(CommandPalette):
    """Textual's palette, which crashes if its results come while it is being closed, and whose busy countdown outlives
    it.
    """

    def _watch__list_visible(self) -> None:
        if self.query(CommandList):
            super()._watch__list_visible()

    async def _watch__show_busy(self) -> None:
        if self.query(CommandList):
            await super()._watch__show_busy()

    def _action_escape(self) -> None:
        self._stop_no_matches_countdown()
        super()._action_escape()


class KeyBindings(App[None]):
    """An app that can decide which bound keys run, and when; Textual only offers the bindings themselves.

    It also does not crash if something that is being closed looks for a part or a style that it no longer has, or
    never got.
    """

    def _handle_exception(self, error: Exception) -> None:
        cause: BaseException = error
        looks: MessagePump = active_message_pump.get(self)
        if isinstance(error, WorkerFailed):
            cause, looks = error.error, get_current_worker().node
        gone = self._exit or looks._closing or looks._closed or getattr(looks, "_pruning", False)
        if not (gone and isinstance(cause, NoMatches | KeyError)):
            super()._handle_exception(error)

    async def _check_bindings(self, key: str, priority: bool = False) -> bool:
        return await self.run_binding(key, priority=priority)

    async def run_binding(self, key: str, *, priority: bool) -> bool:
        """Run the binding of a key, if it has one, of those with priority or of the others; return whether it ran."""
        return await super()._check_bindings(key, priority)
