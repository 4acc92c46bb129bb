"""StoredScreens screens show what changed, and only that; faults of a layout are found."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.text import Text
from textual.app import App, ComposeResult
from textual.widgets import Static

from tests.tui_transformer.studio.conftest import TESTS
from tests.tui_transformer.studio.layout_faults import faults
from tests.tui_transformer.studio.stored_screens import (
    ScreenFile,
    StoredScreens,
    module_of,
    other_theme,
    pictured,
    region_of,
    stored_files,
    unused_sections,
)

Hold = Callable[..., Awaitable[StoredScreens]]
GREEN = Text.assemble(("  loss", "#00ff00"), " 0.9005\n", ("  门 ✓", "bold"))


class Shown(App[None]):
    """An app that shows texts, one under the other."""

    def __init__(self, *texts: Text, css: str = "") -> None:
        super().__init__()
        self._texts = texts
        self.stylesheet.add_source(css, read_from=("", ""))

    def compose(self) -> ComposeResult:
        yield from (Static(text, id=f"text-{at}") for at, text in enumerate(self._texts))


@pytest.fixture
def file(tmp_path) -> Path:
    return tmp_path / "screens" / "words.txt"


@pytest.fixture
def hold(tmp_path, monkeypatch) -> Hold:
    """Hold a text against what is stored, or store it."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLORTERM", "truecolor")

    async def shot(*texts: Text, update: bool = False, name: str = "test_it") -> StoredScreens:
        config = SimpleNamespace(getoption=lambda _: update)
        item: Any = SimpleNamespace(name=name, nodeid=f"test_words.py::{name}", config=config)
        item.path = tmp_path / "test_words.py"
        stored, app = StoredScreens(item), Shown(*texts)
        async with app.run_test(size=(80, 24)):
            stored.shot(app)
        return stored

    return shot


async def test_a_screen_is_what_it_was(hold, file) -> None:
    await hold(GREEN, update=True)
    before = file.read_text(encoding="utf-8")
    await hold(GREEN)
    await hold(GREEN, update=True)
    assert file.read_text(encoding="utf-8") == before
    assert "|  loss 0.9005\n   bbbb\n|  门 ✓\n   cc c\n" in before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (Text.assemble(("  loss", "#00ff01"), " 0.9005\n", ("  门 ✓", "bold")), "d  #00ff01 on #"),
        (Text.assemble(("  loss", "#00ff00"), " 0.9006\n", ("  门 ✓", "bold")), "+|  loss 0.9006"),
        (Text.assemble(("   loss", "#00ff00"), " 0.9005\n", ("  门 ✓", "bold")), "+|   loss 0.9005"),
        (Text.assemble(("  loss", "#00ff00"), " 0.9005\n", "  门 ✓"), "-   cc c"),
    ],
    ids=["a colour", "a word", "a column", "a weight"],
)
async def test_what_changed_is_shown_with_what_to_do(hold, text, said) -> None:
    await hold(GREEN, update=True)
    with pytest.raises(pytest.fail.Exception) as failed:
        await hold(text)
    message = str(failed.value)
    assert said in message and "pytest test_words.py::test_it --update-screens" in message


async def test_a_screen_that_is_not_stored_fails(hold) -> None:
    with pytest.raises(pytest.fail.Exception, match="has changed"):
        await hold(GREEN)


async def test_a_new_style_takes_a_free_letter_and_the_others_keep_theirs(hold, file) -> None:
    await hold(GREEN, update=True)
    before = file.read_text(encoding="utf-8").splitlines()
    await hold(Text.assemble(("  new\n", "#ff0000"), GREEN), update=True)
    now = file.read_text(encoding="utf-8").splitlines()
    added = [line for line in now if line not in before]
    assert [line for line in before if line not in now] == []
    assert added[0].startswith("d  #ff0000 on ") and added[1:] == ["|  new", "   ddd"]
    await hold(GREEN, update=True)
    assert file.read_text(encoding="utf-8").splitlines() == before


async def test_another_theme_is_what_each_style_becomes(hold, file) -> None:
    await hold(GREEN, update=True)
    pictures = []
    for green in ("#00ff00", "#008800"):
        app = Shown(Text.assemble(("  loss", green)))
        async with app.run_test(size=(80, 24)):
            pictures.append(pictured(app, region_of(app, "#text-0")))
    (line,) = (line for line in other_theme(ScreenFile.read(file), *pictures) if line.startswith(">b"))
    assert line.startswith(">b  #008800 on #")


async def test_a_picture_that_is_never_taken_is_found(hold, file) -> None:
    stored = await hold(GREEN, update=True)
    stored.close()
    await hold(GREEN, update=True, name="test_it old")
    again = await hold(GREEN)
    with pytest.raises(AssertionError, match="unused screens in .*: .'test_it old'"):
        again.close()
    assert unused_sections(file, ["test_other"]) == ["test_it", "test_it old"]
    assert unused_sections(file, ["test_it"]) == []


def test_every_stored_screen_is_one_of_a_test(request) -> None:
    collected = request.config.stash[TESTS]
    for file in stored_files():
        assert module_of(file).is_file(), file
        one = any("::" in argument for argument in request.config.args)  # then not all tests of a file are known
        if module_of(file) in collected and not one:
            assert not unused_sections(file, collected[module_of(file)]), file


@pytest.mark.parametrize(
    ("css", "said"),
    [
        ("", ""),
        ("#text-0 { height: 1; }", "has room for 1 of its 2 lines"),
        ("#text-0 { width: 90; }", "is cut off by"),
        ("#text-1 { offset: 0 -1; }", "is over"),
    ],
)
async def test_faults_of_a_layout_are_found(css, said) -> None:
    app = Shown(GREEN, GREEN, css=css)
    async with app.run_test(size=(80, 24)):
        found = faults(app)
    assert not found if not said else any(said in one for one in found), found
