"""The Compare pane by run held against stored screens."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.tui_transformer.lab.analysis.asking import asking
from tests.tui_transformer.lab.analysis.variants import AT, LEAK, study, variant
from tests.tui_transformer.studio.at_rest import Step, rest, take
from tests.tui_transformer.studio.stored_screens import SIZES, SMALL, studio
from tui_transformer.studio.compare.overlay_charts import CompareCharts
from tui_transformer.studio.compare.pane import ComparePane

RUNS = Path("runs")
PANE, ABOVE, TABLE_ABOVE, CHARTS = ["#compare"], ["#compare-title", "#compare-top"], ["#compare-top"], [CompareCharts]
DIALOG = [".dialog"]


async def no_baseline(pilot: Pilot[Any]) -> None:
    """Take away the one that was chosen of itself."""
    pane = pilot.app.query_one(ComparePane)
    pane.selection.baseline = None
    pane.redraw()


def at(name: str) -> Callable[[Pilot[Any]], Awaitable[None]]:
    """Put the cursor on a run."""

    async def go(pilot: Pilot[Any]) -> None:
        rows = [row.entry.name for row in pilot.app.query_one(ComparePane).shown.rows]
        await take(pilot, "home", *["down"] * rows.index(name))

    return go


def drawn(baseline: str, *runs: str) -> tuple[Step, ...]:
    """Make a run the baseline, and draw others beside it."""
    return (at(baseline), "p", *(step for run in runs for step in (at(run), "space")))


TABLE: tuple[Step, ...] = ("f", "X", no_baseline)  # the table, with nothing drawn
SELECT = (*TABLE, *drawn("baseline", "heads2", "no-pe", "enc-next", "short"))


@pytest.mark.parametrize("size", SIZES)
async def test_compare_without_a_run(stored, size) -> None:
    await stored.of(studio("compare"), size, of=["#compare-nothing"])


async def test_compare_with_one_run(stored) -> None:
    variant(RUNS, "baseline")
    await stored.of(studio("compare"), SMALL, of=["#compare-hint"])


@pytest.mark.parametrize("size", SIZES)
async def test_compare_with_runs(stored, size) -> None:
    study(RUNS)
    await stored.of(studio("compare"), size, *TABLE, "home", of=PANE)


@pytest.mark.parametrize("size", SIZES)
async def test_compare_with_what_always_the_same_answer_scores(stored, size) -> None:
    for name, exact in (("finetuned", 0.62), ("scratch", 0.1)):
        asking(RUNS, name, exact)
    await stored.of(studio("compare"), size, *TABLE, of=TABLE_ABOVE)


@pytest.mark.parametrize("size", SIZES)
async def test_compare_with_curves(stored, size) -> None:
    study(RUNS)
    await stored.of(studio("compare"), size, *SELECT, of=PANE, stored=True)


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["studio-light", "studio-colour-blind"])
async def test_compare_in_other_themes(stored, plain_surroundings, theme) -> None:
    plain_surroundings.write_text(f'welcomed = true\ntheme = "{theme}"\n')
    study(RUNS)
    async with studio("compare").run_test(size=SMALL) as pilot:
        await rest(pilot)
        await take(pilot, *SELECT)
        await stored.theme(pilot, *PANE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keys", "of"), [(["c"], CHARTS), (["right", "right", "o", "o", "O"], TABLE_ABOVE)], ids=["another chart", "sorted"]
)
async def test_compare_looked_at_otherwise(stored, keys, of) -> None:
    study(RUNS)
    await stored.of(studio("compare"), SMALL, *SELECT, *keys, of=of)


@pytest.mark.parametrize("size", SIZES)
async def test_compare_where_nothing_matches(stored, size) -> None:
    study(RUNS)
    await stored.of(
        studio("compare"), size, *TABLE, "slash", *"badge:inert", of=["#compare-filter", "#compare-nothing"]
    )


async def test_compare_with_a_mistake_in_the_filter(stored) -> None:
    study(RUNS)
    steps = (*TABLE, "slash", *"tag:report n_hed=2")
    await stored.of(studio("compare"), SMALL, *steps, of=["#compare-filter", "#compare-mistake"])


@pytest.mark.parametrize("size", SIZES)
async def test_compare_all_about_a_run(stored, size) -> None:
    study(RUNS)
    steps = (*TABLE, at("baseline"), "p", at("enc-next"), "enter")
    await stored.of(studio("compare"), size, *steps, of=DIALOG)


@pytest.mark.slow
@pytest.mark.parametrize("key", ["N", "g", "E"])
async def test_compare_asks(stored, key) -> None:
    study(RUNS)
    await stored.of(studio("compare"), SMALL, *TABLE, "end", key, of=DIALOG)


@pytest.mark.parametrize("size", SIZES)
async def test_compare_with_wide_characters_and_long_names(stored, size) -> None:
    baseline, longest, family = (
        "基线模型-每个字都很宽-而且名字很长",
        "a-name-of-a-run-that-is-very-much-longer-than-any-column",
        "👩‍🔬-family",
    )
    variant(
        RUNS,
        baseline,
        note="这个模型学会了括号 🚀🚀 " * 4,
        tags=("很好", "🔥"),
        created=AT(1),
    )
    variant(RUNS, longest, by=0.1, created=AT(2), tags=("x" * 40,))
    variant(RUNS, family, by=0.2, created=AT(3), verdicts=[LEAK])
    steps = (*TABLE, *drawn(baseline, longest, family), *["right"] * 3)
    await stored.of(studio("compare"), size, *steps, of=PANE)


@pytest.mark.parametrize("size", SIZES)
async def test_compare_with_many_runs(stored, size) -> None:
    for i in range(60):
        variant(RUNS, f"heads-{i:02d}", f"model.n_heads={2 ** (i % 4)}", f"seed={i}", by=i * 0.01, created=AT(i))
    await stored.of(studio("compare"), size, *TABLE, *["down"] * 30, of=ABOVE)
