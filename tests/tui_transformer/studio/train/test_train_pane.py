"""The Train pane: every state at every size, keys that do the right thing, runs that grow and vanish while it looks."""

import json
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from textual.events import MouseScrollDown, MouseScrollUp

from engine.base.errors import InputError
from engine.runs.commands import RunCommand, read_commands
from engine.runs.reader import WAITING_FOR_SPACE
from engine.runs.records import Origin
from tests.tui_transformer.lab.analysis.variants import change
from tests.tui_transformer.lab.records.test_feed import POISON as NO_NUMBERS
from tests.tui_transformer.lab.records.test_feed import spoil
from tests.tui_transformer.lab.records.test_study_row import STUDY, cell
from tests.tui_transformer.recorded import everything, grow, loss_at, put_status, record
from tests.tui_transformer.studio.on_screen import said, shown, until
from tui_transformer.lab.records.badges import BADGES
from tui_transformer.lab.work.study_files import stop_file
from tui_transformer.studio.app import PANE_NAMES, Studio
from tui_transformer.studio.shared.chart import Chart
from tui_transformer.studio.shared.dialog import ChoiceDialog, TextDialog
from tui_transformer.studio.shared.line_list import LineList
from tui_transformer.studio.train import run_header
from tui_transformer.studio.train.pane import TrainPane
from tui_transformer.studio.train.run_charts import RunCharts
from tui_transformer.studio.train.run_header import RunHeader

pytestmark = pytest.mark.one_in(4)  # each opens an app or a run of its own

SIZES = [(80, 24), (120, 36), (200, 50)]


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "runs"


class Open:
    """The studio with the Train pane alone and one run chosen.

    Args:
        root: the runs folder.
        run: its name; "" for whatever is first.
        size: of the terminal.
        panes: more of them.
    """

    def __init__(
        self, root: Path, run: str = "", size: tuple[int, int] = (120, 36), panes: tuple[str, ...] = ("train",)
    ) -> None:
        self.app, self._run, self._root = Studio(runs_dir=root, device="cpu", panes=panes), run, root
        self._test = self.app.run_test(size=size)

    async def __aenter__(self) -> "Open":
        self.pilot = await self._test.__aenter__()
        self.pane = self.app.query_one(TrainPane)
        await self.pilot.press("2")
        for worker in [worker for worker in self.app.workers if worker.group == "live"]:
            await worker.wait()
        if self._run:  # now that the studio shows no live run by itself any more
            self.pane.show(self._root / self._run)
            await self.until(lambda: self.pane.current_run()[1] is not None)
        await self.pilot.pause()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._test.__aexit__(*error)

    @property
    def text(self) -> str:
        """What is on the screen."""
        return shown(self.app)

    async def until(self, fact: Callable[[], object]) -> None:
        """Wait for it."""
        await until(self.pilot, fact)

    def said(self, words: str) -> bool:
        """Whether the app said it in the corner."""
        return words in said(self.app)


@pytest.mark.parametrize("size", SIZES)
async def test_no_runs_say_how_to_make_one(root, size) -> None:
    async with Open(root, size=size) as studio:
        await studio.until(lambda: "Nothing has been trained yet" in studio.text)
        assert "f5" in studio.text


STATES = {
    "baseline": ["✓ finished", "best validation loss", "★", "┄", "100%"],
    "no-pe": ["LEAK"],
    "heads2": ["✗ failed", "the loss is not finite", "press r to resume from"],
    "xl-long-context-512": ["stopped", "press r to resume from step 1,200"],
    "rope-base-500": ["! lost", "its process is gone", "press r to resume from step 840"],
    "sine": ["interrupted", "SIGTERM"],
    "t5-bias": ["paused", "press space to continue"],
    "win16": ["● running", "62%", "tok/s", "left", "val", "grad"],
    "seed2": ["queued", "waiting for cpu; 4 runs are ahead: fresh", "not started yet"],
    "fresh": ["starting", "loading the engine, the corpus and the model"],
}


@pytest.mark.parametrize("size", [SIZES[0], *(pytest.param(size, marks=pytest.mark.slow) for size in SIZES[1:])])
async def test_every_state_says_what_it_is_at_every_size(root, size) -> None:
    everything(root)
    async with Open(root, "baseline", size) as studio:
        for run, words in STATES.items():
            studio.pane.show(root / run)
            await studio.until(lambda words=words: all(word in studio.text for word in words))
            assert "Runs  11 · 3 live" in studio.text


async def test_before_the_first_record_it_waits_for_one(root) -> None:
    record(root, "young", state="running", step=0, steps=500)
    async with Open(root, "young") as studio:
        await studio.until(lambda: "waiting for the first steps…" in studio.text)


async def test_the_list_tells_a_train_loss_from_a_validation_loss(root) -> None:
    record(root, "young", state="running", step=50)
    record(root, "older", state="running", step=400)
    async with Open(root, "young", SIZES[2]) as studio:
        lines = {name: line for line in studio.text.splitlines() for name in ("young", "older") if name in line[:10]}
        assert f"t{loss_at(50, 2000):.3f}" in lines["young"]
        assert f" {loss_at(400, 2000) + 0.006:.3f}" in lines["older"]
        await studio.pilot.press("question_mark")
        await studio.until(lambda: "in the list: a training loss" in studio.text)


@pytest.mark.parametrize("size", SIZES)
async def test_the_list_has_the_badge_and_the_loss_at_every_size(root, size) -> None:
    record(root, "a-cut-off-run", verdicts=[("shape", "STILL-FALLING", "it still fell")])
    async with Open(root, "a-cut-off-run", size) as studio:
        await studio.until(lambda: "UNDERTRAINED" in studio.text and "1 train longer" in studio.text)
        line = next(line for line in studio.text.splitlines() if " ✓ a-" in line[:6])
        line = line[: {80: 26, 120: 34, 200: 44}[size[0]]]
        assert f" {loss_at(2000, 2000) + 0.03:.3f}" in line and any(sign in line for sign in (" ! ", " UNDERTRAINED "))


async def test_a_run_without_metrics_says_so(root) -> None:
    run = record(root, "old", step=0)
    (run / "metrics.jsonl").unlink()
    async with Open(root, "old") as studio:
        await studio.until(lambda: "no metrics were written" in studio.text)


async def test_damaged_files_are_named(root) -> None:
    run = record(root, "old")
    (run / "data.json").write_text('{"floor"')
    (run / "status.json").write_text("[")
    async with Open(root, "old") as studio:
        await studio.until(lambda: "damaged: data.json" in studio.text and "status.json is missing" in studio.text)
        assert re.search(" old +DAMAGED ", studio.text)
        await studio.pilot.press("Y")
        await studio.until(lambda: re.search(r" old +DAMAGED \(seen\) ", studio.text))


async def test_two_charts_where_there_is_room_and_one_where_not(root) -> None:
    record(root, "baseline")
    for size, visible in (((159, 40), 1), ((160, 40), 2)):
        async with Open(root, "baseline", size) as studio:
            await studio.until(
                lambda now=studio, n=visible: sum(c.display for c in now.app.query("RunCharts Chart")) == n
            )
            await studio.pilot.press("c")
            await studio.until(lambda now=studio, n=visible: ("probe accuracy", "perplexity")[n - 1] in now.text)


async def test_arrows_choose_and_the_right_side_follows(root) -> None:
    everything(root)
    async with Open(root, "fresh") as studio:
        await studio.pilot.press("down")
        await studio.until(lambda: "● running" in studio.text and "best" not in studio.pane.feed.poll().problem)
        assert studio.pane.chosen == root / "win16"
        await studio.pilot.press("end")
        await studio.until(lambda: "✓ finished" in studio.text)
        assert studio.pane.chosen == root / "baseline"


async def test_the_choice_stays_when_the_list_changes(root) -> None:
    record(root, "baseline")
    async with Open(root, "baseline") as studio:
        record(root, "newer", created="2027-01-01T00:00:00+00:00")
        studio.pane.poll_now()
        await studio.until(lambda: "newer" in studio.text)
        assert studio.pane.chosen == root / "baseline"
        assert studio.app.query_one("#runs", LineList).cursor == 1


async def test_a_run_that_was_only_just_made_can_be_chosen(root) -> None:
    record(root, "baseline")
    async with Open(root, "baseline") as studio:
        studio.pane.show(record(root, "just-made", state="queued", step=0))
        await studio.until(lambda: "not started; press r" in studio.text)
        assert studio.pane.chosen == root / "just-made"


async def test_a_run_that_is_being_begun_is_starting_and_not_left_alone(root, monkeypatch) -> None:
    record(root, "just-made", state="queued", step=0)
    async with Open(root, "just-made") as studio:
        await studio.until(lambda: "not started; press r" in studio.text)
        monkeypatch.setattr(studio.pane.launches, "is_beginning", lambda run: run == root / "just-made")
        studio.pane.poll_now()
        await studio.until(lambda: "loading the engine" in studio.text and "starting" in studio.text)
        assert "not started; press r" not in studio.text


async def test_the_chart_of_a_live_run_grows(root) -> None:
    run = record(root, "win16", state="running", step=300)
    async with Open(root, "win16") as studio:
        await studio.until(lambda: "step 300" in studio.text)
        before = studio.text
        grow(run, to=900)
        studio.pane.poll_now()
        await studio.until(lambda: "now step 900" in studio.text or "step 900  train" in studio.text)
        assert studio.text != before and "45%" in studio.text


async def test_deleting_the_chosen_run_behind_its_back_chooses_another(root) -> None:
    for i in range(3):
        record(root, f"run-{i}", created=f"2026-01-0{i + 1}T00:00:00+00:00")
    async with Open(root, "run-1") as studio:
        shutil.rmtree(root / "run-1")
        studio.pane.poll_now()
        await studio.until(lambda: studio.pane.chosen == root / "run-0")
        shutil.rmtree(root)
        studio.pane.poll_now()
        await studio.until(lambda: "Nothing has been trained yet" in studio.text)


POISON = "\x1b]0;owned\x07\x1b[31m[bold]x[/nonsense]\x9b2J\u202egnirts\x00"


@pytest.mark.parametrize("tab", ["t", "v", "l"])
async def test_text_of_runs_never_commands_the_terminal_nor_is_markup(root, tab) -> None:
    run = record(
        root,
        "poison [red]",
        state="failed",
        reason=POISON,
        phase=POISON,
        device=POISON,
        text=POISON,
        verdicts=[("leak", POISON, POISON)],
    )
    (run / "data.json").write_text('{"corpus": "\\u001b[31m[/x]", "probes": [{"name": "\\u001b[5m"}]}')
    (run / "log.txt").write_text(POISON + "\n", errors="replace")
    (run / "events.jsonl").write_text('{"time": "\\u001b", "event": "\\u009b[/]", "text": "[/b]\\u0007"}\n')
    async with Open(root, "poison [red]") as studio:
        await studio.pilot.press(tab)
        await studio.until(lambda: "[bold]x[/nonsense]" in studio.text and "poison [red]" in studio.text)
        assert not {c for c in studio.text if (ord(c) < 32 and c != "\n") or 0x7F <= ord(c) < 0xA0 or c == "\u202e"}


async def test_numbers_that_are_none_are_drawn_as_nothing(root) -> None:
    for i, poison in enumerate(NO_NUMBERS):
        spoil(record(root, f"run-{i}", steps=200, step=200), poison)
    async with Open(root) as studio:
        await studio.pilot.press("b", "y")
        for i in range(len(NO_NUMBERS)):
            studio.pane.show(root / f"run-{i}")
            await studio.until(lambda: studio.pane.current_run()[1] is not None)


@pytest.mark.parametrize(
    ("run", "key", "command", "pending"),
    [
        ("win16", "space", RunCommand.PAUSE, "pausing…"),
        ("t5-bias", "space", RunCommand.CONTINUE, "continuing…"),
        ("win16", "s", RunCommand.STOP, "stopping…"),
        ("win16", "ctrl+s", RunCommand.CHECKPOINT, "saving…"),
    ],
)
async def test_keys_send_commands_and_show_them_until_they_are_obeyed(root, run, key, command, pending) -> None:
    everything(root)
    async with Open(root, run) as studio:
        await studio.pilot.press(key)
        await studio.until(lambda: pending in studio.text and bool(read_commands(root / run)))
        assert read_commands(root / run) == [(1, command)]
        state = {RunCommand.PAUSE: "paused", RunCommand.STOP: "stopped"}.get(command, "running")
        put_status(root / run, control_id=1, state=state)
        await studio.until(lambda: pending not in studio.text)


@pytest.mark.parametrize(
    ("run", "key", "why"),
    [
        ("baseline", "space", "baseline: finished; there is nothing to pause"),
        ("baseline", "r", "has finished all its 2,000 steps. To train longer, press 1 and raise train.steps"),
        ("win16", "r", "nothing to resume"),
        ("win16", "d", "is already running in the background"),
        ("win16", "delete", "Stop win16 first (s), then delete it"),
        ("win16", "n", "Stop win16 first (s), then rename it"),
        ("alibi", "s", "there is nothing to stop"),
    ],
)
async def test_a_key_that_makes_no_sense_says_why(root, run, key, why) -> None:
    everything(root)
    async with Open(root, run) as studio:
        await studio.pilot.press(key)
        await studio.until(lambda: studio.said(why))
        assert not read_commands(root / run)


async def test_resume_asks_the_app(root, monkeypatch) -> None:
    everything(root)
    asked = []
    monkeypatch.setattr(Studio, "on_resume_run", lambda app, event: asked.append((event.run, event.how)))
    async with Open(root, "rope-base-500") as studio:
        await studio.pilot.press("r", "f6")
        assert asked[0] == (root / "rope-base-500", "usual")
        await studio.until(lambda: "resuming…" in studio.text)


async def test_detach_hands_over_the_run_that_trains_here(root, monkeypatch) -> None:
    everything(root)
    async with Open(root, "win16") as studio:
        launches = studio.pane.launches
        monkeypatch.setattr(type(launches), "local_run", property(lambda self: root / "win16"))
        monkeypatch.setattr(launches, "hand_over", lambda: "win16 continues in the background")
        await studio.pilot.press("d")
        await studio.until(lambda: studio.said("continues in the background"))


async def test_an_action_that_fails_is_said_and_no_longer_pending(root, monkeypatch) -> None:
    everything(root)

    def refuse(run: Path, command: RunCommand) -> None:
        raise InputError("the disk is gone")

    async with Open(root, "win16") as studio:
        monkeypatch.setattr(studio.pane.launches, "send_command", refuse)
        await studio.pilot.press("space")
        await studio.until(lambda: studio.said("the disk is gone"))
        await studio.until(lambda: "pausing…" not in studio.text)


async def test_rename_keeps_the_choice(root) -> None:
    everything(root)
    async with Open(root, "baseline") as studio:
        await studio.pilot.press("n")
        await studio.until(lambda: isinstance(studio.app.screen, TextDialog))
        await studio.pilot.press("ctrl+u", *"best", "enter")
        await studio.until(lambda: (root / "best").is_dir() and studio.pane.chosen == root / "best")
        assert not (root / "baseline").exists()


async def test_delete_asks_and_moves_to_the_neighbour(root) -> None:
    everything(root)
    async with Open(root, "heads2") as studio:
        await studio.pilot.press("delete")
        await studio.until(lambda: isinstance(studio.app.screen, ChoiceDialog))
        await studio.pilot.press("enter")  # the first answer keeps it
        assert (root / "heads2").exists()
        await studio.pilot.press("delete", "down", "enter")
        await studio.until(lambda: not (root / "heads2").exists() and studio.pane.chosen == root / "no-pe")


async def test_zoom_gives_the_chart_everything_and_escape_gives_it_back(root) -> None:
    record(root, "baseline")
    async with Open(root, "baseline", SIZES[2]) as studio:
        await studio.pilot.press("z")
        await studio.until(lambda: not any(studio.app.query_one(part).region for part in ("RunTabs", "#runs")))
        assert sum(chart.display for chart in studio.app.query("RunCharts Chart")) == 1
        await studio.pilot.press("escape")
        await studio.until(lambda: "samples" in studio.text and "Runs  " in studio.text)
        assert sum(chart.display for chart in studio.app.query("RunCharts Chart")) == 2


@pytest.mark.parametrize("size", SIZES)
async def test_a_study_is_a_node_whose_keys_act_on_all_of_its_runs(root, size, monkeypatch) -> None:
    root.mkdir()
    (root / "pos.study.toml").write_text(STUDY)
    for variant, seed, state in (("rope", 1, "finished"), ("rope", 2, "running"), ("no-pe", 1, "running")):
        cell(root, variant, seed, state=state, step=2000 if state == "finished" else 400)
    record(root, "alone")
    async with Open(root, size=size) as studio:
        await studio.until(lambda: "pos" in studio.text)
        studio.pane.show(root / "pos.study.toml")
        await studio.pilot.press("left")
        await studio.until(lambda: "▸ pos" in studio.text and "1/6" in studio.text and "mean" in studio.text)
        assert "1 of 6 runs" in studio.text and "rope.s1" not in studio.text and "2 live" in studio.text
        await studio.pilot.press("enter")
        await studio.until(lambda: "▾ pos" in studio.text and "rope.s2" in studio.text and "no-pe.s1" in studio.text)
        await studio.pilot.press("space")
        await studio.until(lambda: studio.said("pos: pausing 2 runs"))
        for name in ("pos.rope.s2", "pos.no-pe.s1"):
            assert read_commands(root / name) == [(1, RunCommand.PAUSE)]
        await studio.pilot.press("r")
        await studio.until(lambda: studio.said("nothing to resume"))
        await studio.pilot.press("n")
        await studio.until(lambda: studio.said("choose one of its runs"))
        await studio.pilot.press("down", "down")
        await studio.until(lambda: studio.pane.current_run()[1] is not None)
        assert studio.pane.chosen == root / "pos.rope.s2"
        await studio.pilot.press("left")
        await studio.until(lambda: "▸ pos" in studio.text and studio.pane.chosen == root / "pos.study.toml")


async def test_a_finished_run_says_what_to_do_next_and_how_far_the_floor_is(root) -> None:
    record(root, "baseline")
    async with Open(root, "baseline") as studio:
        await studio.until(lambda: "next: w write with it · 3 compare it" in studio.text)
        assert " above the floor" in studio.text


async def test_a_run_that_waits_for_disk_space_says_so(root) -> None:
    everything(root)
    put_status(root / "t5-bias", phase=WAITING_FOR_SPACE, reason="the disk is full")
    async with Open(root, "t5-bias") as studio:
        await studio.until(lambda: "‖ waiting for disk space" in studio.text and "the disk is full" in studio.text)


async def test_a_finished_run_says_what_the_average_of_its_weights_scores(root) -> None:
    run = record(root, "baseline")
    best = json.loads((run / "summary.json").read_text())["best"]["loss"]
    change(run / "summary.json", ema={"loss": best - 0.25}, average={"loss": best + 0.125})
    async with Open(root, "baseline", (200, 50)) as studio:
        lower, higher = f"{best - 0.25:.4f}, 0.2500 lower than best", f"{best + 0.125:.4f}, 0.1250 higher than best"
        await studio.until(lambda: f"moving average of the weights {lower}" in studio.text)
        assert f"mean of the last checkpoints {higher}" in studio.text


@pytest.mark.parametrize("size", [(84, 30), (120, 36)])
async def test_a_finished_runs_facts_are_not_broken_in_the_middle(root, size) -> None:
    record(root, "baseline")
    async with Open(root, "baseline", size) as studio:
        await studio.until(lambda: " above the floor" in studio.text)
        assert re.search(r"0\.\d+ above the floor", studio.text) and "of training" in studio.text


async def test_the_words_of_the_charts_are_explained_in_the_help_and_by_the_legend(root) -> None:
    record(root, "baseline")
    record(root, "live", state="running", step=900)
    async with Open(root, "live") as studio:
        await studio.until(lambda: "╌ other run: baseline" in studio.text)
        await studio.until(lambda: "floor:" in studio.text.replace("┈", " "))
        about = studio.app.query_one("#chart-first", Chart)._drawing.explanation
        assert "ghost: baseline, the dashed line" in about and "floor: the best possible loss" in about
        assert "early on, it is normally above validation" in about
        await studio.pilot.press("question_mark")
        await studio.until(lambda: "Terms" in studio.text and "the best possible loss" in studio.text)


@pytest.mark.parametrize("colourless", [False, True])
async def test_without_colours_the_train_loss_is_drawn_in_dashes(root, monkeypatch, colourless) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    if colourless:
        monkeypatch.setenv("NO_COLOR", "1")
    record(root, "baseline")
    async with Open(root, "baseline") as studio:
        await studio.until(lambda: ("╍ train" if colourless else "━ train") in studio.text)
        canvas = studio.app.query_one("#chart-first", Chart)._drawing.canvas(100, 30)
        drawn = {style: set() for style in ("train", "validation")}
        for row in canvas.cells:
            for column, (_, style) in enumerate(row):
                drawn.get(style, set()).add((column - canvas.margin) % 4)
        assert drawn["train"] == {0, 1, 2} | (set() if colourless else {3}) and drawn["validation"] == {0, 1, 2, 3}


async def test_memory_on_a_cpu_is_said_to_be_the_processs(root) -> None:
    record(root, "baseline")
    async with Open(root, "baseline") as studio:
        await studio.until(lambda: re.search(r"process memory \d+ MB of 25\.3 GB", studio.text) is not None)


async def test_a_probe_is_shown_by_what_it_asks(root) -> None:
    record(root, "baseline")
    async with Open(root, "baseline") as studio:
        await studio.pilot.press("b", "c")
        await studio.until(lambda: "a near recall" in studio.text and "near recall  ██" in studio.text)
        assert "recall<110" not in studio.text


async def test_the_best_comparable_run_is_a_ghost_that_can_be_taken_away(root) -> None:
    record(root, "baseline")
    record(root, "live", state="running", step=900)
    async with Open(root, "live") as studio:
        await studio.until(lambda: "╌ " in studio.text)
        await studio.pilot.press("G")
        await studio.until(lambda: "╌ " not in studio.text)


async def test_c_turns_through_loss_probes_perplexity_and_speed(root) -> None:
    record(root, "baseline")
    async with Open(root, "baseline") as studio:
        seen, values = [], []
        for _ in range(6):
            chart = studio.app.query_one("#chart-first", Chart)
            seen.append("".join(c for c, _ in chart._drawing.title(60, "title")).split("   ")[0].strip())
            values.append("".join(c for c, _ in chart._drawing.values(60, None)))
            await studio.pilot.press("c")
        assert [title.split(",")[0].split("  ")[0] for title in seen] == [
            *("loss", "probe accuracy", "perplexity", "bits per character", "accuracy", "tokens per second")
        ]
        assert values[1].startswith(("at the end  a", "end  a"))  # "far" is of recall by distance


@pytest.mark.parametrize("size", SIZES)
async def test_while_arrows_scroll_a_text_it_is_said_and_escape_goes_back_to_the_runs(root, size) -> None:
    everything(root)
    words = "↑ ↓: scroll · esc: back to the runs" if size[0] > 80 else "↑↓ scroll · esc runs"
    async with Open(root, "win16", size) as studio:
        assert words not in studio.text
        studio.pane.query_one("#tab-first").focus()
        await studio.until(lambda: words in studio.text)
        await studio.pilot.press("l")
        await studio.until(lambda: words in studio.text and "log.txt" in studio.text)
        await studio.pilot.press("escape")
        await studio.until(lambda: words not in studio.text)
        await studio.pilot.press("down")
        assert studio.pane.chosen == root / "t5-bias"


async def test_options_change_the_charts(root) -> None:
    record(root, "baseline")
    async with Open(root, "baseline") as studio:
        charts = studio.app.query_one(RunCharts)
        for key, word in (("y", " log"), ("x", "tokens"), ("x", "time"), ("F", "")):
            await studio.pilot.press(key)
            await studio.until(lambda word=word: word in studio.text)
        assert charts.logarithmic and charts.axis == 2 and charts.smoothing == "some"


async def test_the_cursor_says_the_values_under_it_in_both_charts(root) -> None:
    record(root, "baseline")
    async with Open(root, "baseline", SIZES[2]) as studio:
        await studio.pilot.press("tab")
        assert isinstance(studio.app.focused, Chart)
        await studio.pilot.press("home", "right")
        await studio.until(lambda: " step 30  train" in studio.text and studio.text.count("│") > 60)
        await studio.pilot.hover("#chart-second", offset=(20, 6))
        await studio.until(lambda: " step 30  train" not in studio.text)


async def test_nothing_is_drawn_while_another_pane_is_shown(root, monkeypatch) -> None:
    run = record(root, "win16", state="running", step=300)
    async with Open(root, "win16", panes=PANE_NAMES) as studio:
        await studio.pilot.press("1")
        drawn = []
        monkeypatch.setattr(RunCharts, "show", lambda *_: drawn.append(1))
        grow(run, to=600)
        studio.pane.poll_now()
        await studio.until(lambda: studio.pane.snapshot.rows[0].step == 600)
        assert not drawn and studio.pane.snapshot.view is None


async def test_a_thousand_runs_are_a_list_like_any_other(root) -> None:
    for i in range(1000):
        run = root / f"run-{i:04}"
        run.mkdir(parents=True)
        (run / "run.json").write_text('{"created": "2026"}')
        (run / "status.json").write_text('{"state": "finished", "step": 5, "steps": 5}')
    async with Open(root) as studio:
        await studio.until(lambda: "Runs  1,000" in studio.text)
        await studio.pilot.press("end")
        await studio.until(lambda: "run-0000" in studio.text)


@pytest.mark.parametrize("size", SIZES[:2])
async def test_a_run_says_over_its_charts_what_it_started_from(root, size) -> None:
    run = record(root, "finetune")
    first = Origin(id="0", name="first", checkpoint="last", step=9, sha256="cd")
    origin = Origin(id="1", name="pretrain", checkpoint="best", step=1500, sha256="ab", before=first)
    born = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(born | {"from": origin.model_dump(by_alias=True)}))
    async with Open(root, "finetune", size) as studio:
        await studio.until(lambda: "pretrain@best (step 1,500)" in shown(studio.app))
        assert size[0] < 100 or "first ─▶ pretrain ─▶ finetune" in shown(studio.app)


def title(chart: Chart) -> str:
    return "".join(text for text, _ in chart._title("title"))


async def drag(studio: Open, chart: Chart, first: int, last: int) -> None:
    await studio.pilot.mouse_down(chart, offset=(first, 5))
    await studio.pilot.hover(chart, offset=((first + last) // 2, 5))
    await studio.pilot.hover(chart, offset=(last, 5))
    assert any("selection" in style for _, style in selected(chart))
    await studio.pilot.mouse_up(chart, offset=(last, 5))
    await studio.pilot.pause()


def selected(chart: Chart) -> list[tuple[str, str]]:
    strip = chart.render_line(5)
    background = chart.get_component_rich_style("chart--selection").bgcolor
    return [(part.text, "selection") for part in strip if part.style.bgcolor == background]


async def test_a_drag_zooms_both_charts_and_esc_or_a_double_click_shows_all_again(root) -> None:
    record(root, "baseline")
    async with Open(root, "baseline", (160, 40)) as studio:
        charts = list(studio.app.query("RunCharts Chart").results(Chart))
        await studio.until(lambda: all(chart._canvas is not None for chart in charts))
        for again in ("esc", "double click"):
            await drag(studio, charts[0], 20, 40)
            await studio.until(lambda: all(chart.zoomed for chart in charts))
            span = charts[0].span
            assert charts[1].span == span and 0 < span[0] < span[1] < 2000
            assert f"steps {span[0]:,.0f}–{span[1]:,.0f} of 2,000 (esc: all)" in title(charts[0])
            assert charts[0]._canvas.top < loss_at(round(span[0]), 2000) + 0.1
            if again == "esc":
                await studio.pilot.press("escape")
            else:
                await studio.pilot.double_click(charts[1], offset=(20, 5))
            await studio.until(lambda: not any(chart.zoomed for chart in charts))
            assert "of 2,000" not in title(charts[0])


async def test_the_wheel_zooms_around_the_pointer_and_another_run_is_seen_whole(root) -> None:
    record(root, "baseline")
    record(root, "other", created="2026-01-01T00:00:00+00:00")
    async with Open(root, "baseline") as studio:
        chart = studio.app.query_one("#chart-first", Chart)
        await studio.until(lambda: chart._canvas is not None)
        x = chart._canvas.x_at(29)
        await studio.pilot._post_mouse_events([MouseScrollUp], chart, (30, 5))
        await studio.until(lambda: chart.zoomed)
        assert chart._canvas.high - chart._canvas.low == pytest.approx(0.8 * 2000)
        assert chart._canvas.x_at(29) == pytest.approx(x, abs=60)  # to two columns
        await studio.pilot._post_mouse_events([MouseScrollDown], chart, (30, 5))
        await studio.until(lambda: not chart.zoomed and chart.span is None)
        chart.focus()
        await studio.pilot.press("plus")
        await studio.until(lambda: chart.zoomed)
        studio.pane.show(root / "other")
        await studio.until(lambda: chart.span is None)


async def test_a_click_in_the_legend_hides_a_curve_and_shows_it_again(root) -> None:
    record(root, "baseline")
    async with Open(root, "baseline") as studio:
        chart = studio.app.query_one("#chart-first", Chart)
        await studio.until(lambda: "╍ train" in title(chart) and "•━ validation" in title(chart))
        for name in ("train", "validation"):
            await studio.pilot.click(chart, offset=(title(chart).index(name) + 1, 0))
            await studio.until(lambda name=name: f"× {name}" in title(chart))
        await studio.until(lambda: "all curves are hidden" in studio.text)
        await studio.pilot.click(chart, offset=(title(chart).index("× train") + 1, 0))
        await studio.until(lambda: "╍ train" in title(chart) and chart._canvas is not None)
        await studio.pilot.hover(chart, offset=(20, 0))
        assert "Drag across the chart" in str(chart.tooltip)
        await studio.pilot.hover(chart, offset=(20, 5))
        assert chart.tooltip is None


async def test_a_badge_in_the_header_says_what_it_means(root) -> None:
    record(root, "leaky", verdicts=[("leak", "LEAK", "it sees"), ("shape", "STILL-FALLING", "it still fell")])
    async with Open(root, "leaky") as studio:
        header = studio.app.query_one(RunHeader)
        await studio.until(lambda: "LEAK  UNDERTRAINED" in str(header.content))
        line = str(header.content).splitlines()[0]
        for name in ("LEAK", "STILL-FALLING"):
            await studio.pilot.hover(header, offset=(1 + line.index(BADGES[name].word) + 1, 0))
            assert str(header.tooltip) == f"{BADGES[name].word}: {BADGES[name].means}"
        await studio.pilot.hover(header, offset=(3, 0))
        assert header.tooltip is None


async def test_a_badge_in_the_list_says_what_it_means(root) -> None:
    record(root, "leaky", verdicts=[("leak", "LEAK", "it sees"), ("shape", "STILL-FALLING", "it still fell")])
    record(root, "sound", verdicts=[])
    async with Open(root, "leaky") as studio:
        runs = studio.app.query_one("#runs", LineList)
        at = [path.name for path in runs.paths].index("leaky")
        line = "".join(segment.text for segment in runs.render_line(at))
        start, meant = (
            line.index("LEAK"),
            "\n".join(f"{BADGES[n].word}: {BADGES[n].means}" for n in ("LEAK", "STILL-FALLING")),
        )
        for x in (start, start + len("LEAK") - 1):
            await studio.pilot.hover(runs, offset=(x, at))
            assert str(runs.tooltip) == meant
        for place in ((start - 1, at), (start + len("LEAK"), at), (start, 1 - at)):
            await studio.pilot.hover(runs, offset=place)
            assert runs.tooltip is None


async def test_a_running_run_and_a_study_say_when_they_will_be_done(root, monkeypatch) -> None:
    monkeypatch.setattr(run_header, "local_time", lambda: datetime(2026, 11, 25, 23, 59, 30, tzinfo=UTC))
    record(root, "win16", state="running", step=1240)
    (root / "pos.study.toml").write_text(STUDY)
    cell(root, "rope", 1)
    cell(root, "rope", 2, state="running", step=500)
    async with Open(root, "win16", (160, 40)) as studio:
        await studio.until(lambda: bool(re.search(r"\d:\d\d left, done Thu 00:0\d", studio.text)))
        studio.pane.show(root / "pos.study.toml")
        await studio.until(
            lambda: bool(re.search(r"\d:\d\d left, done ", studio.text)) and "1 of 6 runs" in studio.text
        )
        await studio.pilot.resize_terminal(70, 24)
        await studio.until(lambda: " left" in studio.text and ", done" not in studio.text)


async def test_a_study_on_other_machines_shows_its_workers_and_one_on_this_machine_does_not(root) -> None:
    run = cell(root, "rope", 1, state="running", step=500)
    (root / "pos.study.toml").write_text(STUDY)
    async with Open(root, "pos.rope.s1", (100, 30)) as studio:
        studio.pane.show(root / "pos.study.toml")
        await studio.until(lambda: "0 of 6 runs" in studio.text)
        assert "worker" not in studio.text
        status = json.loads((run / "status.json").read_text())
        (run / "status.json").write_text(json.dumps(status | {"host": "node2", "device": "cuda:0"}))
        await studio.until(lambda: "1 worker: node2 cuda:0 · 5 runs waiting for a worker" in studio.text)
        await studio.pilot.press("s")
        await studio.until(lambda: stop_file(root, "pos").exists() and bool(read_commands(run)))
    assert read_commands(run) == [(1, RunCommand.STOP)]


async def test_a_queued_run_says_about_when_its_turn_comes(root) -> None:
    record(root, "done", step=2000, queue="cpu")
    record(root, "win16", state="running", step=1000)
    record(root, "next", state="queued", step=0, queue="cpu")
    async with Open(root, "next", (100, 30)) as studio:
        await studio.until(lambda: bool(re.search(r"1 run is ahead: win16 · about \d+ (s|min)", studio.text)))


async def test_before_the_first_sample_it_says_when_that_comes(root) -> None:
    run = record(root, "young", state="running", step=200)
    (run / "samples.jsonl").unlink(missing_ok=True)
    ended = record(root, "silent")
    (ended / "samples.jsonl").unlink(missing_ok=True)
    async with Open(root, "young") as studio:
        await studio.until(lambda: "first sample at step 500 (in about 30 s)" in studio.text)
        studio.pane.show(ended)
        await studio.until(lambda: "no samples were written" in studio.text)
