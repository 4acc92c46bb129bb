"""The studio on disks that fail: its settings, its runs, its cache of nothing. It says so in a line and goes on."""

import errno
import os
import shutil
from pathlib import Path

import pytest
import torch

from tests.tui_transformer.recorded import record
from tests.tui_transformer.studio.on_screen import said, shown, until
from tests.tui_transformer.studio.test_app import studio
from tests.waiting import PATIENCE
from tui_transformer import languages, settings
from tui_transformer.lab.work.processes import TrainingThread
from tui_transformer.settings import Settings

NUMBERS = (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO)
PLACES = ("pathlib.Path.mkdir", "pathlib.Path.replace")


def failing(monkeypatch: pytest.MonkeyPatch, place: str, number: int) -> None:
    """Whatever the settings do with their folder fails."""
    name = place.rpartition(".")[2]
    real = getattr(Path, name)

    def refused(self: Path, *given: object, **more: object) -> object:
        if "settings.toml" in self.name or (name == "mkdir" and self == settings.settings_file().parent):
            raise OSError(number, os.strerror(number), str(self))
        return real(self, *given, **more)

    monkeypatch.setattr(place, refused)


def open_failing(path: Path, number: int) -> bytes:
    raise OSError(number, os.strerror(number), str(path))


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("place", PLACES)
def test_settings_that_cannot_be_written_are_one_line_and_the_old_ones_stay(
    own_settings, monkeypatch, place: str, number: int
) -> None:
    before = own_settings.read_text()
    with monkeypatch.context() as patch:
        failing(patch, place, number)
        said = settings.save(Settings(theme="studio-light"))
    assert said == f"{own_settings} cannot be written: {os.strerror(number)}; the setting will only last until you quit"
    assert own_settings.read_text() == before
    assert list(own_settings.parent.glob("*settings*")) == [own_settings]
    assert settings.save(Settings(theme="studio-light")) == "" and settings.load()[0].theme == "studio-light"


@pytest.mark.parametrize("number", NUMBERS)
def test_settings_that_cannot_be_read_are_one_line_and_stay(own_settings, monkeypatch, number: int) -> None:
    before = own_settings.read_text()
    with monkeypatch.context() as patch:
        patch.setattr(settings, "read_regular_file", lambda path, most: open_failing(path, number))
        found, said = settings.load()
        kept = settings.save(Settings(theme="studio-light"))
    assert found == Settings()
    assert said == f"{own_settings} cannot be read: {os.strerror(number)}; using the default settings"
    assert kept == f"{own_settings} cannot be read: {os.strerror(number)}; the setting was not saved"
    assert own_settings.read_text() == before


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def a_loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)


def a_file_in_the_way(path: Path) -> None:
    os.environ[languages.SETTINGS_VARIABLE] = str(path / "settings.toml")


ODD = {
    "a folder": a_folder,
    "a link to itself": a_loop,
    "a file in the way": a_file_in_the_way,
    "no text": lambda path: path.write_bytes(b"\xff\xfe\x00"),
    "nested too deep": lambda path: path.write_text("a = " + "[" * 20000),
}


@pytest.mark.parametrize("odd", ODD)
def test_whatever_lies_where_the_settings_are_is_said_in_one_line(own_settings, monkeypatch, odd: str) -> None:
    monkeypatch.setenv(languages.SETTINGS_VARIABLE, os.environ[languages.SETTINGS_VARIABLE])  # put back in the end
    ODD[odd](own_settings)
    found, said = settings.load()
    kept = settings.save(Settings(theme="studio-light"))
    assert found == Settings() and "\n" not in said + kept
    assert said.startswith(str(own_settings)) and said.endswith("; using the default settings")
    assert kept.startswith(str(own_settings)) and kept.endswith("; the setting was not saved")


@pytest.mark.parametrize("odd", ["a folder", *(pytest.param(odd, marks=pytest.mark.slow) for odd in [*ODD][1:])])
async def test_with_it_the_studio_opens_and_keeps_a_setting_till_it_ends(
    tmp_path, own_settings, monkeypatch, odd: str
) -> None:
    monkeypatch.setenv(languages.SETTINGS_VARIABLE, os.environ[languages.SETTINGS_VARIABLE])
    ODD[odd](own_settings)
    app = studio(tmp_path, "design")
    async with app.run_test() as pilot:
        await pilot.press("escape")
        app.theme = "studio-light"
        await pilot.pause()
        assert app.settings.theme == "studio-light" and app.is_running
        first, *_, last = said(app).splitlines()
    assert first.endswith("using the default settings") and last.endswith("the setting was not saved")


def test_a_device_that_is_gone_keeps_no_later_run_from_training_here(tmp_path, monkeypatch) -> None:
    def lost(*_: object, **__: object) -> None:
        raise torch.AcceleratorError("CUDA error: device lost")

    monkeypatch.setattr("engine.training.assemble.begin", lost)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "empty_cache", lost)
    for _ in range(2):
        training = TrainingThread("begin", tmp_path, device="cpu")
        training.start()
        training.join(PATIENCE)
        assert isinstance(training.error, torch.AcceleratorError) and not training.alive


@pytest.mark.slow
@pytest.mark.parametrize("what", ["a run", "the folder", "a file instead", "not readable"])
async def test_runs_that_vanish_under_the_studio_are_gone_and_come_back(tmp_path, monkeypatch, what: str) -> None:
    root = tmp_path / "runs"
    record(root, "one")
    record(root, "two")
    kept = tmp_path / "kept"
    app = studio(tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.press("2")
        await until(pilot, lambda: "one" in shown(app) and "two" in shown(app))
        shutil.copytree(root, kept)
        with monkeypatch.context() as patch:
            if what == "not readable":

                def refused(path: object) -> object:
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

                patch.setattr("engine.runs.scan.os.scandir", refused)
            else:
                shutil.rmtree(root / "two" if what == "a run" else root)
            if what == "a file instead":
                root.write_text("in the way")
            for pane in ("design", "train", "compare", "playground"):
                app.action_show_pane(pane)
                await pilot.pause(0.4)
            assert app.is_running
        if what == "a file instead":
            root.unlink()
        shutil.copytree(kept, root, dirs_exist_ok=True)
        app.action_show_pane("train")
        await until(pilot, lambda: "one" in shown(app) and "two" in shown(app))
