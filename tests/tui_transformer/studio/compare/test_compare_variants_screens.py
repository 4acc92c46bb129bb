"""The Compare pane by variant held against stored screens."""

from pathlib import Path

import pytest

from tests.tui_transformer.lab.analysis.studies import attention
from tests.tui_transformer.lab.analysis.variants import AT, variant
from tests.tui_transformer.studio.at_rest import rest
from tests.tui_transformer.studio.compare.test_compare_screens import CHARTS, DIALOG, PANE, TABLE, TABLE_ABOVE
from tests.tui_transformer.studio.stored_screens import SIZES, SMALL, studio

RUNS = Path("runs")


@pytest.mark.parametrize("size", SIZES)
async def test_the_answer_of_a_study(stored, size) -> None:
    attention(RUNS)
    await stored.of(studio("compare"), size, of=PANE, stored=True)


@pytest.mark.parametrize("theme", ["studio-light", pytest.param("studio-colour-blind", marks=pytest.mark.slow)])
async def test_the_answer_in_other_themes(stored, plain_surroundings, theme) -> None:
    plain_surroundings.write_text(f'welcomed = true\ntheme = "{theme}"\n')
    attention(RUNS)
    async with studio("compare").run_test(size=SMALL) as pilot:
        await rest(pilot)
        await stored.theme(pilot, *PANE)


@pytest.mark.parametrize("size", SIZES)
async def test_a_study(stored, size) -> None:
    attention(RUNS)
    await stored.of(studio("compare"), size, *TABLE, "down", of=[*TABLE_ABOVE, "#compare-hint"])


@pytest.mark.parametrize("size", SIZES)
async def test_a_study_with_curves(stored, size) -> None:
    attention(RUNS)
    await stored.of(studio("compare"), size, *TABLE, "home", "space", "down", "space", of=CHARTS)


@pytest.mark.parametrize("size", SIZES)
async def test_all_about_a_variant(stored, size) -> None:
    attention(RUNS)
    await stored.of(studio("compare"), size, *TABLE, "down", "enter", of=DIALOG)


async def test_the_probes_of_a_study(stored) -> None:
    attention(RUNS)
    await stored.of(studio("compare"), SMALL, *TABLE, *["right"] * 21, of=TABLE_ABOVE)


async def test_variants_of_no_study_and_wide_names(stored) -> None:
    for seed in (1, 2, 3):
        variant(RUNS, f"基线模型-很长的名字-s{seed}", f"seed={seed}", by=0.001 * seed, created=AT(seed))
        more = {"state": "running", "step": 800} if seed == 3 else {}
        variant(RUNS, f"rope-s{seed}", f"seed={seed}", "model.position=rope", by=0.03, created=AT(3 + seed), **more)
        variant(RUNS, f"hot-s{seed}", "optimizer.lr=0.3", f"seed={seed}", created=AT(9), state="failed", step=310,
                reason="the loss is not a number")  # fmt: skip
    await stored.of(studio("compare"), SMALL, *TABLE, "v", "end", "p", "up", of=[*TABLE_ABOVE, "#compare-hint"])
