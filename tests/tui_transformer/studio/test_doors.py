"""Parts of the studio that once did not open, each with the keys that were pressed."""

import asyncio
import math
import re
import threading
from dataclasses import replace

import pytest
from textual.widgets import Static

from engine.runs.records import TrainRecord, ValidationRecord
from tests.tui_transformer.fake_writer import FakeWriter
from tests.tui_transformer.lab.analysis.studies import attention
from tests.tui_transformer.lab.analysis.variants import variant
from tests.tui_transformer.recorded import record, train_record, validation_record
from tests.tui_transformer.studio.compare.test_compare_pane import Open as OpenCompare
from tests.tui_transformer.studio.design.test_design_pane import MEDIUM, App, go_to
from tests.tui_transformer.studio.on_screen import shown, until
from tests.tui_transformer.studio.test_typing_order import app, fakes, gate, typed
from tests.tui_transformer.studio.train.test_train_pane import Open as OpenTrain
from tests.waiting import PATIENCE
from tui_transformer.lab.analysis.chart_lines import CHARTED, measure_chart
from tui_transformer.lab.analysis.charts.overlay import Overlay, Stroke
from tui_transformer.lab.analysis.colours import LETTERS
from tui_transformer.lab.analysis.curves import Band
from tui_transformer.lab.design.benchmarks import Benchmarks
from tui_transformer.lab.play.writers import best_or_newest_run
from tui_transformer.lab.records.run_view import ProbeResult
from tui_transformer.lab.reports.selection import ReportSelection
from tui_transformer.studio.app import Studio
from tui_transformer.studio.compare.overlay_charts import OverlayDrawing
from tui_transformer.studio.design.preset_list import PresetList
from tui_transformer.studio.design.study_builder import StudyBuilder
from tui_transformer.studio.playground import pane as playground
from tui_transformer.studio.playground.pane import PlaygroundPane
from tui_transformer.studio.shared.dialog import ChoiceDialog
from tui_transformer.studio.shared.search import match_rank
from tui_transformer.studio.train.run_charts import RunDrawing
from tui_transformer.studio.train.run_header import RunHeader

__all__ = ["app", "fakes", "gate"]  # fixtures


# The Playground


async def test_the_playground_is_there_at_once_and_no_key_typed_early_leaves_it_blank(app, gate) -> None:
    async with app.run_test(size=(120, 36)) as pilot:
        typed(app, "4", "L", "enter")
        found = app.query_one(PlaygroundPane)
        await until(pilot, lambda: found._line.has_focus and found._first.run_path is not None)
        assert "temperature" in shown(app) and not found.has_class("-empty")
        gate.set()
        await until(pilot, lambda: found._first.writer is not None and bool(found._first.answer_tokens))


async def test_a_run_that_is_chosen_in_the_empty_playground_is_shown(tmp_path, fakes, gate) -> None:
    gate.set()
    runs = tmp_path / "runs"
    app = Studio(runs_dir=runs, device="cpu", panes=("playground",))
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "Nothing has been trained yet" in shown(app))
        found = app.query_one(PlaygroundPane)
        record(runs, "win16")
        found._feed._scan._swept = None
        found._rows = found._feed.poll(full=False).rows
        found._looking = True  # no look finds it first
        typed(app, "L", "enter")
        await until(pilot, lambda: found._first.writer is not None)
        assert "win16" in shown(app) and found._line.display and not found.has_class("-empty")


async def test_an_empty_runs_folder_is_reported_without_waiting_for_the_next_refresh(
    tmp_path, fakes, monkeypatch
) -> None:
    monkeypatch.setattr("tui_transformer.studio.playground.pane.NEWER", 3600.0)
    app = Studio(runs_dir=tmp_path / "runs", device="cpu", panes=("playground",))
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "Nothing has been trained yet" in shown(app))


async def test_the_question_which_run_writes_is_asked_before_the_runs_are_read(app, gate) -> None:
    gate.set()
    async with app.run_test(size=(120, 36)) as pilot:
        found = app.query_one(PlaygroundPane)
        typed(app, "4", "escape", "L")
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog) and "win16 · finished" in shown(app))
        await pilot.press("enter")
        await until(pilot, lambda: found._first.writer is not None)


async def test_each_run_begins_with_its_own_settings_unless_they_were_set_for_it_by_hand(app, fakes, gate) -> None:
    gate.set()
    record(app.runs_dir, "translator", created="2026-11-20T01:01:00+00:00")
    fakes.known["translator"] = FakeWriter("translator", kind="copy")
    fakes.known["translator"].defaults = {"temperature": 0.0, "top_k": 0, "top_p": 1.0, "seed": 1, "length": 40}
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.press("4")
        found = app.query_one(PlaygroundPane)
        await until(pilot, lambda: found._first.writer is not None)
        typed(app, *"/temperature 0.5", "enter")
        await until(pilot, lambda: found.session.settings["temperature"] == 0.5)
        typed(app, *"/run translator", "enter")
        await until(pilot, lambda: found._first.writer is fakes.known["translator"])
        await until(pilot, lambda: found.session.settings["temperature"] == 0.0)
        assert found.session.settings["length"] == 40
        typed(app, *"/run win16", "enter")
        await until(pilot, lambda: found.session.settings["temperature"] == 0.5)


async def test_a_prompt_that_is_typed_before_the_model_is_there_is_answered_with_its_settings(app, fakes, gate) -> None:
    fakes.known["win16"] = FakeWriter("win16", kind="copy")
    fakes.known["win16"].defaults = {"temperature": 0.0, "top_k": 0, "top_p": 1.0, "seed": 1, "length": 40}
    async with app.run_test(size=(120, 36)) as pilot:
        typed(app, "4", *"Hero", "enter")
        await until(pilot, lambda: "Hero" in shown(app))
        gate.set()
        await until(pilot, lambda: bool(fakes.known["win16"].asked))
        assert fakes.known["win16"].asked[0][1]["temperature"] == 0.0


async def test_a_prompt_that_is_typed_before_a_run_is_found_stays_in_sight(app, fakes, monkeypatch) -> None:
    look = threading.Event()
    monkeypatch.setattr(
        playground, "best_or_newest_run", lambda rows: best_or_newest_run(rows) if look.wait(PATIENCE) else None
    )
    async with app.run_test(size=(120, 36)) as pilot:
        typed(app, "4", *"Hero", "enter")
        await until(pilot, lambda: "Hero" in shown(app))
        look.set()
        await until(pilot, lambda: app.query_one(PlaygroundPane)._first.run_path is not None)
        await pilot.pause()
        assert "Hero" in shown(app)


# Train


async def test_the_header_is_as_wide_as_the_pane_while_a_chart_is_zoomed_and_afterwards(tmp_path) -> None:
    record(tmp_path, "baseline")
    async with OpenTrain(tmp_path, "baseline") as studio:
        header = studio.app.query_one(RunHeader)
        wide = lambda: (
            str(header.render()).split("\n")[0].endswith("✓ finished")
            and (len(str(header.render()).split("\n")[0]) == header.content_size.width)
        )
        await studio.until(wide)
        narrow = header.content_size.width
        await studio.pilot.press("z")
        await studio.until(lambda: header.content_size.width > narrow and wide())
        await studio.pilot.press("z")
        await studio.until(lambda: header.content_size.width == narrow and wide())
        assert "best validation loss" in studio.text


@pytest.mark.parametrize("measure", CHARTED[:2], ids=lambda measure: measure.key)
@pytest.mark.parametrize("size", [(44, 9), (60, 12), (90, 20), (120, 30), (200, 44)])
def test_the_star_stands_on_the_validation_curve(measure, size) -> None:
    train = [TrainRecord.read(train_record(step, 2000)) for step in range(1, 2001, 10)]
    validation = [ValidationRecord.read(validation_record(step, 2000)) for step in range(20, 2001, 20)]
    made = []
    for starred in (True, False):
        drawn = measure_chart(measure, train, validation, axis="step", smoothing="some", log=False, floors=(0.3573,))
        shown = drawn if starred else type(drawn)(**{**vars(drawn), "best": None})
        made.append(RunDrawing(shown, "").canvas(*size))
    starred, plain = made
    (at,) = [(y, x) for y, row in enumerate(starred.cells) for x, (sign, _) in enumerate(row) if sign == "★"]
    assert plain.cells[at[0]][at[1]][1].partition(" on ")[0] == "validation"


def test_a_probe_is_green_only_where_luck_does_not_explain_it() -> None:
    assert not ProbeResult("near", 0.09, 0.083, "", 2000).beats_chance
    assert not ProbeResult("rhyme", 0.22, 0.2, "", 400).beats_chance
    assert ProbeResult("rhyme", 0.26, 0.2, "", 400).beats_chance
    assert not ProbeResult("unknown", 0.99, None, "", 400).beats_chance
    assert not ProbeResult("old", 0.26, 0.2, "").beats_chance and ProbeResult("old", 0.41, 0.2, "").beats_chance
    assert ProbeResult("damaged", math.inf, 0.2, "", 0).beats_chance in (True, False)


# Compare


def stroke(slot: int, half: bool = True) -> Stroke:
    x = (0.0, 100.0)
    return Stroke(slot, f"run-{slot}", Band(x, (1.5, 1.2345678), half=(0.1, 0.0123456) if half else ()))


@pytest.mark.parametrize("count", [1, 2, 4, 8])
@pytest.mark.parametrize("half", [True, False])
def test_a_number_under_a_chart_is_never_cut(count, half) -> None:
    drawing = OverlayDrawing(Overlay("loss", "loss", "step", tuple(stroke(slot, half) for slot in range(count))))
    full = {"1.2346 ± 0.0123", "1.235 ± 0.012", "1.23 ± 0.01", "1.2346", "1.235", "1.23"}
    for width in range(24, 160):
        cells = drawing.values(width, None)
        text = "".join(sign for sign, _ in cells)
        assert len(cells) <= width
        told = [part.strip() for part in text.split("  ") if part.strip()]
        letters = [part for part in told if part[0] in LETTERS and part[1:2] == " "]
        assert letters and all(part[2:] in full for part in letters), (width, text)
        assert len(letters) == count or "…" in text, (width, text)


def test_the_title_of_an_overlay_goes_last_but_for_the_count_of_seeds() -> None:
    names = ("global", "linear", "win16")
    strokes = tuple(replace(stroke(slot), name=name, seeds=3) for slot, name in enumerate(names))
    drawing = OverlayDrawing(Overlay("mean validation loss", "mean loss", "step", strokes))
    text = lambda width: "".join(sign for sign, _ in drawing.title(width, ""))
    assert text(80).startswith("mean validation loss  ") and text(80).count("n3") == 3
    assert text(52).startswith("mean loss  ") and text(52).count("n3") == 3
    assert text(42).startswith("mean loss  ") and "n3" not in text(42) and "c win16" in text(42)
    assert all(len(drawing.title(width, "")) <= width for width in range(30, 100))
    long = "loss difference, above 0: worse"
    drawing = OverlayDrawing(replace(drawing.overlay, title=long, brief=long, briefest="Δ loss, + is worse"))
    assert text(62).startswith("loss difference, above 0: worse") and text(54).startswith("Δ loss, + is worse  ")


async def test_a_report_is_of_the_variants_that_are_selected_wherever_the_cursor_is(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    runs = tmp_path / "runs"
    attention(runs)
    variant(runs, "demo-2")
    async with OpenCompare(runs) as studio:
        if studio.pane.shown.by != "variants":
            await studio.press("v")
        wanted = [v for v in studio.pane.shown.variants if v.name in ("global", "heads2")]
        for one in wanted:
            studio.pane.selection.toggle(one.runs[0].path)
        studio.pane.redraw()
        await studio.press("end")
        chosen: ReportSelection = studio.pane.report_selection()
        assert {entry.path for entry in chosen.entries} == {run.path for one in wanted for run in one.runs}
        assert chosen.entries[0].name.startswith("att.global") and not chosen.studies
        await studio.press("R")
        await studio.until(lambda: isinstance(studio.app.screen, ChoiceDialog))
        asked = "\n".join(str(one.render()) for one in studio.app.screen.query(Static))
        assert "A report on 6 runs" in asked and "att.heads2.s3" in asked and "demo-2" not in asked


async def test_all_variants_of_a_study_selected_are_the_study(tmp_path) -> None:
    attention(tmp_path)
    async with OpenCompare(tmp_path) as studio:
        for one in studio.pane.shown.variants:
            studio.pane.selection.toggle(one.runs[0].path)
        studio.pane.redraw()
        assert list(studio.pane.report_selection().studies) == ["att"]


# Design


def minutes(text: str) -> int | None:
    """Of the measurement that is shown."""
    found = re.search(r"measuring … (\d+):\d\d", text)
    return int(found[1]) if found is not None else None


@pytest.mark.parametrize("key", ["m", "escape"])
async def test_a_measurement_says_how_long_it_takes_and_that_it_can_be_stopped(tmp_path, monkeypatch, key) -> None:
    monkeypatch.setattr(Benchmarks, "command", lambda self, draft: ["sleep", "600"])
    monkeypatch.setattr("tui_transformer.studio.design.measuring.TICK", 0.2)
    app = App(tmp_path / "runs")
    async with app.run_test(size=MEDIUM) as pilot:
        await pilot.press("m")
        await until(pilot, lambda: minutes(app.text) is not None and "m  cancels" in app.text)
        app.current_pane._measuring.began_at -= 120
        await until(pilot, lambda: minutes(app.text) >= 2)
        await pilot.press(key)
        await until(pilot, lambda: "measures time and memory" in app.text)
        await until(pilot, lambda: not [w for w in app.workers if w.group == "measurement" and w.is_running])
        await pilot.press("m")
        await until(pilot, lambda: minutes(app.text) is not None)
        await pilot.press("m")


async def test_timing_the_variants_of_a_study_says_how_long_it_takes_and_can_be_stopped(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("asyncio.create_subprocess_exec", _sleeping(asyncio.create_subprocess_exec))
    app = App(tmp_path / "runs")
    async with app.run_test(size=MEDIUM) as pilot:
        typed(app, "v", "v", *"model.n_heads=1,2", "enter", "m")
        words = re.compile(r"timing one step of every variant … \d+:\d\d.*m cancels", re.DOTALL)
        await until(pilot, lambda: words.search(app.text))
        await pilot.press("m")
        await until(pilot, lambda: "timing one step" not in app.text)
        assert isinstance(app.screen, StudyBuilder)


def _sleeping(start):
    return lambda *command, **how: start("sleep", "600", **how)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ["rope", "demo", "xl", "alibi", "no-pe"])
async def test_a_search_for_a_presets_name_finds_that_preset(tmp_path, name) -> None:
    app = App(tmp_path / "runs")
    async with app.run_test(size=MEDIUM) as pilot:
        typed(app, "/", *name, "enter")
        await until(pilot, lambda: app.current_pane.draft is not None and app.current_pane.draft.preset.name == name)
        await until(pilot, lambda: app.query_one(PresetList).names.has_focus)
        assert app.current_pane.draft.preset.name == name


def test_nearness_is_the_name_its_beginning_a_part_of_it_then_the_description() -> None:
    assert [match_rank(name, "rope") for name in ("rope", "relative")] == [0, 3]
    assert [match_rank(name, "no-") for name in ("no-pe", "demo")] == [1, 3]
    assert match_rank("demo", "em") == 2


async def test_typing_a_number_into_a_switch_still_takes_digits(tmp_path) -> None:
    app = App(tmp_path / "runs")
    async with app.run_test(size=MEDIUM) as pilot:
        await go_to(pilot, "model.n_layers")
        typed(app, "3", "down")
        await until(pilot, lambda: app.current_pane.draft.changes.get("model.n_layers") == 3)
