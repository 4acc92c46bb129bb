"""The study builder held against pictures, at the three sizes; `pytest --snapshot-update` takes new ones."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from tests.tui_transformer.studio.test_snapshots import MEDIUM, SIZES, SMALLEST, drawn, studio, when
from tui_transformer.lab.design import processes
from tui_transformer.lab.design.study_draft import Estimate
from tui_transformer.lab.studies.plan import Price
from tui_transformer.studio.design import own_files

SMALL = SIZES[0]


@pytest.fixture(autouse=True)
def own_folder(plain_surroundings, monkeypatch) -> None:
    """Studies of one's own at a path that is the same every day."""
    monkeypatch.setattr(own_files, "user_config_path", lambda name: Path("config"))


def doing(*keys: str, then: str) -> Callable[[Pilot[Any]], Any]:
    """Open the builder and press keys; what begins with a colon is written into the line that is asked for."""

    async def act(pilot: Pilot[Any]) -> None:
        await drawn(pilot)
        for key in ("v", *keys):
            if key.startswith(":"):
                pilot.app.screen.query_one(Input).value = key[1:]
            else:
                await pilot.press(key)
            await pilot.pause(0.05)
        await when(then)(pilot)

    return act


HEADS = ("v", ":model.n_heads=1,2,4,8,3", "enter")
GRID = ("v", ":model.n_heads=1,2,4,8 model.position=rope,none,alibi,t5,xl", "enter", "number_sign", ":1,", "enter")
SHIPPED = ("L", "enter", "down")


@pytest.mark.parametrize("size", SMALLEST)
def test_a_study_without_variants(snap_compare, size) -> None:
    assert snap_compare(studio(), terminal_size=size, run_before=doing(then="at least two variants"))


@pytest.mark.parametrize("size", SMALLEST)
def test_a_study_of_heads(snap_compare, size) -> None:
    act = doing(*HEADS, *["down"] * 5, then="is left out")
    assert snap_compare(studio(), terminal_size=size, run_before=act)


@pytest.mark.parametrize("size", SMALLEST)
def test_a_shipped_study(snap_compare, size, monkeypatch) -> None:
    async def plan(*_: object) -> Estimate:
        each = {"global": 340.0, "win16": 305.0, "sparse": 352.0, "linear": 520.0}
        prices = {name: Price(seconds=seconds, parameters=108_288) for name, seconds in each.items()}
        known = {"seconds": 2275.0, "disk_bytes": 50_188_416, "measured": True, "jobs": 2, "threads": 1}
        return Estimate(prices=prices, **known, devices=("cpu",))

    monkeypatch.setattr(processes, "plan", plan)
    act = doing(*SHIPPED, "m", then="at a time")
    assert snap_compare(studio(), terminal_size=size, run_before=act)


@pytest.mark.parametrize("size", SMALLEST)
def test_presets_to_tick(snap_compare, size) -> None:
    act = doing("P", "space", "down", "down", "space", then="space: toggle")
    assert snap_compare(studio(), terminal_size=size, run_before=act)


@pytest.mark.slow
def test_the_last_of_the_presets_are_those_that_cannot_be(snap_compare) -> None:
    act = doing("P", "end", then="the design already includes this")
    assert snap_compare(studio(), terminal_size=MEDIUM, run_before=act)


@pytest.mark.slow
def test_a_mistake_in_a_setting(snap_compare) -> None:
    act = doing("v", ":model.n_hads=1,2", then="did you mean")
    assert snap_compare(studio(), terminal_size=SMALL, run_before=act)


@pytest.mark.slow
def test_studies_to_take(snap_compare) -> None:
    assert snap_compare(studio(), terminal_size=SMALL, run_before=doing("L", then="Use the variants of which"))


@pytest.mark.slow
def test_seeds_are_asked_for(snap_compare) -> None:
    assert snap_compare(studio(), terminal_size=SMALL, run_before=doing("number_sign", then="Seeds for every"))


@pytest.mark.slow
def test_the_whole_study(snap_compare) -> None:
    act = doing(*SHIPPED, "t", then="the whole study")
    assert snap_compare(studio(), terminal_size=MEDIUM, run_before=act)


@pytest.mark.slow
def test_many_variants(snap_compare) -> None:
    act = doing(*GRID, then="= 20")
    assert snap_compare(studio(), terminal_size=SMALL, run_before=act)


@pytest.mark.slow
def test_a_measurement_that_failed(snap_compare, monkeypatch) -> None:
    async def plan(*_: object) -> Estimate:
        from engine.errors import InputError

        await asyncio.sleep(0)
        raise InputError("corpus 'tiny-shakespeare' is not on this machine; tui-transformer data fetch gets it")

    monkeypatch.setattr(processes, "plan", plan)
    assert snap_compare(studio(), terminal_size=SMALL, run_before=doing(*HEADS, "m", then="gets it"))


@pytest.mark.slow
def test_the_light_theme(snap_compare, plain_surroundings) -> None:
    plain_surroundings.write_text('welcomed = true\ntheme = "studio-light"\n')
    act = doing(*HEADS, then="= 12 runs")
    assert snap_compare(studio(), terminal_size=MEDIUM, run_before=act)
