"""The Compare pane over seeds and by distance: keys and live runs."""

import json

import pytest

from tests.tui_transformer.lab.analysis.seeds import WINDOW, attention, seeded
from tests.tui_transformer.recorded import lines, validation_record
from tests.tui_transformer.studio.compare.test_compare_pane import Open, root
from tui_transformer.studio.compare.overlay_charts import CompareCharts

__all__ = ["root"]  # a fixture

pytestmark = [pytest.mark.usefixtures("plain_surroundings"), pytest.mark.one_in(3)]


async def selected(studio: Open, *runs: str) -> CompareCharts:
    await studio.press("v")  # run by run
    for run in runs:
        await studio.go(f"attention.{run}.s1")
        await studio.press("space")
    return studio.app.query_one(CompareCharts)


def variants(charts: CompareCharts) -> dict[str, int]:
    drawn = charts._drawn
    assert drawn is not None and drawn.shows_means
    return {group.label: len(group.runs) for _, group in drawn.groups}


async def test_m_draws_each_selected_run_with_its_other_seeds_and_m_again_by_itself(root) -> None:
    attention(root)
    async with Open(root) as studio:
        charts = await selected(studio, "global", "win16", "linear")
        await studio.press("M")
        await studio.until(lambda: "n3" in studio.text)
        assert variants(charts) == {"global": 3, "win16": 3, "linear": 1}
        await studio.press("M")
        await studio.until(lambda: "n3" not in studio.text)


async def test_two_seeds_of_a_variant_are_one_line(root) -> None:
    attention(root)
    async with Open(root) as studio:
        charts = await selected(studio, "win16")
        await studio.go("attention.win16.s2")
        await studio.press("space", "M")
        await studio.until(lambda: "n3" in studio.text)
        assert variants(charts) == {"win16": 3}


async def test_d_shows_the_first_probe_then_the_next_and_c_goes_back(root) -> None:
    attention(root)
    async with Open(root) as studio:
        await selected(studio, "global", "win16")
        await studio.press("D")
        await studio.until(lambda: "recall" in studio.text and "┊" in studio.text)
        await studio.press("D")
        await studio.until(lambda: "rhyme" in studio.text)
        await studio.press("c")
        await studio.until(lambda: "p: set a run as the baseline" in studio.text)


async def test_the_cursor_of_one_chart_is_no_place_of_the_other_where_x_is_something_else(root) -> None:
    attention(root)
    async with Open(root) as studio:
        charts = await selected(studio, "global")
        await studio.press("D")
        await studio.until(lambda: "recall" in studio.text)
        charts._difference.focus()
        await studio.press("left", "left")
        await studio.until(lambda: "back" in studio.text)
        assert charts._difference._x is not None and charts._curves._x is None


async def test_a_seed_that_trains_on_lengthens_the_band(root) -> None:
    for seed in (1, 2):
        seeded(root, "global", seed, *WINDOW, state="running" if seed == 2 else "finished", step=1000 * (3 - seed))
    async with Open(root) as studio:
        charts = await selected(studio, "global")
        await studio.press("M")
        await studio.until(lambda: charts._curves._drawing is not None and charts._curves._drawing.made.drawn)
        assert charts._curves._drawing.made.drawn[0].curve.x[-1] == 1000
        assert any("seed 2 ends at step 1,000" in note for note in charts._curves._drawing.made.notes)
        with (root / "attention.global.s2" / "metrics.jsonl").open("a") as file:
            file.write(lines([validation_record(1200, 2000)]))
        studio.pane.reread_run(root / "attention.global.s2")
        await studio.until(lambda: charts._curves._drawing.made.drawn[0].curve.x[-1] == 1200)


async def test_damaged_metrics_are_no_band_and_no_crash(root) -> None:
    attention(root)
    for run in root.iterdir():
        (run / "metrics.jsonl").write_bytes(b"\x00\xff{]\n" + json.dumps({"kind": "validation"}).encode() + b"\n")
    async with Open(root) as studio:
        await selected(studio, "global", "win16")
        await studio.press("M")
        await studio.until(lambda: "no evaluation yet" in studio.text)
        await studio.press("D")
        await studio.until(lambda: "no run here has probe scores by distance" in studio.text)
