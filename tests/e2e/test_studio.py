"""The studio in a real terminal, as a person uses it: design, launch, pause, stop, resume, leave; also broken."""

import importlib
import json
import os
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tui_transformer.studio
from engine.config import presets
from engine.runs.commands import RunCommand, send
from engine.runs.reader import RunReader
from engine.training.trainer import Trainer
from tests.tui_transformer.recorded import record
from tests.tui_transformer.screen import Screen
from tests.tui_transformer.studio.corpora_seen import be_seen_once, preview
from tests.tui_transformer.trained import train
from tests.waiting import PATIENCE, wait_for
from tui_transformer.studio.app import Studio

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a pseudo-terminal"),
    pytest.mark.usefixtures("module_fork_start", "corpora_seen"),
]
NO_CHECKS = pytest.mark.usefixtures("minimal_leak_probe", "no_self_check")  # of the run that is left

SMALL = ("train.batch_size=4", "model.d_model=32", "model.context_length=64", "data.corpus_size=20000")


@pytest.fixture(scope="module")
def corpora_seen() -> Iterator[None]:
    """What a studio imports, and the corpora that it previews here, are there before it is forked."""
    for module in pkgutil.walk_packages(tui_transformer.studio.__path__, "tui_transformer.studio."):
        importlib.import_module(module.name)
    for preset, on in (("demo", None), ("win16", None), ("win16", "demo")):
        preview(presets.resolve(presets.find(preset), on=on), None)
    with pytest.MonkeyPatch.context() as patch:
        be_seen_once(patch)
        yield


def studio(tmp_path: Path, size: tuple[int, int] = (120, 36), **more: Any) -> Screen:
    settings = tmp_path / "settings.toml"
    settings.write_text("welcomed = true\n")
    return Screen("--runs-dir", str(tmp_path / "runs"), "--device", "cpu", settings=settings, size=size, **more)


def design(screen: Screen, *changes: str) -> None:
    """win16 on the demo, made small."""
    screen.until("1 Design", "demo")
    screen.press("/", *"win16")
    screen.until("▸ win16", "what win16 changes")
    screen.press("enter", "B")
    screen.until("to which base")
    screen.press(*"demo", "enter")
    screen.until_gone("to which base")
    screen.until("train demo-win16")
    for change in (*SMALL, *changes):
        screen.press("e")
        screen.until("KEY=VALUE")
        screen.press(change, "enter")  # at once, as a paste
        screen.until_gone("Change any setting")


def the_run(tmp_path: Path) -> RunReader:
    """The only one, once it has begun; its name says what was changed."""
    found = wait_for(lambda: list((tmp_path / "runs").glob("demo-win16*/status.json")), "the run")
    return RunReader(found[0].parent)


def waits(reader: RunReader, *states: str) -> str:
    return wait_for(lambda: (state := reader.state) in states and state, " or ".join(states), lambda: reader.status)


def steps(reader: RunReader, least: int) -> None:
    wait_for(lambda: reader.status.step >= least, f"step {least}", lambda: reader.status)


def test_a_run_from_its_design_to_its_end(tmp_path) -> None:
    screen = studio(tmp_path)
    try:
        design(screen, "train.steps=100000", "log.every=2")
        screen.press("f5")
        screen.until("demo-win16", "running")
        reader = the_run(tmp_path)
        assert reader.config.model.window == 16 and reader.config.train.batch_size == 4
        steps(reader, 40)
        screen.until("train", "tok/s", "steps")  # a chart with its axis
        screen.press("space")
        waits(reader, "paused")
        screen.until("paused")
        assert reader.status.launch == "thread" and reader.status.pid == screen.process.pid
        screen.press("space")
        waits(reader, "running")
        screen.press("s")
        waits(reader, "stopped")
        screen.until("stopped", " resume")  # the key that the footer offers now
        stopped_at = reader.status.step
        screen.press("f6")
        waits(reader, "running")
        steps(reader, stopped_at + 10)
        assert reader.status.launch == "process" and reader.status.pid != screen.process.pid
        screen.press("ctrl+q")  # nothing trains here, so nothing is asked
        assert screen.end() == 0
        assert reader.state == "running"
        again = studio(tmp_path, size=(80, 24))
        try:
            again.until("1 Design")
            again.press("2")
            again.until("win16", "running")
            again.press("s")
            waits(reader, "stopped")
            again.press("ctrl+q")
            assert again.end() == 0
        finally:
            again.close()
    finally:
        screen.close()


def goes_on(reader: RunReader) -> None:
    """Another process trains the run from where it was left; then have that stop."""
    wait_for(lambda: reader.status.attempt == 2, "a second attempt", lambda: reader.status)
    steps(reader, reader.status.step + 5)
    assert waits(reader, "running") == "running"
    send(reader.path, RunCommand.STOP)
    waits(reader, "stopped")


@NO_CHECKS
def test_leaving_a_run_that_trains_here_asks_and_hands_it_over(tmp_path) -> None:
    screen = studio(tmp_path)
    try:
        design(screen, "train.steps=100000")
        screen.press("f5")
        reader = the_run(tmp_path)
        screen.until("running")
        steps(reader, 5)
        screen.press("ctrl+q")
        screen.until("still training")
        screen.press("enter")
        assert screen.end() == 0
        assert b"continues in the background" in screen.output
        goes_on(reader)
    finally:
        screen.close()


def test_the_studio_is_on_the_terminal_where_stderr_goes_into_a_file(tmp_path) -> None:
    screen = studio(tmp_path, errors=tmp_path / "said")
    try:
        screen.until("1 Design", "demo")
        screen.press("ctrl+q")
        assert screen.end() == 0
    finally:
        screen.close()
    assert (tmp_path / "said").read_bytes() == b""


@NO_CHECKS
def test_a_bug_in_the_training_thread_is_a_failed_run_and_no_dead_app(tmp_path, monkeypatch) -> None:
    advance = Trainer.advance

    def breaks(self: Trainer) -> None:
        if self.state.step == 30:
            raise RuntimeError("a bug of ours")
        advance(self)

    monkeypatch.setattr(Trainer, "advance", breaks)  # in the studio as well, which is a fork
    screen = studio(tmp_path)
    try:
        design(screen)
        screen.press("f5")
        reader = the_run(tmp_path)
        screen.until("a bug of ours", "failed")
        assert reader.state == "failed"
        screen.press("1")
        screen.until("architecture")
        screen.press("ctrl+q")
        assert screen.end() == 0
    finally:
        screen.close()


@NO_CHECKS
@pytest.mark.parametrize("nohup", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_terminal_that_goes_leaves_its_run_to_another_process(tmp_path, nohup) -> None:
    screen = studio(tmp_path, nohup=nohup)
    try:
        design(screen, "train.steps=100000")
        screen.press("f5")
        reader = the_run(tmp_path)
        screen.until("running")
        steps(reader, 5)
        screen.hang_up()
        assert screen.process.wait(PATIENCE) == 129
        goes_on(reader)
    finally:
        screen.close()


@NO_CHECKS
@pytest.mark.slow
def test_a_studio_that_breaks_leaves_its_run_to_another_process(tmp_path, monkeypatch) -> None:
    def breaks(self: Studio) -> None:
        raise RuntimeError("a bug of the screen")

    monkeypatch.setattr(Studio, "action_help", breaks)  # in the studio as well, which is a fork
    screen = studio(tmp_path)
    try:
        design(screen, "train.steps=100000")
        screen.press("f5")
        reader = the_run(tmp_path)
        screen.until("running")
        steps(reader, 5)
        screen.press("?")
        assert screen.end() == 1
        goes_on(reader)
    finally:
        screen.close()


POISON = "\x1b]0;pwned\x07\x9b31mred\x1b[2J\u202egnp.exe[bold]not bold[/bold]\x00\x85"
HOSTILE = (b"\x1b]0;pwned", b"pwned\x07", b"\xc2\x9b", b"\x9b31m", "\u202e".encode(), b"\x00", b"\xc2\x85")


def test_no_byte_of_poisoned_runs_presets_or_corpora_commands_the_terminal(tmp_path) -> None:
    verdicts = [("leak", "LEAK", POISON), (POISON, "INERT", POISON)]
    run = record(tmp_path / "runs", "poison", state="failed", step=900, reason=POISON, text=POISON, verdicts=verdicts)
    (run / "log.txt").write_text(f"{POISON}\n" * 20)
    (run / "notes.json").write_text(json.dumps({"text": POISON, "tags": [POISON]}))
    facts = json.loads((run / "data.json").read_text())
    facts["corpus"] = POISON
    facts["probes"][0]["description"] = POISON
    (run / "data.json").write_text(json.dumps(facts))
    corpus = tmp_path / "text.txt"
    corpus.write_text(f"{POISON.replace(chr(0), '')} some words\n" * 200)
    screen = studio(tmp_path, size=(200, 50))
    try:
        screen.until("1 Design", "demo")
        screen.press("2")
        screen.until("poison", "failed")
        for tab in "vlt":
            screen.press(tab)
            screen.rest()
        screen.until("not bold")
        screen.press("1", "e")
        screen.until("KEY=VALUE")
        screen.press(*f"data.corpus={corpus}", "enter")
        screen.until("some words")
        screen.press("t")
        screen.until("the complete config")
        screen.press("escape")
        screen.until_gone("the complete config")
        screen.press("3")
        screen.until("INERT", "select")
        screen.press("space", "enter")
        screen.until("Compared to the baseline")
        screen.press("escape")
        screen.until_gone("Compared to the baseline")
        screen.press("w")
        screen.until("poison  @best", "temperature")
        screen.rest()  # what cannot be loaded says so
        screen.press("ctrl+q")
        assert screen.end() == 0
        assert not [poison for poison in HOSTILE if poison in screen.output]
    finally:
        screen.close()


@pytest.mark.slow
def test_two_finished_runs_are_compared_exported_and_written_with(tmp_path) -> None:
    train(tmp_path / "runs", "four")
    train(tmp_path / "runs", "alibi", "model.position=alibi")
    screen = studio(tmp_path)
    try:
        screen.until("1 Design", "demo")
        screen.press("3")
        screen.until("four", "alibi", "verdict")
        screen.press("down", "p")
        screen.until("one seed")
        screen.press("up", "space")  # all are drawn from the start
        screen.until("select variants (space)")
        screen.press("space")
        screen.until_gone("select variants (space)")
        screen.press("/", *"position=alibi", "enter")
        screen.until("1 of 2")
        screen.press("escape")
        screen.until_gone("1 of 2")
        screen.press("enter")
        screen.until("Compared to the baseline")
        screen.press("escape")
        screen.until_gone("Compared to the baseline")
        screen.press("E")
        screen.until("Export", "CSV")
        table = tmp_path / "table.csv"
        screen.press("enter")
        screen.until(".csv")
        for _ in range(40):
            screen.press("\x7f")
        screen.press(*str(table), "enter")
        wait_for(table.exists, "the table", lambda: screen.text)
        assert {"four", "alibi"} <= {line.split(",")[0] for line in table.read_text().splitlines()}
        screen.press("w")
        screen.until("four  @best", "alibi  @best", "type some text to continue")
        screen.press(*"the ", "enter")
        screen.until(", step 6, seed")
        screen.press("escape")
        screen.rest()
        if "leave the prompt" in screen.text:  # it stopped the writing first
            screen.press("escape")
        screen.until_gone("leave the prompt")
        screen.press("a")
        screen.until("layer 1 of 2", "head 1 of 2")
        screen.press("ctrl+q")
        assert screen.end() == 0
    finally:
        screen.close()
