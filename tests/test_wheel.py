"""What is built from a working copy, or from its sdist, has the messages compiled; an editable install does not."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.catalogue import ROOT
from tests.waiting import PATIENCE
from tui_transformer.catalogues import FOLDER
from tui_transformer.languages import LANGUAGES
from tui_transformer.msgfmt import compile_po

SOURCES = {FOLDER / code / "LC_MESSAGES" / "messages.po" for code in LANGUAGES[1:]}


def built(kind: str, source: Path, folder: Path) -> Path:
    """Build a `wheel` or an `sdist` into an empty folder, as `pip` and `python -m build` have it built."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", str(folder)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    (made,) = folder.iterdir()
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    return built("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


def test_a_wheel_has_the_catalogues_compiled(wheel) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert not [name for name in names if name.endswith(".po")]
        found = {name: archive.read(name) for name in names if name.endswith(".mo")}
    assert found == {
        source.relative_to(ROOT).with_suffix(".mo").as_posix(): compile_po(source.read_bytes()) for source in SOURCES
    }


def test_building_leaves_nothing_in_the_working_copy(tmp_path) -> None:
    before = {path: path.stat().st_mtime_ns for path in FOLDER.rglob("*.[mp]o")}
    built("wheel", ROOT, tmp_path)
    assert {path: path.stat().st_mtime_ns for path in FOLDER.rglob("*.[mp]o")} == before


def test_what_is_installed_from_a_wheel_speaks_chinese_and_compiles_nothing(wheel, tmp_path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    environment = os.environ | {
        "PYTHONPATH": str(tmp_path / "installed"),
        "TUI_TRANSFORMER_CACHE": str(tmp_path / "cache"),
    }
    command = [sys.executable, "-m", "tui_transformer", "--language", "zh", "run", "--preset", "no-such-preset"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8", timeout=PATIENCE, check=False
    )
    assert done.returncode == 2 and any("一" <= sign <= "鿿" for sign in done.stderr), done.stderr
    assert not (tmp_path / "cache" / "messages").exists()


@pytest.mark.slow
def test_a_wheel_from_the_sdist_is_the_same(wheel, tmp_path) -> None:
    with tarfile.open(built("sdist", ROOT, tmp_path / "sdist")) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    assert not list(source.rglob("*.mo"))
    assert built("wheel", source, tmp_path / "wheel").read_bytes() == wheel.read_bytes()


@pytest.mark.slow
def test_pip_builds_it_in_isolation(wheel, tmp_path) -> None:
    """Where nothing is installed but what `build-system` requires."""
    if subprocess.run(
        [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", str(tmp_path / "there"), "hatchling"],
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    ).returncode:
        pytest.skip("no package index can be reached")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", str(tmp_path / "wheel"), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(next((tmp_path / "wheel").iterdir())) as ours, zipfile.ZipFile(wheel) as theirs:
        assert ours.namelist() == theirs.namelist()


def test_an_editable_install_compiles_nothing() -> None:
    """Its messages would be stale after the next edit."""
    code = (
        "import sys; sys.path.insert(0, '.'); from hatch_build import CompiledCatalogues; data = {'force_include': {}};"
        "hook = CompiledCatalogues('.', {}, None, None, '', 'wheel'); hook.initialize('editable', data);"
        "hook.finalize('editable', data, ''); print(data)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.stdout == "{'force_include': {}}\n", done.stderr
