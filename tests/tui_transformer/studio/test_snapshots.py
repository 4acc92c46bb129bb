"""Every state of the screens held against a picture, at the three sizes; `pytest --snapshot-update` takes new ones."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.tui_transformer.recorded import everything
from tests.tui_transformer.studio.on_screen import until
from tui_transformer.studio.app import Studio
from tui_transformer.studio.design.preview import Preview

pytestmark = [pytest.mark.usefixtures("plain_surroundings"), pytest.mark.one_in(2)]

SIZES = [(80, 24), (120, 36), (200, 50)]
MEDIUM = (120, 36)
PICTURES = [SIZES[0], pytest.param(MEDIUM, marks=pytest.mark.slow), SIZES[2]]  # CI draws the ends
SMALLEST = [SIZES[0], *(pytest.param(size, marks=pytest.mark.slow) for size in SIZES[1:])]

Step = Callable[[Pilot[Any]], Any]


def shown(pilot: Pilot[Any]) -> str:
    """All screens, also those behind a dialog."""
    every = [screen._compositor.render_strips() for screen in pilot.app.screen_stack]
    return "\n".join("".join(part.text for part in line) for strips in every for line in strips)


def when(*words: str, gone: str = "\0") -> Step:
    """Wait until words stand there, and others do not."""

    async def wait(pilot: Pilot[Any]) -> None:
        await until(pilot, lambda: all(word in shown(pilot) for word in words) and gone not in shown(pilot))
        await pilot.pause(0.1)

    return wait


async def listed(pilot: Pilot[Any]) -> None:
    """Wait until the pane has read the runs: a key that moves in an empty list is lost."""
    for _ in range(500):
        if re.search(r"(Runs|Variants)  [1-9]", shown(pilot)):
            return
        await pilot.pause(0.02)
    raise AssertionError(shown(pilot))


def pressing(*steps: str | Step, then: Step, first: Step | None = None) -> Step:
    """Press keys; between them, wait for what a step waits for."""

    async def act(pilot: Pilot[Any]) -> None:
        if first is not None:
            await first(pilot)
        for step in steps:
            if callable(step):
                await step(pilot)
                continue
            await pilot.press(step)
            await pilot.pause(0.05)
        await then(pilot)

    return act


def settled(preview: Preview) -> bool:
    """Whether the corpus and the positions are those of the design."""
    drawn = preview._positions is not None and preview._positions[0] == preview._asked
    return drawn and preview._facts.corpus is not None


async def drawn(pilot: Pilot[Any]) -> None:
    """Wait until the design pane has all it shows, in view or not."""
    await when("1 Design")(pilot)
    preview = pilot.app.screen_stack[0].query_one(Preview)
    for _ in range(200):
        seen = []
        for _ in range(5):
            await pilot.pause(0.1)
            seen.append(settled(preview))
        if all(seen):
            return
    raise AssertionError(shown(pilot))


def studio() -> Studio:
    return Studio(runs_dir=Path("runs"), device="cpu")


@pytest.mark.parametrize("size", PICTURES)
def test_design(snap_compare, size) -> None:
    assert snap_compare(studio(), terminal_size=size, run_before=drawn)


@pytest.mark.parametrize("size", PICTURES)
def test_design_of_a_window_with_a_change(snap_compare, size) -> None:
    keys = ("slash", *"win16", "enter", "enter", "down", "right")
    assert snap_compare(studio(), terminal_size=size, run_before=pressing(*keys, first=drawn, then=drawn))


def test_design_says_why_a_choice_is_not_one(snap_compare) -> None:
    act = pressing("tab", "enter", first=drawn, then=when("encoder-decoder"))
    assert snap_compare(studio(), terminal_size=MEDIUM, run_before=act)


@pytest.mark.parametrize("size", PICTURES)
def test_train_without_a_run(snap_compare, size) -> None:
    act = pressing("2", then=when("Nothing has been trained yet"))
    assert snap_compare(studio(), terminal_size=size, run_before=act)


# Every state at one size, a live and a waiting run at the ends, which is for CI: (size, which run of the list).
STATES = [pytest.param(MEDIUM, down, marks=pytest.mark.slow) for down in range(9)]
STATES += [pytest.param(size, down) for size in SIZES if size != MEDIUM for down in (0, 2)]


@pytest.mark.parametrize(("size", "down"), STATES)
def test_train_with_a_run_in_each_state(snap_compare, size, down) -> None:
    everything(Path("runs"))
    act = pressing("2", listed, "home", *["down"] * down, first=when("Design"), then=when("Runs  "))
    assert snap_compare(studio(), terminal_size=size, run_before=act)


@pytest.mark.slow
@pytest.mark.parametrize("keys", [("z",), ("y", "x"), ("tab", "left", "left"), ("b",), ("l",)], ids="-".join)
def test_train_looked_at_otherwise(snap_compare, keys) -> None:
    everything(Path("runs"))
    act = pressing("2", listed, *keys, first=when("Design"), then=when("Runs  " if keys != ("z",) else "loss"))
    assert snap_compare(studio(), terminal_size=MEDIUM, run_before=act)


def test_too_small(snap_compare) -> None:
    assert snap_compare(studio(), terminal_size=(40, 10), run_before=when("40 × 10"))


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["studio-light", "studio-colour-blind"])
def test_themes(snap_compare, plain_surroundings, theme) -> None:
    plain_surroundings.write_text(f'welcomed = true\ntheme = "{theme}"\n')
    everything(Path("runs"))
    act = pressing("2", first=when("Design"), then=when("Runs  "))
    assert snap_compare(studio(), terminal_size=MEDIUM, run_before=act)
