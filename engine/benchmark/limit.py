"""The machine's limit for a model: the time of its matrix products alone, forward and backward, at its own shapes."""

import time

import torch

from engine.benchmark.measure import settle
from engine.config.schema import RunConfig

REPEATS = 7
LAUNCHES = 20  # of a product per timing on a GPU


def shapes(config: RunConfig, vocab_size: int) -> list[tuple[int, int, int, int]]:
    """(how many, rows, inner, columns) of a training step's linear maps, for one stack."""
    model, rows = config.model, config.train.batch_size * config.window_targets
    layers, d = model.n_layers, model.d_model
    return [
        (layers, rows, d, d + 2 * model.kv_width),
        (layers, rows, d, d),
        (layers, rows, d, model.ff_expansion),
        (layers, rows, model.d_ff, d),
        (1, rows, d, vocab_size),
    ]


def products_per_second(config: RunConfig, vocab_size: int, precision: str, device: torch.device) -> float:
    """Tokens per second if a training step were its linear maps' products and nothing else.

    Each product is timed forward, and backward for its input and its weight; the best of several repeats counts. On a
    GPU, its own clock times several launches together, which leaves out the host's time to launch one.
    """
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    total, rows = 0.0, 1
    for count, rows, inner, columns in shapes(config, vocab_size):
        x = torch.randn(rows, inner, device=device, dtype=dtype)
        w = torch.randn(columns, inner, device=device, dtype=dtype)
        y = torch.randn(rows, columns, device=device, dtype=dtype)
        for a, b in ((x, w.t()), (y, w), (y.t(), x)):
            total += count * _best(a, b, device)
    return rows / total


def _best(a: torch.Tensor, b: torch.Tensor, device: torch.device) -> float:
    """Seconds per product."""
    if device.type == "cuda":
        return _best_on_cuda(a, b)
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        a @ b
        settle(device)
        times.append(time.perf_counter() - started)
    return min(times)


def _best_on_cuda(a: torch.Tensor, b: torch.Tensor) -> float:
    out = a @ b  # the first call chooses a kernel
    times = []
    for _ in range(REPEATS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        start.record()
        for _ in range(LAUNCHES):
            torch.mm(a, b, out=out)
        end.record()
        end.synchronize()
        times.append(float(start.elapsed_time(end)) / 1000.0 / LAUNCHES)
    return min(times)
