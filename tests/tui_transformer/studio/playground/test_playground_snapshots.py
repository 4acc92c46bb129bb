"""Every state of the Playground held against a picture; `pytest --snapshot-update` takes new ones."""

import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from engine.errors import InputError
from tests.tui_transformer.fake_writer import WIDE, FakeWriter, FakeWriters
from tests.tui_transformer.recorded import record
from tests.tui_transformer.studio import on_screen
from tests.tui_transformer.studio.test_snapshots import MEDIUM, SMALLEST, shown
from tui_transformer.studio.app import Studio
from tui_transformer.studio.playground import pane as playground
from tui_transformer.studio.playground.pane import PlaygroundPane

pytestmark = [pytest.mark.usefixtures("plain_surroundings"), pytest.mark.one_in(4)]
Act = Callable[[Pilot[Any], PlaygroundPane], Awaitable[None]]


@pytest.fixture
def fakes(monkeypatch) -> Iterator[FakeWriters]:
    found = FakeWriters()
    monkeypatch.setattr(playground, "Writers", lambda device: found)
    monkeypatch.setattr("tui_transformer.studio.playground.column.monotonic", lambda: 0.0)
    monkeypatch.setattr("tui_transformer.studio.playground.column.SLICE", 0.0)  # a piece at a time
    monkeypatch.setattr("textual.widgets.Input._toggle_cursor", lambda line: None)  # it does not blink in a picture
    record(Path("runs"), "baseline", created="2026-11-21T01:01:00+00:00")
    record(Path("runs"), "win16", created="2026-11-21T01:02:00+00:00")
    yield found
    gates = [found.gate, *(getattr(writer, "gate", None) for writer in found.known.values())]
    for gate in gates:  # the engine's thread must not wait when the next test comes
        if gate is not None:
            gate.set()


def act(*steps: "str | Act", wait: tuple[str, ...] = ("esc: leave",)):
    """Open the pane, then lines to type, `key:…` to press, and things to do."""

    async def play(pilot: Pilot[Any]) -> None:
        await until(pilot, "1 Design")
        await pilot.press("4")
        await until(pilot, *wait)
        pane = pilot.app.query_one(PlaygroundPane)
        for step in steps:
            if callable(step):
                await step(pilot, pane)
            elif step.startswith("key:"):
                await pilot.press(*step[4:].split())
            else:
                pane._line.focus()
                pane._line.value = step
                await pilot.press("enter")
            await rest(pilot, pane)
        await pilot.pause(0.2)

    return play


async def until(pilot: Pilot[Any], *words: str) -> None:
    await on_screen.until(pilot, lambda: all(word in shown(pilot) for word in words))


async def rest(pilot: Pilot[Any], pane: PlaygroundPane) -> None:
    """Until nothing is being done, a few looks in a row: a message may still be on its way."""
    idle = 0
    for _ in range(200):
        await pilot.pause(0.03)
        idle = 0 if any(column.busy and not column.writing for column in pane.columns) else idle + 1
        if idle == 4:
            return


def studio() -> Studio:
    return Studio(runs_dir=Path("runs"), device="cpu")


@pytest.mark.parametrize("size", SMALLEST)
def test_no_run(snap_compare, size) -> None:
    assert snap_compare(studio(), terminal_size=size, run_before=act(wait=("Nothing has been trained yet",)))


async def written(pilot: Pilot[Any], pane: PlaygroundPane) -> None:
    await until(pilot, " tokens in ")


STATES: dict[str, tuple[Any, ...]] = {
    "ready": (),
    "one": ("the gate", written, "key:escape"),
    "alternatives": ("the gate", written, "key:escape up up left left", lambda _, pane: focused(pane._likeliest)),
    "two": ("/vs baseline", "the gate", written, "key:escape left"),
    "surprise": ("/surprise the gate is barred, and none\u21b5shall pass before the moon hath set.", "key:escape up"),
    "attention": ("the gate", written, "key:escape", "/attention 2 1", "key:up"),
    "bias": ("/vs baseline", "the gate", written, "key:escape", "/attention 2 2", "key:up"),
}


async def focused(widget: Any) -> None:
    widget.focus()


@pytest.mark.parametrize("size", SMALLEST)
@pytest.mark.parametrize("state", STATES)
def test_states(snap_compare, fakes, size, state) -> None:
    assert snap_compare(studio(), terminal_size=size, run_before=act(*STATES[state]))


@pytest.mark.parametrize("size", SMALLEST)
def test_it_has_written_on_entry(snap_compare, fakes, size) -> None:
    fakes.known["win16"] = FakeWriter(prompts=("the gate", "ANTONIO:", "pass the moon"))
    assert snap_compare(studio(), terminal_size=size, run_before=act(written, "key:slash t o"))


@pytest.mark.parametrize("size", SMALLEST)
def test_wide_characters(snap_compare, fakes, size) -> None:
    fakes.known["win16"] = FakeWriter(text=WIDE)
    steps = ("月亮 🌙", written, "key:escape up left left")
    assert snap_compare(studio(), terminal_size=size, run_before=act(*steps))


@pytest.mark.parametrize("size", SMALLEST)
def test_two_runs_answer_a_question(snap_compare, fakes, size) -> None:
    fakes.known["win16"] = FakeWriter(text="Dunholt", kind="question-answer")
    fakes.known["baseline"] = FakeWriter("baseline", text="Arlow!!", kind="question-answer")
    steps = ("/length 7", "/vs baseline", "Where was Carl Ronoton born?", written, "key:escape")
    assert snap_compare(studio(), terminal_size=size, run_before=act(*steps))


@pytest.mark.parametrize("size", SMALLEST)
def test_loading(snap_compare, fakes, size) -> None:
    fakes.gate = threading.Event()
    assert snap_compare(studio(), terminal_size=size, run_before=act(wait=("loading the",)))


@pytest.mark.parametrize("size", SMALLEST)
def test_an_error(snap_compare, fakes, size) -> None:
    fakes.known["win16"] = InputError(
        "runs/win16/checkpoints/step-00002000: model.safetensors is damaged (its SHA-256 is another); "
        "`tui-transformer doctor win16` shows which checkpoints are intact"
    )
    assert snap_compare(studio(), terminal_size=size, run_before=act(wait=("is damaged",)))


async def first_pieces(pilot: Pilot[Any], pane: PlaygroundPane) -> None:
    await until(pilot, "writing …")
    for _ in range(100):
        await pilot.pause(0.02)
        if len(pane._first.pieces) == 40:
            return
    raise AssertionError(shown(pilot))


def test_streaming(snap_compare, fakes) -> None:
    fakes.known["win16"] = FakeWriter(gate=threading.Event(), free=40)
    assert snap_compare(studio(), terminal_size=MEDIUM, run_before=act("the gate", first_pieces))


@pytest.mark.slow
def test_stopped(snap_compare, fakes) -> None:
    fakes.known["win16"] = FakeWriter(gate=threading.Event(), free=40)
    assert snap_compare(studio(), terminal_size=MEDIUM, run_before=act("the gate", first_pieces, "key:escape"))


@pytest.mark.slow
def test_too_long_for_the_context(snap_compare, fakes) -> None:
    assert snap_compare(
        studio(), terminal_size=MEDIUM, run_before=act("/length 200", "the gate", written, "key:escape")
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["masked", "copy"])
def test_unusual_models(snap_compare, fakes, kind) -> None:
    fakes.known["win16"] = FakeWriter(kind=kind, text="the gate")
    steps = ("/length 8", "the g_te", written, "key:escape", *(["/attention 1 1 cross"] if kind == "copy" else []))
    assert snap_compare(studio(), terminal_size=MEDIUM, run_before=act(*steps))


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["studio-light", "studio-colour-blind"])
def test_themes(snap_compare, fakes, plain_surroundings, theme) -> None:
    plain_surroundings.write_text(f'welcomed = true\ntheme = "{theme}"\n')
    assert snap_compare(studio(), terminal_size=MEDIUM, run_before=act(*STATES["alternatives"]))


@pytest.mark.slow
def test_without_colour(snap_compare, fakes, monkeypatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert snap_compare(studio(), terminal_size=MEDIUM, run_before=act(*STATES["attention"]))
