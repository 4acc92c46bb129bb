"""The studio's key latency and its cost to training, measured from outside, on a terminal."""

import os
import random
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

from engine.base.errors import InputError
from engine.base.language import Message, tr
from engine.config.schema import RunConfig
from engine.proofs.bench.cases import BenchmarkSpec, CaseResult
from engine.proofs.bench.measure import Throughput
from engine.runs.files import read_json
from tui_transformer.lab.work.processes import create_queued_run, spawn
from tui_transformer.languages import SETTINGS_VARIABLE

SIZE = (120, 36)  # columns and lines
PAINTS = 5
KEYS = 20  # of a turn
STEP_TIMEOUT = 90.0  # seconds for a step
LEAST_STEPS = 2  # timed per turn, whatever its length
HEADLESS, DETACHED, THREADED = Message("headless"), Message("detached"), Message("in the studio")  # ways to train
# Keys and what they bring up: each x axis in turn, which redraws both charts; the help, a screen of its own.
AXIS, HELP = Message("from pressing x to new axes on screen"), Message("from pressing ? to all keys on screen")
AXES = (b"tokens", b"time", b"steps")
HELP_SHOWS = b"Study"  # a group of the Train pane's keys
Keys = dict[str, list[float]]  # seconds, by what is timed
_CONTROL = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]")


class Terminal:
    """The studio on a terminal; its output is kept with timestamps."""

    def __init__(self, runs_dir: Path, *arguments: str) -> None:
        import fcntl
        import pty
        import termios

        self._master, slave = pty.openpty()
        columns, lines = SIZE
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        variables = os.environ | {"TERM": "xterm-256color", SETTINGS_VARIABLE: str(write_studio_settings(runs_dir))}
        command = [sys.executable, "-m", "tui_transformer", "--language", "en"]  # whose words are waited for
        command += ["--runs-dir", str(runs_dir), *arguments]
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=variables, start_new_session=True
        )
        os.close(slave)
        self._written, self._news = bytearray(), threading.Condition()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                data = os.read(self._master, 65536)
            except OSError:
                return
            with self._news:
                self._written += data
                self._news.notify_all()

    def press(self, key: bytes) -> None:
        """Type keys; earlier output is dropped."""
        with self._news:
            self._written.clear()
        os.write(self._master, key)

    def wait_for(self, words: bytes, seconds: float = 60.0) -> float:
        """Return the seconds until words appear; raises InputError if they never do."""
        started = time.perf_counter()
        with self._news:
            while words not in _CONTROL.sub(b"", self._written):
                if not self._news.wait(max(0.0, seconds - (time.perf_counter() - started))):
                    raise InputError(
                        Message(
                            "the studio did not show {words!r} within {seconds:.0f} s",
                            words=words.decode(),
                            seconds=seconds,
                        )
                    )
        return time.perf_counter() - started

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)


def write_studio_settings(folder: Path) -> Path:
    """Write the settings of a studio that shows no welcome and trains in its own thread."""
    settings = folder / "settings.toml"
    settings.write_text('welcomed = true\nlaunch = "thread"\n', encoding="utf-8")
    return settings


def studio_cases(w: BenchmarkSpec) -> Iterator[CaseResult]:
    """First paint; then steps per second headless, beside the studio, and in its thread, with key latency."""
    if not hasattr(os, "fork"):
        raise InputError(Message("--case studio needs a pseudo-terminal, which this system does not have"))
    times = []
    for i in range(PAINTS + 1):
        w.report(tr("start {start} of {starts}", start=i, starts=PAINTS))
        with tempfile.TemporaryDirectory() as folder:
            started = time.perf_counter()
            with closing(Terminal(Path(folder))) as terminal:
                terminal.wait_for(b"Playground")
                times.append(1000 * (time.perf_counter() - started))
    speeds = [_speed(Message("first paint"), times[1:])]  # the first reads the disk
    yield CaseResult(Message("studio"), Message("time to first paint"), "ms", speeds)
    turns: dict[str, list[tuple[float, Keys]]] = {HEADLESS: [], DETACHED: [], THREADED: []}
    for i in range(w.rounds):
        kinds = list(turns)
        for kind in [*kinds[i % 3 :], *kinds[: i % 3]]:
            w.report(tr("round {round} of {rounds}: {case}", round=i + 1, rounds=w.rounds, case=tr(kind)))
            turns[kind].append(_turn(w, kind))
    speeds = [_speed(kind, [speed for speed, _ in turn]) for kind, turn in turns.items()]
    yield CaseResult("studio", "training, fp32", "steps/s", speeds)
    for name in (AXIS, HELP):
        found = []
        for kind in (DETACHED, THREADED):
            ordered = sorted(1000 * key for _, keys in turns[kind] for key in keys[name])
            for what, share in ((Message("{case}, median"), 0.5), (Message("{case}, 95th percentile"), 0.95)):
                at = ordered[int(share * len(ordered))]
                found.append(Throughput(what.format(case=kind), at, ordered[0], ordered[-1], len(ordered)))
        yield CaseResult("studio", name, "ms", found)


def _speed(name: str, values: list[float]) -> Throughput:
    return Throughput(name, statistics.median(values), min(values), max(values), len(values))


def _turn(w: BenchmarkSpec, kind: str) -> tuple[float, Keys]:
    """Steps per second and key latencies of one training of `seconds`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = endless_config(w.config, precision="fp32", threads=w.threads)
        run = create_queued_run(config, runs_dir=folder, name="run", command="bench")
        with nullcontext() if kind == THREADED else training_process(run, str(w.device)):
            if kind == HEADLESS:
                return steps_per_second(run, w.seconds), {}
            with closing(Terminal(folder, "--device", str(w.device))) as terminal:
                terminal.wait_for(b"Playground")
                terminal.press(b"2")  # the Train pane
                time.sleep(1.0)
                if kind == THREADED:
                    terminal.press(b"r")  # resumes the run
                return steps_per_second(run, w.seconds), _measure_keys(terminal)


def endless_config(config: RunConfig, **train: object) -> RunConfig:
    """Return the config of a run that logs every step and does nothing but train until it is stopped."""
    tables = config.dump()
    tables["train"] |= {"steps": 10**6, **train}
    tables["evaluation"] |= {"every": 0, "sample_every": 0}
    tables["checkpoint"] |= {"every": 0}
    tables["log"] |= {"every": 1}
    return RunConfig.model_validate(tables)


@contextmanager
def training_process(run: Path, device: str) -> "Iterator[subprocess.Popen[bytes]]":
    """Train an enqueued run in a process, which is killed at the end."""
    process = spawn("begin", run, device=device)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _measure_keys(terminal: Terminal) -> Keys:
    """Type keys while it trains, which costs steps; return how long each key took."""
    draw = random.Random(0)
    keys: Keys = {AXIS: [], HELP: []}
    for i in range(KEYS):
        terminal.press(b"x")
        keys[AXIS].append(terminal.wait_for(AXES[i % len(AXES)]))
        time.sleep(draw.uniform(0.1, 0.4))
        terminal.press(b"?")
        keys[HELP].append(terminal.wait_for(HELP_SHOWS))
        time.sleep(draw.uniform(0.1, 0.4))
        terminal.press(b"\x1b")
        time.sleep(draw.uniform(0.3, 0.6))
    return keys


def steps_per_second(run: Path, seconds: float) -> float:
    """Watch a run for `seconds`, and at least `LEAST_STEPS`; return its steps per second."""
    wait_for_steps(run, 2)  # the first steps warm up
    first, started = wait_for_steps(run, 0)
    step, now = first, started
    while now - started < seconds or step < first + LEAST_STEPS:
        step, now = wait_for_steps(run, 0)
    return (step - first) / (now - started)


def wait_for_steps(run: Path, steps: int) -> tuple[int, float]:
    """Wait for `steps` new steps and the next change; return that step and its time, or raise InputError."""
    deadline, first, seen = time.perf_counter() + STEP_TIMEOUT, None, None
    while time.perf_counter() < deadline:
        status = read_json(run / "status.json")
        step = int(status.get("step") or 0) if isinstance(status, dict) and status.get("state") == "running" else None
        if step is not None:
            first = step if first is None else first
            if seen is not None and step != seen and step > first + steps:
                return step, time.perf_counter()
            seen = step
        time.sleep(0.01)
    raise InputError(
        Message("{name} did not complete a step within {patience:.0f} s", name=run.name, patience=STEP_TIMEOUT)
    )
