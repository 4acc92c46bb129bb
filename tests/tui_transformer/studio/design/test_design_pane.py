"""The Design pane: what a person changes is what is shown, counted, said to be impossible, and launched."""

import re
import unicodedata
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from engine.data.corpus import Remote
from engine.data.download import fetch
from engine.runs.records import VerdictRecord
from tests import waiting
from tests.tui_transformer.studio.on_screen import said, shown, until
from tui_transformer.lab.design.benchmarks import Benchmarks
from tui_transformer.lab.design.draft import Benchmark, Draft
from tui_transformer.lab.work import async_commands
from tui_transformer.studio import app as studio
from tui_transformer.studio.app import PANE_NAMES, Studio
from tui_transformer.studio.design import own_files
from tui_transformer.studio.design.dialogs import TomlPage, number_dialog, setting_dialog
from tui_transformer.studio.design.pane import DesignPane
from tui_transformer.studio.design.switches import BY_KEY, Switches
from tui_transformer.studio.shared.dialog import ChoiceDialog, TextDialog
from tui_transformer.studio.shared.line_list import SearchLine

pytestmark = pytest.mark.one_in(3)  # each opens an app or a run of its own

SIZES = [(80, 24), (120, 36), (200, 50)]
MEDIUM = (120, 36)


class App(Studio):
    """A studio with the Design pane alone that keeps what it is asked to launch."""

    CSS_PATH = Path(studio.__file__).with_name("studio.tcss")

    def __init__(self, runs_dir: Path, panes: tuple[str, ...] = ("design",)) -> None:
        super().__init__(runs_dir=runs_dir, device="cpu", panes=panes)
        self.asked: list[DesignPane.LaunchRequested] = []

    def on_design_pane_launch_requested(self, event: DesignPane.LaunchRequested) -> None:
        event.prevent_default()
        self.asked.append(event)

    @property
    def text(self) -> str:
        return shown(self)

    @property
    def said(self) -> str:
        return said(self)

    @property
    def current_pane(self) -> DesignPane:
        return self.query_one(DesignPane)


@pytest.fixture
def app(tmp_path) -> App:
    return App(tmp_path / "runs")


async def go_to(pilot: Pilot, key: str) -> None:
    """The cursor on a switch."""
    switches = pilot.app.query_one(Switches)
    switches.focus()
    switches.highlighted = switches.get_option_index(key)
    await pilot.pause()


async def fill_in(pilot: Pilot, text: str) -> None:
    """Write into the line that is asked for, and accept it."""
    await pilot.pause()
    pilot.app.screen.query_one(Input).value = text
    await pilot.press("enter")
    await pilot.pause()


async def search(pilot: Pilot, words: str) -> None:
    """Write into the search line."""
    await pilot.press("slash")
    pilot.app.query_one(DesignPane).query_one(SearchLine).value = words
    await pilot.pause()


@pytest.mark.parametrize("size", SIZES)
async def test_a_switch_changes_the_picture_and_the_cost(app: App, size: tuple[int, int]) -> None:
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        assert "108,352" in app.text and "next-token" in app.text and "▸ demo" in app.text
        assert size[0] < 100 or "QK norm                     64" in app.text
        await go_to(pilot, "model.n_layers")
        await pilot.press("left")
        assert "58,336" in app.text and "demo ●" in app.text
        await go_to(pilot, "model.attention")
        await pilot.press("right")
        await pilot.pause()
        words = " ".join(app.text.replace("│", " ").split())
        assert "last 16 keys" in words or "self-attention, window" in words
        assert app.current_pane.draft.changes == {"model.n_layers": 1, "model.attention": "window"}
        await pilot.press("U")
        assert app.current_pane.draft.changes == {} and "108,352" in app.text


@pytest.mark.parametrize("size", SIZES)
async def test_positions_are_drawn_once_the_engine_is_there(app: App, size: tuple[int, int]) -> None:
    async with app.run_test(size=size) as pilot:
        preview = app.query_one("#preview")
        await until(pilot, lambda: preview._positions is not None)
        await pilot.pause()
        assert "loading" not in app.text
        if size == SIZES[1]:
            await go_to(pilot, "model.position")
        if size != SIZES[0]:
            assert "position rope" in app.text
            assert all(words in app.text for words in ("↓ first", "queries, →", "−1;", "angles", "(cosines)"))


async def test_what_cannot_be_chosen_says_why_and_what_else_it_takes(app: App) -> None:
    async with app.run_test(size=MEDIUM) as pilot:
        await go_to(pilot, "model.architecture")
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, ChoiceDialog)
        options = app.screen.query_one(OptionList).options
        assert [option.disabled for option in options] == [False, True, False, True, False]
        assert "perplexity near 1" in app.text and "encoder, with objective.kind = masked" in app.text
        await pilot.press("down", "enter")
        await pilot.pause()
        config = app.current_pane.draft.config
        assert (config.model.architecture, config.objective.kind) == (
            "encoder",
            "masked",
        ) and not app.current_pane.draft.problem


async def test_arrows_pass_over_what_cannot_be(app: App) -> None:
    async with app.run_test(size=MEDIUM) as pilot:
        app.current_pane.choose("alibi")
        await pilot.pause()
        await go_to(pilot, "model.attention")
        for _ in range(4):
            await pilot.press("right")
            assert app.current_pane.draft.config.model.attention != "linear"
        await go_to(pilot, "model.architecture")
        await pilot.press("right")
        assert app.current_pane.draft.changes.keys() <= {"model.attention"}
        lines = (line.split("││")[1].strip() for line in app.text.splitlines() if "││" in line)
        assert "architecture has no other valid value; press enter to see why" in " ".join(lines)


async def test_a_number_is_typed_in_its_place(app: App) -> None:
    async with app.run_test(size=MEDIUM) as pilot:
        await go_to(pilot, "optimizer.lr")
        await pilot.press("1", "e", "minus", "4")
        assert app.current_pane.draft.changes == {} and "1e-4" in app.text
        await pilot.press("enter")
        await pilot.pause()
        assert app.current_pane.draft.changes == {"optimizer.lr": 1e-4}
        await pilot.press("9", "9", "escape")
        assert app.current_pane.draft.changes == {"optimizer.lr": 1e-4}
        await pilot.press("9", "x", "enter")
        await pilot.pause()
        assert app.current_pane.draft.changes == {"optimizer.lr": 1e-4} and "valid number" in app.text


async def test_what_cannot_be_trained_says_so_and_is_not_launched(app: App) -> None:
    async with app.run_test(size=MEDIUM) as pilot:
        await go_to(pilot, "model.n_heads")
        await pilot.press("3", "enter", "f5")
        await pilot.pause()
        assert "cannot be trained" in app.text and "not divisible by 3 heads" in app.text
        assert app.asked == []


async def test_enter_never_launches_and_f5_does(app: App) -> None:
    async with app.run_test(size=MEDIUM) as pilot:
        await pilot.press("enter", "enter", "escape", "down", "enter", "enter", "tab", "enter")
        await pilot.pause()
        assert app.asked == []
        await pilot.press("f5", "f6", "Q")
        await pilot.pause()
        assert [event.how for event in app.asked] == ["usual", "process", "queue"]
        first = app.asked[0]
        assert first.config == app.current_pane.draft.config
        assert first.command == f"tui-transformer run --preset demo --device cpu --runs-dir {app.runs_dir}"


async def test_searching_filters_as_one_types_and_changes_wait_for_the_way_back(app: App) -> None:
    async with app.run_test(size=MEDIUM) as pilot:
        await go_to(pilot, "model.n_layers")
        await pilot.press("left")
        await search(pilot, "alibi")
        assert "win16" not in app.text and app.current_pane.draft.preset.name == "alibi"
        await pilot.press("down", "down")
        assert app.current_pane.draft.preset.name == "report-encoder-alibi"
        await pilot.press("slash", "escape")
        await pilot.pause()
        app.current_pane.choose("demo")
        await pilot.pause()
        assert app.query_one(Input).value == "" and app.current_pane.draft.changes == {"model.n_layers": 1}
        await search(pilot, "zzzz")
        assert "no preset matches" in app.text


async def test_another_base_and_any_key(app: App) -> None:
    async with app.run_test(size=MEDIUM) as pilot:
        await pilot.press("B")
        await pilot.pause()
        assert "demo is a base preset" in app.said
        app.current_pane.choose("win16")
        await pilot.pause()
        await pilot.press("B")
        await pilot.pause()
        assert isinstance(app.screen, ChoiceDialog)
        can_be = [answer.value for answer in app.screen._answers if not answer.why_not]
        wanted, at = ([one.base for one in can_be].index(name) for name in ("copy", "demo"))
        await pilot.press(*["up"] * (at - wanted), "enter")
        await pilot.pause()
        assert app.current_pane.draft.name == "win16@copy"
        await pilot.press("U", "e", "m", "B")
        await pilot.pause()
        assert isinstance(app.screen, TextDialog) and "write KEY=VALUE" not in app.text  # it is still being typed
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, TextDialog) and "write KEY=VALUE" in app.text
        await fill_in(pilot, "model.rope_base=5e4")
        assert app.current_pane.draft.changes == {"model.rope_base": 50000.0}


async def test_undo_and_redo_take_one_change_each(app: App) -> None:
    async with app.run_test(size=MEDIUM) as pilot:
        await go_to(pilot, "model.n_layers")
        await pilot.press("left", "right", "right", "u")
        assert app.current_pane.draft.changes == {}
        await pilot.press("u")
        assert app.current_pane.draft.changes == {"model.n_layers": 1}
        await pilot.press("ctrl+r", "ctrl+r")
        assert app.current_pane.draft.changes == {"model.n_layers": 3}
        await pilot.press("U", "u")  # a reset is a change like any other
        assert app.current_pane.draft.changes == {"model.n_layers": 3}
        await pilot.press("ctrl+r", "ctrl+r")
        assert app.current_pane.draft.changes == {} and "nothing to redo" in app.said


async def test_a_one_change_preset_lands_on_the_demo_and_its_base_is_a_switch(app: App) -> None:
    async with app.run_test(size=MEDIUM) as pilot:
        app.current_pane.choose("rope")
        await pilot.pause()
        assert app.current_pane.draft.name == "rope@demo" and "rope ●" not in app.text
        await go_to(pilot, "base")
        assert "‹ demo ›" in app.text
        await pilot.press("left")
        assert app.current_pane.draft.base != "demo" and not app.current_pane.draft.problem
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, ChoiceDialog) and "≈" in app.text


async def test_a_long_run_is_asked_about_once_and_can_be_trained_on_the_demo(app: App) -> None:
    async with app.run_test(size=MEDIUM) as pilot:
        app.current_pane.choose("no-pe")
        await pilot.pause()
        app.current_pane._record_and_show(app.current_pane.draft.with_base("baseline"))
        await pilot.press("f5")
        await pilot.pause()
        assert isinstance(app.screen, ChoiceDialog) and app.asked == []
        labels = [answer.label.split(" (")[0] for answer in app.screen._answers]
        assert labels[:2] == ["Train it at this size", "Apply the same change to demo instead"]
        assert labels[-1] == "Cancel" and "background" in labels[2]
        await pilot.press("down", "enter")
        await pilot.pause()
        assert [(event.config.preset, event.name) for event in app.asked] == [("no-pe@demo", "demo-no-pe")]
        await pilot.press("f5")
        await pilot.pause()
        assert len(app.asked) == 2  # minutes are not asked about


async def test_a_change_that_its_base_has_already_is_trained_under_the_bases_name(app: App) -> None:
    async with app.run_test(size=MEDIUM) as pilot:
        app.current_pane.choose("rope")
        await until(pilot, lambda: "the same settings as demo: f5 trains demo itself" in app.text)
        assert "train demo  " in app.text
        app.current_pane._record_and_show(app.current_pane.draft.with_change("model.n_heads", 2))
        await until(pilot, lambda: "train demo-rope-heads2  " in app.text)


async def test_the_name_says_what_changed_and_is_edited_in_its_line(app: App) -> None:
    async with app.run_test(size=MEDIUM) as pilot:
        await go_to(pilot, "model.n_heads")
        await pilot.press("left")
        assert "train demo-heads2" in app.text and "estimated" in app.text
        await pilot.press("n", "x", "exclamation_mark", "f5")
        assert app.asked == [] and "use up to 100 letters" in app.text
        await pilot.press("backspace", "f5")
        await pilot.pause()
        assert app.asked[0].name == "demo-heads2x" and "--name demo-heads2x" in app.asked[0].command
        await pilot.press("n", "y", "escape", "f5")
        await pilot.pause()
        assert app.asked[1].name == "demo-heads2" and "--name" not in app.asked[1].command


@pytest.mark.parametrize("size", SIZES)
async def test_layers_that_differ_are_drawn_each_for_its_layers(app, size: tuple[int, int]) -> None:
    async with app.run_test(size=size) as pilot:
        await pilot.press("e")
        await fill_in(pilot, "model.position=rope")
        await pilot.press("e")
        await fill_in(pilot, 'model.layers=["window", "global none", "sparse"]')
        await pilot.pause()
        assert app.current_pane.draft.config.model.layers == ("window", "global none", "sparse")
        assert "self-attention in layer" in app.text
        await pilot.press("e")
        await fill_in(pilot, 'model.layers=["windw"]')
        await pilot.pause()
        assert "did you mean 'window'?" in app.text


ALREADY = {  # typed so far → what is said of it; nothing where typing on may make it right
    "model.n_h": "",
    "model.n_heads": "",
    "model.n_heads=": "",
    "model.n_heads=3": "",  # of 32
    "model.position=r": "",
    'model.position="r': "",
    "model.residual=t": "",
    "data.corpus=no/such": "",
    "model.n_hx": "model.n_heads",
    "model.n_hx=3": "model.n_heads",
    "model.position=ropx": "model.position",
    "model.residual=x": "model.residual",
}


@pytest.mark.parametrize("typed", ALREADY)
def test_what_is_still_being_typed_is_wrong_only_where_typing_on_cannot_mend_it(typed: str) -> None:
    asked = setting_dialog(Draft.from_preset("demo"))
    said = asked._hopeless(typed)
    assert (ALREADY[typed] in said) if ALREADY[typed] else said == ""


def test_a_number_that_is_still_being_typed_is_not_wrong_yet() -> None:
    asked = number_dialog(Draft.from_preset("demo"), BY_KEY["model.n_heads"])
    assert asked._find_problem("3") and not asked._hopeless("3") and asked._hopeless("three")


async def test_a_saved_preset_is_listed_and_asks_before_it_is_written_over(app: App) -> None:
    async with app.run_test(size=(120, 60)) as pilot:
        await go_to(pilot, "model.n_layers")
        await pilot.press("left", "ctrl+s")
        await fill_in(pilot, "mine")
        assert "your own" in app.text and app.current_pane.draft.path == own_files.preset_file("mine")
        assert app.current_pane.draft.changes == {} and app.current_pane.draft.config.model.n_layers == 1
        await pilot.press("ctrl+s")
        await fill_in(pilot, "mine")
        assert "already" in app.text
        await pilot.press("escape", "f5")
        await pilot.pause()
        assert f"--config {own_files.preset_file('mine')}" in app.asked[0].command


async def test_the_toml_and_the_command_are_copied(app: App) -> None:
    async with app.run_test(size=MEDIUM) as pilot:
        await pilot.press("C")
        assert app.clipboard == f"tui-transformer run --preset demo --device cpu --runs-dir {app.runs_dir}"
        await pilot.press("t")
        await pilot.pause()
        assert isinstance(app.screen, TomlPage) and "n_layers = 2" in app.text
        await pilot.press("C")
        assert app.clipboard == app.current_pane.draft.toml()


async def test_a_measurement_is_shown_until_the_design_changes(app: App, monkeypatch) -> None:
    checks = (("leak", "ok", "none"), ("switch effect", "inert", "no effect"))
    verdicts = tuple(VerdictRecord(check=check, verdict=verdict, why=why) for check, verdict, why in checks)
    fit = Benchmark(device="cpu", seconds_per_step=0.068, seconds=190.4, memory_bytes=61e6, verdicts=verdicts)

    async def measured(command: list[str], told: Callable[[str], None]) -> Benchmark:
        return fit

    monkeypatch.setattr("tui_transformer.lab.design.benchmarks.run_check", measured)
    async with app.run_test(size=MEDIUM) as pilot:
        await pilot.press("m")
        await until(pilot, lambda: "(68 ms per step)" in app.text)
        assert "✓ leak" in app.text and "✗ switch effect" in app.text
        await go_to(pilot, "model.n_layers")
        await pilot.press("left")
        assert "68 ms" not in app.text


async def test_a_change_ends_a_measurement_under_way(app: App, monkeypatch) -> None:
    monkeypatch.setattr(Benchmarks, "command", lambda self, draft: ["sh", "-c", "echo timing steps >&2; sleep 60"])
    async with app.run_test(size=MEDIUM) as pilot:
        await pilot.press("m")
        await until(pilot, lambda: re.search(r"timing steps … \d+:\d\d", app.text))
        await go_to(pilot, "model.n_layers")
        await pilot.press("left")
        await until(pilot, lambda: "timing steps" not in app.text)
        assert not [worker for worker in app.workers if worker.group == "measurement" and worker.is_running]


async def test_poison_reaches_no_screen(app: App, tmp_path) -> None:
    folder = own_files.presets_folder()
    folder.mkdir(parents=True)
    text = tmp_path / "po\x1bison.txt"
    text.write_text("\x1b]0;owned\x07 [red]line[/red] \u202eevil \x9b31m\n" * 2000, encoding="utf-8")
    corpus = str(text).replace("\x1b", "\\u001b")
    poison = 'description = "\\u001b[31mred \\u202e [bold]not[/bold]"\nextends = "demo"\n'
    (folder / "po\x1b[5mison.toml").write_text(f'{poison}[data]\ncorpus = "{corpus}"\n')
    (folder / "wr\x07ong.toml").write_text('x\x1b = "\\u001b[2J')
    async with app.run_test(size=(160, 70)) as pilot:
        await search(pilot, "not[/bold]")
        await until(pilot, lambda: app.current_pane.draft.path is not None and "[red]line[/red]" in app.text)
        await pilot.press("enter", "t")
        await pilot.pause()
        for shown in (app.text, app.screen_stack[0].title or ""):
            bad = [sign for sign in shown if unicodedata.category(sign) in ("Cc", "Cf") and sign != "\n"]
            assert bad == []
        assert "[bold]not[/bold]" in app.text


async def test_a_corpus_that_is_not_there_says_so_instead_of_being_launched(app: App, tmp_path) -> None:
    async with app.run_test(size=(120, 60)) as pilot:
        await go_to(pilot, "data.corpus")
        await pilot.press("enter", *["a", "space", *"text"], "enter")
        await fill_in(pilot, "nowhere.txt")
        await until(pilot, lambda: "cannot be read" in app.said)
        assert app.current_pane.draft.changes == {}
        text = tmp_path / "own.txt"
        text.write_text("to be or not to be\n" * 500)
        await pilot.press("enter", *["a", "space", *"text"], "enter")
        await fill_in(pilot, str(text))
        await until(pilot, lambda: "8,550 characters to train on" in app.text)
        assert app.current_pane.draft.changes == {"data.corpus": str(text)} and "parameters" in app.text
        text.unlink()
        app.current_pane._corpora.clear()
        await go_to(pilot, "seed")
        await pilot.press("right")
        await until(pilot, lambda: "✗ corpus" in app.text)
        await pilot.press("f5")
        assert app.asked == []


async def test_a_corpus_that_is_missing_is_downloaded_by_one_key(app: App, tmp_path, monkeypatch) -> None:
    mirror = tmp_path / "mirror" / "tiny-shakespeare"
    monkeypatch.setenv("TUI_TRANSFORMER_MIRROR", str(mirror.parent))
    monkeypatch.setenv("TUI_TRANSFORMER_DATA", str(tmp_path / "nothing"))
    async with app.run_test(size=MEDIUM) as pilot:
        app.current_pane.data_dir = tmp_path / "data"
        app.current_pane.choose("shakespeare-cpu")
        await until(pilot, lambda: "ctrl+d  downloads it (at most 2 MB)" in app.text)
        assert "tiny-shakespeare is not on this machine" in app.text
        await pilot.press("f5")
        assert "ctrl+d downloads it" in app.said and app.asked == []
        await pilot.press("ctrl+d")
        await until(pilot, lambda: "downloading … " in app.text)
        await until(pilot, lambda: "✗ the mirror folder" in app.text)
        assert "ctrl+d  tries again" in app.text
        mirror.mkdir(parents=True)
        text = b"to be or not to be\n" * 500
        (mirror / "input.txt").write_bytes(text)
        remote = Remote("https://nowhere/input.txt", "tiny-shakespeare/input.txt", None, 2_000_000)

        async def fetched(corpus: str, data_dir: Path) -> None:
            fetch(remote, data_dir)

        monkeypatch.setattr(async_commands, "fetch_corpus", fetched)  # the process would check its SHA-256
        await pilot.press("ctrl+d")
        await until(pilot, lambda: "8,550 characters to train on" in app.text)
        assert "not on this machine" not in app.text and "downloaded tiny-shakespeare" in app.said


async def test_the_list_of_corpora_marks_those_that_are_not_on_this_machine(app: App, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TUI_TRANSFORMER_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("engine.data.corpus.user_data_path", lambda name: tmp_path / "nothing")
    here = tmp_path / "data" / "tiny-shakespeare" / "input.txt"
    here.parent.mkdir(parents=True)
    here.write_text("to be or not to be\n" * 500)
    async with app.run_test(size=(200, 50)) as pilot:
        await go_to(pilot, "data.corpus")
        await pilot.press("enter")
        await pilot.pause()
        answers = {tuple(answer.value.items()): answer for answer in app.screen._answers}
        named = [answers[("data.corpus", name),] for name in ("playlets", "tiny-shakespeare", "ptb", "fineweb-edu")]
        assert [answer.about.startswith("not here · ") for answer in named] == [False, False, True, True]
        other = answers[("data.corpus", "ag-news"), ("objective.kind", "classification")]
        assert other.label == "  ↳ ag-news, with objective.kind = classification · not here"
        await pilot.press(*"ptb")
        await pilot.pause()
        assert "ptb                 not here · Penn Treebank" in app.text


async def test_what_is_below_a_mask_stays_where_it_is(app: App) -> None:
    async with app.run_test(size=MEDIUM) as pilot:
        await go_to(pilot, "model.attention")
        places = set()
        for kind in ("global", "window", "sparse", "linear"):
            app.current_pane._record_and_show(app.current_pane.draft.with_change("model.attention", kind))
            await until(pilot, lambda kind=kind: f"self-attention, {kind}" in app.text)
            lines = app.text.splitlines()
            places.add(next(i for i, line in enumerate(lines) if "     0       8" in line))
        assert len(places) == 1


async def test_leaving_ends_a_measurement_under_way(app: App, monkeypatch) -> None:
    monkeypatch.setattr(Benchmarks, "command", lambda self, draft: ["sleep", "60"])
    before = set(psutil.Process().children())
    async with app.run_test(size=MEDIUM) as pilot:
        await pilot.press("m")
        await until(pilot, lambda: bool(set(psutil.Process().children()) - before))
    alive = set(psutil.Process().children()) - before
    await waiting.until(lambda: not any(map(_is_there, alive)), "the measuring process to end")


def _is_there(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def test_the_top_bar_says_alt_where_digits_are_typed_into_the_switch(app) -> None:
    bar = lambda: str(app.query_one("#tab-train").render())
    async with app.run_test(size=MEDIUM) as pilot:
        await go_to(pilot, "model.n_layers")
        await until(pilot, lambda: bar() == " alt+2 Train ")
        await go_to(pilot, "model.position")
        await until(pilot, lambda: bar() == " 2 Train ")
        await go_to(pilot, "model.n_layers")
        await pilot.press("escape")
        await until(pilot, lambda: bar() == " 2 Train ")


async def test_digits_are_typed_into_a_switch_until_escape_goes_back_to_the_presets(tmp_path) -> None:
    app = App(tmp_path / "runs", PANE_NAMES)
    async with app.run_test(size=MEDIUM) as pilot:
        await go_to(pilot, "model.n_layers")
        await pilot.press("2")
        assert app.query_one("#panes").current == "design" and app.focused is app.query_one(Switches)
        await pilot.press("escape")  # what was typed is undone
        assert (
            app.current_pane.draft is not None
            and not app.current_pane.draft.changes
            and app.focused is app.query_one(Switches)
        )
        await pilot.press("escape", "2")
        await until(pilot, lambda: app.query_one("#panes").current == "train")
