"""A study as one row: what has finished, what is left, its state, and its evaluations by variant and seed."""

import json
import os
from pathlib import Path

import pytest

from engine.runs.commands import RunCommand, read_commands
from tests.tui_transformer.recorded import record
from tui_transformer.lab.records.feed import Feed, FolderSnapshot
from tui_transformer.lab.work.run_actions import RunActions
from tui_transformer.lab.work.runner_lock import be_only_runner
from tui_transformer.lab.work.study_files import stop_file, study_lock

STUDY = """base = "demo"
baseline = "rope"
seeds = [1, 2, 3]
[[variants]]
name = "rope"
[[variants]]
name = "no-pe"
preset = "no-pe"
"""


def cell(root: Path, variant: str, seed: int, **more) -> Path:
    run = record(root, f"pos.{variant}.s{seed}", created=f"2026-01-01T00:0{seed}:00+00:00", **more)
    born = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(born | {"study": {"name": "pos", "variant": variant, "seed": seed}}))
    return run


@pytest.fixture
def root(tmp_path) -> Path:
    (tmp_path / "pos.study.toml").write_text(STUDY)
    cell(tmp_path, "rope", 1)
    cell(tmp_path, "no-pe", 1)
    cell(tmp_path, "rope", 2, state="running", step=500)
    record(tmp_path, "alone")
    return tmp_path


def look(root: Path) -> FolderSnapshot:
    return Feed(root).poll(root / "pos.study.toml")


def test_a_study_counts_its_runs_and_has_their_evaluations(root) -> None:
    [study] = look(root).studies
    assert (study.name, study.finished, study.total, study.state) == ("pos", 2, 6, "running")
    assert study.share == pytest.approx(2.25 / 6) and study.eta is not None
    assert [run.name for run in study.runs] == ["pos.rope.s1", "pos.rope.s2", "pos.no-pe.s1"]
    assert {name: sorted(seeds) for name, seeds in study.scores.items()} == {"rope": [1, 2], "no-pe": [1]}
    assert len(study.scores["rope"][2]) == 2 and "alone" not in {run.name for run in study.runs}


@pytest.mark.parametrize(
    ("states", "state"),
    [
        (["paused"], "paused"),
        (["paused", "running"], "running"),
        (["stopped"], "stopped"),
        (["failed", "stopped"], "failed"),
        (["starting"], "starting"),
    ],
)
def test_the_state_of_a_study_is_that_of_its_runs(tmp_path, states, state) -> None:
    for seed, each in enumerate(states, 1):
        cell(tmp_path, "rope", seed, state=each, step=0 if each == "starting" else 100)
    [study] = look(tmp_path).studies
    assert study.state == state


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", ""])
def test_the_name_of_a_study_leads_nowhere_else(tmp_path, name) -> None:
    run = cell(tmp_path, "rope", 1)
    born = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(born | {"study": {"name": name, "variant": "rope", "seed": 1}}))
    assert [study.total for study in look(tmp_path).studies] == ([1] if name else [])


def test_a_command_reaches_all_live_runs_of_a_study_and_a_stop_its_runner(root) -> None:
    launches = RunActions(root, None, "cpu")
    [study] = look(root).studies
    runs = [run.path for run in study.runs]
    assert launches.send_study_command("pos", runs, RunCommand.PAUSE) == "1 run"
    assert launches.send_study_command("pos", runs, RunCommand.STOP) == "1 run"
    assert read_commands(root / "pos.rope.s2") == [(1, RunCommand.PAUSE), (2, RunCommand.STOP)]
    with be_only_runner(study_lock(root, "pos"), ""):  # it stops its runs itself, and begins no other
        launches.send_study_command("pos", runs, RunCommand.STOP)
    assert stop_file(root, "pos").exists() and len(read_commands(root / "pos.rope.s2")) == 2


def of_host(run: Path, host: str, device: str) -> None:
    """The run trains on another machine."""
    status = json.loads((run / "status.json").read_text())
    (run / "status.json").write_text(json.dumps(status | {"host": host, "device": device}))


def test_a_study_knows_its_workers_wherever_they_are(root) -> None:
    [here] = look(root).studies
    assert not here.is_remote and here.unclaimed == 3
    of_host(cell(root, "no-pe", 2, state="running", step=100), "node2", "cuda:0")
    of_host(cell(root, "no-pe", 3, state="paused", step=100), "node2", "cuda:0")
    [study] = look(root).studies
    assert study.is_remote and study.unclaimed == 1
    assert sorted(study.workers.items(), key=lambda found: found[1])[1] == (("node2", "cuda:0"), 2)
    assert sum(study.workers.values()) == 3
    for name in ("rope", "no-pe"):
        os.utime(root / f"pos.{name}.s1" / "run.json", (0, 0))
        os.utime(root / f"pos.{name}.s1" / "status.json", (600, 600))  # it took ten minutes
    [study] = look(root).studies
    assert study.per_hour == pytest.approx(18) and study.eta == pytest.approx(600 * (6 - 2 - 0.35) / 3, rel=0.01)


def test_a_study_is_paused_continued_and_stopped_on_other_machines_too(root) -> None:
    run = root / "pos.rope.s2"
    of_host(run, "node2", "cpu")
    launches, runs = RunActions(root, None, "cpu"), [run.path for run in look(root).studies[0].runs]
    for command in (RunCommand.PAUSE, RunCommand.CONTINUE, RunCommand.STOP):
        assert launches.send_study_command("pos", runs, command) == "1 run"
    assert [command for _, command in read_commands(run)] == [RunCommand.PAUSE, RunCommand.CONTINUE, RunCommand.STOP]
    assert stop_file(root, "pos").exists()  # its workers begin no other


def test_what_workers_wait_for_in_slurm_is_said_in_its_words_and_only_now_and_then(root, monkeypatch) -> None:
    (root / "bin").mkdir()
    squeue = root / "bin" / "squeue"
    squeue.write_text('#!/bin/sh\necho "$@" >>"$0.asked"\necho "PENDING|Resources"\necho "PENDING|Priority"\n')
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", str(root / "bin"), prepend=os.pathsep)
    [study] = look(root).studies
    assert study.waits_for == ""  # it has no workers in Slurm
    (root / ".pos.slurm.sh").write_text("")
    feed = Feed(root)
    for _ in range(3):
        [study] = feed.poll(root / "pos.study.toml").studies
        assert study.waits_for == "PENDING (Resources)"
    assert (root / "bin" / "squeue.asked").read_text() == "-h -t PENDING -n pos -o %T|%r\n"
    squeue.write_text("#!/bin/sh\nexit 1\n")
    [study] = look(root).studies
    assert study.waits_for == ""
