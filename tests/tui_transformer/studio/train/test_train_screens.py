"""The Train pane held against stored screens: each part of it in the states where it differs."""

from pathlib import Path

import pytest

from tests.tui_transformer.recorded import everything
from tests.tui_transformer.studio.at_rest import take
from tests.tui_transformer.studio.stored_screens import SIZES, SMALL, studio
from tui_transformer.studio.train.pane import TrainPane
from tui_transformer.studio.train.run_charts import RunCharts
from tui_transformer.studio.train.run_header import Gauges, RunHeader
from tui_transformer.studio.train.run_tabs import RunTabs

RUNS = Path("runs")


@pytest.mark.parametrize("size", SIZES)
async def test_train_without_a_run(stored, size) -> None:
    await stored.of(studio("train"), size, of=["#train #nothing"])


@pytest.mark.parametrize("size", SIZES)
async def test_train_with_a_run_in_each_state(stored, size) -> None:
    everything(RUNS)
    app = studio("train")
    async with app.run_test(size=size) as pilot:
        await take(pilot, "home")
        pane = app.query_one(TrainPane)
        if size == SMALL:
            stored.shot(app, "#left", label="the list")
            stored.shot(app, RunCharts, Gauges, RunTabs, label="nothing yet")
        seen = []
        while pane.chosen is not None and pane.chosen.name not in seen:
            seen.append(pane.chosen.name)
            stored.shot(app, RunHeader, label=seen[-1], stored=size == SMALL)
            if seen[-1] == "win16":
                below = (RunCharts, Gauges, RunTabs) if size == SMALL else (TrainPane,)
                stored.shot(app, *below, label="running", stored=True)
            await take(pilot, "down")
        assert len(seen) == len([*RUNS.iterdir()]) == 11


async def test_train_looked_at_otherwise(stored) -> None:
    everything(RUNS)
    app = studio("train")
    async with app.run_test(size=SMALL) as pilot:
        await take(pilot, "home", "down")
        for keys, part in (("b", RunTabs), ("l", RunTabs), ("yx", RunCharts), ("z", RunCharts)):
            await take(pilot, *keys)
            stored.shot(app, part, label=keys)
        await take(pilot, "tab", "left", "left")
        stored.shot(app, RunCharts, label="at a place")


@pytest.mark.parametrize("theme", ["studio-light", pytest.param("studio-colour-blind", marks=pytest.mark.slow)])
async def test_themes(stored, plain_surroundings, theme) -> None:
    plain_surroundings.write_text(f'welcomed = true\ntheme = "{theme}"\n')
    everything(RUNS)
    app = studio("train")
    async with app.run_test(size=SMALL) as pilot:
        await take(pilot, "home", "down")
        await stored.theme(pilot, TrainPane)
