"""The studio around its panes: the first start, the keys, the sizes, the settings."""

import errno
import subprocess
import sys
import threading
import tomllib
from pathlib import Path

import pytest
from rich.text import Text
from textual.app import App, ComposeResult
from textual.color import Color
from textual.command import CommandList, CommandPalette
from textual.content import Content
from textual.css.tokenizer import Tokenizer
from textual.widgets import ContentSwitcher

from tests import waiting
from tests.tui_transformer.recorded import record
from tests.tui_transformer.studio.on_screen import shown, until
from tui_transformer import languages, settings
from tui_transformer.__main__ import main
from tui_transformer.studio import command_palette
from tui_transformer.studio.app import PANE_NAMES, Studio, Welcome
from tui_transformer.studio.command_palette import PaletteEntry, PaletteProvider
from tui_transformer.studio.design.switches import Switches
from tui_transformer.studio.responsiveness import HELP_SHOWS
from tui_transformer.studio.shared.dialog import Answer, ChoiceDialog, TextDialog, TextScreen
from tui_transformer.studio.shared.key_line import KeyLine
from tui_transformer.studio.shared.keys import PANE_BINDINGS, KeyColumns, key_problem
from tui_transformer.studio.themes import THEMES
from tui_transformer.studio.train.pane import TrainPane

pytestmark = pytest.mark.one_in(2)  # each opens an app or a run of its own


def studio(tmp_path: Path, *panes: str) -> Studio:
    """With all panes, or with these alone."""
    return Studio(runs_dir=tmp_path / "runs", device="cpu", panes=panes or PANE_NAMES)


@pytest.mark.parametrize("runs", [(), ("demo",)])  # `make demo` leaves one
async def test_the_first_start_explains_itself_once(tmp_path, own_settings, runs) -> None:
    own_settings.unlink()
    for run in runs:
        record(tmp_path / "runs", run)
    app = studio(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, Welcome) and "a minute or two" in shown(app))
        await pilot.press("question_mark")
        await until(pilot, lambda: "train this design" in shown(app))
        await pilot.press("escape")
        assert isinstance(app.screen, Welcome)
        await pilot.press("3")
        await until(pilot, lambda: not isinstance(app.screen, Welcome) and app.current_pane == "compare")
    assert tomllib.loads(own_settings.read_text())["welcomed"] is True
    again = studio(tmp_path, "design")
    async with again.run_test(size=(80, 24)):
        assert not isinstance(again.screen, Welcome)


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (200, 50)])
async def test_four_keys_and_four_clicks_show_four_panes(tmp_path, size) -> None:
    app = studio(tmp_path)
    async with app.run_test(size=size) as pilot:
        for number, pane in enumerate(("design", "train", "compare", "playground"), 1):
            await pilot.press(str(number))
            assert app.query_one(ContentSwitcher).current == pane
            assert app.query_one(f"#tab-{pane}").has_class("chosen")
        for pane in ("design", "train", "compare", "playground"):
            await pilot.click(f"#tab-{pane}")
            assert app.query_one("#panes", ContentSwitcher).current == pane
        assert app.has_class("narrow") == (size[0] < 100)


async def test_a_terminal_that_is_too_small_says_what_is_needed(tmp_path) -> None:
    app = studio(tmp_path, "design")
    async with app.run_test(size=(40, 10)) as pilot:
        assert "needs 60 × 18" in shown(app) and "has 40 × 10" in shown(app)
        await pilot.resize_terminal(100, 30)
        assert "needs" not in shown(app)


async def test_the_help_names_every_key_of_the_pane(tmp_path) -> None:
    app = studio(tmp_path, "design", "train")
    async with app.run_test(size=(120, 60)) as pilot:
        for number, pane in (("1", "design"), ("2", "train")):
            await pilot.press(number, "question_mark")
            assert isinstance(app.screen, TextScreen)
            keys, names = app.screen._texts
            listed = [words for _, group in keys._groups for _, words in group]
            for key in (*PANE_BINDINGS[pane], *PANE_BINDINGS["everywhere"]):
                assert listed.count(key.tooltip) == 1 and f"{key.id} " in str(names)
            assert "Panes" in shown(app) and "Studio" in shown(app)
            assert pane != "train" or HELP_SHOWS.decode() in shown(app)  # what the benchmark waits for
            await pilot.press("escape")


async def test_the_columns_of_the_help_stay_apart_and_only_keys_and_titles_are_marked() -> None:
    groups = [("One", [("a", "does this " * 9)]), ("Two", [(f"f{n}", "does that " * 9) for n in range(1, 4)])]
    keys = KeyColumns(groups)

    class Alone(App[None]):
        def compose(self) -> ComposeResult:
            yield keys

    async with Alone().run_test(size=(110, 30)):
        lines = keys.render().split("\n", allow_blank=True)
        left = [line.plain[:20].rstrip() for line in lines]
        assert left[:3] == ["One", "a  does this does th", "   does this does th"] and not any(left[4:])
        assert "Two" in lines[0].plain and lines[0].plain.index("Two") == 55
        marked = [line.plain[span.start : span.end] for line in lines for span in line.spans if span.style]
        assert marked == ["One", "Two", "a", "f1", "f2", "f3"] and not any(line.style for line in lines)


async def test_help_is_made_once_but_opens_at_its_top_with_todays_keys_theme_and_size(tmp_path) -> None:
    app = studio(tmp_path, "design")
    async with app.run_test(size=(100, 24)) as pilot:
        await pilot.press("question_mark")
        await until(pilot, lambda: "train this design" in shown(app))
        first, background = app.screen, app.screen.query_one(".dialog").styles.background
        await pilot.press("end")
        await until(pilot, lambda: "train this design" not in shown(app))
        await pilot.press("escape")
        app.theme = "studio-light"
        await pilot.resize_terminal(120, 40)
        await pilot.press("question_mark")
        await until(pilot, lambda: "train this design" in shown(app))
        assert app.screen is first and app.screen.size == (120, 40)
        assert app.screen.query_one(".dialog").styles.background != background
        await pilot.press("escape")
        app._change_setting("keys", {"launch": "f9"})
        await pilot.press("question_mark")
        await until(pilot, lambda: "f9" in shown(app))
        assert app.screen is not first


async def test_the_help_of_each_pane_is_ready_before_anyone_asks(tmp_path) -> None:
    app = studio(tmp_path)
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: len(app._installed_screens) == len(PANE_NAMES))
        await until(pilot, lambda: app.get_screen(app._help_screen_name("playground")).size == (100, 30))
        assert len(app.screen_stack) == 1 and len(app._installed_screens) == len(PANE_NAMES)


@pytest.mark.parametrize("theme", ["studio-dark", "studio-light"])
async def test_the_style_sheet_is_read_once_at_the_start(tmp_path, own_settings, monkeypatch, theme: str) -> None:
    own_settings.write_text(f'welcomed = true\ntheme = "{theme}"\n')
    read, real = [], Tokenizer.__init__

    def counted(self: Tokenizer, text: str, *given: object, **named: object) -> None:
        read.append(text)
        real(self, text, *given, **named)

    monkeypatch.setattr(Tokenizer, "__init__", counted)
    app = studio(tmp_path)
    async with app.run_test(size=(120, 36)):
        assert read.count(Path(app.css_path[0]).read_text()) == 1
        assert app.screen.styles.background == Color.parse(app.current_theme.background)


async def test_panes_without_runs_offer_only_keys_that_do_something(tmp_path) -> None:
    app = studio(tmp_path)
    async with app.run_test(size=(120, 30)) as pilot:
        for pane, more in (("2", ""), ("3", ""), ("4", "L load ")):
            await pilot.press(pane)
            await until(pilot, lambda: "yet" in shown(app))
            keys = f"{more}^q quit ? help , settings ▏^p palette".split()
            await until(pilot, lambda keys=keys: shown(app).splitlines()[-1].split() == keys)
        record(tmp_path / "runs", "demo")
        await pilot.press("2")
        await until(pilot, lambda: "zoom" in shown(app).splitlines()[-1])
        await pilot.press("3")
        await until(pilot, lambda: "answer/table" in shown(app).splitlines()[-1])


async def test_keys_can_be_others(tmp_path, own_settings) -> None:
    own_settings.write_text('welcomed = true\n[keys]\ntrain = "f3"\n')
    app = studio(tmp_path, "design", "train")
    async with app.run_test() as pilot:
        await pilot.press("2")
        assert app.query_one("#panes", ContentSwitcher).current == "design"
        await pilot.press("f3")
        assert app.query_one("#panes", ContentSwitcher).current == "train"


@pytest.mark.one_in(1)
async def test_f12_saves_the_screen_where_the_studio_was_started(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    app = studio(tmp_path, "train")
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await pilot.press("f12")
        await until(pilot, lambda: "saved" in shown(app))
        [saved] = tmp_path.glob("*.svg")
        assert saved.read_text(encoding="utf-8").startswith("<svg")
        monkeypatch.setattr(app, "save_screenshot", no_room)
        await pilot.press("f12")
        await until(pilot, lambda: "cannot save a screenshot" in shown(app))


def no_room(filename: str | None, path: str | None) -> str:
    raise OSError(errno.ENOSPC, "No space left on device")


async def test_a_theme_is_remembered(tmp_path, own_settings) -> None:
    app = studio(tmp_path, "design")
    async with app.run_test() as pilot:
        app.theme = "studio-colour-blind"
        await pilot.pause()
    assert settings.load()[0].theme == "studio-colour-blind"


@pytest.mark.parametrize(
    ("text", "said"), [("theme = [", "settings.toml"), ('launch = "rocket"', "launch"), ("\x00", "settings.toml")]
)
async def test_settings_with_a_mistake_are_said_and_kept(tmp_path, own_settings, text: str, said: str) -> None:
    own_settings.write_text(text)
    found, wrong = settings.load()
    assert said in wrong and found == settings.Settings()
    app = studio(tmp_path, "design")
    async with app.run_test() as pilot:
        app.theme = "studio-light"
        await pilot.pause()
    assert own_settings.read_text() == text


def test_ids_and_keys_are_different_in_each_pane() -> None:
    for pane in ("design", "train", "compare", "playground"):
        ids = [key.id for key in (*PANE_BINDINGS["everywhere"], *PANE_BINDINGS[pane])]
        keys = [name for key in (*PANE_BINDINGS["everywhere"], *PANE_BINDINGS[pane]) for name in key.key.split(",")]
        assert len(ids) == len(set(ids)) and len(keys) == len(set(keys))


def test_a_letter_means_the_same_in_all_panes() -> None:
    meanings: dict[str, set[str]] = {}
    for pane in PANE_BINDINGS.values():
        for key in pane:
            for name in (name for name in key.key.split(",") if len(name) == 1 and name.isalpha()):
                meanings.setdefault(name, set()).add(key.description)
    assert {name: words for name, words in meanings.items() if len(words) > 1} == {}


async def test_leaving_asks_what_becomes_of_a_run_that_trains_here(tmp_path, monkeypatch) -> None:
    app = studio(tmp_path, "design")
    ends: list[str] = []
    monkeypatch.setattr(type(app.launches), "local_run", property(lambda self: None if ends else tmp_path / "run"))
    monkeypatch.setattr(app.launches, "hand_over", lambda: ends.append("handed over") or "it goes on")
    async with app.run_test() as pilot:
        await pilot.press("ctrl+q")
        assert isinstance(app.screen, ChoiceDialog) and not ends
        await pilot.press("escape")
        await pilot.press("ctrl+q", "down", "down", "enter")  # always
        await waiting.until(lambda: app.exit_messages, "the run to be handed over")
    assert ends == ["handed over"] and app.exit_messages == ["it goes on"]
    assert settings.load()[0].on_quit == "hand-over"


async def test_the_settings_page_changes_and_keeps_each_setting(tmp_path) -> None:
    app = studio(tmp_path, "design")
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("comma", "right", "down", "down", "enter", "down", "left")
        await until(pilot, lambda: "stop and save a checkpoint" in shown(app) and "esc: close" in shown(app))
        assert app.theme == THEMES[1].name
        await pilot.press("escape")
        assert len(app.screen_stack) == 1
    found = settings.load()[0]
    assert (found.theme, found.launch, found.on_quit) == (THEMES[1].name, "process", "stop")


async def test_the_settings_page_changes_keys_at_once(tmp_path) -> None:
    app = studio(tmp_path, "design")
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.press("comma", "end")
        await until(pilot, lambda: "unchanged …" in shown(app))
        await pilot.press("enter", *"design", "space", *"launch", "enter")
        await until(pilot, lambda: "Press the new key. Current: f5" in shown(app))
        for taken, said in {"m": "Design · measure time", "ctrl+q": "Everywhere · quit"}.items():
            await pilot.press(taken)
            await until(pilot, lambda taken=taken, said=said: f"{taken} is taken: {said}" in shown(app))
        await pilot.press("f9")
        await until(pilot, lambda: "● f9" in shown(app))
        assert settings.load()[0].keys == {"launch": "f9"}
        await pilot.press("escape", "escape")
        await until(pilot, lambda: "f9 launch" in app.query_one(KeyLine).render().plain)
        bound = app.screen.active_bindings
        assert bound["f9"].binding.id == "launch" and "f5" not in bound
        await pilot.press("comma", "end", "enter", *"train", "space", *"this", "enter", "delete")
        await until(pilot, lambda: not settings.load()[0].keys)
        await pilot.press("escape", "escape")
        await until(pilot, lambda: "f5 launch" in app.query_one(KeyLine).render().plain)


async def test_a_key_dialog_is_left_without_a_change(tmp_path) -> None:
    app = studio(tmp_path, "design")
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("comma", "end", "enter", "enter", "tab")
        await until(pilot, lambda: "tab is reserved" in shown(app) and "esc: cancel" in shown(app))
        await pilot.press("escape", "escape", "escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)
    assert settings.load()[0].keys == {}


@pytest.mark.parametrize(
    ("id", "pressed", "said"),
    [
        ("zoom", "f", "f is taken: Compare · the answer as a forest plot, or the table of runs"),  # also in Train
        ("zoom", "m", ""),  # only Design's
        ("settings", "m", "m is taken: Design · measure time and memory over a few steps; m or esc cancels"),
        ("settings", "P", ""),  # the study builder covers it
        ("palette", "P", "P is taken: Study builder · pick presets that change one thing"),
        ("study-toml", "f12", ""),
        ("launch", "up", "up is reserved for moving, choosing and typing"),
        ("launch", "f9", "f9 is taken: Design · rename the run before it starts"),  # since it was changed
        ("launch", "n", ""),
        ("queue", "", "Q is taken: Design · rename the run before it starts"),
    ],
)
def test_a_key_that_would_do_two_things_is_refused(id: str, pressed: str, said: str) -> None:
    changed = {"run-name": "f9,Q", "queue": "f8"}
    assert key_problem(id, pressed, changed) == said


def test_no_default_key_is_refused() -> None:
    assert [key.id for keys in PANE_BINDINGS.values() for key in keys if key_problem(key.id or "", "", {})] == []


async def test_every_dialog_says_how_to_leave_it_without_an_answer(tmp_path) -> None:
    app = studio(tmp_path, "design")
    async with app.run_test(size=(80, 24)) as pilot:
        for dialog in (
            ChoiceDialog("Which?", [Answer(1, "one")]),
            TextDialog("What?"),
            TextScreen("Words", Text("some")),
        ):
            app.push_screen(dialog)
            await pilot.pause()
            assert "esc: cancel" in shown(app) or "esc: close" in shown(app)
            await pilot.press("escape")
            assert len(app.screen_stack) == 1


async def test_the_palette_finds_everything_by_name_and_the_exact_name_first(tmp_path) -> None:
    record(tmp_path / "runs", "my-rope")
    app = studio(tmp_path, "train")
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "my-rope" in shown(app))
        await pilot.press("ctrl+p")
        finder = PaletteProvider(app.screen_stack[0])
        await finder.startup()
        found = [(offer.name, offer.kind or offer.key) for offer in await finder.entries()]
        wanted = {("Zoom", "z"), ("my-rope", "run"), ("rope", "preset"), ("Theme", "setting")}
        assert wanted <= {*found} and any(kind == "study" for _, kind in found)
        assert not any(name == "Resume" for name, _ in found)  # it does not apply to a finished run
        hits = sorted([hit async for hit in finder.search("rope")], key=lambda hit: -hit.score)
        assert [hit.text for hit in hits[:2]] == ["rope", "my-rope"]
        await pilot.press(*"my-rope")
        await until(pilot, lambda: app.screen.query_one(CommandList).highlighted is not None)
        await pilot.press("enter")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        assert app.current_pane == "train" and app.query_one(TrainPane).chosen == tmp_path / "runs" / "my-rope"


@pytest.mark.one_in(1)
async def test_the_palette_finds_what_was_typed_before_all_names_were_read(tmp_path, monkeypatch) -> None:
    record(tmp_path / "runs", "my-rope")
    typed = threading.Event()
    app = studio(tmp_path, "design")
    async with app.run_test(size=(120, 36)) as pilot:
        read = command_palette.list_runs
        monkeypatch.setattr(command_palette, "list_runs", lambda folder: typed.wait(waiting.PATIENCE) and read(folder))
        await pilot.press("ctrl+p", *"my-rope")
        typed.set()
        await until(pilot, lambda: app.screen.query_one(CommandList).highlighted is not None)


async def test_a_description_is_not_read_as_markup_in_the_palette(tmp_path) -> None:
    app = studio(tmp_path, "design")
    async with app.run_test():
        hit = PaletteProvider(app.screen)._hit(PaletteEntry("mine", "a [red]b[/red] [link", print), 1.0)
        assert isinstance(hit.help, str) and Content.from_markup(hit.help).plain == "a [red]b[/red] [link"


async def test_the_language_may_change_after_the_studio_is_imported(tmp_path) -> None:
    said: dict[str, tuple[str, ...]] = {}
    for code in ("en", "zh", "en"):
        languages.use(code)
        app = studio(tmp_path, "design")
        async with app.run_test(size=(120, 36)) as pilot:
            await until(pilot, lambda app=app: app.query_one(KeyLine)._shown_keys)
            switches, keys = app.query_one(Switches), app.query_one(KeyLine).render().plain
            lines = [str(switches.get_option_at_index(at).prompt) for at in range(3)]
            await pilot.press("question_mark")
            await until(pilot, lambda app=app: app.screen.query(KeyColumns))
            groups = app.screen.query_one(KeyColumns)._groups
            found = (*lines, keys, *(word for title, keys_ in groups for word in (title, *(it for _, it in keys_))))
        assert said.setdefault(code, found) == found
    assert len(said["zh"]) == len(said["en"]) > 20
    assert all(chinese != english for chinese, english in zip(said["zh"], said["en"], strict=True))


@pytest.mark.parametrize("width", [80, 100, 120])
async def test_the_last_line_cuts_no_key(tmp_path, width: int) -> None:
    app = studio(tmp_path)
    async with app.run_test(size=(width, 36)) as pilot:
        for pane in "1234":
            await pilot.press(f"alt+{pane}")
            line = app.query_one(KeyLine)
            words = " ".join(one.words.plain for one in line._shown_keys)
            left, edge, _ = line.render().plain.partition("▏")
            assert edge and left.strip() and f"{words} ".startswith(f"{left.rstrip()} ")


async def test_the_last_line_has_spare_keys_only_after_all_others(tmp_path) -> None:
    record(tmp_path / "runs", "done")
    app = studio(tmp_path, "compare")
    async with app.run_test(size=(200, 50)) as pilot:
        line = app.query_one(KeyLine)
        await until(pilot, lambda: "R report" in line.render().plain)
        shown = line.render().plain
        assert shown.index("E export") < shown.index("R report")
        await pilot.resize_terminal(80, 24)
        assert "R report" not in line.render().plain


async def test_what_comes_to_a_page_that_is_being_closed_crashes_nothing(tmp_path) -> None:
    app = studio(tmp_path, "design")
    async with app.run_test() as pilot:
        line = app.query_one(KeyLine)
        await line.remove()
        line._update_keys()
        await pilot.press("ctrl+p")
        palette = app.screen
        assert isinstance(palette, CommandPalette)
        await palette.query_children().remove()
        palette._list_visible = palette._show_busy = True
        await pilot.pause()
        await pilot.press("escape")
        assert len(app.screen_stack) == 1


async def test_it_reopens_where_the_user_was_and_a_live_run_opens_train(tmp_path) -> None:
    record(tmp_path / "runs", "done")
    app = studio(tmp_path)
    async with app.run_test() as pilot:
        await pilot.press("3")
        await app._shut_down("stop")
    assert settings.load()[0].pane == "compare"
    again = studio(tmp_path)
    async with again.run_test():
        for worker in [worker for worker in again.workers if worker.group == "live"]:
            await worker.wait()  # it looks for live runs
        assert again.current_pane == "compare"
    record(tmp_path / "runs", "live", state="running")
    live = studio(tmp_path)
    async with live.run_test() as pilot:
        run = tmp_path / "runs" / "live"
        await until(pilot, lambda: live.current_pane == "train" and live.query_one(TrainPane).chosen == run)
    nothing = studio(tmp_path / "elsewhere")  # without a run there is only one place to begin
    async with nothing.run_test() as pilot:
        assert nothing.current_pane == "design"


async def test_any_pane_can_be_remembered_and_one_that_is_no_more_is_design(tmp_path, own_settings) -> None:
    record(tmp_path / "runs", "done")
    settings.save(settings.Settings(welcomed=True, pane="a later version's"))
    assert settings.load() == (settings.Settings(welcomed=True, pane="a later version's"), "")
    app = studio(tmp_path)
    async with app.run_test():
        for worker in [worker for worker in app.workers if worker.group == "live"]:
            await worker.wait()
        assert app.current_pane == "design"


def test_the_first_screen_needs_neither_torch_nor_numpy() -> None:
    code = "import sys; import tui_transformer.studio.app, tui_transformer.studio.design.pane as _; "
    code += "sys.exit(not {'torch', 'numpy'}.isdisjoint(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], timeout=waiting.PATIENCE).returncode == 0


def test_a_studio_that_fails_says_where_the_reason_is(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr("tui_transformer.cli.app.is_terminal", lambda stream: True)
    monkeypatch.setattr(Studio, "run", lambda self: setattr(self, "_return_code", 1))
    assert main(["--runs-dir", str(tmp_path)]) == 1
    assert f"the studio failed; {tmp_path / '.studio.log'} says why" in capsys.readouterr().err
