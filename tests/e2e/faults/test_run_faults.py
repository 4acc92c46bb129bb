"""Every write of a run may fail once, for want of room or for good: the last good state stays, and a line says why."""

import shutil
from pathlib import Path

import pytest

from engine.runs.reader import RunReader
from engine.training import checkpoint
from tests.e2e.faults.rig import Ended, Rig
from tests.e2e.faults.slices import ERRORS, NAMES, few, run_words
from tests.engine.training.test_resume import outcome

SETTINGS = {
    "model": "n_layers=1 d_model=16 n_heads=2 context_length=16",
    "train": "steps=6 batch_size=4 threads=1",
    "evaluation": "every=3 sample_every=3 sample_length=8",
    "checkpoint": "every=3",
    "data": "corpus_size=10000",
    "log": "every=1",
}
SLICE = 3  # writes that CI lets fail, of some 190


def words(runs: Path, *more: str) -> list[str]:
    return run_words(runs, SETTINGS, *more)


@pytest.fixture(scope="module")
def whole(rig: Rig, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """An undisturbed run, and how many writes it takes."""
    runs = tmp_path_factory.mktemp("whole") / "runs"
    ended = rig.run(words(runs), runs)
    assert ended.code == 0, ended.said
    return runs / "a", ended.writes


def holds(rig: Rig, runs: Path, whole: Path, k: int, error: int) -> None:
    """What is promised when write k fails."""
    shutil.rmtree(runs, ignore_errors=True)
    ended = rig.run(words(runs), runs, k, error)
    where = f"write {k}, {ERRORS[error]}: {ended.said}"
    assert "Traceback" not in ended.said, where
    if ended.code == 0:  # it waited for room, or did without: nothing is missing
        assert outcome(runs / "a") == outcome(whole), where
        return
    assert ended.code == 1 and ERRORS[error] in said_last(ended), where
    run = runs / "a"
    if not (run / "checkpoints").is_dir() or not any(run.glob("checkpoints/step-*")):
        return  # it never began
    _, damaged = checkpoint.newest_intact(run)
    assert not damaged, where
    if RunReader(run).status.state == "finished":
        return
    again = rig.run(["resume", "a", "--runs-dir", str(runs), "--device", "cpu"], runs)
    assert again.code == 0, where + again.said
    assert outcome(run) == outcome(whole), where


def said_last(ended: Ended) -> str:
    """The last lines are the message."""
    return "\n".join(ended.said.strip().splitlines()[-3:])


@pytest.mark.parametrize("error", ERRORS, ids=NAMES)
def test_some_writes_of_a_run_fail(rig: Rig, whole, tmp_path: Path, error: int) -> None:
    run, writes = whole
    for k in few(SLICE, f"run {error}", writes):
        holds(rig, tmp_path / "runs", run, k, error)


@pytest.mark.slow
@pytest.mark.parametrize("error", ERRORS, ids=NAMES)
def test_each_write_of_a_run_fails(rig: Rig, whole, tmp_path: Path, error: int) -> None:
    run, writes = whole
    for k in range(1, writes + 1):
        holds(rig, tmp_path / "runs", run, k, error)
