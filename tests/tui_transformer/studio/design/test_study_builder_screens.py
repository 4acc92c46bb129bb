"""The study builder held against stored screens."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from engine.base.errors import InputError
from tests.tui_transformer.studio.at_rest import rest, take
from tests.tui_transformer.studio.stored_screens import SIZES, SMALL, studio
from tui_transformer.lab.design import benchmarks
from tui_transformer.lab.design.study_draft import Estimate
from tui_transformer.lab.work.plan import RunCost
from tui_transformer.studio.design import own_files


@pytest.fixture(autouse=True)
def own_folder(plain_surroundings, monkeypatch) -> None:
    """Studies of one's own at a path that is the same every day."""
    monkeypatch.setattr(own_files, "user_config_path", lambda name: Path("config"))


def writing(text: str) -> Callable[[Pilot[Any]], Awaitable[None]]:
    """Write a text into the line that is asked for."""

    async def write(pilot: Pilot[Any]) -> None:
        pilot.app.screen.query_one(Input).value = text

    return write


BUILDER, DIALOG, TICKS = ["#study"], [".dialog"], ["#ticks"]
HEADS = ("v", "v", writing("model.n_heads=1,2,4,8,3"), "enter")
GRID = (
    *("v", "v", writing("model.n_heads=1,2,4,8 model.position=rope,none,alibi,t5,xl"), "enter"),
    *("number_sign", writing("1,"), "enter"),
)
SHIPPED = ("v", "L", "enter", "down")


@pytest.mark.parametrize("size", SIZES)
async def test_a_study_without_variants(stored, size) -> None:
    await stored.of(studio("design"), size, "v", of=BUILDER)


@pytest.mark.parametrize("size", SIZES)
async def test_a_study_of_heads(stored, size) -> None:
    await stored.of(studio("design"), size, *HEADS, *["down"] * 5, of=BUILDER)


@pytest.mark.parametrize("size", SIZES)
async def test_a_shipped_study(stored, size, monkeypatch) -> None:
    async def plan(*_: object) -> Estimate:
        each = {"global": 340.0, "win16": 305.0, "sparse": 352.0, "linear": 520.0}
        prices = {name: RunCost(seconds=seconds, parameters=108_288) for name, seconds in each.items()}
        known = {"seconds": 2275.0, "disk_bytes": 50_188_416, "measured": True, "jobs": 2, "threads": 1}
        return Estimate(prices=prices, **known, devices=("cpu",))

    monkeypatch.setattr(benchmarks, "time_study_steps", plan)
    await stored.of(studio("design"), size, *SHIPPED, "m", of=BUILDER)


@pytest.mark.parametrize("size", SIZES)
async def test_presets_to_tick(stored, size) -> None:
    await stored.of(studio("design"), size, "v", "P", "space", "down", "down", "space", of=TICKS)


@pytest.mark.slow
async def test_the_last_of_the_presets_are_those_that_cannot_be(stored) -> None:
    await stored.of(studio("design"), SMALL, "v", "P", "end", of=TICKS)


@pytest.mark.slow
async def test_a_mistake_in_a_setting(stored) -> None:
    await stored.of(studio("design"), SMALL, "v", "v", writing("model.n_hads=1,2"), of=DIALOG)


@pytest.mark.slow
async def test_studies_to_take(stored) -> None:
    await stored.of(studio("design"), SMALL, "v", "L", of=DIALOG)


@pytest.mark.slow
async def test_seeds_are_asked_for(stored) -> None:
    await stored.of(studio("design"), SMALL, "v", "number_sign", of=DIALOG)


@pytest.mark.slow
async def test_the_whole_study(stored) -> None:
    await stored.of(studio("design"), SMALL, *SHIPPED, "t", of=DIALOG)


@pytest.mark.slow
async def test_many_variants(stored) -> None:
    await stored.of(studio("design"), SMALL, *GRID, of=BUILDER)


@pytest.mark.slow
async def test_a_measurement_that_failed(stored, monkeypatch) -> None:
    async def plan(*_: object) -> Estimate:
        await asyncio.sleep(0)
        raise InputError("corpus 'tiny-shakespeare' is not on this machine; tui-transformer data fetch gets it")

    monkeypatch.setattr(benchmarks, "time_study_steps", plan)
    await stored.of(studio("design"), SMALL, *HEADS, "m", of=BUILDER)


@pytest.mark.slow
async def test_the_light_theme(stored, plain_surroundings) -> None:
    plain_surroundings.write_text('welcomed = true\ntheme = "studio-light"\n')
    async with studio("design").run_test(size=SMALL) as pilot:
        await rest(pilot)
        await take(pilot, *HEADS)
        await stored.theme(pilot, *BUILDER)
