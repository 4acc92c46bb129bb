"""What somebody deletes, or a disk takes with it, while a command looks at it: one line, exit code 1, no traceback."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from engine.runs.files import write_json
from engine.runs.process import identity
from engine.runs.reader import RunReader
from engine.training.inspector import Inspector
from engine.training.step import Stepper
from tests.e2e.faults.slices import SETTINGS as SMALLEST
from tests.e2e.faults.slices import run_words
from tests.tui_transformer.recorded import record
from tui_transformer.__main__ import main
from tui_transformer.cli.run import progress

SETTINGS = {**SMALLEST, "train": "steps=6 batch_size=4 threads=1"}


def training(runs: Path, *more: str) -> list[str]:
    return run_words(runs, SETTINGS, *more)


def complaint(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that says what went wrong."""
    said = capsys.readouterr().err
    lines = [line for line in said.splitlines() if line.startswith("tui-transformer: ") and ": warning: " not in line]
    assert "Traceback" not in said and len(lines) == 1, said
    return lines[0]


@pytest.mark.parametrize("what", ["run", "runs"])
def test_a_run_whose_folder_vanishes_while_it_trains(tmp_path, capsys, monkeypatch, what: str) -> None:
    runs = tmp_path / "runs"
    real = Stepper.step

    def take(self: Stepper, step: int, **given: Any) -> Any:
        if step == 3:
            shutil.rmtree(runs / "a" if what == "run" else runs)
        return real(self, step, **given)

    monkeypatch.setattr(Stepper, "step", take)
    assert main(training(runs)) == 1
    assert complaint(capsys) == f"tui-transformer: run 'a' failed: its folder {runs / 'a'} vanished"


@pytest.mark.parametrize("step", [3, 5])  # before the first evaluation, and between two
@pytest.mark.parametrize("how", ["removed", "moved"])
def test_a_run_whose_folder_disappears_before_an_evaluation_says_so(tmp_path, capsys, monkeypatch, step, how) -> None:
    runs, elsewhere = tmp_path / "runs", tmp_path / "elsewhere"
    real = Inspector.check_scores

    def scores(self: Inspector, record: dict[str, Any], at: int) -> None:
        if at == (step + 1) // 2 * 2:
            shutil.rmtree(runs / "a") if how == "removed" else (runs / "a").rename(elsewhere)
        real(self, record, at)

    monkeypatch.setattr(Inspector, "check_scores", scores)
    assert main(training(runs, "--set", "evaluation.every=2")) == 1
    became = "vanished"
    if how == "moved":
        became = f"was moved to {elsewhere} during training" if Path("/proc/self/fd").exists() else became
        assert RunReader(elsewhere).config.train.steps == 6 and RunReader(elsewhere).status.step > 0
    assert complaint(capsys) == f"tui-transformer: run 'a' failed: its folder {runs / 'a'} {became}"


@pytest.mark.parametrize("form", [(), ("--json",)])
@pytest.mark.parametrize("what", ["run", "runs"])
def test_a_run_that_vanishes_while_it_is_watched(tmp_path, capsys, monkeypatch, form, what: str) -> None:
    runs = tmp_path / "runs"
    run = record(runs, "a")
    status = json.loads((run / "status.json").read_text())
    write_json(run / "status.json", status | {"state": "running"} | identity().dump())
    assert RunReader(run).state == "running"
    monkeypatch.setattr(progress.time, "sleep", lambda _: shutil.rmtree(run if what == "run" else runs, True))
    assert main(["watch", "a", "--runs-dir", str(runs), *form]) == 1
    assert complaint(capsys) == f"tui-transformer: run 'a' is gone: its folder {run} no longer exists"
