"""R in the Compare pane: a report of the study or the selected runs, written beside a screen that goes on."""

from pathlib import Path

import pytest

from tests.tui_transformer.lab.analysis.studies import attention, cell
from tests.tui_transformer.lab.analysis.variants import study, variant
from tests.tui_transformer.studio.compare.test_compare_pane import Open, root
from tui_transformer.lab.reports.figures.style import PNG, SVG
from tui_transformer.lab.reports.selection import ReportSelection, other_selections, select_runs, select_variants
from tui_transformer.studio.command_palette import command_entries
from tui_transformer.studio.shared.dialog import ChoiceDialog, TextDialog

pytestmark = pytest.mark.one_in(2)  # each opens an app or a run of its own

__all__ = ["root"]  # a fixture


@pytest.fixture(autouse=True)
def undrawn(monkeypatch, tmp_path):
    """Empty pictures, and a place for reports."""
    empty = {SVG: b'<svg xmlns="http://www.w3.org/2000/svg"></svg>\n', PNG: b"png"}
    monkeypatch.setattr("tui_transformer.lab.reports.report.render", lambda *_: empty)
    monkeypatch.setattr("tui_transformer.lab.reports.report.chinese_font", lambda: "some font")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


async def test_a_study_is_reported_where_it_is_asked_for(root) -> None:
    attention(root)
    async with Open(root) as studio:
        await studio.press("R")
        assert isinstance(studio.app.screen, ChoiceDialog) and "A report on the study att" in studio.text
        await studio.press("enter")
        assert isinstance(studio.app.screen, TextDialog)
        await studio.press("enter")
        await studio.until(lambda: studio.said("report written to"))
    page = Path("reports", "att", "report.html").read_text()
    assert "leaky cannot be compared: it leaks" in page and "Worse than the baseline global" in page


async def test_a_pinned_variant_is_the_baseline_of_the_report(root) -> None:
    attention(root)
    async with Open(root) as studio:
        await studio.press("down", "p", "R", "enter", "enter")
        await studio.until(lambda: studio.said("report written to"))
    assert "The baseline win16 has a validation loss" in Path("reports", "att", "report.html").read_text()


async def test_selected_runs_are_reported_beside_the_pinned_one(root) -> None:
    study(root)
    async with Open(root, "no-pe") as studio:
        await studio.press("space")
        await studio.go("baseline")
        await studio.press("p", "R")
        assert "A report on 2 runs" in studio.text
        await studio.press("enter", "enter")
        await studio.until(lambda: studio.said("report written to"))
    page = Path("reports", "baseline", "report.html").read_text()
    assert "The baseline baseline has" in page and "no-pe" in page and "heads2" not in page


async def test_other_runs_can_be_chosen_in_the_dialog(root) -> None:
    attention(root)
    study(root)
    async with Open(root, "no-pe") as studio:
        await studio.press("space", "R")
        assert "A report on no-pe" in studio.text
        await studio.press("end", "enter")
        assert "Runs in the report" in studio.text
        await studio.press("escape")
        assert "A report on no-pe" in studio.text
        await studio.press("end", "enter", "down", "enter")
        assert "A report on 23 runs" in studio.text, studio.text
        await studio.press("enter")
        assert isinstance(studio.app.screen, TextDialog)


async def test_a_folder_with_something_else_is_told_and_left_alone(root) -> None:
    attention(root)
    mine = Path("reports", "att", "thesis.docx")
    mine.parent.mkdir(parents=True)
    mine.write_text("years of work")
    async with Open(root) as studio:
        await studio.press("R", "enter", "enter")
        await studio.until(lambda: studio.said("which is not part of a report"))
    assert mine.read_text() == "years of work"


async def test_without_a_run_there_is_nothing_to_report(root) -> None:
    async with Open(root) as studio:
        await studio.press("R")
        assert not isinstance(studio.app.screen, ChoiceDialog)


async def test_the_palette_offers_it(root) -> None:
    variant(root, "one")
    async with Open(root) as studio:
        assert ("Report", "R") in [(offer.name, offer.key) for offer in command_entries(studio.app)]


async def test_what_is_chosen_follows_the_selection_the_pin_and_the_cursor(root) -> None:
    attention(root)
    cell(root, "other", "x", 1)
    variant(root, "alone")
    async with Open(root) as studio:
        look = studio.pane.folder.scan()
        by_name = {entry.name: entry for entry in look.entries}
        one, two = by_name["alone"], by_name["other.x.s1"]
        assert select_runs(look, [], None, one).entries == (one,)
        assert select_runs(look, [one.path], two.path, None).entries == (two, one)
        assert not select_runs(look, [], None, None).entries
        studio.pane.options = studio.pane.options.__class__(by="variants")
        studio.pane.redraw()
        variants = {v.group.title: v for v in studio.pane.shown.variants}
        chosen = select_variants(look, list(variants.values()), None, variants["att: win16"])
        assert list(chosen.studies) == ["att"] and len(chosen.entries) == 15
        pinned = select_variants(look, list(variants.values()), two.path, variants["att: win16"])
        assert [entry.name for entry in pinned.entries] == ["other.x.s1"] and pinned.pinned == two.path
        free = select_variants(look, list(variants.values()), None, variants["alone"])
        assert free.entries == (one,) and not free.studies


async def test_the_other_choices_are_what_is_at_the_cursor_its_study_and_all_that_is_shown(root) -> None:
    attention(root)
    variant(root, "alone")
    async with Open(root) as studio:
        look = studio.pane.folder.scan()
        by_name = {entry.name: entry for entry in look.entries}
        alone, cell_1 = by_name["alone"], by_name["att.win16.s1"]
        whole = select_runs(look, [cell_1.path, alone.path], None, None)
        found = other_selections(look, whole, None, [cell_1], look.entries)
        assert [one.coverage_text for one in found] == ["att.win16.s1", "the study att", "16 runs"]
        assert other_selections(look, found[0], None, [cell_1], [cell_1]) == [found[1]]  # none twice
        assert not other_selections(look, ReportSelection((alone,)), None, [alone], [])
        by_runs = ReportSelection(found[1].entries)
        assert other_selections(look, by_runs, None, [cell_1], []) == found[:2]  # the same runs, but not as a study
        pinned = other_selections(look, whole, cell_1.path, [alone], [cell_1, alone])
        assert [one.pinned for one in pinned] == [None] and pinned[0].entries == (alone,)
        assert [one.pinned for one in other_selections(look, by_runs, cell_1.path, [cell_1], [])] == [cell_1.path] * 2
