"""What training a design will take, without measuring: from its operations, and what this machine did in earlier runs.

Nothing here loads torch. An earlier run on this machine says how many operations a second it reached; the runs
whose steps are closest in size are used. Without any, a rough guess about the device is.
"""

import math
import platform
import shutil
import statistics
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from engine.base import threads
from engine.base.errors import InputError
from engine.base.language import tr
from engine.config import presets
from engine.config.schema import RunConfig
from engine.model.size import BatchShape
from engine.runs.reader import RunReader, list_runs
from engine.runs.records import Attempt
from tui_transformer.lab.design.draft import SMALL, Benchmark, Cost
from tui_transformer.lab.formatting import rough_duration
from tui_transformer.lab.work.plan import disk_bytes, evaluation_cost_in_steps

GUESS = {"cpu": 3e10, "cuda": 2e13, "mps": 2e12}  # operations a second; of a CPU, by each core
CORES = 8  # that small models can use at most
NEAREST = 5  # runs whose median rate counts: another program may have slowed one of them
MUCH = 8  # a step so many times as large as an earlier run's may use the device better than that one did
LEAST_STEP = 2e-3  # seconds
BEGINNING = 5.0  # seconds until training begins: the engine, the corpus, the checks
MOST_RUNS = 200  # read, newest first
LONG = 15 * 60  # seconds from which a run is worth a question
VERY_LONG = 2 * 60 * 60


@dataclass(frozen=True)
class RunSpeed:
    """What an earlier run reached."""

    run: str
    work: float  # operations a step
    rate: float  # operations a second
    threads: int | None = None


@dataclass(frozen=True)
class Forecast:
    """What a run takes; `seconds` is None while the size of its corpus is unknown."""

    device: str
    seconds: float | None
    memory: float  # bytes
    disk: int  # bytes
    source: str  # where the time comes from: "measured", "estimated from …"
    at_most: bool = False  # rows differ in length, and count as the longest

    @property
    def is_long(self) -> bool:
        return self.seconds is not None and self.seconds >= LONG

    @property
    def time_text(self) -> str:
        sign = "≤" if self.at_most else "≈"
        return tr("time unknown") if self.seconds is None else f"{sign} {rough_duration(self.seconds)}"


@dataclass(frozen=True)
class Machine:
    """A device of this machine, and the speeds of earlier runs on it."""

    device: str
    speeds: tuple[RunSpeed, ...] = ()

    @classmethod
    def from_runs(cls, runs_dir: Path, wanted: str) -> "Machine":
        """Read the runs of a folder. `wanted`: a device, or `auto`."""
        here, found = platform.node(), dict[str, list[RunSpeed]]()
        for reader in list_runs(runs_dir)[-MOST_RUNS:][::-1]:
            attempt = next(iter(reader.environment.attempts[::-1]), None)
            if attempt is None or attempt.host != here or (speed := _run_speed(reader, attempt)) is None:
                continue
            found.setdefault(attempt.device.partition(" ")[0], []).append(speed)
        wanted = "cuda:0" if wanted == "cuda" else wanted
        device = next(iter(found), _likely_device()) if wanted == "auto" else wanted
        return cls(device, tuple(found.get(device, ())))

    @property
    def _guessed_rate(self) -> float:
        kind = self.device.partition(":")[0]
        return GUESS.get(kind, GUESS["cpu"]) * (min(threads.usable_cores(), CORES) if kind == "cpu" else 1)

    def _similar_runs(self, config: RunConfig, work: float) -> list[RunSpeed]:
        """The earlier runs to go by: on a CPU those with as many threads, as a study's runs share the cores."""
        speeds: Sequence[RunSpeed] = self.speeds
        if self.device == "cpu":
            own = config.train.threads or threads.default_count()
            speeds = [speed for speed in speeds if speed.threads == own] or speeds
        return sorted(speeds, key=lambda one: abs(math.log(one.work / work)))[:NEAREST]

    def forecast(
        self, config: RunConfig, cost: Cost, train_tokens: int | None = None, benchmark: Benchmark | None = None
    ) -> Forecast:
        """Say what a run takes. `train_tokens`: of its text, where they are known."""
        disk = disk_bytes(config, cost.parameters)
        if benchmark is not None:
            seconds = benchmark.seconds + BEGINNING
            return Forecast(benchmark.device, seconds, benchmark.memory_bytes, disk, "measured")
        tokens = tokens_per_step(config)
        work, steps = cost.flops * tokens, step_count(config, tokens, train_tokens)
        like = self._similar_runs(config, work)
        rate = statistics.median(one.rate for one in like) if like else self._guessed_rate
        if like and work > MUCH * like[0].work:
            rate = max(rate, self._guessed_rate)
        if steps is not None and train_tokens is not None:
            held_out = config.data.validation_fraction
            steps += evaluation_cost_in_steps(config, tokens, int(train_tokens * held_out / (1 - held_out)))
        estimated = None if steps is None else BEGINNING + steps * max(LEAST_STEP, work / rate)
        source = tr("estimated; no earlier run on this machine to go by")
        if len(like) == 1:
            source = tr("estimated from the speed of {run}", run=like[0].run)
        elif like:
            source = tr("estimated from the speed of {n} earlier runs", n=len(like))
        return Forecast(self.device, estimated, cost.memory, disk, source, at_most=cost.at_most)


def tokens_per_step(config: RunConfig) -> float:
    """Return the targets of a step; of rows that differ in length, as if all were the longest."""
    train = config.train
    if train.batch_tokens is not None:
        return float(train.batch_tokens * train.accumulation)
    each = BatchShape.from_config(config).target if config.trains_on_rows else config.window_targets
    return float(train.batch_size * train.accumulation * each)


def step_count(config: RunConfig, step_tokens: float, train_tokens: int | None) -> float | None:
    if config.train.epochs is None:
        return config.train.steps
    return None if train_tokens is None else config.train.epochs * train_tokens / step_tokens


def base_trained_last(runs_dir: Path) -> str:
    """The base preset of the newest run; that of the demo if there is none, or none that is known."""
    with suppress(InputError, OSError):
        for reader in list_runs(runs_dir)[-1:]:
            name, _, base = (reader.config.preset or SMALL).partition("@")
            return presets.extends_chain(presets.find(base or name))[0].name
    return SMALL


def _run_speed(reader: RunReader, attempt: Attempt) -> RunSpeed | None:
    summary, flops = reader.summary, reader.model.flops_per_token
    if not (summary.step and summary.tokens and summary.seconds and flops):
        return None
    work = flops * summary.tokens
    return RunSpeed(reader.name, work / summary.step, work / summary.seconds, attempt.threads)


def _likely_device() -> str:
    if sys.platform == "darwin" and platform.machine() == "arm64":
        return "mps"
    return "cuda:0" if shutil.which("nvidia-smi") else "cpu"
