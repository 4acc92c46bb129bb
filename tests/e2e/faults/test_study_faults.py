"""Every write of a study, its runner's or its cells', may fail once: the same command goes on to the same runs."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from engine.training import checkpoint
from tests.e2e.faults.rig import Rig
from tests.e2e.faults.slices import ERRORS, NAMES, PARTS, complaints, few, part, sets
from tests.engine.training.test_resume import outcome
from tui_transformer.lab.work.study import read_study

SLICE = 1  # write that CI lets fail with each error, of some 340
CELLS = ["s.position-alibi.s1", "s.position-rope.s1"]


def words(runs: Path) -> list[str]:
    what = ["--preset", "demo", "--vary", "model.position=rope,alibi", "--seeds", "1", "--name", "s"]
    return ["ablate", *what, "--runs-dir", str(runs), "--device", "cpu", "--jobs", "1", *sets()]


def outcomes(runs: Path) -> dict[str, Any]:
    """What the study left behind but its clocks."""
    return {path.name: outcome(path) for path in sorted(runs.glob("s.*.s*"))}


@pytest.fixture(scope="module")
def whole(rig: Rig, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """An undisturbed study, and how many writes it takes."""
    runs = tmp_path_factory.mktemp("whole") / "runs"
    ended = rig.run(words(runs), runs)
    assert ended.code == 0, ended.said
    assert list(outcomes(runs)) == CELLS
    return runs, ended.writes


def holds(rig: Rig, runs: Path, whole: Path, k: int, error: int) -> None:
    """What is promised when write k fails."""
    shutil.rmtree(runs, ignore_errors=True)
    ended = rig.run(words(runs), runs, k, error)
    where = f"write {k}, {ERRORS[error]}: {ended.said}"
    assert "Traceback" not in ended.said, where
    for run in runs.glob("s.*.s*"):
        if any(run.glob("checkpoints/step-*")):
            assert not checkpoint.newest_intact(run)[1], where
    if ended.code:
        assert ended.code == 1, where
        lines = complaints(ended.said)
        assert lines and all(ERRORS[error] in line and (str(runs) in line or "run 's." in line) for line in lines), (
            where
        )
        again = rig.run([*words(runs), *(["--retry-failed"] if "--retry-failed" in ended.said else [])], runs)
        assert again.code == 0, where + again.said
    assert outcomes(runs) == outcomes(whole), where
    assert read_study(runs / "s.study.toml") == read_study(whole / "s.study.toml")


@pytest.mark.parametrize("error", ERRORS, ids=NAMES)
def test_some_writes_of_a_study_fail(rig: Rig, whole, tmp_path: Path, error: int) -> None:
    study, writes = whole
    for k in few(SLICE, f"study {error}", writes):
        holds(rig, tmp_path / "runs", study, k, error)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(PARTS))
@pytest.mark.parametrize("error", ERRORS, ids=NAMES)
def test_each_write_of_a_study_fails(rig: Rig, whole, tmp_path: Path, error: int, number: int) -> None:
    study, writes = whole
    for k in part(number, writes):
        holds(rig, tmp_path / "runs", study, k, error)
