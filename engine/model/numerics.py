"""Numerical precision: autocast to bf16, and the rounding allowed in fp32 matrix products.

Parameters and optimizer state are always fp32. Evaluation is always fp32, so scores compare across precisions.
"""

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Self

import torch
import torch.utils.deterministic

from engine.config.schema import RunConfig
from engine.config.sections import TrainConfig
from engine.model import size

# From where on `train.compile = "auto"` compiles. Not measured: on a GPU, smaller models' steps are mostly kernel
# launches, which plain compiling does not save, and compiling takes a minute or two.
COMPILED_PARAMETERS, COMPILED_STEPS = 30_000_000, 1_000


@dataclass(frozen=True)
class Numerics:
    """What a config's settings of numerics come to on a device: what each "auto" in them means there."""

    precision: str  # "fp32" or "bf16"
    compiles: bool  # whether torch compiles a step's forward and backward pass
    records_steps: bool  # whether steps are recorded as CUDA graphs

    @classmethod
    def choose(cls, config: RunConfig, device: torch.device, recorded: Mapping[str, Any] | None = None) -> Self:
        """Decide each "auto", as was `recorded` in model.json when the run began, if it did."""
        was, train = recorded or {}, config.train
        precision, compiles = chosen_precision(train, device), compiles_step(config, device)
        if train.precision == "auto" and was.get("precision") in ("fp32", "bf16"):
            precision = was["precision"]
        if train.compile == "auto" and was.get("compiled") is False:
            compiles = False
        return cls(precision, compiles, not compiles and records_graphs(config, device))


def chosen_precision(train: TrainConfig, device: torch.device) -> str:
    """Return what `precision` means on this device: "auto" takes bf16 on a GPU that has it, and fp32 elsewhere."""
    if train.precision != "auto":
        return train.precision
    return "bf16" if is_gpu_with_bf16(device) else "fp32"


def is_gpu_with_bf16(device: torch.device) -> bool:
    """Return whether a device is a GPU with native bf16; older ones only emulate it, slower than fp32."""
    if device.type != "cuda":
        return False
    with torch.cuda.device(device):  # torch asks the current one
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))


def measure_bf16_slowdown(config: RunConfig) -> float:
    """Return the time of a matrix product in bf16 divided by that in fp32 on this CPU; measuring it takes 0.2 s.

    Without instructions for bf16, it may be large. The product is a feed-forward layer's.
    """
    width, inner = min(config.model.d_model, 256), min(config.model.d_ff or 4 * config.model.d_model, 1024)
    seconds, began = {torch.float32: 1e9, torch.bfloat16: 1e9}, time.perf_counter()
    while time.perf_counter() - began < 0.2:
        for dtype in seconds:
            inputs, weights = torch.ones(32, width, dtype=dtype), torch.ones(width, inner, dtype=dtype)
            started = time.perf_counter()
            torch.mm(inputs, weights)
            seconds[dtype] = min(seconds[dtype], time.perf_counter() - started)
    return seconds[torch.bfloat16] / seconds[torch.float32]


def autocast(precision: str, device: torch.device) -> AbstractContextManager[object]:
    return torch.autocast(device.type, dtype=torch.bfloat16) if precision == "bf16" else nullcontext()


def compiles_step(config: RunConfig, device: torch.device) -> bool:
    """Whether a step's forward and backward pass are compiled by torch.

    "auto" compiles large models on CUDA if the run is long enough to earn it back, all batches have one shape and
    attention is over all tokens; never on a CPU, where a step gets 3 to 14 % faster (docs/benchmarks.md).
    """
    if config.train.compile != "auto":
        return config.train.compile == "always"
    alike = not config.trains_on_rows and config.model.distinct_attentions == ["global"]
    if device.type != "cuda" or not alike or config.train.steps < COMPILED_STEPS:
        return False
    return size.parameter_count(config.model, config.model.vocab_size or 0) >= COMPILED_PARAMETERS


def records_graphs(config: RunConfig, device: torch.device) -> bool:
    """Whether a step's passes and its update are recorded as CUDA graphs, unless the step is compiled."""
    return device.type == "cuda" and size.supports_cuda_graphs(config)


def make_repeatable(device: torch.device) -> None:
    """Make results on CUDA repeatable. Otherwise, the backward pass of attention adds in no fixed order."""
    if device.type == "cuda":
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # changes no result
        torch.use_deterministic_algorithms(True)


def set_fp32_matmul(kind: str) -> None:
    """Set fp32 products of this process: `exact`, or `fast`: TF32 on CUDA, bf16 pieces through oneDNN on a CPU."""
    torch.backends.cuda.matmul.fp32_precision = "tf32" if kind == "fast" else "ieee"
    torch.backends.mkldnn.matmul.fp32_precision = "bf16" if kind == "fast" else "ieee"  # type: ignore[attr-defined]
