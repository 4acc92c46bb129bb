"""The Compare pane: keys that do the right thing, runs that grow while it looks, and no line painted for nothing."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.config.measures import probe_measure
from engine.runs.reader import RunReader
from tests.calls import calls
from tests.tui_transformer.lab.analysis.variants import LEAK, change, study, variant
from tests.tui_transformer.recorded import grow, put_status, record
from tests.tui_transformer.studio.on_screen import said, shown, until
from tests.tui_transformer.studio.train.test_train_pane import drag
from tui_transformer.lab.analysis.charts.forest import ForestLayout, forest
from tui_transformer.lab.analysis.columns import EXPLAINED, FIXED_COLUMNS, setting_column, short_names
from tui_transformer.lab.analysis.entry import LAST
from tui_transformer.lab.analysis.folder import RunsFolder
from tui_transformer.lab.analysis.group_columns import mean_column, verdict_column
from tui_transformer.lab.analysis.sentences import conclusion_sentences
from tui_transformer.lab.analysis.view import View
from tui_transformer.lab.records.badges import BADGES
from tui_transformer.studio.app import Studio
from tui_transformer.studio.compare.pages import DetailPage, NotePage
from tui_transformer.studio.compare.pane import ComparePane
from tui_transformer.studio.compare.run_table import RunTable, TableHead
from tui_transformer.studio.shared.chart import Chart
from tui_transformer.studio.shared.dialog import ChoiceDialog, TextDialog

pytestmark = pytest.mark.one_in(4)  # each opens an app or a run of its own

SIZES = [(80, 24), (120, 36), (200, 50)]


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "runs"


class Open:
    """The studio with the Compare pane alone.

    Args:
        root: the runs folder.
        run: the one under the cursor; "" for the first.
        size: of the terminal.
        answer: whether the answer stays open; else the table is, with nothing drawn and no baseline.
    """

    def __init__(self, root: Path, run: str = "", size: tuple[int, int] = (120, 36), *, answer: bool = False) -> None:
        self.app = Studio(runs_dir=root, device="cpu", panes=("compare",))
        self._run, self._answer, self._looks = run, answer, 0
        self._test = self.app.run_test(size=size)

    async def __aenter__(self) -> "Open":
        self.pilot = await self._test.__aenter__()
        self.pane = self.app.query_one(ComparePane)
        self.table = self.app.query_one(RunTable)
        await self.until(lambda: self.pane._has_scanned)
        take = self.pane._apply

        def counted(*look: Any) -> bool:
            self._looks += 1
            return take(*look)

        self.pane._apply = counted
        if not self._answer:
            await self.pilot.press("f", "X")
            self.pane.selection.baseline = None
            self.pane.redraw()
            await self.pilot.pause()
        if self._run:
            await self.go(self._run)
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._test.__aexit__(*error)

    @property
    def text(self) -> str:
        """What is on the screen."""
        return shown(self.app)

    @property
    def names(self) -> list[str]:
        """The runs that are shown."""
        return [row.entry.name for row in self.pane.shown.rows]

    async def go(self, run: str) -> None:
        """Put the cursor on a run, by key."""
        self.table.focus()
        await self.pilot.press("home", *["down"] * self.names.index(run))
        assert self.pane.current_run().name == run

    async def press(self, *keys: str) -> None:
        """One after the other, as people do."""
        for key in keys:
            await self.pilot.press(key)

    async def look(self) -> None:
        """Wait until the pane has looked at the folder, from now on, and has drawn what it found."""
        for _ in range(2):  # one may have begun before
            before = self._looks
            self.pane._wake.set()
            await self.until(lambda before=before: self._looks > before)

    async def type(self, text: str) -> None:
        """Type a text."""
        await self.press(*({" ": "space"}.get(c, c) for c in text))

    async def until(self, fact: Callable[[], Any]) -> None:
        """Wait for it."""
        await until(self.pilot, lambda: bool(fact()))

    def said(self, words: str) -> bool:
        """Whether the app said it in the corner."""
        return words in said(self.app)


@pytest.mark.parametrize("size", SIZES)
async def test_no_runs_say_how_to_make_some(root, size) -> None:
    async with Open(root, size=size) as studio:
        await studio.until(lambda: "There is nothing to compare yet" in studio.text)
        assert "f5" in studio.text


async def test_one_run_says_that_a_comparison_needs_two(root) -> None:
    variant(root, "lonely")
    async with Open(root) as studio:
        await studio.until(lambda: "You need two runs to compare" in studio.text)
        assert "lonely" in studio.text


async def test_a_folder_that_cannot_be_read_says_so(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    async with Open(tmp_path / "file") as studio:
        await studio.until(lambda: "cannot be read" in studio.text)


async def test_the_app_opens_nothing_while_the_pane_is_not_seen(root, monkeypatch) -> None:
    variant(root, "a")
    looked, look = [], RunsFolder.scan
    monkeypatch.setattr(RunsFolder, "scan", lambda *given: looked.append(given) or look(*given))
    app = Studio(runs_dir=root, device="cpu")
    async with app.run_test() as pilot:
        await pilot.press("2")
        await until(pilot, lambda: "Runs  1" in shown(app))  # Train has looked meanwhile
        assert not looked
        await pilot.press("3")
        await until(pilot, lambda: looked)


@pytest.mark.parametrize("size", SIZES)
async def test_the_table_says_what_each_run_is_at_every_size(root, size) -> None:
    study(root)
    async with Open(root, "baseline", size) as studio:
        await studio.press("p")
        await studio.until(lambda: "one seed: inconclusive" in studio.text)
        text = studio.text
        await studio.press("end")
        text += studio.text
        shown = ("LEAK: not comparable", "different context: not comparable", "DIVERGED", "+0.0476", "◆", "enc-next")
        assert all(words in text for words in shown)


async def test_space_draws_and_p_pins_and_the_same_again_takes_it_back(root) -> None:
    study(root)
    async with Open(root, "baseline") as studio:
        await studio.press("p")
        await studio.go("no-pe")
        await studio.press("space")
        await studio.until(lambda: "a baseline  b no-pe" in studio.text and "+0.0476" in studio.text)
        assert "validation loss" in studio.text or "loss" in studio.text
        await studio.press("space")
        await studio.go("baseline")
        await studio.press("p", "space")
        assert studio.pane.selection.runs == () and studio.pane.selection.baseline is None
        await studio.until(lambda: "space: plot" in studio.text)


async def test_a_ninth_curve_is_refused(root) -> None:
    for i in range(9):
        variant(root, f"run-{i}")
    async with Open(root) as studio:
        await studio.press("home", *["space", "down"] * 9)
        assert len(studio.pane.selection.runs) == 8 and studio.said("at most 8 curves")


async def test_the_filter_is_typed_and_taken_away(root) -> None:
    study(root)
    async with Open(root) as studio:
        await studio.press("slash")
        await studio.type("tag:report tok/s>1k")
        assert studio.names == ["baseline", "no-pe"] and "2 of 8" in studio.text
        await studio.press("enter")
        assert studio.table.has_focus
        await studio.press("escape")
        assert len(studio.names) == 8


async def test_what_is_typed_in_a_burst_goes_to_the_filter(root) -> None:
    study(root)
    async with Open(root) as studio:
        await studio.pilot.press("slash", *"no-pe")
        await studio.until(lambda: studio.names == ["no-pe"])


async def test_a_wrong_filter_says_so_and_hides_nothing(root) -> None:
    study(root)
    async with Open(root) as studio:
        await studio.press("slash")
        await studio.type("n_hed=2")
        await studio.until(lambda: "did you mean 'n_heads'?" in studio.text)
        assert len(studio.names) == 8


async def test_a_filter_that_nothing_matches_names_the_term(root) -> None:
    study(root)
    async with Open(root) as studio:
        await studio.press("slash")
        await studio.type("loss<9 badge:inert")
        await studio.until(lambda: "no run matches badge:inert" in studio.text)
        await studio.press("escape")
        assert len(studio.names) == 8


async def test_keys_are_heard_while_no_run_is_shown_and_go_to_the_table_after(root) -> None:
    study(root)
    async with Open(root) as studio:
        await studio.press("slash")
        await studio.type("badge:inert")
        await studio.press("enter", "E")
        assert not isinstance(studio.app.screen, ChoiceDialog)  # there is nothing to export
        await studio.press("escape")
        assert len(studio.names) == 8 and studio.table.has_focus


async def test_keys_go_to_the_first_runs_when_they_come(root) -> None:
    async with Open(root, answer=True) as studio:
        await studio.until(lambda: "nothing to compare" in studio.text)
        study(root)
        await studio.until(lambda: len(studio.names) == 8)
        await studio.until(lambda: studio.pane._forest.forest_list.has_focus)
        await studio.press("f", "X", "space")
        assert studio.table.has_focus and len(studio.pane.selection.runs) == 1


async def test_sorting_by_key_and_by_click_keeps_the_cursor_on_its_run(root) -> None:
    study(root)
    async with Open(root, "no-pe") as studio:
        await studio.press("o")
        assert studio.names == sorted(studio.names) and studio.pane.current_run().name == "no-pe"
        await studio.press("O")
        assert studio.names == sorted(studio.names, reverse=True) and "run↓" in studio.text
        place = studio.table.current_layout.places[1]
        await studio.pilot.click("TableHead", offset=(place.start + 1, 0))
        losses = [row.entry.last for row in studio.pane.shown.rows]
        assert losses == sorted(losses) and studio.pane.current_run().name == "no-pe"


async def test_only_the_selected_runs_and_all_again(root) -> None:
    study(root)
    async with Open(root, "wide") as studio:
        await studio.press("I")
        assert studio.said("no run is selected")
        await studio.press("space", "I")
        assert studio.names == ["wide"]
        await studio.press("X")
        assert len(studio.names) == 8


async def test_every_column_can_be_reached_with_the_arrows(root) -> None:
    study(root)
    async with Open(root, size=(80, 24)) as studio:
        seen = set()
        for _ in range(60):
            seen |= {place.index for place in studio.table.current_layout.places}
            await studio.pilot.press("right")
        assert seen == set(range(len(studio.pane.shown.columns)))
        await studio.press("A")
        assert any(column.key == "log.every" for column in studio.pane.shown.columns)


async def test_the_head_says_how_many_more_columns_there_are(root) -> None:
    study(root)
    async with Open(root, size=(80, 24)) as studio:
        heads = []
        for _ in range(8):
            head = studio.text.splitlines()[studio.app.query_one(TableHead).region.y]
            more = studio.table.current_layout.columns_beyond
            assert not more or re.search(rf"› {more} more( columns?)?: →|{more} ›|›", head.rstrip()[-24:])
            heads.append(head)
            await studio.press("right")
        assert any(" more" in head or re.search(r"\d ›", head) for head in heads), heads


async def test_the_help_says_what_the_words_mean(root) -> None:
    async with Open(root, size=(120, 90)) as studio:
        await studio.press("question_mark")
        await studio.until(lambda: "Terms" in studio.text and "shaded band" in studio.text)


async def test_one_chart_at_a_time_where_it_is_narrow(root) -> None:
    study(root)
    async with Open(root, "baseline", (80, 24)) as studio:
        await studio.press("p")
        await studio.go("heads2")
        await studio.press("space")
        await studio.until(lambda: "a baseline" in studio.text)
        assert "− baseline's" not in studio.text
        await studio.press("c")
        await studio.until(lambda: "− baseline's" in studio.text or "difference" in studio.text)


async def test_the_axis_the_scale_and_the_train_curves_can_be_changed(root) -> None:
    study(root)
    async with Open(root, "baseline") as studio:
        await studio.press("space")
        for axis in ("tokens", "time", "steps"):
            await studio.press("x")
            await studio.until(lambda axis=axis: axis in "".join(studio.text.splitlines()[-5:]))
        await studio.press("y", "T")
        await studio.until(lambda: "log" in studio.text)
        assert studio.pane._charts.options.train


async def test_a_note_and_tags_are_written_and_shown(root) -> None:
    study(root)
    async with Open(root, "wide", (200, 50)) as studio:
        await studio.press("N")
        assert isinstance(studio.app.screen, NotePage)
        await studio.type("wider")
        await studio.press("enter")
        await studio.type("not better")
        await studio.press("ctrl+s")
        await studio.until(lambda: RunReader(root / "wide").notes.text == "wider\nnot better")
        await studio.press("g")
        assert isinstance(studio.app.screen, TextDialog)
        await studio.type("big, odd")
        await studio.press("enter")
        await studio.until(lambda: RunReader(root / "wide").notes.tags == ("big", "odd"))
        await studio.until(lambda: studio.pane.current_run().tags == ("big", "odd"))
        assert studio.pane.current_run().notes == "wider\nnot better"


async def test_a_note_that_is_left_stays_as_it_was(root) -> None:
    study(root)
    async with Open(root, "baseline") as studio:
        await studio.press("N")
        await studio.type("x")
        await studio.press("escape")
        assert RunReader(root / "baseline").notes.text == "the one to beat" and studio.table.has_focus


async def test_the_detail_says_badges_what_to_do_and_every_setting(root) -> None:
    study(root)
    async with Open(root, "enc-next") as studio:
        await studio.press("enter")
        page = studio.app.screen
        assert isinstance(page, DetailPage)
        await studio.until(lambda: "What to do" in studio.text)
        assert LEAK[2] in studio.text and BADGES["LEAK"].means in studio.text
        await studio.press("end")
        await studio.until(lambda: "log.every" in studio.text)
        await studio.press("escape")
        assert studio.table.has_focus


async def test_a_live_run_grows_and_only_its_line_is_painted(root) -> None:
    study(root)
    live = record(root, "live", state="running", step=800, created="2026-11-21T02:00:00+00:00")
    async with Open(root, "live") as studio:
        await studio.press("space")
        await studio.until(lambda: studio.pane.metrics)
        await studio.look()
        painted: list[str] = []
        real = RunTable.paint_row
        table = studio.table
        table.paint_row = lambda at, width: painted.append(table.shown.rows[at].entry.name) or real(table, at, width)
        before = [row for row in studio.pane.shown.rows if row.entry.name != "live"]
        grow(live, to=900)
        await studio.until(lambda: painted)
        await studio.look()
        assert set(painted) == {"live"}
        after = [row for row in studio.pane.shown.rows if row.entry.name != "live"]
        assert all(a is b for a, b in zip(before, after, strict=True))
        assert studio.pane.current_run().name == "live" and studio.pane.current_run().step == 900


async def test_moving_the_cursor_paints_two_lines(root) -> None:
    study(root)
    async with Open(root) as studio:
        await studio.press("home")
        painted: list[int] = []
        real, table = RunTable.paint_row, studio.table
        table.paint_row = lambda at, width: painted.append(at) or real(table, at, width)
        await studio.press("down")
        await studio.until(lambda: painted)
        assert sorted(set(painted)) == [0, 1]


async def test_runs_come_and_go_while_it_looks_and_the_cursor_stays(root) -> None:
    study(root)
    async with Open(root, "no-pe") as studio:
        await studio.press("space")
        variant(root, "new", created="2026-11-22T00:00:00+00:00")
        await studio.until(lambda: "new" in studio.names)
        assert studio.pane.current_run().name == "no-pe"
        shutil.rmtree(root / "no-pe")
        await studio.until(lambda: "no-pe" not in studio.names)
        assert studio.pane.selection.runs == () and studio.pane.current_run() is not None


async def test_a_damaged_run_is_shown_as_such_and_hides_no_other(root) -> None:
    study(root)
    (root / "wide" / "summary.json").write_text("{")
    (root / "no-pe" / "status.json").write_text("[[[")
    (root / "heads2" / "config.toml").write_bytes(b"\xff\xfe")
    (root / "short" / "metrics.jsonl").write_bytes(b"\x00" * 100)
    async with Open(root, size=(200, 50)) as studio:
        await studio.press("home", *["space", "down"] * 8)
        await studio.until(lambda: "DAMAGED" in studio.text)
        assert len(studio.names) == 8


POISON = "\x1b[31mred\x07\x9b31m\u202egnp\u2066|\n[b]bold[/b] $x {y} 模型🚀"


async def test_poison_reaches_no_cell_of_the_screen(root) -> None:
    variant(root, "poison\x1b]0;x\x07\u202e[b]", note=POISON, preset=POISON, tags=("[red]tag",))
    run = variant(root, "other")
    text = (run / "config.toml").read_text().replace('"sinusoidal"', json.dumps(POISON))
    (run / "config.toml").write_text(text)
    why = [{"check": "x", "when": "after", "step": 1, "verdict": POISON, "why": POISON}]
    change(run / "checks.json", verdicts=why)
    change(run / "data.json", corpus=POISON)
    put_status(run, state=POISON, reason=POISON)
    async with Open(root, size=(200, 50)) as studio:
        seen = []
        for keys in (
            ["p"],
            ["down", "space"],
            ["right"] * 12,
            ["enter"],
            ["end"],
            ["escape"],
            ["g"],
            ["escape"],
            ["n"],
        ):
            await studio.press(*keys)
            await studio.look()
            seen.append(studio.text)
        everything = "".join(seen)
        assert "[b]" in everything and "red" in everything
        assert not any((c < " " and c != "\n") or "\x7f" <= c < "\xa0" or c in "\u202e\u2066" for c in everything)


async def test_two_runs_are_selected_pinned_filtered_exported_and_looked_at(root, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    study(root)
    async with Open(root, "baseline") as studio:
        await studio.press("space", "p")
        await studio.go("no-pe")
        await studio.press("space")
        await studio.until(lambda: "+0.0476" in studio.text)
        await studio.press("slash")
        await studio.type("tag:report")
        await studio.press("enter")
        assert studio.names == ["baseline", "no-pe"]
        await studio.press("E")
        assert isinstance(studio.app.screen, ChoiceDialog)
        await studio.press("enter")
        assert isinstance(studio.app.screen, TextDialog)
        await studio.press("enter")
        await studio.until(lambda: studio.said("2 runs written to"))
        rows = (tmp_path / "comparison.csv").read_text().splitlines()
        assert len(rows) == 3 and rows[2].startswith("no-pe,0.948") and "one seed: inconclusive" in rows[2]
        await studio.press("E", "enter", "enter")
        await studio.until(lambda: "already exists" in studio.text)
        await studio.press("escape")
        await studio.go("no-pe")
        await studio.press("enter")
        await studio.until(lambda: "none   (baseline: sinusoidal)" in studio.text)
        assert "one seed: inconclusive" in studio.text


async def test_a_place_that_cannot_be_written_is_said_before_it_is_tried(root) -> None:
    study(root)
    async with Open(root) as studio:
        await studio.press("E", "enter", "slash", "x")
        studio.app.screen.query_one("Input").value = "/no/such/folder/x.csv"
        await studio.until(lambda: "there is no folder /no/such/folder" in studio.text)
        await studio.press("enter")
        assert isinstance(studio.app.screen, TextDialog)


async def test_the_pane_is_measured_again_when_the_terminal_changes(root) -> None:
    study(root)
    async with Open(root, "baseline") as studio:
        await studio.press("p")
        for size in ((80, 24), (60, 18), (200, 50)):
            await studio.pilot.resize_terminal(*size)
            await studio.until(lambda: "baseline" in studio.text and "0.9005" in studio.text)


@pytest.mark.slow
async def test_five_hundred_runs_are_answered_in_a_second_and_filter_in_a_twentieth(root) -> None:
    """Budgets are calls of functions, of which about five million take a second."""
    first = variant(root, "run-0", every=1)
    config = (first / "config.toml").read_text()
    for i in range(1, 500):
        shutil.copytree(first, root / f"run-{i}")
        text = config.replace("n_heads = 4", f"n_heads = {2 ** (i % 4)}").replace("seed = 1", f"seed = {i}", 1)
        (root / f"run-{i}" / "config.toml").write_text(text)

    def answered() -> None:
        look = RunsFolder(root).scan()
        (answer,) = View().conclusions(look.entries, look.studies, None, "")
        layout = ForestLayout(forest(answer), 110)
        assert len(look.entries) == 500 and layout.head() and layout.row(0) and list(conclusion_sentences(answer))

    assert (cost := calls(answered)) < 2_000_000, cost
    async with Open(root) as studio:
        await studio.press("p")
        costs = []

        def filtered(query: str) -> None:
            studio.pane.options = replace(studio.pane.options, query=query)
            studio.pane.redraw()
            for line in range(studio.table.size.height):
                studio.table.render_line(line)

        for query in ("n_heads>2", "n_heads>2 loss<3", "", "tag:x", "run-4", "-run-4") * 2:
            costs.append(calls(partial(filtered, query)))
        assert sorted(costs)[len(costs) // 2] < 250_000, costs


async def test_both_charts_show_the_same_part_until_the_axis_changes(root) -> None:
    study(root)
    async with Open(root, "baseline", (160, 40)) as studio:
        await studio.press("p", "space")
        await studio.go("heads2")
        await studio.press("space")
        charts = [studio.app.query_one(name, Chart) for name in ("#compare-curves", "#compare-difference")]
        await studio.until(lambda: all(chart._canvas is not None for chart in charts))
        await drag(studio, charts[1], 20, 40)
        await studio.until(lambda: all(chart.zoomed for chart in charts))
        assert charts[0].span == charts[1].span
        await studio.until(lambda: studio.text.count("(esc: all)") == 2)
        await studio.press("x")
        await studio.until(lambda: not any(chart.zoomed for chart in charts))
        await drag(studio, charts[0], 20, 40)
        await studio.until(lambda: charts[0].zoomed)
        await studio.press("escape")
        await studio.until(lambda: not any(chart.zoomed for chart in charts))


async def test_a_click_on_a_letter_hides_its_curve(root) -> None:
    study(root)
    async with Open(root, "baseline") as studio:
        await studio.press("space")
        await studio.until(lambda: "a baseline" in studio.text)
        at = studio.names.index("baseline")
        await studio.pilot.click(studio.table, offset=(1, at))
        await studio.until(lambda: "a × baseline" in studio.text and "all curves are hidden" in studio.text)
        await studio.pilot.click(studio.table, offset=(1, at))
        await studio.until(lambda: "a baseline" in studio.text)


async def test_titles_and_badges_say_what_they_mean(root) -> None:
    study(root)
    async with Open(root, size=(200, 50)) as studio:
        head, table = studio.app.query_one(TableHead), studio.table
        columns = [column.key for column in studio.pane.shown.columns]
        starts = {columns[place.index]: place.start for place in table.current_layout.places}
        await studio.pilot.hover(head, offset=(starts["best"], 0))
        assert str(head.tooltip) == "The lowest validation loss so far. Click: sort by it."
        leaky = next(row for row in studio.pane.shown.rows if "LEAK" in row.entry.badges)
        at = studio.pane.shown.rows.index(leaky)
        await studio.pilot.hover(table, offset=(starts["checks"], at))
        assert f"LEAK: {BADGES['LEAK'].means}" in str(table.tooltip)
        await studio.pilot.hover(table, offset=(starts["run"], at))
        assert table.tooltip is None


def test_every_column_is_explained_and_a_setting_by_its_sentence() -> None:
    assert all(column.explained.endswith(".") for column in FIXED_COLUMNS.values())
    assert EXPLAINED.keys() <= {*FIXED_COLUMNS, "variant", "n", "rank"}
    assert setting_column("model.n_heads").explained.startswith("model.n_heads: ")
    recall = verdict_column(probe_measure("recall<110"))
    assert recall.explained.startswith("Near recall, under 110 characters back: how often the model is right about who")
    assert "in a filter: recall<110" in recall.explained and recall.title == "near recall verdict"
    assert mean_column(LAST).explained.endswith("; the cell also gives the 95 % interval.")
    assert short_names(["log.every", "optimizer.lr"]) == {"log.every": "log.every", "optimizer.lr": "lr"}
