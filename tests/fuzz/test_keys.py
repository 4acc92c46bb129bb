"""Any keys in any order: the studio goes on, and is never stuck. What would train or start a process is refused."""

import asyncio
import shutil
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from textual.widgets import ContentSwitcher

from engine.base.errors import InputError
from tests.fuzz.mutations import EDITS, Edit, damaged
from tests.fuzz.run_doors import files_of
from tests.tui_transformer.studio.on_screen import patch_waits
from tui_transformer.languages import settings_file
from tui_transformer.studio.app import Studio
from tui_transformer.studio.shared.dialog import TextScreen
from tui_transformer.studio.shared.keys import PANE_BINDINGS

PARTS = 10
TRIES = 3  # escapes that may be needed before a key is a key again
PANES_BY_KEY = {"1": "design", "2": "train", "3": "compare", "4": "playground"}
SIZES = ((80, 24), (120, 36), (60, 18), (30, 8))
LEAVING = {"ctrl+q"}
BOUND = sorted({name for keys in PANE_BINDINGS.values() for key in keys for name in key.key.split(",")} - LEAVING)
OTHERS = [
    *("up", "down", "left", "right", "home", "end", "pageup", "pagedown", "tab", "shift+tab", "enter", "space"),
    *(
        "backspace",
        "delete",
        "escape",
        "f1",
        "f2",
        "ctrl+a",
        "ctrl+e",
        "ctrl+k",
        "ctrl+p",
        "ctrl+s",
        "ctrl+u",
        "ctrl+w",
    ),
    *(
        "ctrl+l",
        "ctrl+x",
        "ctrl+v",
        "ctrl+d",
        "ctrl+right",
        "shift+left",
        "full_stop",
        "comma",
        "equals_sign",
        "less_than_sign",
    ),
    *("quotation_mark", "left_square_bracket", "colon", "at", "é", "界", *"0123456789", *"abcdefghijklmnopqrstuvwxyz"),
]
KEYS = st.one_of(
    st.sampled_from(BOUND), st.sampled_from(OTHERS), st.sampled_from(["1", "2", "3", "4", "enter", "down"])
)
SEQUENCES = st.tuples(
    st.lists(KEYS, min_size=1, max_size=25), st.sampled_from((*SIZES[:1] * 3, *SIZES)), st.one_of(st.just([]), EDITS)
)


@pytest.fixture
def refused(prepared, monkeypatch) -> Path:
    """A studio that can neither train, start a process, nor be left."""

    def no_process(*_: object, **__: object) -> None:
        raise OSError(11, "no process can be started")

    def no_training(*_: object, **__: object) -> None:
        raise InputError("nothing trains here")

    async def stay(*_: object) -> None:
        """Quitting is tried elsewhere."""

    monkeypatch.setattr("subprocess.Popen.__init__", no_process)
    monkeypatch.setattr("subprocess.Popen.__del__", lambda self: None)
    monkeypatch.setattr("engine.training.assemble.begin", no_training)
    monkeypatch.setattr("engine.training.assemble.resume", no_training)
    monkeypatch.setattr(Studio, "_shut_down", stay)
    monkeypatch.setattr(Studio, "_install_signal_handlers", lambda self: None)  # a TERM is to end the test
    monkeypatch.setattr(Studio, "save_screenshot", lambda self, *_, **__: "screen.svg")
    patch_waits(monkeypatch)
    own = prepared / "own"
    monkeypatch.setattr("tui_transformer.studio.design.own_files.user_config_path", lambda name: own / name)
    return prepared


async def pressed(runs: Path, keys: list[str], size: tuple[int, int]) -> None:
    """The keys, then the way out of wherever they led."""
    app = Studio(runs_dir=runs, device="cpu")
    async with app.run_test(size=size) as pilot:
        await pilot.press(*keys, *["escape"] * 6)
        for number, pane in PANES_BY_KEY.items():
            await pilot.press(number)
            assert app.query_one("#panes", ContentSwitcher).current == pane, (pane, app.screen, app.focused)
        await pilot.press(keys[0] if keys[0] in PANES_BY_KEY else "2")
        for _ in range(TRIES):  # a pane that found its runs only now may have taken the keys to its prompt
            await pilot.press("escape", "question_mark")
            if isinstance(app.screen, TextScreen):
                break
        assert isinstance(app.screen, TextScreen), (app.screen, app.focused)
        await pilot.press("escape")
        assert app.screen is app.screen_stack[0]


def try_keys(folder: Path, given: tuple[list[str], tuple[int, int], list[Edit]]) -> float:
    """One sequence, on a runs folder of its own; gives back how long it took, seconds."""
    keys, size, edits = given
    runs = folder / "pressed"
    shutil.rmtree(runs, ignore_errors=True)
    shutil.copytree(folder / "runs", runs)
    settings_file().write_text("welcomed = true\n", encoding="utf-8")
    began = time.perf_counter()
    with damaged(files_of(runs), edits):
        asyncio.run(pressed(runs, keys, size))
    return time.perf_counter() - began


def try_many(folder: Path, count: int, part: int | None = None) -> None:
    """Generated sequences."""
    tried: list[float] = []
    test = given(SEQUENCES)(lambda given: tried.append(try_keys(folder, given)))
    test = settings(
        max_examples=count,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        derandomize=part is None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.explicit, Phase.generate),
    )(test)
    (test if part is None else seed(part)(test))()
    print(f"keys: {len(tried)} sequences, the slowest {max(tried):.1f} s")


def test_no_sequence_of_keys_breaks_the_studio_or_leaves_it_stuck(refused) -> None:
    try_many(refused, 2)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_no_sequence_of_keys_breaks_the_studio_two_thousand(refused, part: int) -> None:
    try_many(refused, 200, part)
