"""The studio's key latency and its cost to training, measured from outside, on a terminal."""

import os
import random
import re
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from engine.benchmark.cases import BenchmarkSpec, Measured
from engine.benchmark.measure import Speed
from engine.errors import InputError
from engine.runs.files import read_json
from tui_transformer.lab.launch.launch import enqueue, spawn

SIZE = (120, 36)  # columns and lines
PAINTS = 5
KEYS = 20  # of a turn
PATIENCE = 90.0  # seconds for a step
LEAST_STEPS = 2  # timed per turn, whatever its length
ESCAPE, TRAIN, RESUME = b"\x1b", b"2", b"r"
# Keys and the words they bring up: each x axis in turn, which redraws both charts; the help, a screen of its own.
AXIS, HELP = "x, new axes", "?, all keys"
AXES = (b"tokens", b"time", b"steps")
HELP_WORDS = b"This pane"
Keys = dict[str, list[float]]  # seconds by key typed
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
        settings = runs_dir / "settings.toml"
        settings.write_text('welcomed = true\nlaunch = "thread"\n', encoding="utf-8")
        variables = os.environ | {"TERM": "xterm-256color", "TUI_TRANSFORMER_SETTINGS": str(settings)}
        command = [sys.executable, "-m", "tui_transformer", "--runs-dir", str(runs_dir), *arguments]
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
                    raise InputError(f"the studio did not show {words.decode()!r} within {seconds:.0f} s")
        return time.perf_counter() - started

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)


def studio_cases(w: BenchmarkSpec) -> Iterator[Measured]:
    """First paint; then steps per second headless, beside the studio, and in its thread, with key latency."""
    if not hasattr(os, "fork"):
        raise InputError("--case studio needs a pseudo-terminal, which this system has not")
    times = []
    for i in range(PAINTS + 1):
        w.said(f"start {i} of {PAINTS}")
        with tempfile.TemporaryDirectory() as folder:
            started, terminal = time.perf_counter(), Terminal(Path(folder))
            terminal.wait_for(b"Playground")
            times.append(1000 * (time.perf_counter() - started))
            terminal.close()
    yield Measured("studio", "until it stands", "ms", [_speed("first paint", times[1:])])  # the first reads the disk
    turns: dict[str, list[tuple[float, Keys]]] = {"headless": [], "detached": [], "in its thread": []}
    for i in range(w.rounds):
        kinds = list(turns)
        for kind in [*kinds[i % 3 :], *kinds[: i % 3]]:
            w.said(f"round {i + 1} of {w.rounds}: {kind}")
            turns[kind].append(_turn(w, kind))
    yield Measured("studio", "training, fp32", "steps/s", [_speed(k, [s for s, _ in t]) for k, t in turns.items()])
    for name in (AXIS, HELP):
        found = []
        for kind in ("detached", "in its thread"):
            values = [1000 * key for _, keys in turns[kind] for key in keys[name]]
            for what, share in (("median", 0.5), ("95 of 100", 0.95)):
                ordered = sorted(values)
                at = ordered[min(len(ordered) - 1, int(share * len(ordered)))]
                found.append(Speed(f"{kind}, {what}", at, ordered[0], ordered[-1], len(ordered)))
        yield Measured("studio", f"from the key {name}, to its words", "ms", found)


def _speed(name: str, values: list[float]) -> Speed:
    return Speed(name, statistics.median(values), min(values), max(values), len(values))


def _turn(w: BenchmarkSpec, kind: str) -> tuple[float, Keys]:
    """Steps per second and key latencies of one training of `seconds`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        quick = {"evaluation": {"every": 0, "sample_every": 0}, "checkpoint": {"every": 0}, "log": {"every": 1}}
        data = w.config.dump()
        for section, changes in quick.items():
            data[section] |= changes
        data["train"] |= {"steps": 10**6, "precision": "fp32", "threads": w.threads}
        run = enqueue(type(w.config).model_validate(data), runs_dir=folder, name="run", command="bench")
        process = None if kind == "in its thread" else spawn("begin", run, device=str(w.device))
        terminal = None if kind == "headless" else Terminal(folder, "--device", str(w.device))
        try:
            if terminal is not None:
                terminal.wait_for(b"Playground")
                terminal.press(TRAIN)
                time.sleep(1.0)
                if process is None:
                    terminal.press(RESUME)
            return _watched(run, terminal, w.seconds)
        finally:
            if terminal is not None:
                terminal.close()
            if process is not None:
                process.send_signal(signal.SIGKILL)
                process.wait()


def _watched(run: Path, terminal: Terminal | None, seconds: float) -> tuple[float, Keys]:
    """Steps per second while nobody types; then keys, which cost steps."""
    draw = random.Random(0)
    step_after(run, 2)  # the first steps warm up
    first, started = step_after(run, 0)
    step, now = first, started
    while now - started < seconds or step < first + LEAST_STEPS:
        step, now = step_after(run, 0)
    keys: Keys = {AXIS: [], HELP: []}
    for i in range(KEYS if terminal is not None else 0):
        assert terminal is not None
        terminal.press(b"x")
        keys[AXIS].append(terminal.wait_for(AXES[i % len(AXES)]))
        time.sleep(draw.uniform(0.1, 0.4))
        terminal.press(b"?")
        keys[HELP].append(terminal.wait_for(HELP_WORDS))
        time.sleep(draw.uniform(0.1, 0.4))
        terminal.press(ESCAPE)
        time.sleep(draw.uniform(0.3, 0.6))
    return (step - first) / (now - started), keys


def step_after(run: Path, steps: int) -> tuple[int, float]:
    """Wait for `steps` new steps and the next change; return that step and its time, or raise InputError."""
    deadline, first, seen = time.perf_counter() + PATIENCE, None, None
    while time.perf_counter() < deadline:
        status = read_json(run / "status.json")
        step = int(status.get("step") or 0) if isinstance(status, dict) and status.get("state") == "running" else None
        if step is not None:
            first = step if first is None else first
            if seen is not None and step != seen and step > first + steps:
                return step, time.perf_counter()
            seen = step
        time.sleep(0.01)
    raise InputError(f"{run.name} took no step within {PATIENCE:.0f} s")
