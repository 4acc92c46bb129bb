"""What a run takes is said before it starts, from what this machine did, and says where it comes from."""

import json
import platform
from pathlib import Path

from engine.base import threads
from engine.config import presets
from tui_transformer.lab.design.draft import Benchmark, Draft
from tui_transformer.lab.design.forecast import BEGINNING, Forecast, Machine, RunSpeed, base_trained_last


def of(name: str, machine: Machine, **known: object) -> Forecast:
    draft = Draft.from_preset(name)
    cost = draft.cost()
    assert draft.config is not None and cost is not None
    return machine.forecast(draft.config, cost, **known)


def run(folder: Path, preset: str, *, seconds: float, created: str, host: str) -> None:
    """A finished run's files, as far as a forecast reads them."""
    folder.mkdir(parents=True)
    files = {
        "run.json": {"schema": 1, "created": created},
        "model.json": {"schema": 1, "flops_per_token": 1_000_000},
        "summary.json": {"schema": 1, "step": 100, "tokens": 409_600, "seconds": seconds},
        "environment.json": {"schema": 1, "attempts": [{"attempt": 1, "host": host, "device": "cpu"}]},
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    (folder / "config.toml").write_text(Draft.from_preset(preset).toml())


def test_without_runs_it_is_a_guess_and_a_large_model_takes_longer() -> None:
    small, large = of("demo", Machine("cpu")), of("baseline", Machine("cpu"))
    assert small.seconds and large.seconds and large.seconds > 10 * small.seconds
    assert not small.is_long and large.is_long and "no earlier run on this machine" in small.source


def test_the_speed_of_earlier_runs_counts_and_that_of_other_machines_does_not(tmp_path: Path) -> None:
    assert base_trained_last(tmp_path) == "demo"
    here = platform.node()
    run(tmp_path / "slow", "demo", seconds=100.0, created="2026-01-01", host=here)
    run(tmp_path / "elsewhere", "phrasebook", seconds=1.0, created="2026-01-02", host="not-" + here)
    machine = Machine.from_runs(tmp_path, "auto")
    assert machine.device == "cpu" and [speed.run for speed in machine.speeds] == ["slow"]
    found = of("demo", machine)
    steps = presets.resolve(presets.find("demo")).train.steps  # of about a second each
    assert found.seconds is not None and 0.9 * steps < found.seconds - BEGINNING < 1.1 * steps
    assert found.source == "estimated from the speed of slow" and found.disk > 1e6 and found.memory > 1e7
    assert base_trained_last(tmp_path) == "phrasebook"


def test_one_slow_run_among_many_does_not_count() -> None:
    speeds = tuple(RunSpeed(str(n), 4e9, 1e9 if n == 0 else 1e11) for n in range(5))
    found = of("demo", Machine("cpu", speeds))
    assert found.seconds is not None and found.seconds < 200
    assert found.source == "estimated from the speed of 5 earlier runs"


def test_runs_with_as_many_threads_count_before_those_of_a_study_that_shared_the_cores() -> None:
    mine = threads.default_count()
    shared = tuple(RunSpeed(f"att.win16.s{n}", 4e9, 2e10, threads=mine + 1) for n in range(5))
    found = of("demo", Machine("cpu", (*shared, RunSpeed("demo", 4e9, 1e11, threads=mine))))
    assert found.source == "estimated from the speed of demo"
    assert of("demo", Machine("cpu", shared)).source == "estimated from the speed of 5 earlier runs"


def test_a_measurement_takes_the_place_of_an_estimate() -> None:
    found = of("demo", Machine("cpu"), benchmark=Benchmark(device="cpu", seconds=60.0, memory_bytes=5e7))
    assert (found.source, found.seconds, found.memory) == ("measured", 60.0 + BEGINNING, 5e7)


def test_epochs_need_the_size_of_the_text() -> None:
    draft = Draft.from_preset("demo").with_change("train.epochs", 2.0)
    cost = draft.cost()
    assert draft.config is not None and cost is not None
    assert Machine("cpu").forecast(draft.config, cost).time_text == "time unknown"
    assert Machine("cpu").forecast(draft.config, cost, 900_000).seconds is not None
