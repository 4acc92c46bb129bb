"""The private parts of libraries that the program uses are there and do what it needs of them."""

import ast
import asyncio
import re
from pathlib import Path

import pytest
import torch
from textual.app import App
from textual.command import CommandPalette
from textual.css.query import NoMatches
from textual.screen import ModalScreen, Screen
from textual.widgets import Label
from textual.worker import WorkerFailed
from torch import nn
from typer import Typer
from typer.core import TyperCommand
from typer.main import get_command

from engine.model import torch_private
from tests.waiting import until
from tui_transformer.cli import typer_private
from tui_transformer.studio.shared import textual_private

ROOT = Path(__file__).parents[1]
HOMES = {  # library -> the one file that may use its private parts
    "textual": "tui_transformer/studio/shared/textual_private.py",
    "torch": "engine/model/torch_private.py",
    "typer": "tui_transformer/cli/typer_private.py",
    "rich": "tui_transformer/lab/wide_characters.py",
}
OURS = {"_asdict", "_replace", "_fields", "_exit", "_MEIPASS"}  # public by their documentation


def names(tree: ast.AST) -> set[str]:
    """The private attributes that a file itself defines or uses of `self` and `cls`."""
    found = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


def private_uses(tree: ast.AST, ours: set[str]) -> set[str]:
    """Private modules and names that a file imports, and private attributes that are not ours."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found |= {node.module} if re.search(r"\._", node.module or "") else set()
            found |= {one.name for one in node.names if re.match(r"_[a-z]", one.name)}
        elif isinstance(node, ast.Attribute) and re.match(r"_[a-z]", node.attr):
            found |= {node.attr} - ours
    return found


def test_only_one_file_per_library_uses_private_parts() -> None:
    files = [path for package in ("engine", "tui_transformer") for path in (ROOT / package).rglob("*.py")]
    trees = {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in files}
    ours = OURS.union(*map(names, trees.values()))
    uses = {name: found for name, tree in trees.items() if (found := private_uses(tree, ours))}
    assert set(uses) == set(HOMES.values()), uses


def test_torch_softmax_backward() -> None:
    scores = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    weights, gradient = scores.softmax(-1), torch.randn(3, 5, dtype=torch.float64)
    weights.backward(gradient)
    torch.testing.assert_close(torch_private.softmax_backward(gradient, weights.detach()), scores.grad)


def test_torch_adds_each_in_place() -> None:
    sums = [torch.ones(2), torch.zeros(3)]
    torch_private.add_each_(sums, [torch.ones(2), torch.ones(3)])
    assert sums[0].tolist() == [2, 2] and sums[1].tolist() == [1, 1, 1]


@pytest.mark.skipif(not torch_private.CAN_PACK, reason="this build of torch has no oneDNN")
def test_torch_multiplies_by_packed_weights() -> None:
    x, weight, bias = torch.randn(4, 8), torch.randn(6, 8), torch.randn(6)
    found = torch_private.packed_linear(x, torch_private.pack(weight, 4), bias)
    torch.testing.assert_close(found, nn.functional.linear(x, weight, bias))


@pytest.mark.parametrize("register", ["register_forward_hook", "register_forward_pre_hook"])
def test_torch_knows_forward_hooks(register) -> None:
    module = nn.Linear(2, 2)
    assert not torch_private.has_forward_hooks(module)
    getattr(module, register)(lambda *_: None)
    assert torch_private.has_forward_hooks(module)


def test_typer_translates_and_formats_its_own_words(monkeypatch) -> None:
    class Shouting(typer_private.HelpFormatter):
        def write_heading(self, heading: str) -> None:
            self.write(f"{heading.upper()}!\n")

    monkeypatch.setattr(typer_private.core, "_", typer_private.core._)
    monkeypatch.setattr(typer_private.Context, "formatter_class", typer_private.Context.formatter_class)
    typer_private.use_translation(lambda words: f"<{words}>")
    typer_private.use_formatter(Shouting)

    def hum(often: int) -> None:
        """Hum."""

    app = Typer(add_completion=False, rich_markup_mode=None)
    app.command()(hum)
    command = get_command(app)
    said = command.get_help(typer_private.Context(command))
    assert isinstance(command, typer_private.Command) and "OPTIONS" in said and "!" in said and "<required>" in said


def test_typer_installs_completion(monkeypatch) -> None:
    from typer import _completion_shared

    monkeypatch.setattr(_completion_shared, "install_bash", lambda **_: Path("rc"))
    command = TyperCommand("hum", callback=lambda: typer_private.install_completion("bash"), rich_markup_mode=None)
    assert command.main([], standalone_mode=False) == ("bash", Path("rc"))


class Prepares(App[None]):
    def on_mount(self) -> None:
        class Page(Screen[None]):
            def compose(self):
                yield Label("a page that is ready")

        self.install_screen(Page(), "page")


async def test_textual_prepares_a_screen_without_showing_it() -> None:
    app = Prepares()
    assert not textual_private.has_screen(app)
    async with app.run_test():
        assert textual_private.has_screen(app)
        page, mounted = textual_private.mount_hidden_screen(app, "page")
        await mounted
        textual_private.lay_out(page, app)
        assert app.screen is not page and page.query_one(Label).size.width > 0
        await app.push_screen(page)
        assert "a page that is ready" in textual_private.text_of(page)


async def test_textual_runs_what_was_put_off() -> None:
    app, ran = App[None](), []
    async with app.run_test():
        app.call_next(lambda: ran.append(1))
        await textual_private.run_callbacks(app)
        assert ran == [1]


async def test_textual_closes_a_palette_that_is_still_searching() -> None:
    app = textual_private.KeyBindings()
    async with app.run_test() as pilot:
        palette = textual_private.SafeCommandPalette()
        app.push_screen(palette)
        await pilot.pause()
        await pilot.press("q", "escape")
        await pilot.pause()
        assert not isinstance(app.screen, CommandPalette)
    for name in ("_watch__list_visible", "_watch__show_busy", "_action_escape", "_stop_no_matches_countdown"):
        assert callable(getattr(CommandPalette, name))


class Closing(ModalScreen[None]):
    """Looks for a part while it is being closed, or in an app that is."""

    def __init__(self, *, dismissed: bool) -> None:
        super().__init__()
        self.dismissed, self.looked = dismissed, False

    def compose(self):
        yield Label("a part")

    def on_mount(self) -> None:
        if self.dismissed:
            self.run_worker(self.look())
        else:
            self.looked = True
            self.query_one(Label)

    async def look(self) -> None:
        self.dismiss()
        while self.query(Label):
            await asyncio.sleep(0)
        self.looked = True
        self.query_one(Label)


@pytest.mark.parametrize("dismissed", [True, False], ids=["screen", "app"])
@pytest.mark.parametrize("kind", [App, textual_private.KeyBindings])
async def test_textual_does_not_crash_where_a_part_is_missing_from_what_is_closed(kind, dismissed: bool) -> None:
    app, page, failed = kind(), Closing(dismissed=dismissed), None
    try:
        async with app.run_test() as pilot:
            if not dismissed:
                app.exit()
            app.push_screen(page)
            await until(lambda: page.looked, "a look")
            if dismissed:
                await pilot.pause()
    except (NoMatches, WorkerFailed) as error:
        failed = error
    assert (failed is not None) == (kind is App)  # if this fails for App, Textual is mended, and ours can go


async def test_a_part_that_is_missing_elsewhere_is_a_crash() -> None:
    class Broken(textual_private.KeyBindings):
        def on_mount(self) -> None:
            self.query_one(Label)

    with pytest.raises(NoMatches):
        async with Broken().run_test():
            pass


async def test_textual_runs_bindings_when_the_app_decides() -> None:
    class Deciding(textual_private.KeyBindings):
        BINDINGS = (("x", "mark"),)
        asked: list[str] = []  # noqa: RUF012

        async def run_binding(self, key: str, *, priority: bool) -> bool:
            self.asked.append(key)
            return await super().run_binding(key, priority=priority)

        def action_mark(self) -> None:
            self.asked.append("marked")

    app = Deciding()
    async with app.run_test() as pilot:
        await pilot.press("x")
        assert "marked" in app.asked and app.asked[0] == "x"


def test_textual_reads_a_sequence_as_keys(monkeypatch) -> None:
    table = dict(textual_private._ansi_sequences.ANSI_SEQUENCES_KEYS)
    monkeypatch.setattr(textual_private._ansi_sequences, "ANSI_SEQUENCES_KEYS", table)
    textual_private.register_sequence("\x1b!", "a key")
    assert table["\x1b!"] == ("a key",)
