"""From what length on does a window, or linear attention, save time on this machine? Measured, not estimated."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.config.schema import RunConfig
from engine.config.sections import ModelConfig
from engine.model.attention import softmax_attention
from engine.model.linear_attention import linear_attention
from engine.model.positions import Positions, PositionScheme
from engine.model.visibility import Visibility, self_attention
from engine.training.numerics import chosen_precision

LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096)
TOKENS = 4096  # of all rows together, at each length
REPEATS = 3

Mix = Callable[[Tensor, Tensor, Tensor, Positions], Tensor]


@dataclass(frozen=True)
class Crossover:
    """What was measured.

    Args:
        kind: the attention.
        ratio: (length, time of this kind / time of attention to all), shortest first; forward and backward.
    """

    kind: str
    ratio: tuple[tuple[int, float], ...]

    @property
    def saves_from(self) -> int | None:
        """The shortest length from which on it was quicker at each; None if at none."""
        found = None
        for length, ratio in reversed(self.ratio):
            if ratio >= 1.0:
                break
            found = length
        return found


def crossover(config: RunConfig, device: torch.device) -> Crossover | None:
    """Time one layer's attention, without positions, against attention to all. None where it is no window or linear.

    Args:
        config: kind, window, heads, dropout, precision.
        device: where.
    """
    model = config.model
    dtype = torch.bfloat16 if chosen_precision(config.train, device) == "bf16" else torch.float32
    if model.attention not in ("window", "linear"):
        return None
    nothing = PositionScheme()

    def to(see: Visibility) -> Mix:
        return lambda q, k, v, at: softmax_attention(q, k, v, at, at, see, nothing, dropout=model.attention_dropout)

    def linear(q: Tensor, k: Tensor, v: Tensor, at: Positions) -> Tensor:
        return linear_attention(q, k, v, at, nothing, causal=model.causal)

    kinds = (linear if model.attention == "linear" else to(self_attention(model)), to(Visibility(model.causal)))
    ratio = []
    for length in LENGTHS:
        this, all_keys = (_seconds(kind, model, length, dtype, device) for kind in kinds)
        ratio.append((length, this / all_keys))
    return Crossover(model.attention, tuple(ratio))


def _seconds(mix: Mix, model: ModelConfig, length: int, dtype: torch.dtype, device: torch.device) -> float:
    shape = (max(1, TOKENS // length), model.n_heads, length, model.head_width)
    q, k, v = (torch.randn(shape, dtype=dtype, device=device, requires_grad=True) for _ in range(3))
    at, best = Positions.consecutive(length, 0, device), float("inf")
    for _ in range(REPEATS + 1):  # the first warms up
        started = time.perf_counter()
        torch.autograd.backward(mix(q, k, v, at).sum())
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        best = min(best, time.perf_counter() - started)
    return best
