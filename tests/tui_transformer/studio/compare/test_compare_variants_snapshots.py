"""The Compare pane by variant held against pictures, at the three sizes."""

from pathlib import Path

import pytest

from tests.tui_transformer.lab.analysis.studies import attention
from tests.tui_transformer.lab.analysis.variants import AT, variant
from tests.tui_transformer.studio.compare.test_compare_snapshots import TABLE, cursors_that_stand_still
from tests.tui_transformer.studio.test_snapshots import PICTURES, pressing, studio, when

__all__ = ["cursors_that_stand_still"]  # a fixture

pytestmark = [pytest.mark.usefixtures("plain_surroundings"), pytest.mark.one_in(3)]
RUNS = Path("runs")


@pytest.mark.parametrize("size", PICTURES)
def test_the_answer_of_a_study(snap_compare, size) -> None:
    attention(RUNS)
    act = pressing("3", then=when("win16 and hot are worse than global", "a global", "end"))
    assert snap_compare(studio(), terminal_size=size, run_before=act)


@pytest.mark.parametrize("theme", ["studio-light", pytest.param("studio-colour-blind", marks=pytest.mark.slow)])
def test_the_answer_in_other_themes(snap_compare, plain_surroundings, theme) -> None:
    plain_surroundings.write_text(f'welcomed = true\ntheme = "{theme}"\n')
    attention(RUNS)
    act = pressing("3", then=when("win16 and hot are worse than global", "a global", "end"))
    assert snap_compare(studio(), terminal_size=(120, 36), run_before=act)


@pytest.mark.parametrize("size", PICTURES)
def test_a_study(snap_compare, size) -> None:
    attention(RUNS)
    act = pressing(*TABLE, "down", then=when("win16: worse by", "Variants  5"))
    assert snap_compare(studio(), terminal_size=size, run_before=act)


@pytest.mark.parametrize("size", PICTURES)
def test_a_study_with_curves(snap_compare, size) -> None:
    attention(RUNS)
    act = pressing(*TABLE, "home", "space", "down", "space", then=when("b win16", "at the end"))
    assert snap_compare(studio(), terminal_size=size, run_before=act)


@pytest.mark.parametrize("size", PICTURES)
def test_all_about_a_variant(snap_compare, size) -> None:
    attention(RUNS)
    act = pressing(*TABLE, "down", "enter", then=when("What was expected"))
    assert snap_compare(studio(), terminal_size=size, run_before=act)


def test_the_probes_of_a_study(snap_compare) -> None:
    attention(RUNS)
    act = pressing(*TABLE, *["right"] * 21, then=when("near recall %"))
    assert snap_compare(studio(), terminal_size=(80, 24), run_before=act)


def test_variants_of_no_study_and_wide_names(snap_compare) -> None:
    for seed in (1, 2, 3):
        variant(RUNS, f"基线模型-很长的名字-s{seed}", f"seed={seed}", by=0.001 * seed, created=AT(seed))
        more = {"state": "running", "step": 800} if seed == 3 else {}
        variant(RUNS, f"rope-s{seed}", f"seed={seed}", "model.position=rope", by=0.03, created=AT(3 + seed), **more)
        variant(RUNS, f"hot-s{seed}", "optimizer.lr=0.3", f"seed={seed}", created=AT(9), state="failed", step=310,
                reason="the loss is not a number")  # fmt: skip
    act = pressing(*TABLE, "v", "end", "p", "up", then=when("Variants  3", "diverged in all"))
    assert snap_compare(studio(), terminal_size=(80, 24), run_before=act)
