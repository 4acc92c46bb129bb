"""Dropout (Srivastava et al. 2014), with masks that cost a CPU little.

torch draws a CPU mask number by number in one thread; here one byte of a fast generator decides about each element (two
bytes where the rate is too fine for one). The rate is exact to 1/512, and what is kept is scaled by the share that is
really kept. Masks follow from torch's own generator, so seeding that seeds them. Other devices use torch's kernel.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

COARSE = 0.1  # relative error of a rate up to which one byte an element will do


def _levels(p: float) -> tuple[int, int]:
    """Return (dropped, of): the rate as a fraction of 256, or of 65,536 where that is too coarse."""
    dropped = round(p * 256)
    return (dropped, 256) if abs(dropped / 256 - p) <= COARSE * p * (1 - p) else (round(p * 65_536), 65_536)


def keep_mask(shape: tuple[int, ...] | torch.Size, p: float, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return a mask to multiply with, on the CPU: 0 where an element is dropped, else the factor that keeps the mean.

    `p` is the share that is dropped, 0 < p < 1. `dtype` is that of what the mask multiplies; with another one, torch
    would convert the mask at each use.
    """
    dropped, of = _levels(p)
    count = int(np.prod(shape))
    # One seed from torch's generator a mask: the two streams stay in step, and a run repeats bit for bit.
    seed = int(torch.randint(2**62, (1,)))
    words = -(-count * (1 if of == 256 else 2) // 8)
    generator = np.random.Generator(np.random.SFC64(seed))
    drawn = generator.integers(0, 2**64 - 1, size=words, dtype=np.uint64, endpoint=True)
    numbers = torch.from_numpy(drawn.view(np.uint8 if of == 256 else np.int16)[:count]).view(shape)
    lowest = 0 if of == 256 else -of // 2
    mask = torch.ge(numbers, lowest + dropped, out=torch.empty(shape, dtype=dtype))
    return mask.mul_(of / (of - dropped))


class _Dropped(torch.autograd.Function):
    """x · mask, and the same for its gradient."""

    @staticmethod
    def forward(context: Any, x: Tensor, mask: Tensor) -> Tensor:
        context.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (mask,) = context.saved_tensors
        return gradient * mask, None


def dropout(x: Tensor, p: float) -> Tensor:
    """Drop a share p of the elements, and scale the others so that the mean stays."""
    if p == 0.0:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, p)
    dropped: Tensor = _Dropped.apply(x, keep_mask(x.shape, p, x.dtype))  # type: ignore[no-untyped-call]
    return dropped


class Dropout(nn.Module):
    """`dropout` in training mode only."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.p) if self.training else x

    def extra_repr(self) -> str:
        return f"p={self.p}"
