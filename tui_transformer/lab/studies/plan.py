"""What a study will cost before it starts: runs, threads, time and disk. No torch here; `measure` takes the times."""

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from engine.config.schema import RunConfig
from engine.errors import InputError
from engine.model import size
from engine.model.size import BYTES
from tui_transformer.lab.studies.standing import Standing

MOMENTS = 2  # AdamW's, beside the weights in a checkpoint
RECORD = 300  # bytes of a line of metrics.jsonl
BESIDES = 200_000  # bytes of a run's other files
PROCESS = 600_000_000  # bytes of memory that a process takes before its model
WORTH_A_THREAD = 1e10  # operations of a step below which a second thread waits more than it works
SCORING = 1 / 3  # of what training on a token costs: forward alone
BEGINNING = 4.0  # seconds until a process trains: it loads the engine and the corpus, and probes for leaks


@dataclass(frozen=True)
class Priced:
    """What one run of a variant costs.

    Args:
        parameters: of its model.
        steps: of training.
        seconds: of a whole run, evaluations included.
        disk: bytes that it leaves.
        measured: False where `seconds` is that of a finished run of this study.
    """

    parameters: int
    steps: int
    seconds: float
    disk: int
    measured: bool = True


@dataclass(frozen=True)
class Plan:
    """How a study will be run, and what that costs.

    Args:
        devices: cells are spread over them.
        jobs: cells at a time.
        threads: CPU threads of each, the same for all: sums differ between counts.
        prices: by what is the same in the cells of all seeds (`Cell.kind`): a variant, or a stage of one.
    """

    devices: tuple[str, ...]
    jobs: int
    threads: int
    prices: Mapping[str, Priced]

    def seconds(self, standings: Iterable[Standing]) -> float:
        """Until all of these cells are done, `jobs` at a time, in their order but for those that wait for a stage."""
        free = [0.0] * self.jobs
        waiting = [standing for standing in standings if standing.state != "finished"]
        ends = {standing.cell.name: math.inf for standing in waiting}

        def ready(standing: Standing) -> float:
            return ends.get(standing.cell.after, 0.0)

        while waiting:
            at = next((i for i, standing in enumerate(waiting) if ready(standing) <= free[0]), None)
            standing = waiting.pop(at if at is not None else waiting.index(min(waiting, key=ready)))
            left = self.prices[standing.cell.kind].seconds * (1.0 - standing.share)
            ends[standing.cell.name] = max(free[0], ready(standing)) + left
            heapq.heapreplace(free, ends[standing.cell.name])
        return max(free)

    def disk(self, standings: Iterable[Standing]) -> int:
        """Bytes that the cells which are still to be run will take."""
        return sum(self.prices[standing.cell.kind].disk for standing in standings if standing.state != "finished")

    def to_json(self) -> dict[str, Any]:
        """Plain data; `read_plan` reads it back."""
        return asdict(self)


def read_plan(record: Mapping[str, Any]) -> Plan:
    """A plan from what `to_json` gave."""
    prices = {name: Priced(**price) for name, price in record["prices"].items()}
    return Plan(tuple(record["devices"]), int(record["jobs"]), int(record["threads"]), prices)


def disk_bytes(config: RunConfig, parameters: int) -> int:
    """What a finished run leaves: the newest checkpoints, the best one and the one of its end, and its records."""
    saved = config.checkpoint
    kept = max(saved.keep_last, saved.average_last) + 1 + (1 / (1 + MOMENTS) if saved.average_last else 0)
    lines = config.train.steps / config.log.every
    return int(kept * (1 + MOMENTS) * BYTES * parameters + lines * RECORD + BESIDES)


def evaluation_steps(config: RunConfig, step_tokens: float, validation_tokens: int) -> float:
    """What a run's evaluations cost, in training steps.

    Args:
        config: resolved.
        step_tokens: that one training step is about.
        validation_tokens: of the split.
    """
    every = config.evaluation.every
    times = config.train.steps // every + (1 if config.train.steps % every else 0) if every else 1
    read = validation_tokens * (1.0 if config.on_rows else config.window_targets / config.stride)
    return times * read * SCORING / step_tokens


def threads_worth(configs: Sequence[tuple[RunConfig, int]]) -> int:
    """CPU threads that the smallest of these models can use.

    Args:
        configs: each with its vocabulary.
    """
    operations = []
    for config, vocabulary in configs:
        tokens = config.train.batch_tokens or config.train.batch_size * config.window_targets
        operations.append(tokens * size.flops_per_token(config.model, vocabulary, config.train.batch_size))
    return max(1, int(min(operations) / WORTH_A_THREAD))


def shared_out(
    cells: int, *, cores: int, memory: int, needed: int, worth: int, jobs: int | None = None, threads: int | None = None
) -> tuple[int, int]:
    """How many cells at a time on a CPU, and threads for each: a run more beside others gains more than a thread more.

    Args:
        cells: that are to be run.
        cores: of this machine.
        memory: bytes that are free.
        needed: bytes that one cell takes.
        worth: threads that its model can use.
        jobs: as asked for.
        threads: as asked for, or as the study was started with.

    Raises:
        InputError: more cells at a time than memory has room for.
    """
    room, jobs = max(1, memory // needed), jobs and min(jobs, cells)
    if jobs is not None and jobs > room:
        raise InputError(
            f"--jobs {jobs}: {jobs} cells at a time need {jobs * needed / 1e9:.1f} GB of memory and "
            f"{memory / 1e9:.1f} GB are free; --jobs {room} fits"
        )
    jobs = jobs or max(1, min(cores // (threads or 1), cells, room))
    return jobs, threads or max(1, min(cores // jobs, worth))
