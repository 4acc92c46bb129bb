"""What Compare opens with: the answer of a study, its curves, and the keys and the mouse in it."""

import re

import pytest

from tests.tui_transformer.lab.analysis.studies import attention, cell
from tests.tui_transformer.lab.analysis.variants import study, variant
from tests.tui_transformer.studio.compare.test_compare_pane import SIZES, Open, root
from tui_transformer.lab.records.badges import BADGES
from tui_transformer.studio.compare.forest import ForestList
from tui_transformer.studio.compare.overlay_charts import CompareCharts
from tui_transformer.studio.compare.pages import DetailPage

pytestmark = pytest.mark.one_in(3)  # each opens an app of its own
__all__ = ["root"]  # a fixture


@pytest.mark.parametrize("size", SIZES)
async def test_it_opens_with_the_answer_and_the_curves_without_a_key(root, size) -> None:
    attention(root)
    study(root)
    async with Open(root, size=size, answer=True) as studio:
        await studio.until(lambda: "a global" in studio.text and "win16 and hot are worse than global" in studio.text)
        for words in ("Study  att", "5 variants × 3 seeds", "14 of 15 runs finished", "worse", "●", "○", "◆", "LEAK"):
            assert words in studio.text
        assert not re.search(r"\bp 0\.|sign-flip|correlation", studio.text)  # those are details
        assert studio.app.query_one(CompareCharts).size.height >= 9
        assert "━ its 95 % interval" in studio.text


async def test_without_an_answer_the_best_runs_are_drawn_and_it_says_why(root) -> None:
    for i, name in enumerate(("near", "far"), 1):
        variant(root, name, f"model.n_heads={i}", scored={"context": 64 * i})
    async with Open(root, answer=True) as studio:
        await studio.until(lambda: "no two runs can be compared" in studio.text and "near" in studio.text)
        assert len(studio.pane.selection.runs) == 2 and not studio.pane.selected_runs
        await studio.until(lambda: studio.app.query_one(CompareCharts).size.height >= 9 and "┬" in studio.text)


async def test_f_turns_to_the_table_and_back_and_the_cursor_stays(root) -> None:
    attention(root)
    async with Open(root, answer=True) as studio:
        await studio.press("down", "down", "f")
        assert "Variants  5" in studio.text and studio.pane.current_variant().name == "win16" and studio.table.has_focus
        await studio.press("f")
        assert "Study  att" in studio.text and studio.pane.current_variant().name == "win16"


async def test_the_statistics_are_behind_enter(root) -> None:
    attention(root)
    async with Open(root, size=(120, 60), answer=True) as studio:
        await studio.press("down", "down", "enter")
        assert isinstance(studio.app.screen, DetailPage)
        await studio.until(lambda: "sign-flip test p" in studio.text)


async def test_arrows_turn_to_other_measures(root) -> None:
    attention(root)
    async with Open(root, answer=True) as studio:
        await studio.press("left")  # to the last one, a probe
        await studio.until(lambda: "◂ worse │ better ▸" in studio.text and "by accuracy" in studio.text)
        await studio.press("right")
        await studio.until(lambda: "◂ better │ worse ▸" in studio.text)


async def test_s_turns_to_the_next_study_and_then_to_the_runs_of_none(root) -> None:
    study(root)
    attention(root)
    async with Open(root, answer=True) as studio:
        await studio.press("V")
        await studio.until(lambda: "Runs · 7 variants" in studio.text and "One seed proves nothing" in studio.text)
        await studio.press("V")
        await studio.until(lambda: "Study  att" in studio.text)


async def test_what_is_drawn_of_itself_is_no_selection(root) -> None:
    attention(root)
    async with Open(root, answer=True) as studio:
        assert studio.pane.selection.runs and not studio.pane.selected_runs
        assert len(studio.pane.report_selection().entries) == 15  # the whole study
        await studio.press("space")
        assert studio.pane.selected_runs


async def test_variants_appear_as_their_runs_finish_until_somebody_selects(root) -> None:
    for seed in (1, 2):
        cell(root, "s", "base", seed)
        cell(root, "s", "far", seed, "model.n_heads=2", loss=0.1)
    (root / "s.study.toml").write_text('baseline = "base"\n')
    async with Open(root, answer=True) as studio:
        assert len(studio.pane.selection.runs) == 2
        cell(root, "s", "new", 1, "model.n_layers=2", loss=0.05)
        await studio.until(lambda: len(studio.pane.selection.runs) == 3)
        await studio.press("X")
        assert studio.pane.selection.runs == ()


async def test_a_click_in_the_legend_and_h_hide_a_curve_and_show_it_again(root) -> None:
    attention(root)
    async with Open(root, answer=True) as studio:
        charts, curves = studio.app.query_one(CompareCharts), studio.app.query_one("#compare-curves")
        legend = lambda: studio.text.splitlines()[curves.region.y]
        await studio.until(lambda: "a global" in legend())
        line = legend()
        await studio.pilot.click("#compare-curves", offset=(line.index("a global") - curves.region.x, 0))
        await studio.until(lambda: charts.hidden_slots == {0} and "a ×" in studio.text)
        await studio.press("home", "Z")
        await studio.until(lambda: not charts.hidden_slots and "a ×" not in studio.text)


async def test_z_gives_one_chart_all_the_room_and_escape_takes_it_back(root) -> None:
    attention(root)
    async with Open(root, answer=True) as studio:
        charts = studio.app.query_one(CompareCharts)
        await studio.until(lambda: "are worse" in studio.text and "a global" in studio.text)
        before = charts.size.height
        await studio.press("z")
        await studio.until(lambda: charts.size.height > before + 5 and not charts.shows_both)
        assert "Study  " in studio.text and "are worse" not in studio.text
        await studio.press("escape")
        await studio.until(lambda: charts.size.height == before and charts.shows_both)


async def test_the_line_between_is_moved_by_keys_and_by_mouse(root) -> None:
    attention(root)
    async with Open(root, answer=True) as studio:
        charts = studio.app.query_one(CompareCharts)
        await studio.until(lambda: "are worse" in studio.text and "a global" in studio.text)
        before = charts.size.height
        await studio.press("left_square_bracket")
        await studio.until(lambda: charts.size.height == before + 2)
        await studio.press("right_square_bracket", "right_square_bracket")
        await studio.until(lambda: charts.size.height == before - 2)
        await studio.pilot.mouse_down("Splitter", offset=(10, 0))
        await studio.pilot.hover("Splitter", offset=(10, -3))
        await studio.pilot.mouse_up("Splitter", offset=(10, 0))
        await studio.until(lambda: charts.size.height == before + 1)


async def test_the_table_is_as_high_as_its_rows(root) -> None:
    for name, by in (("one", 0.0), ("two", 0.1)):
        variant(root, name, f"optimizer.lr=0.00{2 + int(by * 10)}", by=by)
    async with Open(root, answer=True) as studio:
        await studio.press("f")
        await studio.until(lambda: studio.table.size.height == 2)
        assert studio.app.query_one(CompareCharts).size.height > 24


async def test_a_badge_of_the_plot_says_what_it_means_and_a_letter_what_a_click_does(root) -> None:
    attention(root)
    async with Open(root, answer=True) as studio:
        plot = studio.app.query_one(ForestList)
        await studio.until(lambda: "LEAK" in studio.text)
        at = next(i for i, result in enumerate(plot.answer.results) if "LEAK" in result.badges)
        line = studio.text.splitlines()[plot.region.y + at]
        await studio.pilot.hover(plot, offset=(line.rindex("LEAK") - plot.region.x, at))
        assert f"LEAK: {BADGES['LEAK'].means}" in str(plot.tooltip)
        await studio.pilot.hover(plot, offset=(1, 0))
        assert "hide or show" in str(plot.tooltip)
