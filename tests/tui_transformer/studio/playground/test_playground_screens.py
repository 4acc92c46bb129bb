"""The Playground held against stored screens."""

import re
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from engine.base.errors import InputError
from tests.tui_transformer.fake_writer import WIDE, FakeWriter, FakeWriters
from tests.tui_transformer.recorded import record
from tests.tui_transformer.studio.at_rest import rest, take
from tests.tui_transformer.studio.stored_screens import SIZES, SMALL, pictured, studio
from tests.waiting import until
from tui_transformer.studio.playground import pane as playground
from tui_transformer.studio.playground.pane import PlaygroundPane

PANE, COLUMNS, FIRST, DETAIL = ["#playground"], ["#run-columns"], ["#first"], ["#detail"]
WORK = {"work"}  # the group of what a model is asked for


@pytest.fixture
def fakes(monkeypatch) -> Iterator[FakeWriters]:
    found = FakeWriters()
    monkeypatch.setattr(playground, "WriterCache", lambda device: found)
    monkeypatch.setattr("tui_transformer.studio.playground.column.monotonic", lambda: 0.0)
    monkeypatch.setattr("tui_transformer.studio.playground.column.SLICE", 0.0)  # a piece at a time
    record(Path("runs"), "baseline", created="2026-11-21T01:01:00+00:00")
    record(Path("runs"), "win16", created="2026-11-21T01:02:00+00:00")
    yield found
    gates = [found.gate, *(getattr(writer, "gate", None) for writer in found.known.values())]
    for gate in gates:  # the engine's thread must not wait when the next test comes
        if gate is not None:
            gate.set()


def line(text: str) -> Callable[[Pilot[Any]], Awaitable[None]]:
    """Give a line to the prompt."""

    async def give(pilot: Pilot[Any]) -> None:
        await fill(pilot, text)
        await take(pilot, "enter")

    return give


async def fill(pilot: Pilot[Any], text: str) -> PlaygroundPane:
    pane = pilot.app.query_one(PlaygroundPane)
    pane._line.focus()
    pane._line.value = text
    return pane


async def likeliest(pilot: Pilot[Any]) -> None:
    """The focus on what else a token could have been."""
    pilot.app.query_one(PlaygroundPane)._likeliest.focus()


ALTERNATIVES = (line("the gate"), "escape", "up", "up", "left", "left", likeliest)


@pytest.mark.parametrize("size", SIZES)
async def test_no_run(stored, size) -> None:
    await stored.of(studio("playground"), size, of=["#playground #nothing"])


@pytest.mark.parametrize("size", SIZES)
async def test_states(stored, fakes, size) -> None:
    async with (app := studio("playground")).run_test(size=size) as pilot:
        await rest(pilot)
        for label, of, steps in (
            ("ready", PANE, ()),
            ("one", FIRST, (line("the gate"), "escape")),
            ("alternatives", DETAIL, ("up", "up", "left", "left", likeliest)),
            ("attention", PANE, (line("/attention 2 1"), "up")),
            ("surprise", PANE, (line("/surprise the gate is barred, and none\u21b5shall pass."), "escape", "up")),
            ("two", COLUMNS, (line("/vs baseline"), line("the gate"), "escape", "left")),
            ("bias", DETAIL, (line("/attention 2 2"), "up")),
        ):
            await take(pilot, *steps)
            stored.shot(app, *of, label=label, stored=size == SMALL or label == "attention")


@pytest.mark.parametrize("size", SIZES)
async def test_it_has_written_on_entry(stored, fakes, size) -> None:
    fakes.known["win16"] = FakeWriter(prompts=("the gate", "ANTONIO:", "pass the moon"))
    await stored.of(studio("playground"), size, "slash", "t", "o", of=PANE)


@pytest.mark.parametrize("size", SIZES)
async def test_wide_characters(stored, fakes, size) -> None:
    fakes.known["win16"] = FakeWriter(text=WIDE)
    steps = (line("月亮 🌙"), "escape", "up", "up", "left", "left")
    await stored.of(studio("playground"), size, *steps, of=["#parts"])


@pytest.mark.parametrize("size", SIZES)
async def test_two_runs_answer_a_question(stored, fakes, size) -> None:
    fakes.known["win16"] = FakeWriter(text="Dunholt", kind="question-answer")
    fakes.known["baseline"] = FakeWriter("baseline", text="Arlow!!", kind="question-answer")
    steps = (line("/length 7"), line("/vs baseline"), line("Where was Carl Ronoton born?"), "escape")
    await stored.of(studio("playground"), size, *steps, of=COLUMNS)


@pytest.mark.parametrize("size", SIZES)
async def test_loading(stored, fakes, size) -> None:
    fakes.gate = threading.Event()
    async with (app := studio("playground")).run_test(size=size) as pilot:
        await until(lambda: fakes.loads, "a model that is asked for")
        await rest(pilot, but=WORK)
        stored.shot(app, *FIRST)


@pytest.mark.parametrize("size", SIZES)
async def test_an_error(stored, fakes, size) -> None:
    fakes.known["win16"] = InputError(
        "runs/win16/checkpoints/step-00002000: model.safetensors is damaged (its SHA-256 is another); "
        "`tui-transformer doctor win16` shows which checkpoints are intact"
    )
    await stored.of(studio("playground"), size, of=FIRST)


async def begun(pilot: Pilot[Any]) -> None:
    """Let it write forty tokens, after which it waits."""
    pane = await fill(pilot, "the gate")
    await pilot.press("enter")
    await until(lambda: len(pane._first.answer_tokens) == 40, "forty tokens")
    await rest(pilot, but=WORK)


async def test_streaming(stored, fakes) -> None:
    fakes.known["win16"] = FakeWriter(gate=threading.Event(), free=40)
    async with (app := studio("playground")).run_test(size=SMALL) as pilot:
        await rest(pilot)
        await begun(pilot)
        stored.shot(app, *FIRST)
        await take(pilot, "escape")
        stored.shot(app, *FIRST, label="stopped")


@pytest.mark.slow
async def test_too_long_for_the_context(stored, fakes) -> None:
    await stored.of(studio("playground"), SMALL, line("/length 200"), line("the gate"), "escape", of=FIRST)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["masked", "copy"])
async def test_unusual_models(stored, fakes, kind) -> None:
    fakes.known["win16"] = FakeWriter(kind=kind, text="the gate")
    more = [line("/attention 1 1 cross")] if kind == "copy" else []
    await stored.of(studio("playground"), SMALL, line("/length 8"), line("the g_te"), "escape", *more, of=["#parts"])


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["studio-light", "studio-colour-blind"])
async def test_themes(stored, fakes, plain_surroundings, theme) -> None:
    plain_surroundings.write_text(f'welcomed = true\ntheme = "{theme}"\n')
    async with studio("playground").run_test(size=SMALL) as pilot:
        await rest(pilot)
        await take(pilot, *ALTERNATIVES)
        await stored.theme(pilot, *PANE)


async def test_without_colour(stored, fakes, monkeypatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with (app := studio("playground")).run_test(size=SMALL) as pilot:
        await rest(pilot)
        await take(pilot, line("the gate"), "escape", line("/attention 2 1"), "up")
        stored.shot(app, *PANE, styles=False)
        styles = {run.style for runs in pictured(app, app.screen.region) for run in runs}
        colours = {colour for style in styles for colour in re.findall("#[0-9a-f]{6}", style)}
        assert len(colours) > 10 and all(colour[1:3] == colour[3:5] == colour[5:] for colour in colours)
