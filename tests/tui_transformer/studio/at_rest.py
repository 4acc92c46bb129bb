"""A studio under test that is at rest: nothing is read, computed or drawn any more."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from itertools import zip_longest
from typing import Any

from textual.pilot import Pilot

from tests.tui_transformer.studio.on_screen import shown
from tests.waiting import PATIENCE, POLL_INTERVAL, timeout_message
from tui_transformer.studio.app import Studio
from tui_transformer.studio.compare.pane import ComparePane
from tui_transformer.studio.train.pane import UNREAD, TrainPane

Step = str | Callable[[Pilot[Any]], Awaitable[object]]  # a key, or what is done
POLLS = {"look at the runs", "compare the runs"}  # workers that go on for ever
UNSEEN = {"help"}  # groups of workers that change nothing on the screen
MAY_ASK = {"default", "pick", "launch", "study", "actions", "training"}  # groups that may wait for a dialog's answer
LOOKS = 2  # at a studio at rest, in a row: what a worker did at its end is drawn by then


async def rest(pilot: Pilot[Any], but: Collection[str] = ()) -> None:
    """Let the studio work until it is at rest, but for some groups of workers."""
    app, quiet, end = pilot.app, 0, time.monotonic() + PATIENCE
    while quiet < LOOKS and app._exception is None:
        await pilot.pause()
        doing = busy(app, but)
        quiet = 0 if doing else quiet + 1
        if doing:
            if time.monotonic() > end:
                raise AssertionError(timeout_message("a studio at rest", lambda: f"{doing}\n{shown(app)}"))  # noqa: B023
            await asyncio.sleep(POLL_INTERVAL)


def busy(app: Any, but: Collection[str] = ()) -> str:
    """What the studio is doing; "" if it is at rest."""
    if app.animator._animations or app.animator._scheduled:
        return "something moves"
    asks = len(app.screen_stack) > 1
    for worker in app.workers:
        over = worker.is_finished or worker.name in POLLS or worker.group in (*UNSEEN, *but)
        if not (over or (asks and worker.group in MAY_ASK)):
            return f"{worker} is at work"
    if not isinstance(app, Studio):
        return ""
    if app._adding_panes.locked():
        return "panes are being added"
    for train in app.query(TrainPane):
        if train._is_on_screen() and (found := _reading_runs(train)):
            return found
    for compare in app.query(ComparePane):
        if compare.display and compare.size.width > 0 and (found := _comparing(compare)):
            return found
    return ""


def _reading_runs(pane: TrainPane) -> str:
    snapshot, chosen = pane.snapshot, pane.chosen
    if snapshot is UNREAD or pane._wake.is_set():
        return "the runs are being read"
    if snapshot.chosen != chosen or pane._blank is not None:
        return "another run is being read"
    read = snapshot.view is not None and snapshot.view.path == chosen
    return "the run is being read" if snapshot.row(chosen) is not None and not read else ""


def _comparing(pane: ComparePane) -> str:
    if not pane._has_scanned or pane._wake.is_set():
        return "the runs are being compared"
    unread = {*(pane._grouped or pane.selection.runs)} - pane.metrics.keys()
    return f"curves are being read: {unread}" if unread else ""


async def take(pilot: Pilot[Any], *steps: Step) -> None:
    """Press keys and do things, each once what came before has had its effect; a word is typed in one go."""
    for step, following in zip_longest(steps, steps[1:], fillvalue=""):
        if callable(step):
            await step(pilot)
        else:
            await pilot.press(step)
        word = isinstance(step, str) and isinstance(following, str) and len(step) == len(following) == 1
        if not word:
            await rest(pilot)
