"""`work`: how it ends, and how much time it has."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from engine.base.errors import InputError
from engine.capabilities import with_value
from engine.config.schema import RunConfig
from engine.runs import claims
from engine.runs.claims import claim, liveness
from engine.runs.reader import RunReader
from tests.claim_holders import claim_holders
from tests.conftest import TINY
from tests.tui_transformer.lab.work.test_runner import put
from tests.tui_transformer.lab.work.tiny import nothing_left, tiny_study
from tests.waiting import PATIENCE, wait_for
from tui_transformer.__main__ import main
from tui_transformer.lab.work import deadline, runner
from tui_transformer.lab.work.deadline import Deadline, job_seconds_left, seconds_until
from tui_transformer.lab.work.processes import create_queued_run
from tui_transformer.lab.work.queue_runner import add_to_device_queue
from tui_transformer.lab.work.study import write_study
from tui_transformer.lab.work.study_files import stop_file

CELLS = tiny_study().cells()
pytestmark = pytest.mark.usefixtures("module_fork_start")


@pytest.fixture
def runs(tmp_path) -> Path:
    """A study that was started, without its runs."""
    root = tmp_path / "runs"
    root.mkdir()
    write_study(tiny_study(), root)
    return root


def there(root: Path, state: str, *, count: int = 4, **how: Any) -> None:
    """The first runs of the study, as workers left them."""
    for cell in CELLS[:count]:
        place = {"name": "tiny", "variant": cell.variant, "seed": cell.seed}
        put(create_queued_run(cell.config, runs_dir=root, name=cell.name, command="", study=place), state, **how)


def works(root: Path, *more: str) -> int:
    return main(["work", "tiny", "--runs-dir", str(root), "--device", "cpu", *more])


# Ends.


def test_a_study_that_is_finished_says_so(runs, capsys) -> None:
    there(runs, "finished")
    assert works(runs) == 0
    assert capsys.readouterr().out == "study 'tiny' is finished: 4 of 4 runs are done\n"
    assert works(runs, "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert said == {"kind": "work", "study": "tiny", "state": "finished", "runs": 4, "finished": 4}
    assert not (runs / ".claims").exists()


def test_a_study_that_is_unknown_deleted_or_damaged_says_so_in_a_line(runs, capsys) -> None:
    assert main(["work", "tinny", "--runs-dir", str(runs)]) == 2
    said = capsys.readouterr().err
    assert "no study 'tinny' was started in" in said and "did you mean 'tiny'?" in said and said.count("\n") == 1
    file = runs / "tiny.study.toml"
    file.write_text(file.read_text() + "\nnonsense = 1\n")
    assert works(runs) == 2
    said = capsys.readouterr().err
    assert "tiny.study.toml: " in said and "nonsense" in said and said.count("\n") == 1
    file.unlink()
    assert works(runs) == 2
    said = capsys.readouterr().err
    assert "no study 'tiny' was started in" in said and "`tui-transformer ablate --study tiny" in said
    assert said.count("\n") == 1
    shutil.rmtree(runs)
    assert works(runs) == 2 and not runs.exists()


def test_a_study_that_was_stopped_waits_for_a_person(runs, capsys) -> None:
    stop_file(runs, "tiny").touch()
    assert works(runs) == 0
    said = capsys.readouterr().out
    assert said.startswith("study 'tiny' was stopped; `tui-transformer ablate --study") and said.count("\n") == 1
    assert stop_file(runs, "tiny").exists()


def test_failed_runs_are_left_alone_and_named_by_the_exit_code(runs, capsys) -> None:
    there(runs, "finished", count=3)
    place = {"name": "tiny", "variant": CELLS[3].variant, "seed": CELLS[3].seed}
    put(
        create_queued_run(CELLS[3].config, runs_dir=runs, name=CELLS[3].name, command="", study=place), "failed", step=3
    )
    assert works(runs) == 1
    said = capsys.readouterr()
    assert "1 run failed; --retry-failed retries it" in said.err and "3 of 4 runs are done" in said.out


def test_what_is_in_the_hands_of_others_is_left_to_them(runs, capsys) -> None:
    there(runs, "finished", count=3)
    theirs = claim(runs, CELLS[3].name)  # by this process, which lives
    assert works(runs) == 0
    assert capsys.readouterr().out == "3 of 4 runs are done; none left to claim\n"
    assert theirs is not None and theirs.is_held


def test_a_machine_on_which_nothing_begins_does_not_fail_the_whole_study(runs, capsys, monkeypatch) -> None:
    monkeypatch.setattr(runner, "spawn", lambda *words, **options: subprocess.Popen(["false"]))
    assert works(runs) == 1
    said = capsys.readouterr()
    assert said.out == "0 of 4 runs are done\n" and "3 runs in a row failed here before their first step" in said.err
    assert sum(RunReader(path).state == "failed" for path in runs.glob("tiny.*.s*")) == 3


def test_a_device_that_is_not_there_fails_no_run(runs, capsys) -> None:
    assert main(["work", "tiny", "--runs-dir", str(runs), "--device", "cuda:9"]) == 2
    assert capsys.readouterr().err.count("\n") == 1 and not (runs / ".claims").exists()


def started(root: Path, stderr: int | None = subprocess.STDOUT) -> "subprocess.Popen[str]":
    words = ["work", "tiny", "--runs-dir", str(root), "--device", "cpu"]
    return subprocess.Popen(
        [sys.executable, "-m", "tui_transformer", *words], stdout=subprocess.PIPE, stderr=stderr, text=True
    )


def a_cell_trains(root: Path) -> None:
    """Wait for it."""
    runs = lambda: [RunReader(path) for path in root.glob("tiny.*.s*")]
    wait_for(lambda: any(run.status.step > 0 for run in runs()), "a first step", lambda: [run.status for run in runs()])


def endless(root: Path) -> None:
    """A study whose cells train until they are stopped."""
    root.mkdir()
    write_study(tiny_study(seeds=(1,), changes={**tiny_study().changes, "train.steps": 10**6}), root)


def test_told_to_stop_it_leaves_a_checkpoint_and_the_claim_and_another_one_goes_on(tmp_path) -> None:
    endless(root := tmp_path / "runs")
    with nothing_left(root):
        worker = started(root)
        a_cell_trains(root)
        worker.send_signal(signal.SIGTERM)
        said, _ = worker.communicate(timeout=PATIENCE)
        assert worker.returncode == 0, said
        assert said.splitlines()[-1] == "SIGTERM: this worker stopped; 0 of 2 runs are done"
        [run] = root.glob("tiny.*.s*")
        assert RunReader(run).state == "interrupted" and any(run.glob("checkpoints/step-*"))
        assert claim_holders(root) == {} and claim(root, run.name) is not None


# Time.

NOON = datetime(2026, 11, 26, 12, 0, 0)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("12:10", 600),
        ("12:00:30", 30),
        ("11:59", 86_340),
        ("03:50:00", 57_000),
        ("3h50m", 13_800),
        ("90s", 90),
        ("2d", 172_800),
        ("1h", 3600),
    ],
)
def test_until_is_a_clock_time_or_a_duration(text: str, seconds: int) -> None:
    assert seconds_until(text, NOON) == seconds


@pytest.mark.parametrize("text", ["", "soon", "25:00", "12:60", "h", "3h50", "-5m", "1.5h"])
def test_until_is_nothing_else(text: str) -> None:
    with pytest.raises(InputError, match="must be a clock time, e.g. 03:50, or a duration, e.g. 3h50m"):
        seconds_until(text, NOON)


def test_a_worker_stops_two_minutes_early_or_a_tenth_of_its_time(monkeypatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    for seconds, early in ((3600, 120), (600, 60)):
        ours, began = Deadline(seconds), now[0]
        now[0] = began + seconds - early - 1
        assert not ours.check()
        now[0] = began + seconds - early
        assert ours.check() and ours.is_up


def squeue(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A `squeue` on the path."""
    file = folder / "squeue"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.setattr(deadline, "ANSWER", PATIENCE)


def test_slurm_says_when_the_time_is_up(tmp_path, monkeypatch) -> None:
    before = datetime.now()
    ends = (before + timedelta(hours=1)).replace(microsecond=0)
    squeue(tmp_path, monkeypatch, f'[ "$*" = "-h -j 17 -o %e" ] && echo {ends.isoformat()}')
    left = job_seconds_left("17")
    assert left is not None and (ends - datetime.now()).total_seconds() <= left <= (ends - before).total_seconds()
    monkeypatch.setattr(deadline, "ASK", 1e9)
    ours = Deadline(None)
    assert not ours.check()
    monkeypatch.setattr(time, "monotonic", lambda real=time.monotonic: real() + 3600 - 119)
    assert ours.check()


@pytest.mark.parametrize("script", ["echo N/A", "exit 1", "echo slurm_load_jobs error >&2; exit 1", "exec sleep 3000"])
def test_where_slurm_does_not_say_it_what_the_environment_says_counts_if_anything(
    tmp_path, monkeypatch, script: str
) -> None:
    squeue(tmp_path, monkeypatch, script)
    monkeypatch.setattr(deadline, "ANSWER", 0.5 if script.startswith("exec") else PATIENCE)
    assert job_seconds_left("17") is None
    monkeypatch.delenv("SLURM_JOB_END_TIME", raising=False)
    assert not Deadline(None).check()
    monkeypatch.setenv("SLURM_JOB_END_TIME", str(int(time.time()) - 1))
    assert Deadline(None).check()


def test_a_limit_that_was_moved_is_noticed_and_a_silent_slurm_changes_nothing(tmp_path, monkeypatch) -> None:
    soon, later = ((datetime.now() + timedelta(seconds=s)).isoformat(timespec="seconds") for s in (1, 9000))
    squeue(tmp_path, monkeypatch, f"echo {later}")
    monkeypatch.setattr(deadline, "ASK", 0.0)
    ours = Deadline(None)
    assert not ours.check()
    squeue(tmp_path, monkeypatch, "exit 1")
    monkeypatch.setenv("SLURM_JOB_END_TIME", "1")
    assert not ours.check()
    squeue(tmp_path, monkeypatch, f"echo {soon}")
    wait_for(ours.check, "the end of its time")


def test_when_its_time_is_up_it_stops_its_run_with_a_checkpoint(tmp_path, monkeypatch) -> None:
    endless(root := tmp_path / "runs")
    ends = tmp_path / "ends"
    squeue(tmp_path, monkeypatch, f"cat {ends}")
    ends.write_text("2099-01-01T00:00:00")
    monkeypatch.setattr(deadline, "ASK", 0.2)
    with nothing_left(root):
        worker = started(root, stderr=None)
        a_cell_trains(root)
        ends.write_text("2020-01-01T00:00:00")
        said, _ = worker.communicate(timeout=PATIENCE)
    assert worker.returncode == 0 and said == "time is up: this worker stopped; 0 of 2 runs are done\n"
    [run] = root.glob("tiny.*.s*")
    assert RunReader(run).state == "interrupted" and any(run.glob("checkpoints/step-*")) and claim_holders(root) == {}


# Other hosts.


def test_a_run_of_another_host_is_taken_over_once_its_claim_and_its_beat_stand_still(runs, monkeypatch, capsys) -> None:
    there(runs, "finished", count=3)
    place = {"name": "tiny", "variant": CELLS[3].variant, "seed": CELLS[3].seed}
    path = create_queued_run(CELLS[3].config, runs_dir=runs, name=CELLS[3].name, command="", study=place)
    with monkeypatch.context() as patch:
        patch.setattr(socket, "gethostname", lambda: "elsewhere")
        theirs = claim(runs, path.name)
    assert theirs is not None and liveness(runs, path.name) == "unknown"
    ahead, real, look, held_until = 0.0, time.monotonic, claims.liveness, list[float]()

    def looked(*whose: Any) -> str:
        """Ten seconds pass before each look."""
        nonlocal ahead
        ahead += 10
        held_until.extend([ahead] if theirs.is_held else [])
        return look(*whose)

    monkeypatch.setattr(claims, "liveness", looked)
    monkeypatch.setattr(runner, "RETRY_INTERVAL", 0.0)
    monkeypatch.setattr(runner, "POLL_INTERVAL", 0.02)
    monkeypatch.setattr(time, "monotonic", lambda: real() + ahead)
    with nothing_left(runs):
        assert works(runs) == 0
    assert max(held_until) >= claims.HOLDER_LOST_AFTER and "is finished: 4 of 4 runs" in capsys.readouterr().out
    assert not theirs.is_held


def test_a_worker_stops_two_minutes_early_however_often_slurm_is_asked(monkeypatch) -> None:
    now = 0.0
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setattr(deadline.time, "monotonic", lambda: now)
    monkeypatch.setattr(deadline, "job_seconds_left", lambda job: 3600.0 - now)
    ours = Deadline(None)
    while not ours.check():
        now += 10.0
    assert now == 3480.0


def test_without_a_study_the_queued_runs_are_trained(tmp_path, capsys) -> None:
    assert main(["work", "--retry-failed", "--runs-dir", str(tmp_path)]) == 2
    assert "--retry-failed only works with a study" in capsys.readouterr().err
    config = with_value(RunConfig.model_validate(TINY), "train.steps", 3)
    add_to_device_queue(config, runs_dir=tmp_path, name="one", command="", device="cpu", data_dir=None)
    assert main(["work", "--device", "cpu", "--runs-dir", str(tmp_path)]) == 0
    assert RunReader(tmp_path / "one").state == "finished" and "1 trained" in capsys.readouterr().out
