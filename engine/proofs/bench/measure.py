"""Timing: contenders take turns, so that background load affects all alike; and the machine's own limit."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import torch

from engine.base.language import tr
from engine.config.schema import RunConfig
from engine.proofs.bench.memory import measure_added_peak_bytes

REPEATS = 7
PRODUCTS = 20  # matrix products per recorded graph


Contenders = Mapping[str, Callable[[], int]]  # by name: does a piece of work, returns its number of tokens or calls


@dataclass(frozen=True)
class Throughput:
    """Units per second over the rounds: median, slowest and fastest; and the memory a piece of work adds."""

    name: str
    median: float
    low: float
    high: float
    rounds: int
    peak_bytes: int | None = None


def time_interleaved(
    contenders: Contenders,
    *,
    rounds: int,
    seconds: float,
    device: torch.device | str = "cpu",
    report: Callable[[str], None] = lambda _: None,
) -> list[Throughput]:
    """Time contenders in turns of at least `seconds`, after a warm-up and a memory measurement (one pass on CUDA)."""
    device = torch.device(device)
    found: dict[str, list[float]] = {name: [] for name in contenders}
    memory: dict[str, int | None] = {}
    for name, work in contenders.items():
        report(tr("warming up {contender}", contender=tr(name)))
        if device.type == "cuda":  # include the warm-up: recorded steps allocate on their first calls only
            memory[name] = measure_added_peak_bytes(partial(_twice, work), device)
        else:
            work()
            memory[name] = measure_added_peak_bytes(work, device)
    order = list(contenders)
    for i in range(rounds):
        for name in [*order[i % len(order) :], *order[: i % len(order)]]:
            report(tr("round {round} of {rounds}: {contender}", round=i + 1, rounds=rounds, contender=tr(name)))
            synchronize(device)
            units, started = 0, time.perf_counter()
            while units == 0 or time.perf_counter() - started < seconds:
                units += contenders[name]()
            synchronize(device)  # only here, as a run waits for a GPU only at its log points
            found[name].append(units / (time.perf_counter() - started))
    return [Throughput(name, statistics.median(v), min(v), max(v), rounds, memory[name]) for name, v in found.items()]


def _twice(work: Callable[[], object]) -> None:
    work()
    work()


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def linear_map_counts_and_shapes(config: RunConfig, vocab_size: int) -> list[tuple[int, int, int, int]]:
    """Return (count, rows, inner, columns) of a training step's linear maps, for one stack."""
    model, rows = config.model, config.train.batch_size * config.window_targets
    layers, d = model.n_layers, model.d_model
    return [
        (layers, rows, d, d + 2 * model.kv_width),
        (layers, rows, d, d),
        (layers, rows, d, model.ff_expanded_width),
        (layers, rows, model.d_ff, d),
        (1, rows, d, vocab_size),
    ]


def matmul_token_rate(config: RunConfig, vocab_size: int, precision: str, device: torch.device) -> float:
    """Return the tokens per second of a step that only did its linear maps' products, forward and backward."""
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    total, rows = 0.0, 1
    for count, rows, inner, columns in linear_map_counts_and_shapes(config, vocab_size):
        x = torch.randn(rows, inner, device=device, dtype=dtype)
        w = torch.randn(columns, inner, device=device, dtype=dtype)
        y = torch.randn(rows, columns, device=device, dtype=dtype)
        for a, b in ((x, w.t()), (y, w), (y.t(), x)):
            total += count * (_cuda_matmul_seconds(a, b) if device.type == "cuda" else _matmul_seconds(a, b, device))
    return rows / total


def _matmul_seconds(a: torch.Tensor, b: torch.Tensor, device: torch.device) -> float:
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        a @ b
        synchronize(device)
        times.append(time.perf_counter() - started)
    return min(times)


def _cuda_matmul_seconds(a: torch.Tensor, b: torch.Tensor) -> float:
    """Seconds per product, by the GPU's clock. Products are replayed from one CUDA graph, because launching one can
    take the host longer than computing it takes the GPU.
    """
    out = a @ b  # the first call chooses a kernel
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(PRODUCTS):
            torch.mm(a, b, out=out)
    times = []
    for _ in range(REPEATS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(float(start.elapsed_time(end)) / 1000.0 / PRODUCTS)
    return min(times)
