"""A study on a real Slurm, disturbed, is the undisturbed study. TUI_TRANSFORMER_SLURM names a folder of programs that
start and end one: `up DIR` prints what to export, and `down DIR` and `kill-node DIR NODE` do what they say.

`pytest -m slow -s tests/tui_transformer/lab/work/test_on_slurm.py` prints the figures of 200 cells with 40 kills;
set WORKERS=CELLS,KILLS for other sizes.
"""

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.runs.reader import RunReader
from tests.tui_transformer.lab.work import disturbed
from tests.tui_transformer.lab.work.disturbed import workers
from tests.tui_transformer.lab.work.tiny import CHANGES, nothing_left, outcomes, started, tiny_study, written
from tests.waiting import PATIENCE, wait_for
from tui_transformer.__main__ import main
from tui_transformer.lab.work.plan import Plan, RunCost

PROGRAMS = os.environ.get("TUI_TRANSFORMER_SLURM", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PROGRAMS, reason="no Slurm here; name the folder of its programs in TUI_TRANSFORMER_SLURM"),
]


@pytest.fixture
def slurm(tmp_path_factory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("s")
    try:
        up = subprocess.run([f"{PROGRAMS}/up", str(place)], capture_output=True, text=True, check=False)
        if up.returncode:
            pytest.skip(up.stderr.strip())
        with pytest.MonkeyPatch.context() as patch:
            name, _, value = up.stdout.strip().removeprefix("export ").partition("=")
            patch.setenv(name, value.strip("'\""))
            yield place
    finally:
        subprocess.run([f"{PROGRAMS}/down", str(place)], check=False)


def asked(*words: str) -> list[str]:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split("\n")


def test_doctor_finds_a_node_fit(slurm, tmp_path, capsys) -> None:
    assert main(["doctor", "--via", "slurm", "--json", "--runs-dir", str(tmp_path)]) == 0
    found = {one["what"]: one["ok"] for line in capsys.readouterr().out.splitlines() for one in [json.loads(line)]}
    assert found["Python"] and found["program"] and found["runs folder"] and found["squeue"]


def test_a_study_with_kills_a_preemption_and_a_node_death_is_the_undisturbed_study(slurm, tmp_path, capsys) -> None:
    study = tiny_study(seeds=(1, 2, 3), changes={**CHANGES, "train.steps": 120})
    calm, runs = tmp_path / "calm", tmp_path / "runs"
    calm.mkdir()
    process = started(written(tmp_path, study), calm)
    said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said

    def submit() -> None:
        words = ["--study", str(tmp_path / "asked.toml"), "--runs-dir", str(runs), "--device", "cpu"]
        assert main(["ablate", *words, "--via", "slurm", "--workers", "2", "--retry-failed"]) == 0

    def training() -> bool:
        return any(RunReader(path).raw("status").get("step", 0) > 0 for path in runs.glob("tiny.*.s*"))

    with nothing_left(runs):
        submit()
        wait_for(training, "a first step", lambda: asked("squeue"))
        asked("sbatch", "-p", "urgent", "-w", "a1", "--output=/dev/null", "--wrap", "sleep 2")
        time.sleep(3)
        found = workers(runs)
        if found:
            random.Random(1).choice(found).send_signal(signal.SIGKILL)
        time.sleep(3)
        subprocess.run([f"{PROGRAMS}/kill-node", str(slurm), "a2"], check=True)  # its processes live on
        asked("scontrol", "update", "nodename=a2", "state=down", "reason=test")
        time.sleep(5)
        subprocess.run([f"{PROGRAMS}/up", str(slurm)], check=True, capture_output=True)

        def finished(name: str) -> bool:
            time.sleep(disturbed.LOOK)
            if not workers(runs) and not asked("squeue", "-h")[0]:
                submit()
            return RunReader(runs / name).state == "finished"

        for name in outcomes(calm):
            wait_for(lambda: finished(name), f"the end of {name}", lambda: asked("squeue"))  # noqa: B023
    assert outcomes(runs) == outcomes(calm)
    for name in outcomes(calm):
        assert [event.event for event in RunReader(runs / name).events()].count("finished") == 1


def test_a_large_study_with_many_accidents_is_the_undisturbed_study(slurm, tmp_path, monkeypatch) -> None:
    cells, kills = disturbed.asked(200, 40)
    study, runs, chance = disturbed.large_study(cells), tmp_path / "runs", random.Random(cells)
    price = {kind: RunCost(steps=60, seconds=1.0) for kind in ("rope", "alibi")}
    plan = Plan(devices=("cpu",), jobs=2, threads=1, prices=price)
    monkeypatch.setattr("tui_transformer.cli.work.ablate.make_plan_in_subprocess", lambda *_: plan)
    words = ["ablate", "--study", str(written(tmp_path, study)), "--runs-dir", str(runs), "--device", "cpu"]

    def tend() -> None:
        if len(asked("squeue", "-h", "-r", "-n", "tiny")) - 1 < 2:  # a last empty line
            assert main([*words, "--via", "slurm", "--workers", "2", "--retry-failed"]) == 0

    def kill() -> str:
        found = workers(runs)
        return disturbed.hit(chance.choice(found), runs, chance) if found else ""

    def preempt() -> str:
        asked("sbatch", "-p", "urgent", "-w", chance.choice(("a1", "a2")), "--output=/dev/null", "--wrap", "sleep 2")
        return "pre-emption"

    def die(*more: str) -> str:
        """A node dies; its jobs live on, or die with it."""
        node = chance.choice(("a1", "a2"))
        subprocess.run([f"{PROGRAMS}/kill-node", str(slurm), node, *more], check=True)
        asked("scontrol", "update", f"nodename={node}", "state=down", "reason=test")
        time.sleep(15)  # the first copy trains on, and the second starts on the other node
        subprocess.run([f"{PROGRAMS}/up", str(slurm)], check=True, capture_output=True)
        return f"node death {' '.join(more)}".strip()

    accidents = [*[kill] * kills, *[preempt] * 5, die, lambda: die("jobs")]
    chance.shuffle(accidents)
    with nothing_left(runs):
        figures = disturbed.disturb(study, runs, accidents, tend, lambda: "\n".join(asked("squeue")))
    disturbed.equals_the_undisturbed(study, runs, tmp_path / "alone")
    print(f"\n[slurm] {figures}")
