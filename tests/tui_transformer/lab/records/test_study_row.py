"""A study as one row: what has finished, what is left, its state, and its evaluations by variant and seed."""

import json
from pathlib import Path

import pytest

from engine.runs.commands import Command, read_commands
from tests.tui_transformer.recorded import record
from tui_transformer.lab.launch.launches import Launches
from tui_transformer.lab.records.feed import Feed, Snapshot
from tui_transformer.lab.studies.record import only_runner, stop_file

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


def look(root: Path) -> Snapshot:
    return Feed(root).look(root / "pos.study.toml")


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
    launches = Launches(root, None, "cpu")
    [study] = look(root).studies
    runs = [run.path for run in study.runs]
    assert launches.tell_study("pos", runs, Command.PAUSE) == "1 run"
    assert launches.tell_study("pos", runs, Command.STOP) == "1 run"
    assert read_commands(root / "pos.rope.s2") == [(1, Command.PAUSE), (2, Command.STOP)]
    with only_runner(root, "pos"):  # it stops its runs itself, and begins no other
        launches.tell_study("pos", runs, Command.STOP)
    assert stop_file(root, "pos").exists() and len(read_commands(root / "pos.rope.s2")) == 2
