"""Workers that are killed at random share a study: nothing is lost, nothing is trained to its end twice.

`pytest -m slow -s tests/e2e/test_workers.py` prints the figures of 1,000 cells with 100 kills; `WORKERS=60,15` in front
of it makes that 60 cells with 15 kills. CI runs a few cells. Where this process may name hosts, the workers are on two.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from engine.config.keys import flatten
from engine.runs.reader import RunReader
from engine.training.assemble import assemble
from tests.conftest import TINY
from tests.engine.training.test_resume import outcome
from tui_transformer.lab.studies.record import write
from tui_transformer.lab.studies.runner import left_behind
from tui_transformer.lab.studies.study import Study, Variant

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs signals and /proc")

MANY = tuple(int(number) for number in os.environ.get("WORKERS", "1000,100").split(","))
AT_ONCE = 3
CHANGES = {**flatten(TINY), "train.steps": 60, "checkpoint.every": 3, "evaluation.every": 15, "log.every": 2}
VARIANTS = (Variant("rope", changes={"model.position": "rope"}), Variant("alibi", preset="alibi"))


def may_name_hosts() -> bool:
    named = ["unshare", "--uts", "hostname", "node0"]
    return shutil.which("unshare") is not None and subprocess.run(named, capture_output=True).returncode == 0


class Workers:
    """So many at a time; one that is killed is replaced on its host."""

    def __init__(self, runs: Path, log: Path) -> None:
        self.runs, self.log, self.named = runs, log.open("ab"), may_name_hosts()
        self.all = [self.start(f"node{number % 2}") for number in range(AT_ONCE)]

    def start(self, host: str) -> tuple[str, "subprocess.Popen[bytes]"]:
        words = [sys.executable, "-m", "tui_transformer", "work", "tiny", "--device", "cpu", "--runs-dir", self.runs]
        on = ["unshare", "--uts", "sh", "-c", f'hostname {host}; exec "$@"', "sh"] if self.named else []
        return host, subprocess.Popen([*on, *words], stdout=self.log, stderr=self.log)

    def kill(self, chance: random.Random) -> str:
        """Kill a worker, with what it trains or without; or ask it to stop."""
        number, patience = chance.randrange(AT_ONCE), time.monotonic() + chance.choice((0, 30))
        host, worker = self.all[number]
        while time.monotonic() < patience and worker.poll() is None and not self.trains(worker):
            time.sleep(0.02)  # half of them are hit in training, the others anywhere
        how = chance.choice(("worker", "worker", "both", "both", "both", "run", "TERM"))
        with suppress(psutil.Error):
            process = psutil.Process(worker.pid)
            trains = process.children(recursive=True)
            for one in [*([process] if how in ("worker", "both") else []), *(trains if how in ("both", "run") else [])]:
                with suppress(psutil.Error):
                    one.kill()
            if how == "TERM":
                process.terminate()
        if how != "run":
            worker.wait(120)
            self.all[number] = self.start(host)
        return how

    def trains(self, worker: "subprocess.Popen[bytes]") -> bool:
        with suppress(psutil.Error):
            own = [one.pid for one in psutil.Process(worker.pid).children()]
            said = [RunReader(path).status for path in self.runs.glob("tiny.*.s*")]
            return any(one.pid in own and one.state == "running" and one.step > 3 for one in said)
        return False

    def revive(self) -> None:
        """Workers leave what others hold; one of these may have been killed since."""
        for number, (host, worker) in enumerate(self.all):
            if worker.poll() is not None:
                self.all[number] = self.start(host)

    def end(self) -> None:
        for _, worker in self.all:
            worker.kill()
            worker.wait()
        self.log.close()


def finished(runs: Path) -> int:
    return sum(RunReader(path).status.state == "finished" for path in runs.glob("tiny.*.s*"))


@pytest.mark.parametrize(("cells", "kills"), [(6, 2), pytest.param(*MANY, marks=pytest.mark.slow)])
def test_a_study_whose_workers_are_killed_equals_an_undisturbed_one(cells: int, kills: int, tmp_path) -> None:
    seeds = tuple(range(1, cells // 2 + 1))
    study = Study("tiny", "demo", VARIANTS, "rope", seeds=seeds, changes=CHANGES)
    runs, alone = tmp_path / "runs", tmp_path / "alone"
    runs.mkdir()
    write(study, runs)
    chance, how, began = random.Random(cells), Counter[str](), time.monotonic()
    workers = Workers(runs, tmp_path / "log.txt")
    paths = [runs / cell.name for cell in study.cells()]
    try:
        deadline = began + 600 + 30 * cells
        while (done := finished(runs)) < cells:
            assert time.monotonic() < deadline, (tmp_path / "log.txt").read_text()[-5000:]
            time.sleep(0.5)
            if how.total() < kills and done >= cells * how.total() / (kills + 1):
                time.sleep(chance.uniform(0, 5))
                how[workers.kill(chance)] += 1
            workers.revive()
        seconds = time.monotonic() - began
    finally:
        workers.end()
        for pid in left_behind(paths).values():
            with suppress(psutil.Error):
                os.kill(pid, signal.SIGKILL)
    attempts = Counter[int]()
    for cell in study.cells():
        reader = RunReader(runs / cell.name)
        assert [one.event for one in reader.events()].count("finished") == 1, cell.name
        attempts[reader.status.attempt] += 1
        ready = assemble(cell.config, runs_dir=alone, name=cell.name, device="cpu")
        assert ready.trainer.run().state == "finished"
        assert outcome(reader.path) == outcome(ready.path), cell.name
        shutil.rmtree(ready.path)
    assert how.total() == kills
    print(f"\n[workers] {cells} cells, {kills} kills {dict(how)} in {seconds:.0f} s; attempts {dict(attempts)}")
