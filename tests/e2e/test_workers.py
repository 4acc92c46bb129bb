"""Workers that are killed at random share a study: nothing is lost, nothing is trained to its end twice.

`pytest -m slow -s tests/e2e/test_workers.py` prints the figures of 1,000 cells with 100 kills; `WORKERS=60,15` in front
of it makes that 60 cells with 15 kills. CI runs a few cells. Where this process may name hosts, the workers are on two.
"""

import ctypes
import os
import random
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests.tui_transformer.lab.work.disturbed import asked, disturb, equals_the_undisturbed, hit, large_study
from tui_transformer.lab.work.processes import training_processes
from tui_transformer.lab.work.study import write_study

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs signals and /proc"),
    # A kill amid the checks is a claim of `faults/test_before_first_checkpoint.py`.
    pytest.mark.usefixtures("module_fork_start", "cached_corpora", "minimal_leak_probe", "no_self_check"),
]

AT_ONCE = 3
NAMES_OF_ITS_OWN = 0x04000000  # CLONE_NEWUTS: a process's host name


def on_host(name: str) -> None:
    """Have this process on a host of that name, and what it starts. OSError: it may not be named."""
    if ctypes.CDLL(None, use_errno=True).unshare(NAMES_OF_ITS_OWN):
        raise OSError(ctypes.get_errno(), "unshare")
    socket.sethostname(name)


def may_name_hosts() -> bool:
    try:
        subprocess.run(["true"], preexec_fn=partial(on_host, "node0"), check=True)
    except subprocess.SubprocessError:
        return False
    return True


class Workers:
    """So many at a time; one that is killed is replaced on its host."""

    def __init__(self, runs: Path, log: Path) -> None:
        self.runs, self.log, self.named = runs, log.open("ab"), may_name_hosts()
        self.all = [self.start(f"node{number % 2}") for number in range(AT_ONCE)]

    def start(self, host: str) -> tuple[str, "subprocess.Popen[bytes]"]:
        words = [sys.executable, "-m", "tui_transformer", "work", "tiny", "--device", "cpu", "--runs-dir", self.runs]
        on = partial(on_host, host) if self.named else None
        return host, subprocess.Popen(words, stdout=self.log, stderr=self.log, preexec_fn=on)

    def kill(self, chance: random.Random) -> str:
        _, worker = chance.choice(self.all)
        try:
            return hit(psutil.Process(worker.pid), self.runs, chance)
        except psutil.Error:
            return ""

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


# With seed 52, the two are a training process killed alone, and one killed with its worker.
@pytest.mark.parametrize(
    ("cells", "kills", "seed"), [(6, 2, 52), pytest.param(*asked(1000, 100), 1000, marks=pytest.mark.slow)]
)
def test_a_study_whose_workers_are_killed_equals_an_undisturbed_one(
    cells: int, kills: int, seed: int, tmp_path
) -> None:
    study, runs, chance = large_study(cells), tmp_path / "runs", random.Random(seed)
    runs.mkdir()
    write_study(study, runs)
    workers = Workers(runs, tmp_path / "log.txt")
    try:
        accidents = [lambda: workers.kill(chance)] * kills
        figures = disturb(study, runs, accidents, workers.revive, lambda: (tmp_path / "log.txt").read_text()[-5000:])
    finally:
        workers.end()
        for process in training_processes(runs / cell.name for cell in study.cells()).values():
            with suppress(psutil.Error):
                os.kill(process.pid, signal.SIGKILL)
    equals_the_undisturbed(study, runs, tmp_path / "alone")
    print(f"\n[workers] {figures}")
