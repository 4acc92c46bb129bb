"""The Playground with models that are none: what is shown, what keys do, what stays out of the terminal."""

import asyncio
import json
import re
import threading
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import ContentSwitcher

from engine.base.errors import InputError
from tests.calls import calls
from tests.tui_transformer.fake_writer import POISON, FakeWriter, FakeWriters
from tests.tui_transformer.recorded import record
from tests.tui_transformer.studio.on_screen import said, shown, until
from tui_transformer.lab.play.prompt import COMMANDS, SETTINGS, CommandPrompt
from tui_transformer.studio.app import Studio
from tui_transformer.studio.playground import pane as playground
from tui_transformer.studio.playground.likeliest import TokenAlternatives
from tui_transformer.studio.playground.lines import next_value
from tui_transformer.studio.playground.pane import EACH_ITS_OWN, PlaygroundPane
from tui_transformer.studio.shared.dialog import ChoiceDialog, TextDialog, TextScreen
from tui_transformer.studio.shared.keys import PANE_BINDINGS

pytestmark = pytest.mark.one_in(4)  # each opens an app or a run of its own


async def type_line(pilot: Pilot, line: str) -> None:
    """Faster than key by key."""
    found = pane(pilot.app)._line
    found.focus()
    found.value = line
    await pilot.press("enter")


@pytest.fixture
def fakes(monkeypatch) -> FakeWriters:
    found = FakeWriters()
    monkeypatch.setattr(playground, "WriterCache", lambda device: found)
    return found


def studio(runs: Path, *others: str) -> Studio:
    """The Playground, and other panes after it."""
    return Studio(runs_dir=runs, device="cpu", panes=("playground", *others))


@pytest.fixture
def runs(tmp_path) -> Path:
    record(tmp_path / "runs", "baseline", created="2026-11-21T01:01:00+00:00")
    record(tmp_path / "runs", "win16", created="2026-11-21T01:02:00+00:00")
    return tmp_path / "runs"


@pytest.fixture
def app(runs, fakes) -> Studio:
    return studio(runs)


def pane(app: Studio) -> PlaygroundPane:
    return app.query_one(PlaygroundPane)


async def opened(pilot: Pilot) -> PlaygroundPane:
    if pilot.app.current_pane != "playground":
        await pilot.press("4")
    found = pane(pilot.app)
    await until(pilot, lambda: found._first.writer is not None and not found._first.busy and found._line.has_focus)
    return found


async def answered(pilot: Pilot, line: str = "the gate") -> PlaygroundPane:
    await type_line(pilot, line)
    found = pane(pilot.app)
    await until(pilot, lambda: all(one.answer_tokens and not one.busy for one in found.columns_with_run))
    return found


async def test_the_whole_way_through_with_two_runs(runs, fakes, monkeypatch) -> None:
    """Choose two finished runs, sample from both, inspect a head, surprise, copy, leave."""
    app = studio(runs, "train")
    copied: list[str] = []
    monkeypatch.setattr(app, "copy_to_clipboard", copied.append)
    async with app.run_test(size=(120, 36)) as pilot:
        found = await opened(pilot)
        assert "win16" in shown(app) and "step 2,000" in shown(app)  # the newest by itself
        await pilot.press("escape", "plus")
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        await pilot.press("down", "down", "enter")
        await until(pilot, lambda: len(found.columns_with_run) == 2 and found._second.writer is not None)
        found._line.focus()
        await answered(pilot, "the gate")
        first, second = found.columns_with_run
        assert first.full_text.startswith("the gate is barred") and second.answer_text == first.answer_text
        assert first.writer.asked == second.writer.asked == [("the gate", found.session.settings)]
        await pilot.press("escape", "a")
        await until(pilot, lambda: "layer 1 of 2, head 1 of 4" in shown(app) and "▸" in shown(app))
        await pilot.press("h")
        await until(pilot, lambda: "head 2 of 4" in shown(app) and "position bias" in shown(app))
        await pilot.press("S")
        await until(pilot, lambda: "perplexity" in shown(app))
        await pilot.press("C")
        assert copied == [first.full_text]
        await pilot.press("2")
        assert app.query_one("#panes", ContentSwitcher).current == "train"


async def test_two_runs_share_a_small_terminal_and_a_hint_takes_no_room_from_them(app) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        found = await opened(pilot)
        await pilot.press("escape", "plus")
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        await pilot.press("down", "down", "enter")
        await until(pilot, lambda: len(found.columns_with_run) == 2 and found._second.writer is not None)
        likeliest = app.query_one(TokenAlternatives)
        await until(pilot, lambda: likeliest.outer_size.height == 2)
        heights = [column.outer_size.height for column in found.columns_with_run]
        found._line.focus()
        await answered(pilot, "the gate")
        await pilot.press("escape", "home", *["right"] * 8)
        await until(pilot, lambda: likeliest.outer_size.height >= 7)
        assert min(heights) >= 6


async def test_the_token_under_the_cursor_tells_its_alternatives(app) -> None:
    async with app.run_test(size=(120, 36)) as pilot:
        await opened(pilot)
        found = await answered(pilot)
        await pilot.press("escape", "home", *["right"] * 8)
        await until(pilot, lambda: "token ␣" in shown(app))
        column = found._active
        assert (
            column.cursor_index == 0
            and "sampled at" in shown(app)
            and "0.004" in shown(app)
            and "cut off" in shown(app)
        )
        await pilot.press("end")
        await type_line(pilot, "/alternatives")  # from anywhere to the most surprising one
        after = sorted(piece.probability for piece in column.answer_tokens)
        assert column.answer_tokens[column.cursor_index].probability == after[0]
        await pilot.press("exclamation_mark")
        assert column.answer_tokens[column.cursor_index].probability == after[1]
        await type_line(pilot, "/alternatives 1")
        assert column.answer_tokens[column.cursor_index].probability == after[0]


async def test_enter_on_an_alternative_goes_on_from_it(app) -> None:
    async with app.run_test(size=(120, 36)) as pilot:
        await opened(pilot)
        found = await answered(pilot)
        column = found._first
        await pilot.press("escape", "home", *["right"] * 12)  # the fifth that was written
        await until(pilot, lambda: column.cursor_index == 4)
        kept, other = column.answer_text[:4], column.answer_tokens[4].alternatives[1].text
        found._likeliest.focus()
        await pilot.press("down", "enter")
        await until(pilot, lambda: len(column.writer.asked) == 2 and not column.busy)
        assert column.writer.asked[1][0] == f"the gate{kept}{other}"
        assert column.full_text.startswith(f"the gate{kept}{other}") and len(column.answer_tokens) == 90


async def test_keys_that_belong_to_the_studio_are_typed_on_the_line(runs, fakes) -> None:
    app = studio(runs, "design")
    async with app.run_test(size=(120, 36)) as pilot:
        found = await opened(pilot)
        await pilot.press("1", "question_mark", "space", "a")
        assert found._line.value == "1? a" and app.query_one("#panes", ContentSwitcher).current == "playground"
        await pilot.press("escape", "1")
        assert app.query_one("#panes", ContentSwitcher).current == "design"


async def test_the_line_remembers_what_was_typed(app) -> None:
    async with app.run_test(size=(120, 36)) as pilot:
        found = await opened(pilot)
        await answered(pilot, "one")
        await type_line(pilot, "two")
        await pilot.press("x", "up", "up")
        assert found._line.value == "one"
        await pilot.press("down", "down")
        assert found._line.value == "x"


async def test_escape_stops_what_is_written_and_again_takes_the_next_seed(app, fakes) -> None:
    gate = threading.Event()
    fakes.known["win16"] = FakeWriter(gate=gate)
    async with app.run_test(size=(120, 36)) as pilot:
        found = await opened(pilot)
        await type_line(pilot, "the gate")
        column = found._first
        await until(pilot, lambda: column.writing and bool(column.answer_tokens))
        await pilot.press("escape")
        gate.set()
        await until(pilot, lambda: re.search(r"stopped after (1 token|\d+ tokens)(?!\w)", shown(app)) is not None)
        assert len(column.answer_tokens) < 90 and not column.writing
        await pilot.press("escape", "full_stop")
        await until(pilot, lambda: len(column.answer_tokens) == 90 and not column.busy)
        assert column.writer.asked[-1] == ("the gate", found.session.settings) and found.session.settings["seed"] == 2
        assert "the same prompt with seed 2" in said(app)


async def test_a_run_that_comes_beside_another_gets_its_prompt(app) -> None:
    async with app.run_test(size=(120, 36)) as pilot:
        found = await opened(pilot)
        await answered(pilot, "the gate")
        await type_line(pilot, "/vs baseline")
        await until(pilot, lambda: len(found._second.answer_tokens) == 90 and not found._second.busy)
        assert found._second.writer.asked == found._first.writer.asked == [("the gate", found.session.settings)]
        await type_line(pilot, "/run baseline")  # and the other way round
        await until(pilot, lambda: len(found._first.answer_tokens) == 90 and not found._first.busy)
        assert found._first.prompt_text == "the gate"


async def test_a_run_that_comes_beside_a_text_that_is_read_reads_it_too(app) -> None:
    async with app.run_test(size=(120, 36)) as pilot:
        found = await opened(pilot)
        await type_line(pilot, "/surprise to be or not")
        await until(pilot, lambda: found._first.scored_text is not None)
        await type_line(pilot, "/vs baseline")
        await until(pilot, lambda: found._second.scored_text is not None and not found._second.busy)
        assert found._second.full_text == "to be or not" and EACH_ITS_OWN[:30] not in shown(app)


async def test_surprise_of_two_texts_says_that_they_are_two(app, fakes) -> None:
    fakes.known["baseline"] = FakeWriter("baseline", text="en")
    async with app.run_test(size=(120, 36)) as pilot:
        found = await opened(pilot)
        await type_line(pilot, "/vs baseline")
        await until(pilot, lambda: found._second.writer is not None)
        await answered(pilot, "the gate")
        await pilot.press("escape", "S")
        await until(pilot, lambda: shown(app).count("the two runs read different texts") == 2)
        await type_line(pilot, "/surprise to be or not")
        await until(pilot, lambda: shown(app).count("for 11 characters") == 2)
        assert "the two runs read different texts" not in shown(app)


async def test_a_run_that_cannot_read_a_text_shows_it_and_says_why(app, fakes) -> None:
    async with app.run_test(size=(120, 36)) as pilot:
        found = await opened(pilot)
        await answered(pilot, "the gate")
        await type_line(pilot, "/surprise Ω and more")
        await until(pilot, lambda: "has never seen" in shown(app))
        assert "Ω and more" in shown(app) and "is barred" not in shown(app) and not found._first.busy


async def test_controls_change_by_keys_wheel_and_typing_and_the_text_follows(app) -> None:
    async with app.run_test(size=(120, 36)) as pilot:
        found = await opened(pilot)
        await answered(pilot)
        found._controls.focus()
        await pilot.press("up", "right", "down")
        assert (found.session.settings["temperature"], found.session.settings["top_k"]) == (0.9, 20)
        await until(pilot, lambda: found._first.writer.asked[-1][1].get("temperature") == 0.9)
        await pilot.press("right", "right", "enter")
        assert isinstance(app.screen, TextDialog)
        await pilot.press("backspace", "7", "enter")
        assert found.session.settings["seed"] == 7
        await until(pilot, lambda: found._first.writer.asked[-1][1]["seed"] == 7)


@pytest.mark.parametrize("name", SETTINGS)
def test_steps_stay_within_bounds(name) -> None:
    setting = SETTINGS[name]
    value = {"temperature": 0.8, "top_k": 40, "top_p": 0.5, "seed": 1, "length": 200}[name]
    for by in (-1, 1):
        at = value
        for _ in range(60):
            at = next_value(name, at, by)
            assert setting.low <= at <= setting.high and isinstance(at, setting.kind)
    assert next_value(name, next_value(name, value, 1), -1) == pytest.approx(value)


async def test_two_runs_have_each_its_own_settings_until_one_is_set_by_hand(app, fakes) -> None:
    fakes.known["baseline"] = greedy = FakeWriter("baseline")
    greedy.defaults = greedy.defaults | {"temperature": 0.0}
    async with app.run_test(size=(120, 36)) as pilot:
        found = await opened(pilot)
        await type_line(pilot, "/vs baseline")
        await until(pilot, lambda: found._second.writer is not None)
        await answered(pilot)
        assert [one.writer.asked[-1][1]["temperature"] for one in found.columns_with_run] == [0.8, 0.0]
        await until(pilot, lambda: "temperature  0.8 / 0 " in shown(app))
        await type_line(pilot, "/temperature 0.3")
        await answered(pilot, "the gate")
        assert [one.writer.asked[-1][1]["temperature"] for one in found.columns_with_run] == [0.3, 0.3]
        await until(pilot, lambda: "temperature  0.3 " in shown(app) and " / " not in str(found._controls.render()))
        await type_line(pilot, "/vs")
        await until(pilot, lambda: len(found.columns_with_run) == 1)


async def test_commands_do_what_keys_do(app, monkeypatch) -> None:
    copied: list[str] = []
    monkeypatch.setattr(app, "copy_to_clipboard", copied.append)
    async with app.run_test(size=(120, 36)) as pilot:
        found = await opened(pilot)
        await type_line(pilot, "/temperature 0.3")
        await type_line(pilot, "/vs baseline")
        await until(pilot, lambda: found._second.writer is not None)
        await answered(pilot)
        assert found._second.writer.asked[0][1]["temperature"] == 0.3
        await type_line(pilot, "/copy")
        assert len(copied) == 1
        await type_line(pilot, "/surprise to be or not")
        await until(pilot, lambda: "perplexity" in shown(app))
        found._line.focus()
        await type_line(pilot, "/attention 2 3")
        await until(pilot, lambda: "layer 2 of 2, head 3 of 4" in shown(app))
        found._line.focus()
        await type_line(pilot, "/vs")
        assert len(found.columns_with_run) == 1
        await type_line(pilot, "/run baseline")
        await until(pilot, lambda: found._first.run_path.name == "baseline" and found._first.writer is not None)
        await type_line(pilot, "/checkpoint last")
        await until(pilot, lambda: ("baseline", "last") in found._first.writers.loads)
        await type_line(pilot, "/help")
        assert isinstance(app.screen, TextScreen)
        await pilot.press("escape")
        await type_line(pilot, "/history")
        assert isinstance(app.screen, ChoiceDialog)


async def test_on_entry_the_best_finished_run_has_written_and_offers_prompts_to_try(tmp_path, fakes) -> None:
    """Of the finished runs comparable with the newest, the one with the lowest loss and no badge."""
    for name, age, final in (("worse", 1, 1.9), ("best", 2, 1.2), ("newest", 3, 1.5)):
        run = record(tmp_path / "runs", name, created=f"2026-11-21T01:0{age}:00+00:00")
        (run / "summary.json").write_text(
            json.dumps({"schema": 1, "step": 2000, "last": {"step": 2000, "loss": final}})
        )
    record(tmp_path / "runs", "live", state="running", created="2026-11-21T02:00:00+00:00")
    tries = ("the gate", "my lord", "\n")
    fakes.known["best"] = FakeWriter("best", prompts=tries)
    app = studio(tmp_path / "runs")
    async with app.run_test(size=(120, 36)) as pilot:
        found = await opened(pilot)
        column = found._first
        await until(pilot, lambda: len(column.answer_tokens) == 90 and not column.busy)
        assert column.run_path.name == "best" and column.writer.asked == [("the gate", found.session.settings)]
        assert column.cursor_index == max(
            range(90), key=lambda at: column.answer_tokens[at].nats
        ) and "sampled at" in shown(app)
        await pilot.click("#tries", offset=(shown(app).split("try  ")[1].index("my lord") + 6, 0))
        await until(pilot, lambda: column.prompt_text == "my lord")
        found._line.focus()
        await pilot.press("up", "enter")  # the first again, without the mouse
        await until(pilot, lambda: column.prompt_text == "the gate")
        await type_line(pilot, "/examples")
        await pilot.press("end", "enter")
        await until(pilot, lambda: column.prompt_text == "\n")


async def test_what_is_typed_before_the_model_is_there_comes_before_the_prompts_to_try(app, fakes) -> None:
    fakes.gate = threading.Event()
    fakes.known["win16"] = FakeWriter(prompts=("the gate",))
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.press("H", "e", "enter")
        fakes.gate.set()
        await until(pilot, lambda: bool(pane(app)._first.answer_tokens))
        assert [text for text, _ in fakes.known["win16"].asked] == ["He"]


async def test_another_checkpoint_is_asked_the_same(app, fakes) -> None:
    fakes.known["win16"] = FakeWriter(prompts=("the gate",))
    async with app.run_test(size=(120, 36)) as pilot:
        found = await opened(pilot)
        await answered(pilot, "my lord")
        await type_line(pilot, "/checkpoint last")
        await until(pilot, lambda: found._first.checkpoint == "last" and len(found._first.answer_tokens) == 90)
        assert found._first.prompt_text == "my lord"


async def test_tab_completes_commands_and_elsewhere_moves_the_focus(app) -> None:
    async with app.run_test(size=(120, 36)) as pilot:
        found = await opened(pilot)
        await pilot.press("slash", "t", "o", "p", "tab")
        assert found._line.value == "/top_k " and "sample only from the k likeliest" in shown(app)
        await pilot.press("tab")
        assert found._line.value == "/top_p "
        await pilot.press("tab", "5", "enter")
        assert found.session.settings["top_k"] == 5
        await pilot.press("a", "tab")
        assert found._line.value == "a" and not found._line.has_focus


async def test_settings_follow_the_run_and_not_the_last_one(app, fakes) -> None:
    fakes.known["baseline"] = FakeWriter("baseline")
    fakes.known["baseline"].defaults = {"temperature": 0.0, "top_k": 0, "top_p": 1.0, "seed": 1, "length": 90}
    async with app.run_test(size=(120, 36)) as pilot:
        found = await opened(pilot)
        await type_line(pilot, "/temperature 0.5")
        await type_line(pilot, "/run baseline")
        await until(pilot, lambda: found.session.settings["temperature"] == 0.0)
        await type_line(pilot, "/run win16")  # and what was set by hand for a run stays with it
        await until(pilot, lambda: found.session.settings["temperature"] == 0.5)


MISTAKES = {
    "/quit": "ctrl+q",
    "/temprature 1": "did you mean",
    "/attention x": "counted from 1",
    "/copy": "nothing to copy",
    "/again": "nothing has been asked",
    "/run nothing": "no run named",
    "/surprise": "needs some text",
    "/alternatives": "nothing to inspect yet",
    "/checkpoint": "give best, last or a step",
    "/history": "there are no prompts yet",
    "/examples": "has no prompts to try yet",
}


async def test_a_mistake_is_a_sentence(app, monkeypatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(app, "notify", lambda text, **_: told.append(text))
    async with app.run_test(size=(120, 36)) as pilot:
        await opened(pilot)
        for line, said in MISTAKES.items():
            told.clear()
            await type_line(pilot, line)
            await until(pilot, lambda said=said: any(said in text for text in told))


def test_every_command_is_done_or_refused_with_a_reason_in_both_places(app) -> None:
    own = {"quit", "help", "history", "again", *SETTINGS}
    actions = PlaygroundPane(runs_dir=Path("runs")).session.actions
    for name, command in COMMANDS.items():
        assert name in own or name in actions or command.why_not["pane"]
    assert isinstance(PlaygroundPane(runs_dir=Path("runs")).session, CommandPrompt)


async def test_a_damaged_checkpoint_and_unknown_characters_say_so_in_place(app, fakes) -> None:
    fakes.known["win16"] = InputError("step-00002000: model.safetensors is damaged; doctor shows more")
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "model.safetensors is damaged" in shown(app))
        await type_line(pilot, "the")  # the same sentence again, no traceback
        await until(pilot, lambda: "model.safetensors is damaged" in shown(app))
        fakes.known["baseline"] = FakeWriter("baseline")
        found = pane(app)
        await type_line(pilot, "/run baseline")
        await until(pilot, lambda: found._first.writer is not None)
        await type_line(pilot, "Ω")
        await until(pilot, lambda: "U+03A9" in shown(app))


async def test_without_a_run_the_pane_explains_itself_and_wakes_up(tmp_path, fakes) -> None:
    app = studio(tmp_path / "runs")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "Nothing has been trained yet" in shown(app))
        record(tmp_path / "runs", "fresh", state="starting", step=0)
        pane(app)._feed._scan._swept = None
        await pane(app)._poll_runs_and_checkpoints()
        await until(pilot, lambda: "No run has a checkpoint yet" in shown(app))
        record(tmp_path / "runs", "win16")
        pane(app)._feed._scan._swept = None
        await pane(app)._poll_runs_and_checkpoints()
        await until(pilot, lambda: pane(app)._first.writer is not None)


@pytest.mark.parametrize("pressed", [None, "escape", "x"])
async def test_the_line_of_a_run_that_comes_takes_the_keys_of_nobody_who_presses_some(tmp_path, fakes, pressed) -> None:
    app = studio(tmp_path / "runs", "design")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "Nothing has been trained yet" in shown(app))
        if pressed is not None:
            await pilot.press(pressed)
        record(tmp_path / "runs", "win16")
        found = pane(app)
        found._feed._scan._swept = None
        await found._poll_runs_and_checkpoints()
        await until(pilot, lambda: found._first.writer is not None)
        assert found._line.has_focus is (pressed is None)
        await pilot.press("1")
        assert (app.query_one("#panes", ContentSwitcher).current == "design") is (pressed is not None)


async def test_a_run_that_trains_is_taken_at_its_newest_and_again_when_there_is_a_newer(tmp_path, fakes) -> None:
    run = record(tmp_path / "runs", "live", state="running", step=500)
    (run / "checkpoints").mkdir()
    (run / "checkpoints" / "last").write_text("step-00000500")
    fakes.known["live"] = FakeWriter("live", 500)
    app = studio(tmp_path / "runs")
    async with app.run_test(size=(120, 36)) as pilot:
        found = await opened(pilot)
        assert fakes.loads == [("live", "last")] and "step 500" in shown(app)
        fakes.known["live"] = FakeWriter("live", 1000)
        (run / "checkpoints" / "last").write_text("step-00001000 ")
        await found._poll_runs_and_checkpoints()
        await until(pilot, lambda: "step 1,000" in shown(app))
        fakes.known["live"] = FakeWriter("live", 1500)
        (run / "checkpoints" / "last").write_text("step-00001500  ")
        await answered(pilot)  # whoever is quicker than that look has it too
        assert "step 1,500" in shown(app)


async def test_a_chosen_language_is_kept_by_a_newer_checkpoint_and_not_by_another_run(tmp_path, fakes) -> None:
    run = record(tmp_path / "runs", "live", state="running", step=500)
    (run / "checkpoints").mkdir()
    (run / "checkpoints" / "last").write_text("step-00000500")
    other = record(tmp_path / "runs", "other", state="running", step=500, created="2026-11-20T01:01:00+00:00")
    app = studio(tmp_path / "runs")
    async with app.run_test(size=(120, 36)) as pilot:
        column = (await opened(pilot))._first
        assert column.run_path == run
        await type_line(pilot, "/to nl")
        assert column.writer.to == "nl"
        fakes.known["live"] = newer = FakeWriter("live", 1000)
        (run / "checkpoints" / "last").write_text("step-00001000 ")
        await pane(app)._poll_runs_and_checkpoints()
        await until(pilot, lambda: column.writer is newer)
        assert newer.to == "nl"
        await type_line(pilot, "/checkpoint best")
        await until(pilot, lambda: column.checkpoint == "best" and column.writer is not None)
        assert column.target_language == "nl"
        column.load_run(other)
        await until(pilot, lambda: column.writer is not None)
        assert column.target_language == column.writer.to == ""


async def test_another_pane_can_send_runs_here(runs, fakes, tmp_path) -> None:
    app = Studio(runs_dir=runs, device="cpu", panes=("design", "playground"))
    async with app.run_test(size=(120, 36)) as pilot:
        found = pane(app)
        found.choose(tmp_path / "runs" / "baseline", tmp_path / "runs" / "win16")
        app.action_show_pane("playground")
        await until(pilot, lambda: all(one.writer is not None for one in found.columns_with_run))
        assert [one.run_path.name for one in found.columns_with_run] == ["baseline", "win16"] and found._line.has_focus


@pytest.mark.parametrize(("kind", "line"), [("masked", "the g_te"), ("copy", "abc")])
async def test_unusual_models_say_what_to_type_and_answer(app, fakes, kind, line) -> None:
    fakes.known["win16"] = FakeWriter(kind=kind)
    async with app.run_test(size=(120, 36)) as pilot:
        found = await opened(pilot)
        assert fakes.known["win16"].invitation in shown(app)
        await answered(pilot, line)
        assert found._first.full_text == found._first.answer_text and line in shown(app)
        if kind == "copy":
            await pilot.press("escape", "a", "K")
            await until(pilot, lambda: "cross" in shown(app))
            assert found._first.attention.is_cross and found._first.cursor_index == len(found._first.answer_text) - 1
        else:
            await pilot.press("escape", "S")
            await until(pilot, lambda: "from both sides" in shown(app))


async def test_linear_attention_says_why_there_is_nothing_to_draw(app, fakes) -> None:
    fakes.known["win16"] = FakeWriter(linear=True)
    async with app.run_test(size=(120, 36)) as pilot:
        await opened(pilot)
        await answered(pilot)
        await pilot.press("escape", "a")
        await until(pilot, lambda: "no weights to show" in shown(app))


async def test_poison_reaches_no_cell_of_the_screen(tmp_path, fakes) -> None:
    name = "evil\u202e[red]\x1b]0;x\x07"
    record(tmp_path / "runs", name)
    fakes.known[name] = FakeWriter(name, text=POISON)
    app = studio(tmp_path / "runs")
    async with app.run_test(size=(120, 36)) as pilot:
        found = await opened(pilot)
        found._line.value = f"all{POISON}"
        await pilot.press("enter")
        await until(pilot, lambda: bool(found._first.answer_tokens) and not found._first.busy)
        for key in ("escape", "S", "a", "w", "exclamation_mark"):
            await pilot.press(key)
            await until(pilot, lambda: not found._first.busy)
            assert not set(shown(app)) & set("\x1b\x9b\u202e\x07\x00")
            assert "[red]" in shown(app)


async def test_many_lines_can_be_pasted(app) -> None:
    from textual.events import Paste

    async with app.run_test(size=(120, 36)) as pilot:
        found = await opened(pilot)
        found._line.post_message(Paste("to be\r\nor\x1b[2J not"))
        await pilot.pause()
        assert found._line.value == "to be↵or[2J not"
        await pilot.press("enter")
        await until(pilot, lambda: bool(found._first.answer_tokens))
        assert found._first.prompt_text == "to be\nor[2J not"


@pytest.mark.slow
async def test_drawing_beside_a_stream_never_holds_the_screen_for_long(app, fakes, monkeypatch) -> None:
    """No callback of the event loop makes more calls of functions than a tenth of a second has."""
    costs: list[int] = []
    run = asyncio.Handle._run

    async with app.run_test(size=(120, 36)) as pilot:
        await opened(pilot)
        await type_line(pilot, "/length 500")
        with monkeypatch.context() as patch:
            patch.setattr(asyncio.Handle, "_run", lambda handle: costs.append(calls(lambda: run(handle))))
            await answered(pilot)
    assert max(costs) < 200_000, sorted(costs)[-10:]


def test_ids_and_keys_of_the_pane_are_its_own() -> None:
    keys = [name for key in (*PANE_BINDINGS["everywhere"], *PANE_BINDINGS["playground"]) for name in key.key.split(",")]
    assert len(set(keys)) == len(keys)


def test_a_letter_has_one_meaning_in_all_panes() -> None:
    known: dict[str, str] = {}
    for pane in PANE_BINDINGS.values():
        for key in pane:
            for sign in key.key.split(","):
                if len(sign) == 1 and sign.isalpha():
                    assert known.setdefault(sign, key.description) == key.description, (sign, key.id)


def test_a_key_that_two_panes_share_does_the_same_in_both() -> None:
    """One id is one entry of the settings: it must not mean two things."""
    known: dict[str, tuple[str, str]] = {}
    for pane in PANE_BINDINGS.values():
        for key in pane:
            assert known.setdefault(key.id, (key.key, key.action)) == (key.key, key.action), key.id
