"""The study builder: from a design to a study without leaving the keyboard; nothing starts that was not launched."""

import asyncio
import math
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from engine.base.errors import InputError
from engine.config import presets
from tests.calls import calls
from tests.tui_transformer.lab.records.test_study_row import cell
from tests.tui_transformer.studio.on_screen import said, shown, until
from tui_transformer.lab.design import benchmarks
from tui_transformer.lab.design.draft import Benchmark
from tui_transformer.lab.design.study_draft import Estimate
from tui_transformer.lab.work import async_commands
from tui_transformer.lab.work.plan import RunCost
from tui_transformer.lab.work.study import Study, Variant, find_study, read_study
from tui_transformer.studio import app as studio
from tui_transformer.studio.app import Studio
from tui_transformer.studio.design import own_files
from tui_transformer.studio.design.dialogs import PresetChecklist, TomlPage
from tui_transformer.studio.design.pane import DesignPane
from tui_transformer.studio.design.study_builder import StudyBuilder
from tui_transformer.studio.shared.dialog import ChoiceDialog, TextDialog, TextScreen

pytestmark = pytest.mark.one_in(4)  # each opens an app or a run of its own

SIZES = [(80, 24), (120, 36), (200, 50)]
SMALLEST = [SIZES[0], *(pytest.param(size, marks=pytest.mark.slow) for size in SIZES[1:])]
MEDIUM = (120, 36)
LIMIT = 250_000  # calls of functions while the app stands still: a fifth of a second or less


class App(Studio):
    """A studio with eyes, and the Design pane alone."""

    CSS_PATH = Path(studio.__file__).with_name("studio.tcss")

    def __init__(self, runs_dir: Path, panes: tuple[str, ...] = ("design",)) -> None:
        super().__init__(runs_dir=runs_dir, device="cpu", panes=panes)

    @property
    def text(self) -> str:
        return shown(self)

    @property
    def said(self) -> str:
        return said(self)

    @property
    def current_pane(self) -> DesignPane:
        return self.query_one(DesignPane)

    @property
    def names(self) -> list[str]:
        """The variants of the study that is shown."""
        assert isinstance(self.screen, StudyBuilder)
        return [line.variant.name for line in self.screen._draft.included_lines]


@pytest.fixture(autouse=True)
def five_seeds(monkeypatch) -> None:
    """Five seeds are proposed, however slow the machine."""
    monkeypatch.setattr("tui_transformer.lab.design.study_draft.LONG_SECONDS", math.inf)


@pytest.fixture
def started(monkeypatch) -> list[Study]:
    """What was started; nothing is."""
    found: list[Study] = []

    async def start(study: Study, place: async_commands.LaunchTarget, plan: Estimate | None) -> str:
        found.append(study)
        return f"{study.name} runs" + (", as measured" if plan is not None else "")

    async def plan(study: Study, place: async_commands.LaunchTarget) -> Estimate:
        each = {variant.name: RunCost(seconds=100.0) for variant in study.variants}
        known = {"seconds": 450.0, "disk_bytes": 5_000_000, "measured": True, "jobs": 2, "threads": 1}
        return Estimate(prices=each, **known, devices=("cpu",))

    monkeypatch.setattr(async_commands, "start_study", start)
    monkeypatch.setattr(benchmarks, "time_study_steps", plan)
    return found


@pytest.fixture
def app(tmp_path, started) -> App:
    return App(tmp_path / "runs")


@pytest.fixture
def launching(tmp_path, started) -> App:
    """With the pane where a study is shown once it was launched."""
    return App(tmp_path / "runs", ("design", "train"))


async def opened(pilot: Pilot) -> StudyBuilder:
    await pilot.pause()
    await pilot.press("v")
    await pilot.pause()
    assert isinstance(pilot.app.screen, StudyBuilder)
    return pilot.app.screen


async def fill_in(pilot: Pilot, key: str, text: str) -> None:
    """Press a key that asks for a line, write it, and accept it."""
    await pilot.press(key)
    await pilot.pause()
    assert isinstance(pilot.app.screen, TextDialog)
    pilot.app.screen.query_one(Input).value = text
    await pilot.press("enter")
    await pilot.pause()


@pytest.mark.parametrize("size", SMALLEST)
async def test_values_of_a_setting_become_runs(app: App, started, size: tuple[int, int]) -> None:
    async with app.run_test(size=size) as pilot:
        await opened(pilot)
        assert "Compare this design to what?" in app.text and "at least two variants" in app.text
        await fill_in(pilot, "v", "model.n_heads=1,2,4,8")
        assert app.names == ["n_heads-1", "n_heads-2", "n_heads-4", "n_heads-8"]
        assert "= 20 runs" in app.text and "◆ n_heads-4" in app.text
        assert "With 5 seeds, this study has 80 % power to detect a difference of 2.9 sd." in app.text
        assert "Compare this design to what?" not in app.text
        await pilot.press("plus", "plus")
        assert "= 28 runs" in app.text and "With 7 seeds, this study has" in app.text
        await fill_in(pilot, "number_sign", "1,")
        assert "= 4 runs" in app.text and "one seed proves nothing" in app.text and "80 % power" not in app.text
        assert started == []


async def test_ticked_presets_become_variants_and_the_impossible_says_why(app: App) -> None:
    async with app.run_test(size=MEDIUM) as pilot:
        app.current_pane.choose("alibi")
        await opened(pilot)
        await pilot.press("P")
        await pilot.pause()
        assert isinstance(app.screen, PresetChecklist)
        names = [overlay.variant.name for overlay in app.screen._offered]
        assert names.index("linear") > names.index("win16")
        await pilot.press("end", "space")
        assert "the design already includes this" in app.text and "no score matrix" in app.text and "●" not in app.text
        app.screen.query_one(OptionList).highlighted = names.index("win16")
        await pilot.press("space")
        assert "● win16" in app.text
        await pilot.press("escape")
        await pilot.pause()
        assert app.names == ["demo-alibi"]
        await pilot.press("P")
        await pilot.pause()
        app.screen.query_one(OptionList).highlighted = names.index("win16")
        await pilot.press("space", "up", "space", "space", "enter")
        await pilot.pause()
        assert app.names == ["demo-alibi", "win16"] and "model.attention = window" in app.text


async def test_presets_to_tick_are_found_by_typing_and_space_ticks_what_was_found(app: App) -> None:
    async with app.run_test(size=MEDIUM) as pilot:
        await opened(pilot)
        await pilot.press("P")
        await pilot.pause()
        await pilot.press(*"win")
        assert "/ win" in app.text and "swiglu" not in app.text
        await pilot.press("space", *(["backspace"] * 3), *"alibi", "space", "enter")
        await pilot.pause()
        assert set(app.names) == {"demo", "win16", "alibi"}


async def test_under_the_ticked_presets_is_what_each_of_them_does(app: App) -> None:
    async with app.run_test(size=MEDIUM) as pilot:
        builder = await opened(pilot)
        ticked = (Variant("win16", "win16"), Variant("alibi", "alibi"), Variant("two", changes={"model.n_heads": 2}))
        builder._set_draft(builder._draft.with_added_variants(ticked))
        await pilot.press("home")
        await pilot.pause()
        listed = app.text.partition("what the others do")[2]
        assert all(presets.find(name).description[:40] in listed for name in ("win16", "alibi"))
        assert "two " not in listed and "expected from the others" not in app.text


async def test_a_shipped_study_is_taken_with_what_it_expects(launching: App, started) -> None:
    app = launching
    async with app.run_test(size=MEDIUM) as pilot:
        await opened(pilot)
        await pilot.press("L")
        await pilot.pause()
        assert isinstance(app.screen, ChoiceDialog)
        await pilot.press("enter")
        await pilot.pause()
        assert "ablate --study attention --seeds 5" in app.text
        await pilot.press("down")
        assert "expected: loss worse, recall worse" in app.text
        listed = app.text.partition("expected from the others")[2]
        assert "linear" in listed and "sparse" in listed and "loss worse" in listed
        await pilot.press("f5")
        await until(pilot, lambda: "attention runs" in app.said)
        assert started == [find_study("attention")] and not isinstance(app.screen, StudyBuilder)


async def test_only_f5_launches(app: App, started) -> None:
    async with app.run_test(size=MEDIUM) as pilot:
        await opened(pilot)
        await pilot.press("f5")
        assert isinstance(app.screen, StudyBuilder) and "at least two variants" in app.said
        await fill_in(pilot, "v", "model.n_heads=2")
        await pilot.press("enter", "enter", "space", "p", "escape")
        await pilot.pause()
        assert started == [] and not isinstance(app.screen, StudyBuilder)


async def test_a_study_that_cannot_be_started_says_why(launching: App, monkeypatch) -> None:
    app = launching

    async def start(study: Study, place: async_commands.LaunchTarget, plan: Estimate | None) -> str:
        raise InputError("study 'x' was \x1b[31mstarted otherwise")

    monkeypatch.setattr(async_commands, "start_study", start)
    async with app.run_test(size=MEDIUM) as pilot:
        await opened(pilot)
        await fill_in(pilot, "v", "model.n_heads=2")
        await pilot.press("f5")
        await until(pilot, lambda: "started otherwise" in app.said)
        assert "\x1b" not in app.said


async def test_the_study_waits_for_the_way_back_and_follows_the_design(app: App) -> None:
    async with app.run_test(size=MEDIUM) as pilot:
        await opened(pilot)
        await fill_in(pilot, "v", "model.n_heads=2")
        await pilot.press("escape")
        await pilot.pause()
        app.current_pane._record_and_show(app.current_pane.draft.with_change("model.n_layers", 1))
        builder = await opened(pilot)
        assert app.names == ["demo", "n_heads-2"] and "demo with changes" in app.text and "58,336" in app.text
        assert builder._draft.study.changes == {"model.n_layers": 1}
        await pilot.press("escape")
        await pilot.pause()
        app.current_pane.choose("win16")
        await pilot.pause()
        await opened(pilot)
        assert app.names == ["demo-win16"] and "a study of win16" in app.text


async def test_a_design_that_cannot_be_trained_has_no_study(app: App) -> None:
    async with app.run_test(size=MEDIUM) as pilot:
        await pilot.pause()
        app.current_pane._record_and_show(app.current_pane.draft.with_change("model.n_heads", 3))
        await pilot.press("v")
        await pilot.pause()
        assert not isinstance(app.screen, StudyBuilder) and "not divisible by 3 heads" in app.said


async def test_baseline_and_removal_are_of_the_variant_at_hand(app: App) -> None:
    async with app.run_test(size=MEDIUM) as pilot:
        builder = await opened(pilot)
        await fill_in(pilot, "v", "model.n_heads=2,8,3")
        await pilot.press("down", "p")
        assert builder._draft.effective_baseline == "n_heads-2" and "◆ n_heads-2" in app.text
        assert "n_heads = 4" in app.text
        await pilot.press("down", "down")
        assert "is left out" in app.text and "not divisible by 3 heads" in app.text
        await pilot.press("p")
        assert "cannot be trained" in app.said and builder._draft.effective_baseline == "n_heads-2"
        await pilot.press("delete")
        assert "✗" not in app.text and app.names == ["demo", "n_heads-2", "n_heads-8"]
        await pilot.press("up", "delete")
        assert app.names == ["demo", "n_heads-8"] and builder._draft.effective_baseline == "demo"


async def test_it_is_measured_in_a_process_and_until_then_estimated(app: App) -> None:
    async with app.run_test(size=MEDIUM) as pilot:
        await pilot.pause()
        fits, draft = app.current_pane._benchmarks, app.current_pane.draft
        fits._known[fits._cache_key(draft)] = Benchmark(device="cpu", seconds_per_step=0.1, seconds=280.0)
        await opened(pilot)
        await fill_in(pilot, "v", "model.n_heads=2")
        assert "≈ 20 min on cpu, one at a time, " in app.text and "≈ 2 min" in app.text
        await pilot.press("m")
        await until(pilot, lambda: "2 at a time, 1 thread each" in app.text)
        assert "≈ 8 min on cpu" in app.text and "5 MB" in app.text
        await pilot.press("plus")
        assert "one at a time" in app.text
        await pilot.press("minus")
        assert "2 at a time" in app.text


@pytest.mark.parametrize("changed", [False, True])
async def test_a_launch_takes_the_measurement_of_the_same_study(launching: App, started, changed: bool) -> None:
    app = launching
    async with app.run_test(size=MEDIUM) as pilot:
        await opened(pilot)
        await fill_in(pilot, "v", "model.n_heads=2")
        await pilot.press("m")
        await until(pilot, lambda: "2 at a time" in app.text)
        await pilot.press("escape")
        await opened(pilot)
        assert "2 at a time" in app.text
        await pilot.press(*["plus"] * changed, "f5")
        await until(pilot, lambda: "demo-study runs" in app.said)
        assert ("runs, as measured" in app.said) == (not changed) and len(started) == 1
        assert ("start once one step of each variant has been timed" in app.said) == changed


@pytest.mark.parametrize("fails", [False, True])
async def test_a_study_is_listed_while_its_variants_are_timed_and_leaves_nothing_if_that_fails(
    launching: App, monkeypatch, tmp_path, fails: bool
) -> None:
    app = launching
    timed = asyncio.Event()

    async def start(study: Study, place: async_commands.LaunchTarget, plan: Estimate | None) -> str:
        await timed.wait()
        if fails:
            raise InputError("out of memory")
        return f"{study.name} runs"

    monkeypatch.setattr(async_commands, "start_study", start)
    async with app.run_test(size=MEDIUM) as pilot:
        await opened(pilot)
        await fill_in(pilot, "v", "model.n_heads=2")
        await fill_in(pilot, "n", "pos")
        await pilot.press("f5")
        words = ("▸ pos ", "0/10", "◌ timing", "the runs start after that")
        await until(pilot, lambda: all(word in app.text for word in words))
        assert "Nothing has been trained yet" not in app.text
        await pilot.press("r", "s", "enter")
        assert "there is nothing to resume" in app.said and "none of pos's runs is training" in app.said
        timed.set()
        if fails:
            await until(pilot, lambda: "Nothing has been trained yet" in app.text)
            assert "out of memory" in app.said and "▸ pos" not in app.text
        else:
            await until(pilot, lambda: "pos runs" in app.said)
            cell(tmp_path / "runs", "rope", 1)
            await until(pilot, lambda: "1/1" in app.text and "timing" not in app.text)
    assert not list((tmp_path / "runs").glob("*.toml"))


async def test_a_measurement_that_fails_says_why_and_a_change_ends_one(app: App, monkeypatch) -> None:
    async def plan(study: Study, place: async_commands.LaunchTarget) -> Estimate:
        if len(study.seeds) == 5:
            raise InputError("corpus is not here")
        await asyncio.sleep(60)
        return Estimate()

    monkeypatch.setattr(benchmarks, "time_study_steps", plan)
    async with app.run_test(size=MEDIUM) as pilot:
        await opened(pilot)
        await fill_in(pilot, "v", "model.n_heads=2")
        await pilot.press("m")
        await until(pilot, lambda: "✗ corpus is not here" in app.text)
        await pilot.press("plus", "m")
        await until(pilot, lambda: "timing one step" in app.text)
        await pilot.press("plus")
        assert "timing one step" not in app.text and "corpus is not here" not in app.text
        assert not [worker for worker in app.workers if worker.group == "measurement" and worker.is_running]


async def test_a_saved_study_asks_before_it_is_written_over_and_can_be_taken(app: App) -> None:
    async with app.run_test(size=(200, 50)) as pilot:
        builder = await opened(pilot)
        await fill_in(pilot, "v", "model.n_heads=2")
        await fill_in(pilot, "n", "mine")
        assert "once saved (ctrl+s): $" in app.text
        await pilot.press("ctrl+s")
        await pilot.pause()
        path = own_files.study_file("mine")
        assert read_study(path) == builder._draft.study and "once saved" not in app.text
        await pilot.press("plus", "ctrl+s")
        await pilot.pause()
        assert isinstance(app.screen, ChoiceDialog) and "already" in app.text
        await pilot.press("enter")
        await pilot.pause()
        assert len(read_study(path).seeds) == 5
        await pilot.press("L")
        await pilot.pause()
        await pilot.press("end")  # below the studies that come with the program
        await pilot.pause()
        assert "mine" in app.text and "your own" in app.text


async def test_the_command_and_the_toml_are_copied(app: App) -> None:
    async with app.run_test(size=MEDIUM) as pilot:
        builder = await opened(pilot)
        await fill_in(pilot, "v", "model.n_heads=2,4")
        await pilot.press("C")
        words = "tui-transformer ablate --preset demo --vary model.n_heads=2,4 --seeds 5 --name demo-study"
        assert app.clipboard == f"{words} --device cpu --runs-dir {app.runs_dir}"
        await pilot.press("t")
        await pilot.pause()
        assert isinstance(app.screen, TomlPage) and 'baseline = "n_heads-4"' in app.text
        await pilot.press("C")
        assert app.clipboard == builder._draft.toml()


async def test_a_name_that_was_started_already_is_not_used_again(app: App) -> None:
    app.runs_dir.mkdir()
    study = find_study("attention")
    (app.runs_dir / "attention.study.toml").write_text(study.to_toml())
    (app.runs_dir / "demo-study.study.toml").write_text("torn")
    async with app.run_test(size=MEDIUM) as pilot:
        builder = await opened(pilot)
        assert builder._draft.name == "demo-study-2"
        await pilot.press("L")
        await pilot.pause()
        await pilot.press("enter")
        await pilot.pause()
        assert builder._draft.study == replace(study, name="attention-2")
        assert "ablate --study attention --seeds 5 --name attention-2" in app.text
        await fill_in(pilot, "n", "demo-study")
        assert "has already been started" in app.text


async def test_a_terminal_that_is_too_small_says_so_and_loses_nothing(app: App) -> None:
    async with app.run_test(size=MEDIUM) as pilot:
        await opened(pilot)
        await fill_in(pilot, "v", "model.n_heads=2")
        await pilot.resize_terminal(40, 10)
        await until(pilot, lambda: "40 × 10" in " ".join(app.text.split()) and "VARIANT" not in app.text)
        await pilot.resize_terminal(60, 18)
        await until(pilot, lambda: "n_heads-2" in app.text and "= 10 runs" in app.text)


async def test_every_key_is_in_the_help(app: App) -> None:
    async with app.run_test(size=(120, 60)) as pilot:
        await opened(pilot)
        await pilot.press("question_mark")
        await pilot.pause()
        assert (
            isinstance(app.screen, TextScreen) and "study-launch f5" in app.text and "remove this variant" in app.text
        )


async def test_poison_reaches_no_screen(app: App) -> None:
    folder = own_files.studies_folder()
    folder.mkdir(parents=True)
    poison = "\\u001b[31mred \\u202e [bold]not[/bold]"
    variants = f'[[variants]]\nname = "a"\nwhy = "{poison}"\n[[variants]]\nname = "b"\npreset = "layers1"\n'
    (folder / "evil.toml").write_text(f'description = "{poison}"\nbase = "demo"\nbaseline = "a"\n{variants}')
    (folder / "wr\x07ong.toml").write_text('x\x1b = "\\u001b[2J')
    async with app.run_test(size=(160, 70)) as pilot:
        await opened(pilot)
        await pilot.press("L")
        await pilot.pause()
        options = app.screen.query_one(OptionList)
        options.highlighted = next(i for i, a in enumerate(app.screen._answers) if a.label == "evil")
        await pilot.pause()
        seen = [app.text]
        await pilot.press("enter")
        await pilot.pause()
        seen.append(app.text)
        await pilot.press("t")
        await pilot.pause()
        seen.append(app.text)
        assert all("[bold]not[/bold]" in text for text in seen)
        for text in seen:
            assert [s for s in text if unicodedata.category(s) in ("Cc", "Cf") and s != "\n"] == []


async def test_nothing_stops_the_screen_for_long(app: App) -> None:
    async with app.run_test(size=(200, 50)) as pilot:
        builder = await opened(pilot)
        drafts = [
            builder._draft.with_variants_along_axes("model.n_heads=1,2,4,8 model.position=rope,none,alibi,sinusoidal")
        ]
        builder._set_draft(drafts[0])
        drawn = calls(lambda: builder._set_draft(drafts[0].with_seed_added_or_removed(1)))
        offered = calls(drafts[0].overlays)
        assert max(drawn, offered) < LIMIT, (drawn, offered)
