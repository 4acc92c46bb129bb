"""Design at the next start: as it was left."""

import tomllib
from pathlib import Path

from textual.pilot import Pilot

from tests.tui_transformer.studio.on_screen import shown, until
from tui_transformer import settings
from tui_transformer.studio.app import Studio
from tui_transformer.studio.design import own_files
from tui_transformer.studio.design import pane as design
from tui_transformer.studio.design.pane import DesignPane
from tui_transformer.studio.design.switches import Switches


def studio(tmp_path: Path) -> Studio:
    return Studio(runs_dir=tmp_path / "runs", device="cpu", panes=("design",))


async def fewer_layers(pilot: Pilot) -> None:
    switches = pilot.app.query_one(Switches)
    switches.focus()
    switches.highlighted = switches.get_option_index("model.n_layers")
    await pilot.press("left")
    await pilot.pause()


async def test_changes_survive_a_restart_until_they_are_reset(tmp_path) -> None:
    app = studio(tmp_path)
    async with app.run_test() as pilot:
        await fewer_layers(pilot)  # of the demo
        app.query_one(DesignPane).choose("win16")
        await pilot.pause()
        await fewer_layers(pilot)
        was = app.query_one(DesignPane).draft
        assert was.preset.name == "win16" and was.changes
        await app._shut_down("stop")
    again = studio(tmp_path)
    async with again.run_test(size=(120, 50)) as pilot:
        pane = again.query_one(DesignPane)
        assert pane.draft == was
        assert "▸ win16 ●" in shown(again)
        await pilot.press("u")  # what was kept is one change
        assert pane.draft == was.unchanged
        await pilot.press("ctrl+r", "U")
        assert pane.draft == was.unchanged
        pane.choose("demo")
        await pilot.pause()
        assert pane.draft.changes == {"model.n_layers": 1} and "demo ●" in shown(again)
        await pilot.press("U")
        await again._shut_down("stop")
    assert settings.load()[0].design == settings.KeptDesign()
    third = studio(tmp_path)
    async with third.run_test():
        pane = third.query_one(DesignPane)
        assert pane.draft.preset.name == "demo" and not pane.draft.changes and "●" not in shown(third)


async def test_a_design_is_kept_soon_after_a_change_too(tmp_path, own_settings, monkeypatch) -> None:
    monkeypatch.setattr(design, "KEEP", 0.05)
    app = studio(tmp_path)
    async with app.run_test() as pilot:
        await fewer_layers(pilot)
        await until(pilot, lambda: "design" in tomllib.loads(own_settings.read_text()))
        kept = {"on": "", "ranks": 1, "changes": {"model.n_layers": 1}}
        assert tomllib.loads(own_settings.read_text())["design"] == {"at": "", "drafts": {"demo": kept}}


async def test_a_preset_of_ones_own_comes_back_and_one_that_is_gone_is_the_demo(tmp_path) -> None:
    own = own_files.presets_folder() / "mine.toml"
    own.parent.mkdir(parents=True)
    own.write_text('extends = "demo"\ndescription = "mine"\n')
    app = studio(tmp_path)
    async with app.run_test() as pilot:
        app.query_one(DesignPane).choose(str(own))
        await pilot.pause()
        await fewer_layers(pilot)
        await app._shut_down("stop")
    again = studio(tmp_path)
    async with again.run_test():
        draft = again.query_one(DesignPane).draft
        assert (draft.path, draft.changes) == (own, {"model.n_layers": 1})
    own.write_text("no TOML")
    broken = studio(tmp_path)
    async with broken.run_test():
        assert broken.query_one(DesignPane).draft.name == "demo"


async def test_a_hostile_design_in_the_settings_puts_nothing_of_its_own_on_screen(tmp_path, own_settings) -> None:
    own_settings.write_text(
        """welcomed = true
[design]
at = "/etc/passwd"
[design.drafts."[red]x[/red]\\u001b[31m"]
ranks = 2
[design.drafts.demo]
on = "\\u001b]0;title\\u0007"
ranks = -3
[design.drafts.demo.changes]
"\\u001b[31mkey" = 1
"data.corpus" = "\\u001b[31mred"
"model.d_model" = "[bold red]wide[/]"
"description" = "[bold red]said[/] [@click=app.quit]here[/]"
"model.n_layers" = 1
"""
    )
    app = studio(tmp_path)
    async with app.run_test(size=(200, 50)) as pilot:
        draft = app.query_one(DesignPane).draft
        assert set(draft.changes) == {"description", "model.n_layers"} and draft.ranks == 1 and draft.on is None
        for keys in ("t", "escape", "e", "escape", "v", "escape", "question_mark", "escape"):
            await pilot.press(keys)
            await pilot.pause()
            text = shown(app)
            assert "\x1b" not in text and "\x07" not in text and "title" not in text.lower().split()
            assert "/etc/passwd" not in text
        await app._shut_down("stop")
    assert "\\u001b" not in own_settings.read_text() and "\x1b" not in own_settings.read_text()
