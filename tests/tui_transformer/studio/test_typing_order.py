"""Keys typed faster than the studio draws: each goes where the previous one led, never to the pane being left."""

import asyncio
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from textual.command import CommandPalette
from textual.events import Key
from textual.keys import _character_to_key
from textual.widgets import ContentSwitcher, Input

from engine.base.errors import InputError
from tests import waiting
from tests.tui_transformer.fake_writer import FakeWriter, FakeWriters
from tests.tui_transformer.recorded import record
from tests.tui_transformer.studio.on_screen import said, shown, until
from tui_transformer.studio.app import PANE_NAMES, Studio, TopBar
from tui_transformer.studio.design.pane import DesignPane
from tui_transformer.studio.playground import pane as playground
from tui_transformer.studio.playground.pane import PlaygroundPane
from tui_transformer.studio.shared import typing_order
from tui_transformer.studio.shared.dialog import ChoiceDialog, TextDialog


def typed(app: Studio, *keys: str) -> None:
    """Press keys without waiting for any; a word of several letters that is no key is typed letter by letter."""
    driver = app._driver
    assert driver is not None
    for key in keys:
        character = {"enter": "\r", "space": " "}.get(key, key if len(key) == 1 else None)
        driver.send_message(Key(_character_to_key(key) if len(key) == 1 else key, character))


def pane_of(app: Studio) -> str | None:
    return app.query_one("#panes", ContentSwitcher).current


@pytest.fixture
def all_panes_there() -> None:
    """Not waited for: keys may be typed before."""


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Opened, it lets models be loaded; it is opened in the end, for the engine's thread has other tests to serve."""
    opened = threading.Event()
    yield opened
    opened.set()


@pytest.fixture
def fakes(monkeypatch, gate) -> FakeWriters:
    found = FakeWriters(gate=gate)
    monkeypatch.setattr(playground, "WriterCache", lambda device: found)
    return found


def studio(tmp_path: Path, *panes: str) -> Studio:
    """With all panes, or with these alone."""
    record(tmp_path / "runs", "win16")
    return Studio(runs_dir=tmp_path / "runs", device="cpu", panes=panes or PANE_NAMES)


@pytest.fixture
def app(tmp_path, fakes) -> Studio:
    return studio(tmp_path)


@pytest.fixture
def design(tmp_path) -> Studio:
    return studio(tmp_path, "design")


async def test_what_is_typed_after_4_is_a_prompt_and_is_answered_once_the_model_is_there(app, gate) -> None:
    async with app.run_test(size=(120, 36)) as pilot:
        typed(app, "4", *"nrs Hero", "enter")
        await until(pilot, lambda: "nrs Hero" in shown(app))
        assert pane_of(app) == "playground" and len(app.screen_stack) == 1
        gate.set()
        found = app.query_one(PlaygroundPane)
        await until(pilot, lambda: bool(found._first.answer_tokens) and not found._first.busy)
        assert found._first.prompt_text == "nrs Hero" and found.session.history == ["nrs Hero"]


async def test_text_after_4_opens_no_dialog_of_the_pane_that_is_left(app, gate) -> None:
    gate.set()
    async with app.run_test(size=(120, 36)) as pilot:
        typed(app, "4", *"enter & Hero")
        await until(pilot, lambda: pane_of(app) == "playground")
        await until(pilot, lambda: app.query_one(PlaygroundPane)._line.value == "enter & Hero")
        assert len(app.screen_stack) == 1


async def test_what_is_typed_after_the_key_of_a_dialog_is_typed_into_the_dialog(design) -> None:
    app = design
    async with app.run_test(size=(120, 36)) as pilot:
        typed(app, "e", *"train.steps=77", "enter")
        pane = app.query_one(DesignPane)
        await until(pilot, lambda: pane.draft is not None and pane.draft.changes.get("train.steps") == 77)
        assert len(app.screen_stack) == 1 and pane_of(app) == "design"


async def test_two_dialogs_in_a_row_take_what_is_typed_for_them(tmp_path, monkeypatch) -> None:
    app = studio(tmp_path, "compare")
    monkeypatch.chdir(tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "win16" in shown(app))
        typed(app, "E", "enter", "end", *"-mine", "enter")
        await until(pilot, lambda: bool(list(tmp_path.glob("comparison.*-mine"))))
        assert len(app.screen_stack) == 1


async def test_a_search_takes_what_is_typed_after_its_key_and_enter_gives_the_keys_back(design) -> None:
    app = design
    async with app.run_test(size=(120, 36)) as pilot:
        typed(app, "/", *"alibi", "enter", "enter", "e")
        await until(pilot, lambda: isinstance(app.screen, TextDialog))
        assert app.query_one(DesignPane).draft.preset.name == "alibi"


async def test_a_key_that_does_nothing_in_a_pane_does_nothing_in_the_pane_of_the_next_key(app, monkeypatch) -> None:
    async with app.run_test(size=(120, 36)) as pilot:
        typed(app, "2")
        await until(pilot, lambda: pane_of(app) == "train")
        monkeypatch.setattr(typing_order, "PATIENCE", 0)  # as if Train were slower than that
        typed(app, "e", "1", "down")
        await until(pilot, lambda: app.key_count == 4)
        assert pane_of(app) == "design" and len(app.screen_stack) == 1


async def test_a_palette_opens_while_another_is_being_closed(design) -> None:
    async with design.run_test() as pilot:
        for _ in range(3):
            design.action_command_palette()
            design.pop_screen()
        design.action_command_palette()
        await pilot.pause()
        assert isinstance(design.screen, CommandPalette) and len(design.screen_stack) == 2


async def test_keys_that_come_while_it_ends_are_dropped(design, monkeypatch) -> None:
    saved, dropped = threading.Event(), asyncio.Event()
    monkeypatch.setattr(design.launches, "hand_over", saved.wait)
    monkeypatch.setattr(design, "exit", lambda: None)
    async with design.run_test():
        ending = asyncio.ensure_future(design._quit_without_asking())
        await waiting.until(lambda: design._leaving, "its end to begin")
        before = design.key_count
        typed(design, *["down", "question_mark", "escape"] * 100)
        design.call_later(dropped.set)
        await dropped.wait()
        saved.set()
        await ending
        assert design.key_count == before and len(design.screen_stack) == 1


@pytest.mark.parametrize("key", ["alt+2", "ctrl+pagedown"])
async def test_a_line_that_takes_digits_is_left_with_alt(app, gate, key) -> None:
    gate.set()
    async with app.run_test(size=(120, 36)) as pilot:
        typed(app, "3" if key.startswith("ctrl") else "4")
        await until(pilot, lambda: pane_of(app) != "design")
        if key.startswith("ctrl"):
            typed(app, "/", *"a", key, *"1")
            await until(pilot, lambda: app.query_one(PlaygroundPane)._line.value == "1")
            assert pane_of(app) == "playground"
        else:
            typed(app, *"2 a", key)
            await until(pilot, lambda: pane_of(app) == "train")
            assert app.query_one(PlaygroundPane)._line.value == "2 a"


async def test_signs_are_typed_into_a_line_even_those_that_are_keys_of_the_pane(app, gate) -> None:
    signs = "".join(map(chr, range(33, 127)))
    gate.set()
    async with app.run_test(size=(120, 36)) as pilot:
        typed(app, "3", "/", *"tok/s>1")
        await until(pilot, lambda: "tok/s>1" in [one.value for one in app.query(Input)])
        typed(app, "alt+4", *"ab/c+d-e", *signs)
        await until(pilot, lambda: app.query_one(PlaygroundPane)._line.value == f"ab/c+d-e{signs}")
        assert len(app.screen_stack) == 1


async def test_a_slash_begins_a_command_in_the_prompt_and_outside_it(app, gate) -> None:
    gate.set()
    async with app.run_test(size=(120, 36)) as pilot:
        for keys in (["4"], ["escape"]):
            typed(app, *keys, *"/top")
            await until(pilot, lambda: app.query_one(PlaygroundPane)._line.value == "/top")
            app.query_one(PlaygroundPane)._line.value = ""


@pytest.mark.parametrize("changed", [{}, {"choose-vs": "x"}], ids=["usual", "changed"])
async def test_the_bottom_line_leaves_out_keys_that_would_be_typed(app, gate, changed) -> None:
    app.settings.keys = changed
    gate.set()
    async with app.run_test(size=(120, 36)) as pilot:
        key = "x" if changed else "+"
        typed(app, "4", "escape")
        await until(pilot, lambda: f"{key} vs" in shown(app))
        typed(app, "i")
        await until(pilot, lambda: f"{key} vs" not in shown(app))


def test_escape_and_a_digit_typed_at_once_are_read_as_alt_with_the_digit(app) -> None:
    from textual._xterm_parser import XTermParser

    for digit in "123456789":  # a new pane needs no more than its digit in keys.toml
        events = list(XTermParser().feed(f"\x1b{digit}"))
        assert [event.key for event in events if isinstance(event, Key)] == [f"alt+{digit}"]


async def test_the_tab_bar_says_which_keys_lead_to_the_panes_while_a_line_has_the_focus(app, gate) -> None:
    gate.set()
    async with app.run_test(size=(80, 24)) as pilot:
        bar = lambda: str(app.query_one(TopBar).query_one("#tab-train").render())
        await until(pilot, lambda: bar() == " 2 Train ")
        await pilot.press("4")
        await until(pilot, lambda: bar() == " alt+2 Train ")
        assert "alt+4 Playground" in shown(app)
        await pilot.press("escape")
        await until(pilot, lambda: bar() == " 2 Train ")


async def test_a_question_that_is_asked_keeps_the_keys_of_panes_to_itself(app) -> None:
    async with app.run_test(size=(120, 36)) as pilot:
        typed(app, "e", "ctrl+pagedown", "alt+3", *"2")
        await until(pilot, lambda: isinstance(app.screen, TextDialog) and app.screen.query_one(Input).value == "2")
        assert pane_of(app) == "design"


async def test_q_asks_before_it_quits_and_ctrl_c_says_how(design, monkeypatch) -> None:
    app = design
    left: list[str] = []

    async def leave(how: str) -> None:
        left.append(how)

    monkeypatch.setattr(app, "_shut_down", leave)
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.press("ctrl+c")
        await until(pilot, lambda: "ctrl+q quits" in said(app).splitlines())
        await pilot.press("q")
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        assert not left
        typed(app, "q", "enter")
        await until(pilot, lambda: bool(left))


async def test_a_model_that_cannot_be_loaded_gives_the_prompt_back(app, fakes, gate) -> None:
    fakes.known["win16"] = InputError("model.safetensors: too short")
    gate.set()
    async with app.run_test(size=(120, 36)) as pilot:
        typed(app, "4", *"Hero", "enter")
        await until(pilot, lambda: "too short" in shown(app))
        found = app.query_one(PlaygroundPane)
        await until(pilot, lambda: found._line.value == "Hero")
        fakes.known["win16"] = FakeWriter("win16")
        await pilot.press("enter")
        await until(pilot, lambda: bool(found._first.answer_tokens))


class Walk:
    """Random keys and what they must lead to: a pane, an open line with a text in it, the prompt's text."""

    DOORS: ClassVar[dict[str, dict[str, str]]] = {  # by pane: keys that open a line or a page
        "design": {"e": "line", "?": "page", ",": "page", "ctrl+p": "line", "q": "page", "v": "page"},
        "train": {"?": "page", ",": "page", "ctrl+p": "line", "q": "page"},
        "compare": {"?": "page", ",": "page", "ctrl+p": "line", "q": "page"},
        "playground": {"?": "page", ",": "page", "ctrl+p": "line", "L": "page"},
    }
    PANES = ("design", "train", "compare", "playground")

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.pane, self.prompt, self.typing = "design", "", False
        self.text: str | None = None  # of the line that is open

    def words(self) -> list[str]:
        return self.random.choices("abeqrnsvxz123 /+-", k=self.random.randint(1, 6))

    def keys(self, doors: int = 6) -> list[str]:
        """Keys of one sequence; it may end in an open line."""
        found = []
        if self.text is not None:
            found, self.text = ["escape"], None
        for left in reversed(range(doors)):
            move = self.random.random()
            if move < 0.4:
                pane = self.random.choice(self.PANES)
                digit = str(1 + self.PANES.index(pane))
                found.append(f"alt+{digit}" if self.typing or self.random.random() < 0.4 else digit)
                self.pane, self.typing = pane, pane == "playground"
            elif move < 0.5:
                by = self.random.choice((-1, 1))
                self.pane = self.PANES[(self.PANES.index(self.pane) + by) % 4]
                self.typing = self.pane == "playground"
                found.append("ctrl+pagedown" if by > 0 else "ctrl+pageup")
            elif self.typing and move < 0.8:
                words = self.words()
                self.prompt += "".join(words)
                found += words
            elif self.typing:
                found.append("escape")
                self.typing = False
            else:
                key, opens = self.random.choice(list(self.DOORS[self.pane].items()))
                words = self.words() if opens == "line" else []
                found += [key, *words]
                if left or opens == "page":
                    found.append("escape")
                else:
                    self.text = "".join(words)
        return found


async def walk(app: Studio, walk: Walk, sequences: int, gap: float) -> None:
    def found() -> tuple[str | None, str, str | None]:
        lines = [one.value for one in app.screen.query(Input)] if len(app.screen_stack) > 1 else [None]
        return pane_of(app), app.query_one(PlaygroundPane)._line.value, next(iter(lines), "")

    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.pause()
        for at in range(sequences):
            keys = walk.keys()
            for key in keys:
                typed(app, key)
                await asyncio.sleep(gap)
            try:
                await until(pilot, lambda: found() == (walk.pane, walk.prompt, walk.text))
            except AssertionError:
                wanted = walk.pane, walk.prompt, walk.text
                raise AssertionError(f"sequence {at}, {keys}: {found()}, not {wanted}") from None
            if walk.typing and walk.text is None:
                app.query_one(PlaygroundPane)._line.value = walk.prompt = ""


async def test_random_keys_land_where_they_were_meant_to(app, gate) -> None:
    gate.set()
    await walk(app, Walk(1), 3, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 22))
async def test_two_thousand_sequences_at_thirty_milliseconds_land_where_they_were_meant_to(app, gate, seed) -> None:
    gate.set()
    await walk(app, Walk(seed), 100, 0.03)
