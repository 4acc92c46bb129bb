"""Dropout (Srivastava et al. 2014), with masks that are cheap on a CPU.

torch draws a CPU mask number by number in one thread; here one byte of a fast generator decides each element (two where
the rate is too fine for one). The rate is exact to 1/512, and kept elements are scaled by the actual share kept. Masks
derive from torch's own generator, so seeding that seeds them. Other devices use torch's kernel.
"""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

MAX_RATE_ERROR = 0.1  # largest relative error of the rate for one byte per element


def seed_generators(device: torch.device, seed: int) -> None:
    """Seed all that is drawn from while a network on this device computes. `torch.manual_seed` would seed every kind of
    device, and for a kind that is missing, store the call with its traceback in case one appears.
    """
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":  # `torch.cuda.manual_seed` seeds the current GPU, which may be another one
        torch.cuda.default_generators[device.index or 0].manual_seed(seed)
    elif device.type == "mps":
        torch.mps.manual_seed(seed)


def keep_mask(shape: tuple[int, ...] | torch.Size, p: float, dtype: torch.dtype = torch.float32) -> Tensor:
    """A mask to multiply with, on the CPU: 0 for a share p of the elements, 0 < p < 1, else the factor that keeps the
    mean. With another dtype than what it multiplies, torch would convert it at each use.
    """
    dropped, of = round(p * 256), 256
    if abs(dropped / of - p) > MAX_RATE_ERROR * p * (1 - p):
        dropped, of = round(p * 65_536), 65_536
    count = int(np.prod(shape))
    # One seed per mask from torch's generator: the two streams stay in step, and a run repeats bit for bit.
    seed = int(torch.randint(2**62, (1,)))
    words = -(-count * (1 if of == 256 else 2) // 8)
    generator = np.random.Generator(np.random.SFC64(seed))
    drawn = generator.integers(0, 2**64 - 1, size=words, dtype=np.uint64, endpoint=True)
    numbers = torch.from_numpy(drawn.view(np.uint8 if of == 256 else np.int16)[:count]).view(shape)
    lowest = 0 if of == 256 else -of // 2
    mask = torch.ge(numbers, lowest + dropped, out=torch.empty(shape, dtype=dtype))
    return mask.mul_(of / (of - dropped))


def dropout(x: Tensor, p: float) -> Tensor:
    """Drop a share p of the elements, and scale the others to preserve the mean."""
    if p == 0.0:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, p)
    return x * keep_mask(x.shape, p, x.dtype)


class Dropout(nn.Dropout):
    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.p) if self.training else x


class RowDropout(Dropout):
    """Drop a share p of the rows of (B, T, D), and scale the others to preserve the mean: stochastic depth.

    Huang et al. 2016 draw once per batch, and scale at evaluation instead; drawing per row has less variance.
    """

    def forward(self, x: Tensor) -> Tensor:
        return x * dropout(x.new_ones(x.shape[0], 1, 1), self.p) if self.training else x
