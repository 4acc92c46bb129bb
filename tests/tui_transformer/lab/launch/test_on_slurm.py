"""A study on a real Slurm, disturbed, is the undisturbed study. TUI_TRANSFORMER_SLURM names a folder of programs that
start and end one: `up DIR` prints what to export, and `down DIR` and `kill-node DIR NODE` do what they say.
"""

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from engine.runs.reader import RunReader
from tests.tui_transformer.lab.studies.tiny import CHANGES, nothing_left, outcomes, started, tiny_study, written
from tui_transformer.__main__ import main

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


def workers(runs: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words = process.info["cmdline"] or []
        if "work" in words and str(runs) in words and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


def until(true, seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, asked("squeue")
        time.sleep(0.2)


def test_doctor_finds_a_node_fit(slurm, tmp_path, capsys) -> None:
    assert main(["doctor", "--via", "slurm", "--json", "--runs-dir", str(tmp_path)]) == 0
    found = {one["what"]: one["ok"] for line in capsys.readouterr().out.splitlines() for one in [json.loads(line)]}
    assert found["Python"] and found["program"] and found["runs folder"] and found["squeue"]


def test_a_study_with_kills_a_preemption_and_a_node_death_is_the_undisturbed_study(slurm, tmp_path, capsys) -> None:
    study = tiny_study(seeds=(1, 2, 3), changes={**CHANGES, "train.steps": 120})
    calm, runs = tmp_path / "calm", tmp_path / "runs"
    calm.mkdir()
    process = started(written(tmp_path, study), calm)
    said, _ = process.communicate(timeout=600)
    assert process.returncode == 0, said

    def submit() -> None:
        words = ["--study", str(tmp_path / "asked.toml"), "--runs-dir", str(runs), "--device", "cpu"]
        assert main(["ablate", *words, "--via", "slurm", "--workers", "2", "--retry-failed"]) == 0

    def training() -> bool:
        return any(RunReader(path).raw("status").get("step", 0) > 0 for path in runs.glob("tiny.*.s*"))

    with nothing_left(runs):
        submit()
        until(training)
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
        deadline = time.monotonic() + 600
        while any(RunReader(runs / name).state != "finished" for name in outcomes(calm)):
            assert time.monotonic() < deadline
            if not workers(runs) and not asked("squeue", "-h")[0]:
                submit()
            time.sleep(1)
    assert outcomes(runs) == outcomes(calm)
    for name in outcomes(calm):
        assert [event.event for event in RunReader(runs / name).events()].count("finished") == 1
