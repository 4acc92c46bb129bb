"""What a studio under test shows and says, and waiting for it."""

import asyncio
import inspect
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual.app import App
from textual.css.query import NoMatches
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import OptionList

from tests.waiting import PATIENCE, POLL_INTERVAL, timeout_message, value_of
from tui_transformer.studio.shared import typing_order

TURNS = 100_000  # of the event loop, after which it is idle
_really = Screen._compositor_refresh
_ask_all = Pilot._wait_for_screen
UNDRAWN = "_undrawn"  # of a screen whose changes are laid out


def shown(app: App[Any]) -> str:
    """The text on the screen."""
    return "\n".join("".join(part.text for part in line) for line in app.screen._compositor.render_strips())


def said(app: App[Any]) -> str:
    """All that the app has said in its corner, a note a line; in tests, no note goes away (`patch_waits`)."""
    return "\n".join(note.message for note in app._notifications)


def patch_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """In `run_test`, a press or a pause ends when the event loop has nothing left to do, and every note stays.

    Textual's pilot waits until the process computes little; where others leave it no processor, that is at once. The
    screen is drawn then, and not with every frame before: how many these are depends on the machine, and nobody sees
    them.
    """
    begin = App.run_test

    @asynccontextmanager
    async def run_test(app: App[Any], **options: Any) -> AsyncIterator[Pilot[Any]]:
        with pytest.MonkeyPatch.context() as patch:
            for module in ("app", "pilot"):
                patch.setattr(f"textual.{module}.wait_for_idle", lambda *_: until_idle(app))
            patch.setattr(Screen, "_compositor_refresh", _draw_later)
            async with begin(app, **options) as pilot:
                yield pilot
                _draw(app)

    monkeypatch.setattr(App, "run_test", run_test)
    monkeypatch.setattr(Pilot, "_wait_for_screen", _screen_waits)
    monkeypatch.setattr(App, "NOTIFICATION_TIMEOUT", PATIENCE)
    monkeypatch.setattr(typing_order, "PATIENCE", PATIENCE)


async def until_idle(app: App[Any]) -> None:
    """Let the event loop do all that it can do now, and draw what has changed.

    What waits for a thread, a process or a timer still does: `until` waits for what comes of it.
    """
    loop = asyncio.get_running_loop()
    for _ in range(TURNS):
        await asyncio.sleep(0)
        if loop._ready:  # type: ignore[attr-defined]
            continue
        screen = app.screen if app._screen_stack else None
        if screen is None or app._batch_count or not (_is_to_be_drawn(screen) or screen._callbacks):
            if not _draw(app):
                return
            continue
        screen._on_timer_update()  # else it comes with the next frame
    raise AssertionError(f"the event loop is never idle:\n{shown(app)}")


async def _screen_waits(pilot: Any, timeout: float = PATIENCE) -> bool:
    """Stands for the method of `Pilot`, which sends a message to every widget and waits until all are read.

    Where each widget waits for a message, there is none to read before that one.
    """
    app = pilot.app
    await until_idle(app)
    pumps = (app, *app.screen.walk_children(with_self=True)) if app._screen_stack else ()
    if pumps and app._exception is None and all(_waits(pump) for pump in pumps):
        return True
    return await _ask_all(pilot, timeout)


def _waits(pump: Any) -> bool:
    queue = pump._message_queue
    return queue.empty() and bool(queue.ready_event._waiters)


def _draw_later(screen: Any) -> None:
    """Stands for the method of `Screen`: what has changed stays marked until `_draw`."""
    if screen is not screen.app.screen:
        return _really(screen)
    for widget in screen._compositor.visible_widgets:
        if isinstance(widget, OptionList):
            widget._update_lines()  # which drawing it does, and where it is scrolled to depends on
    setattr(screen, UNDRAWN, True)
    screen._dirty_widgets.clear()
    screen.app._update_mouse_over(screen)
    return None


def _draw(app: Any) -> bool:
    """Draw what has changed on the screen on top; whether anything has."""
    screen = app.screen if app._screen_stack else None
    if screen is None or app._batch_count or not getattr(screen, UNDRAWN, False):
        return False
    setattr(screen, UNDRAWN, False)
    _really(screen)
    return True


def _is_to_be_drawn(screen: Any) -> bool:
    required = screen._layout_required, screen._scroll_required, screen._repaint_required, screen._recompose_required
    return any(required) or bool(screen._dirty_widgets)


async def until(pilot: Pilot[Any], claim: Callable[[], object], what: str = "") -> None:
    """Let the studio work until the claim holds; `what` says it in words, else its source does."""
    end, app = time.monotonic() + PATIENCE, pilot.app
    while True:
        await pilot.pause()
        if value_of(claim, NoMatches):
            return
        assert app._exception is None, f"the app has crashed: {app._exception!r}"
        if time.monotonic() > end:
            raise AssertionError(timeout_message(what or _source(claim), lambda: shown(app)))
        await asyncio.sleep(POLL_INTERVAL)


def _source(claim: Callable[[], object]) -> str:
    try:
        return inspect.getsource(claim).strip()
    except OSError:
        return repr(claim)
