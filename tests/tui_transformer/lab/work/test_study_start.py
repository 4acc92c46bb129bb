"""A study handed to a process of its own: what it says is passed on, and nothing of it stays lying about."""

import asyncio
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from engine.base.errors import InputError
from tests.waiting import PATIENCE, until
from tui_transformer.lab.design.benchmarks import time_study_steps
from tui_transformer.lab.design.study_draft import Estimate
from tui_transformer.lab.work.async_commands import LaunchTarget, start_study
from tui_transformer.lab.work.plan import RunCost
from tui_transformer.lab.work.study import Study, Variant

STUDY = Study("small", "demo", (Variant("design"), Variant("one", changes={"model.n_layers": 1})), "design", (1, 2))
PLAN = '{"kind": "plan", "seconds": 60.0, "disk_bytes": 9, "jobs": 2, "threads": 1, "devices": ["cpu"], "prices": {}}'


@pytest.fixture(autouse=True)
def asked(tmp_path, monkeypatch) -> Path:
    """Where what is asked lies while it is asked."""
    folder = tmp_path / "asked"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def place(tmp_path) -> LaunchTarget:
    return LaunchTarget(tmp_path / "runs", None, "cpu")


def instead(monkeypatch, code: str) -> None:
    """What runs instead of ablate; its first argument is the study's file, the second what is asked of it."""
    monkeypatch.setattr(LaunchTarget, "ablate_command", lambda self, file: [sys.executable, "-c", code, str(file)])


def left(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def test_the_command_is_the_command_lines_own(tmp_path) -> None:
    words = LaunchTarget(tmp_path, tmp_path / "data", "cuda:0").ablate_command(Path("a.toml"))
    assert words[1:6] == ["-m", "tui_transformer", "ablate", "--study", "a.toml"]
    assert words[6:] == [
        "--device",
        "cuda:0",
        "--runs-dir",
        str(tmp_path),
        "--json",
        "--data-dir",
        str(tmp_path / "data"),
    ]


async def test_a_plan_is_read_from_a_dry_run(place, monkeypatch, asked) -> None:
    code = f"import sys; assert sys.argv[2] == '--dry-run' and 'n_layers' in open(sys.argv[1]).read(); print('{PLAN}')"
    instead(monkeypatch, code)
    found = await time_study_steps(STUDY, place)
    assert found.seconds == 60.0 and found.measured and left(asked) == []


async def test_what_ablate_complains_about_is_said(place, monkeypatch, asked) -> None:
    instead(monkeypatch, "import sys; print('tui-transformer: no such corpus', file=sys.stderr); sys.exit(2)")
    for ask in (time_study_steps, start_study):
        with pytest.raises(InputError, match=r"\Ano such corpus\Z"):
            await ask(STUDY, place)
    assert left(asked) == []


@pytest.mark.parametrize("said", ["", "not json", "[1]", '{"kind": "run"}'])
async def test_an_answer_that_is_none_is_an_error(place, monkeypatch, said: str) -> None:
    instead(monkeypatch, f"print({said!r})")
    for ask in (time_study_steps, start_study):
        with pytest.raises(InputError):
            await ask(STUDY, place)


async def test_a_started_study_says_where_it_will_be(place, monkeypatch, asked) -> None:
    code = """import sys; assert sys.argv[2] == '--detach'; print('{"kind": "study", "pid": 1}')"""
    instead(monkeypatch, code)
    said = await start_study(STUDY, place)
    assert "4 runs" in said and "Train (2)" in said and "Compare (3)" in said and left(asked) == []


async def test_a_plan_that_was_measured_goes_along(place, monkeypatch, asked) -> None:
    code = """import json, sys
assert sys.argv[2:4] == ['--detach', '--plan'] and json.load(open(sys.argv[4]))['prices']['one']['seconds'] == 7.0
print('{"kind": "study", "pid": 1}')"""
    instead(monkeypatch, code)
    plan = Estimate(devices=("cpu",), jobs=2, threads=1, prices={"one": RunCost(seconds=7.0)}, seconds=60.0)
    assert "4 runs" in await start_study(STUDY, place, plan) and left(asked) == []


AT_WORK = "import pathlib, time; pathlib.Path(r'{}').touch(); time.sleep(3600)"


async def _cancelled(ask, place, monkeypatch) -> list[psutil.Process]:
    """The processes that were at work when the asking was cancelled."""
    begun = place.runs_dir.with_name("begun")
    instead(monkeypatch, AT_WORK.format(begun))
    before = set(psutil.Process().children())
    asking = asyncio.ensure_future(ask(STUDY, place))
    await until(lambda: begun.exists() or asking.done(), "a process at work")
    found = [child for child in psutil.Process().children() if child not in before]
    assert found
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(asking, PATIENCE)
    return found


async def test_leaving_ends_a_measurement_with_all_it_started(place, monkeypatch, asked) -> None:
    for process in await _cancelled(time_study_steps, place, monkeypatch):
        assert not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    assert left(asked) == []


async def test_leaving_does_not_end_a_launch(place, monkeypatch, asked) -> None:
    (process,) = await _cancelled(start_study, place, monkeypatch)
    try:
        assert process.status() != psutil.STATUS_ZOMBIE and len(left(asked)) == 1
    finally:
        process.kill()
