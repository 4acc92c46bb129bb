"""Every pane of the studio over poisoned runs, on a pseudo-terminal: every byte that reached it."""

import json
import os
import re
from pathlib import Path

import pytest
from textual.events import Paste
from textual.widgets import Input

from engine.base.clean import clean, clean_line
from tests.hostile.poison import OWN, POISON, commands_in
from tests.hostile.poisoned_runs import KINDS, LEAVES, completed, copies, endless
from tests.tui_transformer.recorded import record
from tests.tui_transformer.screen import Screen
from tests.tui_transformer.studio.on_screen import patch_waits, until
from tui_transformer.studio.app import Studio
from tui_transformer.studio.shared.dialog import TextDialog

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a pseudo-terminal")

TYPED = POISON.encode("utf-8", "replace").replace(b"\r", b"").replace(b"\x11", b"")
PASTE = b"\x1b[200~" + TYPED + b"\x1b[201~"
# A run's name is the name of its folder, and a folder may be called almost anything.
NAMES = ("\x1b]0;pwned\x07\x1b[5;35mESC", "\u202e\u2066BIDI\x9b31m\x85", "[red]MARKED[@click=app.quit]", b"\x9b31m\xff")
STUDY = f"name = {{name}}\nbase = 'demo'\ndescription = {json.dumps(POISON[:-1])}\nbaseline = 'a'\nseeds = [1]\n"


def named(root: Path) -> None:
    """Runs whose folders have hostile names, and a study of them."""
    for name in NAMES:
        run = record(root, "innocent", state="failed", step=310, reason=POISON, text=POISON)
        born = json.loads((run / "run.json").read_text())
        study = {"name": POISON, "variant": POISON, "seed": 1}
        origin = {"id": "x", "name": POISON, "checkpoint": POISON, "step": 1, "sha256": POISON}
        (run / "run.json").write_text(json.dumps(born | {"study": study, "from": origin, "preset": POISON}))
        os.rename(os.fsencode(run), os.path.join(os.fsencode(root), os.fsencode(name)))  # noqa: PTH104, PTH118
    (root / "st.study.toml").write_text(STUDY.format(name=json.dumps(POISON[:-1])))
    (root / "\x1b[2J.study.toml").write_text(STUDY.format(name="'st'"))


def looked_through(root: Path, tmp_path: Path, size: tuple[int, int], runs: int) -> Screen:
    """A studio that was led through every pane; it has ended."""
    settings = tmp_path / "settings.toml"
    settings.write_text("welcomed = true\n")
    screen = Screen("--runs-dir", str(root), "--device", "cpu", settings=settings, size=size)
    try:
        screen.until("1 Design")
        screen.press("e")
        screen.until("KEY=VALUE")
        screen.write(PASTE)
        screen.rest()
        screen.press("escape", "t")
        screen.rest()
        screen.press("escape", "/", *"[red]x", "escape", "v")
        screen.rest()
        screen.press("escape", "escape", "2")
        screen.rest()
        for _ in range(runs):
            screen.press("down", "b", "l", "W", "z", "z", "escape")
            screen.process.poll()
        screen.press("?")
        screen.rest()
        screen.press("escape", "\x10")  # the palette
        screen.rest()
        screen.write(PASTE)
        screen.rest()
        screen.press("escape", "3")
        screen.rest()
        for key in ("space", "enter", "escape", "down", "space", "A", "v", "M", "D", "D", "T", "x", "y", "o", "I", "c"):
            screen.press(key)
            screen.rest()
        for _ in range(runs // 2):
            screen.press("down", "enter")
            screen.rest()
            screen.press("escape")
        screen.press("v", "down", "enter")
        screen.rest()
        screen.press("escape", "N")
        screen.rest()
        screen.press("escape", "g")
        screen.rest()
        screen.press("escape", "E")
        screen.rest()
        screen.press("escape", "R")
        screen.rest()
        screen.press("escape", "v", "w")
        screen.rest()
        screen.press("4", "escape", "L")
        screen.rest()
        screen.press("down", "enter")
        screen.rest()
        screen.press("escape", "i")
        screen.write(PASTE)
        screen.press("enter")
        screen.rest()
        for key in ("escape", "S", "a", "h", "j", ".", "+", "escape"):
            screen.press(key)
            screen.rest()
        assert screen.process.poll() is None, screen.text
        screen.press("ctrl+q")
        assert screen.end() == 0
    finally:
        screen.close()
    return screen


@pytest.mark.slow
def test_no_byte_of_hostile_names_and_studies_commands_the_terminal(tmp_path) -> None:
    root = tmp_path / "runs"
    root.mkdir()
    named(root)
    screen = looked_through(root, tmp_path, (160, 48), len(NAMES))
    assert commands_in(bytes(screen.output), OWN) == []


WAYS = [*LEAVES, "endless"]
TOURS = [
    *(("text", way, size) for way in WAYS for size in ((80, 24), (200, 50))),
    *((kind, way, (120, 36)) for kind in ("pairs", "questions") for way in WAYS),
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "way", "size"), TOURS)
def test_no_byte_of_a_poisoned_run_commands_the_terminal(tmp_path, kind: str, way: str, size: tuple[int, int]) -> None:
    made = copies(completed(KINDS[kind](tmp_path / "base")), tmp_path / "runs", {way: LEAVES.get(way, endless)})
    screen = looked_through(tmp_path / "runs", tmp_path, size, len(made))
    assert commands_in(bytes(screen.output), OWN) == []
    assert b"MARKED" in screen.output
    assert not re.search(r"\[red](?!MARKED)[^\[]{0,3}|(?<![\]\w])MARKED\[/\]", screen.text)


async def test_what_is_pasted_copied_or_already_there_is_cleaned(tmp_path, monkeypatch) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text("welcomed = true\n")
    patch_waits(monkeypatch)
    monkeypatch.setenv("TUI_TRANSFORMER_SETTINGS", str(settings))
    app = Studio(runs_dir=tmp_path / "runs", device="cpu", panes=("design",))
    async with app.run_test(size=(120, 36)) as pilot:
        app.push_screen(TextDialog("name", POISON))
        await until(pilot, lambda: app.screen.query(Input))
        line = app.screen.query_one(Input)
        assert line.value == clean_line(POISON)
        line.value = ""
        app.post_message(Paste(f"a{POISON}"))
        await until(pilot, lambda: line.value)
        assert line.value.startswith("a]0;pwned") and line.value == clean_line(line.value)
        app.copy_to_clipboard(POISON)
        assert app.clipboard == clean(POISON)
