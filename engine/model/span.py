"""Where a block of tokens stands: absolute positions, passed along with every tensor that has a time axis."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Span:
    """Absolute positions of T tokens, for one row that all share or for each of the batch.

    Args:
        index: (N, T) int64 with N ∈ {1, B}; −1 where there is no token.
        start: known on the host: every row is start, start + 1, … without −1. Allows fast kernels without a
            device synchronisation. None: not known to be so.
    """

    index: Tensor
    start: int | None = None

    @classmethod
    def run(cls, length: int, start: int = 0, device: torch.device | str | None = None) -> "Span":
        """`length` tokens in a row from `start`, the same in each row of the batch."""
        return cls(torch.arange(start, start + length, device=device)[None], start)

    @classmethod
    def of(cls, keep: Tensor) -> "Span":
        """Positions counted over real tokens only, so that padding changes nothing.

        Args:
            keep: (B, T) bool, False at padding.
        """
        return cls(torch.where(keep, keep.long().cumsum(-1) - 1, -1))

    @property
    def length(self) -> int:
        """T, the number of slots."""
        return self.index.shape[-1]
