"""Every state of the Compare pane held against a picture, at the three sizes."""

from pathlib import Path

import pytest
from textual.widgets import Input, TextArea

from tests.tui_transformer.lab.analysis.asking import asking
from tests.tui_transformer.lab.analysis.variants import AT, LEAK, study, variant
from tests.tui_transformer.studio.test_snapshots import MEDIUM, SMALLEST, Step, listed, pressing, studio, when
from tui_transformer.studio.compare.pane import ComparePane

pytestmark = [pytest.mark.usefixtures("plain_surroundings"), pytest.mark.one_in(3)]
RUNS = Path("runs")
CHART = "at the end"


async def opened(pilot) -> None:
    """Wait until the pane has read the runs."""
    pane = pilot.app.query_one(ComparePane)
    while not pane._looked:
        await pilot.pause(0.02)


async def no_baseline(pilot) -> None:
    """Take away the one that was chosen of itself."""
    pane = pilot.app.query_one(ComparePane)
    pane.selection.baseline = None
    pane.redraw()


def at(name: str) -> Step:
    """Put the cursor on a run."""

    async def go(pilot) -> None:
        rows = [row.entry.name for row in pilot.app.query_one(ComparePane).shown.rows]
        await pilot.press("home", *["down"] * rows.index(name))

    return go


def drawn(baseline: str, *runs: str) -> tuple[str | Step, ...]:
    """Make a run the baseline, and draw others beside it."""
    return (at(baseline), "p", *(step for run in runs for step in (at(run), "space")))


TABLE = ("3", opened, "f", "X", no_baseline, listed)  # the table, with nothing drawn


@pytest.fixture(autouse=True)
def cursors_that_stand_still(monkeypatch) -> None:
    for kind in (Input, TextArea):
        monkeypatch.setattr(kind.cursor_blink, "_default", False)


@pytest.mark.parametrize("size", SMALLEST)
def test_compare_without_a_run(snap_compare, size) -> None:
    act = pressing("3", then=when("There is nothing to compare yet"))
    assert snap_compare(studio(), terminal_size=size, run_before=act)


def test_compare_with_one_run(snap_compare) -> None:
    variant(RUNS, "baseline")
    act = pressing("3", then=when("You need two runs to compare"))
    assert snap_compare(studio(), terminal_size=MEDIUM, run_before=act)


@pytest.mark.parametrize("size", SMALLEST)
def test_compare_with_runs(snap_compare, size) -> None:
    study(RUNS)
    act = pressing(*TABLE, then=when("enc-next", "space: plot"))
    assert snap_compare(studio(), terminal_size=size, run_before=act)


@pytest.mark.parametrize("size", SMALLEST)
def test_compare_with_what_always_the_same_answer_scores(snap_compare, size) -> None:
    for name, exact in (("finetuned", 0.62), ("scratch", 0.1)):
        asking(RUNS, name, exact)
    act = pressing(*TABLE, then=when("no run: always"))
    assert snap_compare(studio(), terminal_size=size, run_before=act)


SELECT = (*TABLE, *drawn("baseline", "heads2", "no-pe", "enc-next", "short"))


@pytest.mark.parametrize("size", SMALLEST)
def test_compare_with_curves(snap_compare, size) -> None:
    study(RUNS)
    act = pressing(*SELECT, then=when("one seed: inconclusive", CHART))
    assert snap_compare(studio(), terminal_size=size, run_before=act)


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["studio-light", "studio-colour-blind"])
def test_compare_in_other_themes(snap_compare, plain_surroundings, theme) -> None:
    plain_surroundings.write_text(f'welcomed = true\ntheme = "{theme}"\n')
    study(RUNS)
    act = pressing(*SELECT, then=when("one seed: inconclusive", CHART))
    assert snap_compare(studio(), terminal_size=MEDIUM, run_before=act)


@pytest.mark.slow
@pytest.mark.parametrize("keys", [("c",), ("right", "right", "o", "o", "O")], ids="-".join)
def test_compare_looked_at_otherwise(snap_compare, keys) -> None:
    study(RUNS)
    act = pressing(*SELECT, *keys, then=when(CHART))
    assert snap_compare(studio(), terminal_size=(80, 24), run_before=act)


@pytest.mark.parametrize("size", SMALLEST)
def test_compare_where_nothing_matches(snap_compare, size) -> None:
    study(RUNS)
    act = pressing(*TABLE, "slash", *"badge:inert", then=when("no run matches badge:inert"))
    assert snap_compare(studio(), terminal_size=size, run_before=act)


def test_compare_with_a_mistake_in_the_filter(snap_compare) -> None:
    study(RUNS)
    act = pressing(*TABLE, "slash", *"tag:report n_hed=2", then=when("did you mean 'n_heads'?"))
    assert snap_compare(studio(), terminal_size=(80, 24), run_before=act)


@pytest.mark.parametrize("size", SMALLEST)
def test_compare_all_about_a_run(snap_compare, size) -> None:
    study(RUNS)
    act = pressing(*TABLE, at("baseline"), "p", at("enc-next"), "enter", then=when("What to do"))
    assert snap_compare(studio(), terminal_size=size, run_before=act)


@pytest.mark.slow
@pytest.mark.parametrize(("key", "words"), [("N", "ctrl+s"), ("g", "Tags for"), ("E", "Export")])
def test_compare_asks(snap_compare, key, words) -> None:
    study(RUNS)
    act = pressing(*TABLE, "end", key, then=when(words))
    assert snap_compare(studio(), terminal_size=(80, 24), run_before=act)


@pytest.mark.parametrize("size", SMALLEST)
def test_compare_with_wide_characters_and_long_names(snap_compare, size) -> None:
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
    act = pressing(*TABLE, *drawn(baseline, longest, family), *["right"] * 3, then=when(CHART))
    assert snap_compare(studio(), terminal_size=size, run_before=act)


def test_compare_with_many_runs(snap_compare) -> None:
    for i in range(60):
        variant(RUNS, f"heads-{i:02d}", f"model.n_heads={2 ** (i % 4)}", f"seed={i}", by=i * 0.01, created=AT(i))
    act = pressing(*TABLE, *["down"] * 30, then=when("Runs  60"))
    assert snap_compare(studio(), terminal_size=MEDIUM, run_before=act)
