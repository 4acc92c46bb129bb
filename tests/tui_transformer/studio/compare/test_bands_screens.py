"""Curves over seeds and by distance held against stored screens."""

from pathlib import Path

import pytest

from tests.tui_transformer.lab.analysis.seeds import attention
from tests.tui_transformer.studio.at_rest import rest, take
from tests.tui_transformer.studio.compare.test_compare_screens import CHARTS, TABLE, drawn
from tests.tui_transformer.studio.stored_screens import SIZES, SMALL, studio

RUNS = Path("runs")
SELECT = (*TABLE, "v", *drawn(*(f"attention.{name}.s1" for name in ("global", "win16", "sparse", "linear"))))


@pytest.mark.parametrize("size", SIZES)
async def test_means_over_seeds_and_their_differences(stored, size) -> None:
    attention(RUNS)
    await stored.of(studio("compare"), size, *SELECT, "M", *(["c"] if size == SMALL else []), of=CHARTS)


@pytest.mark.parametrize("size", SIZES)
async def test_recall_by_distance(stored, size) -> None:
    attention(RUNS)
    await stored.of(studio("compare"), size, *SELECT, "M", "D", of=CHARTS)


async def test_recall_by_distance_of_runs_by_themselves_in_the_light_theme(stored, plain_surroundings) -> None:
    plain_surroundings.write_text('welcomed = true\ntheme = "studio-light"\n')
    attention(RUNS, seeds=1)
    runs = drawn(*(f"attention.{name}.s1" for name in ("global", "win16", "sparse")))
    async with (app := studio("compare")).run_test(size=SMALL) as pilot:
        await rest(pilot)
        await take(pilot, *TABLE, "v", *runs, "D")
        stored.shot(app, *CHARTS)
