"""How fast a run trains next to busy programs, by how its threads wait: `python -m tests.contention --help`.

One process per way of waiting trains an endless run. All but one are stopped, in turn and in random order, so that a
machine whose speed drifts slows all of them alike. The table has medians, as shares of libgomp's default on an idle
machine.
"""

import argparse
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from engine.base.threads import COUNT_VARIABLES, WAIT_VARIABLES
from engine.config import presets
from tui_transformer.lab.work.processes import create_queued_run, spawn
from tui_transformer.studio.responsiveness import Terminal, endless_config

DEFAULT = "GOMP_SPINCOUNT=300000"  # libgomp's own, written out so that the program does not choose another one
OTHERS = [f"GOMP_SPINCOUNT={n}" for n in (100_000, 20_000, 5_000, 2_000, 1_500, 1_000, 700)]
WAYS = ("cli", "studio", "detached", "ranks", "two")
BUSY = [sys.executable, "-c", "while True: pass"]


class EndlessRuns:
    """A run, or two of them, trained in one way by processes that can be stopped and go on.

    Args:
        preset: what is trained.
        way: one of `WAYS`.
        variables: of the environment, as NAME=VALUE;NAME=VALUE.
        folder: for the runs.
    """

    def __init__(self, preset: str, way: str, variables: str, folder: Path) -> None:
        change = {"accumulation": 2} if way == "ranks" else {}
        config = endless_config(presets.resolve(presets.find(preset)), **change)
        self.runs = [
            create_queued_run(config, runs_dir=folder, name=f"r{i}", command="")
            for i in range(2 if way == "two" else 1)
        ]
        own = dict(word.split("=", 1) for word in variables.split(";"))
        before = dict(os.environ)
        for name in (*COUNT_VARIABLES, *WAIT_VARIABLES):
            os.environ.pop(name, None)
        os.environ.update(own)
        if way == "studio":
            terminal = Terminal(folder, "--device", "cpu")
            terminal.wait_for(b"Playground")
            terminal.press(b"2")  # the Train pane
            terminal.wait_for(b"r0")
            terminal.press(b"r")  # resumes the run
            self.starters = [terminal.process]
        elif way in ("detached", "ranks"):
            self.starters = [spawn("begin", run, device="cpu", ranks=2 if way == "ranks" else 1) for run in self.runs]
        else:
            words = [sys.executable, "-m", "tui_transformer", "begin"]
            self.starters = [
                subprocess.Popen([*words, str(run)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                for run in self.runs
            ]
        os.environ.clear()
        os.environ.update(before)
        while not all(steps(run) > 5 for run in self.runs):
            time.sleep(0.1)
        self.send(signal.SIGSTOP)

    def send(self, number: int) -> None:
        for starter in self.starters:
            process = psutil.Process(starter.pid)
            for one in (process, *process.children(recursive=True)):
                one.send_signal(number)

    def speed(self, seconds: float) -> float:
        """Train for some seconds; return the steps per second of all runs together."""
        self.send(signal.SIGCONT)
        time.sleep(0.7)
        before, began = sum(map(steps, self.runs)), time.perf_counter()
        time.sleep(seconds)
        after, ended = sum(map(steps, self.runs)), time.perf_counter()
        self.send(signal.SIGSTOP)
        return (after - before) / (ended - began)


def steps(run: Path) -> int:
    """How many steps a run has logged."""
    file = run / "metrics.jsonl"
    return sum(b'"step"' in line for line in file.read_bytes().splitlines()) if file.exists() else 0


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Programs that keep a core busy each."""
    programs = [subprocess.Popen(BUSY, start_new_session=True) for _ in range(count)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="demo")
    parser.add_argument("--way", choices=WAYS, default="cli", help="how it is trained; two: two runs at once")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--busy", type=int, nargs="+", default=[0, 1, 2], help="how many busy programs there are")
    parser.add_argument(
        "waiting", nargs="*", default=OTHERS, help="variables of the environment, as NAME=VALUE;NAME=VALUE"
    )
    asked = parser.parse_args()
    ways = [DEFAULT, *asked.waiting]
    found: dict[tuple[str, int], list[float]] = {(variables, n): [] for variables in ways for n in asked.busy}
    with tempfile.TemporaryDirectory() as folder:
        started: dict[str, EndlessRuns] = {}
        try:
            for i, variables in enumerate(ways):
                started[variables] = EndlessRuns(asked.preset, asked.way, variables, Path(folder) / str(i))
            for _ in range(asked.rounds):
                for n in asked.busy:
                    with busy(n):
                        for variables in random.sample(ways, len(ways)):
                            found[variables, n].append(started[variables].speed(asked.seconds))
        finally:
            for runs in started.values():
                runs.send(signal.SIGKILL)
    quiet = statistics.median(found[DEFAULT, min(asked.busy)])
    print(f"{asked.preset}, {asked.way}: {quiet:.3g} steps a second = 1\n")
    print("| waiting |", " | ".join(f"{n} busy" for n in asked.busy), "|")
    print("|---|", "---|" * len(asked.busy), sep="")
    for variables in ways:
        row = [f"{statistics.median(found[variables, n]) / quiet:.2f}" for n in asked.busy]
        print(f"| `{variables}` |", " | ".join(row), "|")


if __name__ == "__main__":
    main()
