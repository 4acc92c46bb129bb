"""How numbers are kept and multiplied: autocast to bf16, and what fp32 matrix products may round.

Parameters and optimizer state are always fp32. Evaluation is always fp32, so scores compare across precisions.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from engine.config.sections import TrainConfig
from engine.model.transformer import Network


def chosen_precision(train: TrainConfig, device: torch.device) -> str:
    """What `precision` means on this device: "auto" takes bf16 on a GPU that has it, and fp32 elsewhere."""
    if train.precision != "auto":
        return train.precision
    return "bf16" if device.type == "cuda" and torch.cuda.is_bf16_supported() else "fp32"


def autocast(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """The context of a training step's forward pass."""
    if precision == "bf16":
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return nullcontext()


def compiles(train: TrainConfig) -> bool:
    """Whether a step's forward and backward pass are compiled by torch.

    "auto" does so where that was measured to win, which is nowhere yet: on a CPU a compiled step is 3 to 14 % faster
    and takes half a minute to compile (docs/benchmarks.md); on a GPU it has not been measured.
    """
    return train.compile == "always"


def compiled(model: Network) -> Callable[..., Tensor]:
    """The model compiled by torch; on CUDA its steps of one shape are replayed as graphs, without launches."""
    graphs = next(model.parameters()).is_cuda
    return torch.compile(model, mode="reduce-overhead" if graphs else None)


def set_fp32_matmul(kind: str) -> None:
    """`exact`: fp32 products in fp32. `fast`: TF32 on CUDA, bf16 pieces through oneDNN on a CPU.

    A setting of the process: a run sets it when it starts.
    """
    torch.backends.cuda.matmul.fp32_precision = "tf32" if kind == "fast" else "ieee"
    torch.backends.mkldnn.matmul.fp32_precision = "bf16" if kind == "fast" else "ieee"  # type: ignore[attr-defined]
