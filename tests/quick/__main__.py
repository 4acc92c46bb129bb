"""`make quick`: lint, types, and the tests that what differs from `main` is most likely to break, in 90 seconds.

The nearest tests (`relevance`) come first, short ones before long ones. What was not run when the time is up is named.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from textwrap import TextWrapper

import psutil

from tests.lint import ROOT, Checks, report
from tests.quick import durations
from tests.quick.changes import changes
from tests.quick.references import read
from tests.quick.relevance import relevance
from tests.quick.worker import PLAN, Plan, rank
from tests.rerun_hint import rerun_command

CACHE = ROOT / ".quick_cache"
SECONDS = 90.0  # in total; mypy without a cache may take longer
LAST_START = 6.0  # seconds before the end: no test starts after this
STOP = 3.0  # seconds before the end: tests still running are killed
RANKS = 10  # of a file: the last one has all the rest
SLOW = ("tests/e2e/", "tests/tutorials/", "tests/earlier/", "tests/fuzz/")  # folders of tests that start processes
USUAL, USUAL_SLOW = 0.5, 8.0  # seconds that a test takes which was never measured


def main(words: Sequence[str] | None = None) -> int:
    started = time.monotonic()
    asked = argparse.ArgumentParser(prog="python -m tests.quick", description=__doc__.partition("\n")[0])
    asked.add_argument("--seconds", type=float, default=SECONDS, help="time limit in seconds")
    end = started + asked.parse_args(words).seconds
    checks = Checks()
    base, found = changes(ROOT)
    code = read(ROOT, CACHE / "references.json")
    distances: dict[str, dict[str, float]] = {}
    for (path, test), distance in relevance(code, found, ROOT).items():
        distances.setdefault(path, {})[test] = distance
    tests = sum(map(len, distances.values()))
    print(f"files that differ from {base}: {len(found)}; tests reached: {tests}, in {len(distances)} files", flush=True)
    with tempfile.TemporaryDirectory(prefix="tests-quick-") as folder:
        plan = planned(distances, end - LAST_START)
        (Path(folder) / "plan.json").write_text(json.dumps(asdict(plan)), encoding="utf-8")
        run = Run(Path(folder), plan)
        try:
            run.follow(checks, end - STOP)
            for name, failed in checks.rest():
                report(name, failed)
                run.failures += bool(failed)
        finally:
            run.stop()
            checks.stop()
        run.summary()
        durations.remember(CACHE, run.seconds)
    print(f"{time.monotonic() - started:.0f} s", flush=True)
    return int(run.failures > 0)


def planned(distances: dict[str, dict[str, float]], end: float) -> Plan:
    """Put the tests of all files into an order of ranks."""
    measured = durations.known(CACHE)
    each: dict[tuple[str, str], list[float]] = {}
    for node, seconds in measured.items():
        path, _, rest = node.partition("::")
        each.setdefault((path, rest.partition("[")[0].rpartition("::")[2]), []).append(seconds)
    usual = {path: USUAL_SLOW if path.startswith(SLOW) else USUAL for path in distances}
    portions: list[tuple[int, float, str]] = []
    for path, tests in distances.items():
        ranks = []
        for test, distance in tests.items():
            cases = each.get((path, test), [usual[path]])
            ranks.append(rank(distance, sum(cases) / len(cases)))
        portions += [(min(ranks) + more, min(tests.values()), path) for more in range(RANKS)]
    return Plan([(place, path) for place, _, path in sorted(portions)], distances, measured, usual, end)


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Run:
    """Tests running in several processes, and what became of them."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder, self.plan = folder, plan
        self.failures = 0
        self.seconds: dict[str, float] = {}  # of the tests that are done, and of files that cannot be imported
        self.files: dict[str, list[str]] = {}  # those that were imported, and their tests
        self.running: dict[Path, str] = {}  # by the file that a process writes
        self.read: Counter[Path] = Counter()
        command = [sys.executable, "-m", "pytest", "-m", "not slow", "-p", "tests.quick.worker"]
        self.log = (folder / "log").open("wb")
        self.processes = [
            subprocess.Popen(
                command, cwd=ROOT, env={**os.environ, PLAN: str(folder)}, stdout=self.log, stderr=subprocess.STDOUT
            )
            for _ in range(cores() if plan.portions else 0)
        ]

    def follow(self, checks: Checks, end: float) -> None:
        """Print failures as they come, until all is done or the time is up."""
        while time.monotonic() < end and any(process.poll() is None for process in self.processes):
            self.look()
            for name, failed in checks.ended():
                report(name, failed)
                self.failures += bool(failed)
            time.sleep(0.1)
        self.look()
        for process in self.processes:
            if process.poll() not in (None, 0, 1, 5):  # passed, failed, nothing to run
                self.failures += 1
                print(f"a test process exited with {process.returncode}\n{self.tail()}", flush=True)

    def look(self) -> None:
        for path in self.folder.glob("*.jsonl"):
            lines = path.read_bytes()[self.read[path] :].splitlines(keepends=True)
            for line in lines:
                if line.endswith(b"\n"):
                    self.read[path] += len(line)
                    self.take(path, json.loads(line))

    def take(self, path: Path, row: dict) -> None:
        if "file" in row:
            self.files[row["file"]] = row["tests"]
        elif "running" in row:
            self.running[path] = row["running"]
        else:
            self.running.pop(path, None)
            self.seconds[row["done"]] = row["seconds"]
            if row["failed"]:
                self.failures += 1
                print(f"\nFAILED {row['done']}\n{row['failed']}\nrerun: {rerun_command(row['done'])}\n", flush=True)

    def tail(self) -> str:
        return "\n".join((self.folder / "log").read_text(errors="replace").splitlines()[-40:])

    def stop(self) -> None:
        """End the processes and all that they started, in whatever session that is."""
        ended = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.pid != os.getpid() and process.environ().get(PLAN) == str(self.folder):
                    process.kill()
                    ended.append(process)
        psutil.wait_procs(ended)
        for process in self.processes:
            process.wait()
        self.log.close()

    def summary(self) -> None:
        left = {path: count for path, count in self.left() if count}
        for node in self.running.values():
            print(f"killed at the time limit: {node}")
        if left:
            print(f"tests not run, out of time: {sum(left.values())}, in {len(left)} files")
            files = [f"{path} ({count})" for path, count in sorted(left.items())]
            wrapper = TextWrapper(width=120, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
            print(wrapper.fill("  ".join(files)))
        print(f"tests run: {len(self.seconds)}; failures: {self.failures}", flush=True)

    def left(self) -> Iterator[tuple[str, int]]:
        """Yield how many tests of each file were not run; of one that was not imported, how many functions."""
        done = Counter(path for path, test, _ in (node.partition("::") for node in self.seconds) if test)
        for path, tests in self.plan.distances.items():
            yield path, len(self.files[path]) - done[path] if path in self.files else len(tests)


if __name__ == "__main__":
    sys.exit(main())
