"""Memory: what a piece of work adds to a process, and training's peak compared with its estimate."""

import ctypes
import multiprocessing
import platform
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import psutil
import torch
from torch import Tensor

from engine.base.errors import InputError
from engine.capabilities import with_value
from engine.config.schema import RowFacts, RunConfig
from engine.data.loader import BatchStream
from engine.data.objectives import Batch, Objective
from engine.data.padding import right_padded_positions
from engine.model.devices import keep_memory
from engine.model.size import BatchShape, memory_bytes
from engine.model.transformer import build_model
from engine.tasks.task import make_task
from engine.training.step import Stepper

VOCABULARY = 70  # of the tiny model
MAX_BYTES = 8 * 2**30  # bytes a measurement may use


def measure_added_peak_bytes(work: Callable[[], object], device: torch.device) -> int | None:
    """Return the bytes that `work` adds at its peak: allocated on a GPU, resident on a CPU; None where unknown."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        work()
        torch.cuda.synchronize(device)
        return int(torch.cuda.max_memory_allocated(device) - before)
    if platform.libc_ver()[0] != "glibc":
        return None
    ctypes.CDLL(None).malloc_trim(0)  # do not count memory that earlier work freed
    try:
        Path("/proc/self/clear_refs").write_text("5")  # Linux, proc(5): clear the peak
        before = psutil.Process().memory_info().rss
        work()
        peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return None
    return max(0, 1024 * int(peak.split()[1]) - before)


@dataclass(frozen=True)
class MemoryPeak:
    """A preset's (`NAME` or `NAME@BASE`) memory estimate and the measured peak of its training."""

    preset: str
    shape: BatchShape  # of the largest batch trained on
    rows: int  # in the preset's batch; more than in `shape` if the full batch would not fit
    given: bool  # the batches come from the preset's own data; else rows of random tokens, as long as the context
    estimate: int  # bytes
    measured: int | None  # bytes; None if they cannot be measured

    @property
    def estimate_over_measured(self) -> float | None:
        return None if not self.measured else self.estimate / self.measured


def measure_training_peak(config: RunConfig, device: str = "cpu") -> MemoryPeak:
    """Measure the peak memory of a run's training in a separate process: the largest growth from just before the model
    is built, over the first two steps and the one with the largest batch of the first epoch. On a CPU that is resident
    memory, on a GPU what torch has allocated.

    Before that, the data is loaded and a tiny model takes one step, so that neither the corpus nor torch's own
    libraries count. A batch that is estimated to take more than `MAX_BYTES` bytes is cut to fewer rows.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        return process.submit(_measure_peak, config, device).result()


def _measure_peak(config: RunConfig, where: str) -> MemoryPeak:
    device, asked = torch.device(where), config.train.batch_size
    gpu = device.type != "cpu"
    torch.set_num_threads(config.train.threads or 1)
    try:
        task = make_task(config, None)
    except InputError:
        task = None
    if task is not None:
        words = task.vocab_size
    elif config.model.vocab_size is not None:  # without its data, a preset's own size is all there is to go by
        words = config.model.vocab_size - config.min_vocab_size(0)
    else:
        words = config.data.bpe_size
    vocabulary = config.min_vocab_size(words)
    if task is not None:
        resolved = task.resolve_config(config, config.preset, 1)
    else:  # durations in epochs need a length
        facts = RowFacts(steps_per_epoch=1_000) if config.trains_on_rows else None
        resolved = config.resolved(vocab_size=vocabulary, threads=1, train_tokens=1_000_000, rows=facts)
    shape = BatchShape.from_config(resolved)
    # A batch of rows, unless set in tokens, is cut until its estimate fits.
    in_rows = resolved.train.batch_tokens is None
    while in_rows and shape.rows > 1 and memory_bytes(resolved, vocabulary, shape, gpu=gpu) > MAX_BYTES:
        resolved = with_value(resolved, "train.batch_size", shape.rows // 2)
        shape = BatchShape.from_config(resolved)
    batches: BatchStream = _Random(shape, words, device) if task is None else task.batches(resolved, device)
    tiny = RunConfig().miniature().resolved(vocab_size=VOCABULARY, threads=1, train_tokens=1000)
    tiny_batches = _Random(BatchShape.from_config(tiny), VOCABULARY, device)
    Stepper(tiny, build_model(tiny.model, VOCABULARY, 1, device), tiny_batches).step(1)
    keep_memory()
    largest, accumulation = batches.locate_largest_batch(), resolved.train.accumulation
    shape = BatchShape.from_batch(batches.batch(*largest))

    def train() -> None:
        stepper = Stepper(resolved, build_model(resolved.model, vocabulary, resolved.seed, device), batches)
        for step in (1, 2, largest[0]):
            stepper.step(step)

    estimate = memory_bytes(resolved, vocabulary, shape, gpu=gpu)
    rows = max(asked // accumulation, shape.rows) if config.train.batch_tokens is None else shape.rows
    return MemoryPeak(config.preset, shape, rows, task is not None, estimate, measure_added_peak_bytes(train, device))


class _Random:
    def __init__(self, shape: BatchShape, words: int, device: torch.device) -> None:
        draw = torch.Generator().manual_seed(0)
        tokens, source = (
            torch.randint(words, (shape.rows, length), generator=draw).to(device)
            for length in (shape.target, shape.source)
        )
        at = right_padded_positions([shape.source] * shape.rows, device) if shape.source else None
        self._batch = Batch(tokens, tokens, tokens.numel(), source if shape.source else None, at)
        self.objective = cast(Objective, SimpleNamespace(vocab_size=words))

    def batch(self, step: int, micro: int) -> Batch:
        return self._batch

    def leak_probe_examples(self) -> Tensor:
        return self._batch.tokens

    def locate_largest_batch(self) -> tuple[int, int]:
        return 1, 0
