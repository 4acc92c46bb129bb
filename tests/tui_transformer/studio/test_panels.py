"""Panels: frames with titles where there is room, lit up by the focus; and titles that fit."""

import pytest

from engine.generation.output import AnswerToken
from tests.tui_transformer.recorded import record
from tests.tui_transformer.studio.on_screen import until
from tui_transformer.studio.app import Studio
from tui_transformer.studio.playground.surprises import rank_by_surprise
from tui_transformer.studio.shared.panel import join_that_fit
from tui_transformer.studio.train.run_list import settings_text
from tui_transformer.studio.train.run_tabs import RunTabs


def test_a_title_leaves_out_whole_parts_the_highest_rank_first() -> None:
    parts = [("Study  rope", 0), ("5 variants", 1), ("baseline rope", 2), ("loss", 0), ("V: next of 2", 3)]
    assert join_that_fit(parts, 80) == "Study  rope · 5 variants · baseline rope · loss · V: next of 2"
    assert join_that_fit(parts, 50) == "Study  rope · 5 variants · baseline rope · loss"
    assert join_that_fit(parts, 35) == "Study  rope · 5 variants · loss"
    assert join_that_fit(parts, 3) == "Study  rope"


def test_settings_stand_in_lines_of_one_width() -> None:
    text = settings_text([("model.n_heads", 2), ("data.corpus", "x" * 60), ("optimizer.lr", 0.01)], 24, "")
    lines = text.plain.splitlines()
    assert [len(line) for line in lines] == [24, 24, 24] and lines[0].startswith("n heads") and lines[0].endswith(" 2")
    assert lines[2].startswith("optimizer lr") and lines[2].endswith(" 0.01")


def test_the_most_surprising_token_comes_first() -> None:
    pieces = [AnswerToken("a", 0.5), AnswerToken("b", 0.01), AnswerToken("c"), AnswerToken("d", 0.1)]
    assert rank_by_surprise(pieces) == [1, 3, 0]


@pytest.mark.parametrize("size", [(80, 24), (99, 36), (120, 29), (120, 36)])
async def test_panels_have_frames_where_there_is_room_and_the_focus_lights_one(tmp_path, size) -> None:
    app = Studio(runs_dir=tmp_path / "runs", device="cpu", panes=("design",))
    async with app.run_test(size=size) as pilot:
        presets, settings = app.query_one("#presets"), app.query_one("#middle")
        if size != (120, 36):
            assert presets.styles.border_top[0] == "" and settings.styles.border_top[0] == ""
            return
        assert presets.border_title == "Presets" and settings.border_title == "Settings"
        lit, dim = presets.styles.border_top, settings.styles.border_top
        assert lit[0] == dim[0] == "round" and lit != dim
        await pilot.press("tab")
        assert settings.styles.border_top == lit and presets.styles.border_top == dim


async def test_in_a_frame_a_click_on_the_title_chooses_a_tab(tmp_path) -> None:
    record(tmp_path / "runs", "demo")
    app = Studio(runs_dir=tmp_path / "runs", device="cpu", panes=("train",))
    async with app.run_test(size=(120, 36)) as pilot:
        tabs = app.query_one(RunTabs)
        await until(pilot, lambda: tabs._view is not None)
        await pilot.click(RunTabs, offset=(3 + len("samples W  ch"), 0))
        assert tabs.tab == "checks"
