"""The Compare pane by variant: when it is, what keys do to a variant, and that five hundred runs stay quick."""

import csv
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from engine.runs.records import StudyPlace
from tests.calls import calls
from tests.tui_transformer.lab.analysis.studies import attention, cell
from tests.tui_transformer.lab.analysis.variants import study, variant
from tests.tui_transformer.studio.compare.test_compare_pane import SIZES, Open, root
from tui_transformer.lab.analysis.entry import LAST, read_entry
from tui_transformer.lab.analysis.verdict import VariantResult
from tui_transformer.lab.analysis.view import VARIANTS, View, ViewOptions
from tui_transformer.studio.compare.pages import DetailPage
from tui_transformer.studio.shared.dialog import ChoiceDialog

pytestmark = pytest.mark.one_in(3)  # each opens an app or a run of its own

__all__ = ["root"]  # a fixture
LIMIT = 150_000  # calls of functions while the app stands still: a twentieth of a second or less


@pytest.mark.parametrize("size", SIZES)
async def test_a_study_alone_is_shown_by_variant_with_its_verdicts(root, size) -> None:
    attention(root)
    async with Open(root, size=size) as studio:
        await studio.until(lambda: "Variants  5" in studio.text)
        for words in ("0.05", "worse", "LEAK: not comparable", "2/3", "◆ global", "±"):
            assert words in studio.text


async def test_other_runs_are_shown_one_by_one_until_the_filter_leaves_a_study(root) -> None:
    attention(root)
    study(root)
    async with Open(root) as studio:
        assert "Runs  23" in studio.text
        await studio.press("slash")
        await studio.type("study:att")
        await studio.until(lambda: "Variants  5 of" in studio.text)
        await studio.press("escape")
        await studio.until(lambda: "Runs  23" in studio.text)


async def test_v_turns_to_variants_and_back_and_the_cursor_stays_where_it_was(root) -> None:
    for seed in (1, 2):
        variant(root, f"heads2-s{seed}", f"seed={seed}", "model.n_heads=2")
        variant(root, f"base-s{seed}", f"seed={seed}")
    async with Open(root, "heads2-s1") as studio:
        await studio.press("v")
        assert sorted(studio.names) == ["base", "heads2"] and studio.pane.current_variant().name == "heads2"
        await studio.press("v")
        assert len(studio.names) == 4 and studio.pane.current_run().name.startswith("heads2-")


async def test_the_verdict_under_the_cursor_is_said_in_full(root) -> None:
    attention(root)
    async with Open(root, size=(80, 24)) as studio:
        await studio.press("down")
        await studio.until(
            lambda: re.search(r"win16: worse by 0\.05\d+ ± 0\.\d+ at these settings \(3 seeds\)", studio.text)
        )


async def test_a_verdict_that_is_cut_is_said_in_full_for_single_runs_too(root) -> None:
    variant(root, "base")
    variant(root, "a-run-with-quite-a-long-name", scored={"context": 128}, by=0.1)
    async with Open(root, "base", size=(60, 24)) as studio:
        await studio.press("p")
        await studio.go("a-run-with-quite-a-long-name")
        await studio.until(lambda: "a-long-name: different context: not" in studio.text)


async def test_space_draws_the_mean_of_a_variant_and_the_letter_stays_with_its_run(root) -> None:
    attention(root)
    async with Open(root) as studio:
        await studio.press("home", "space", "down", "space")
        await studio.until(lambda: "a global" in studio.text and "b win16" in studio.text)
        await studio.until(lambda: "at the end" in studio.text)
        assert len(studio.pane.selection.runs) == 2
        await studio.press("space", "up", "space")
        assert studio.pane.selection.runs == ()


async def test_p_makes_a_variant_the_baseline_and_the_studys_own_comes_back(root) -> None:
    attention(root)
    async with Open(root) as studio:
        await studio.press("home", "down", "p")
        assert studio.pane.current_variant().name == "win16" and studio.pane.current_variant().is_baseline
        standing = {row.entry.name: row.entry for row in studio.pane.shown.rows}
        assert standing["global"].verdict() == "better"
        await studio.press("p")
        assert {row.entry.name for row in studio.pane.shown.rows if row.entry.is_baseline} == {"global"}


async def test_enter_opens_a_variant_with_its_runs_and_whole_sentences(root) -> None:
    attention(root)
    async with Open(root, size=(120, 60)) as studio:
        await studio.press("home", "down", "enter")
        assert isinstance(studio.app.screen, DetailPage)
        await studio.until(lambda: "Its runs" in studio.text)
        for words in (
            "worse by 0.05",
            "sign-flip test p",
            "att.win16.s2",
            "What was expected",
            "as expected",
        ):
            assert words in studio.text
        await studio.press("escape")
        assert studio.table.has_focus


async def test_notes_and_tags_are_of_runs_and_not_of_variants(root) -> None:
    attention(root)
    async with Open(root) as studio:
        await studio.press("home", "N", "g")
        assert len(studio.app.screen_stack) == 1


async def test_variants_are_sorted_and_exported_as_they_are_shown(root, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    attention(root)
    async with Open(root) as studio:
        place = studio.table.current_layout.places[2]
        await studio.pilot.click("TableHead", offset=(place.start + 1, 0))
        losses = [row.entry.mean(LAST).mean for row in studio.pane.shown.rows]
        assert losses == sorted(losses) and "last↑" in studio.text
        await studio.press("E")
        assert isinstance(studio.app.screen, ChoiceDialog)
        await studio.press("enter", "enter")
        await studio.until(lambda: studio.said("5 variants written"))
        with (tmp_path / "comparison.csv").open() as file:
            assert [row["variant"] for row in csv.DictReader(file)] == studio.names


async def test_at_an_answer_its_variants_are_exported_and_not_the_table_behind(root, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    attention(root)
    variant(root, "alone")
    async with Open(root, answer=True) as studio:
        await studio.press("E")
        await studio.until(lambda: "5 variants, in the order shown." in studio.text)
        await studio.press("enter", "enter")
        await studio.until(lambda: studio.said("5 variants written"))
        with (tmp_path / "comparison.csv").open() as file:
            named = [row["variant"] for row in csv.DictReader(file)]
        assert named == [result.name for result in studio.pane.answer.results]


async def test_a_study_that_grows_gets_its_seeds_as_they_finish(root) -> None:
    attention(root, seeds=(1,))
    async with Open(root) as studio:
        await studio.until(lambda: "one seed: inconclusive" in studio.text and "1/3" in studio.text)
        cell(root, "att", "win16", 2, "model.attention=window", "model.window=16", loss=0.05)
        await studio.until(lambda: "2/3" in studio.text)


def test_five_hundred_runs_by_variant_are_arranged_while_nobody_waits(tmp_path: Path) -> None:
    like = read_entry(variant(tmp_path, "run", "model.n_heads=2"))
    seeds = range(1, 6)
    runs = tuple(
        replace(
            like,
            path=tmp_path / f"s{i // 50}.v{i // 5}.s{seed}",
            seed=seed,
            last=like.last + (i * 7919 + seed * 31 % 97) / 1e5,
            config=like.config | {"seed": seed, "model.d_ff": 64 + i // 5},
            study=StudyPlace(name=f"s{i // 50}", variant=f"v{i // 5}", seed=seed) if i < 400 else None,
        )
        for i in range(0, 500, 5)
        for seed in seeds
    )
    view, options = View(), ViewOptions(by=VARIANTS, baseline=runs[0].path)
    assert len(view.arrange(runs, options).rows) == 100
    changed = (*runs[:333], replace(runs[333], step=3), *runs[334:])
    took = [
        calls(partial(view.arrange, entries, replace(options, query=query)))
        for entries, query in ((changed, ""), (changed, "v1"), (runs, "v12"), (runs, ""))
    ]
    shown = view.arrange(runs, options)
    assert all(isinstance(row.entry, VariantResult) for row in shown.rows) and max(took) < LIMIT, took
