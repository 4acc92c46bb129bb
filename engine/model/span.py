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
        one_side: known on the host: padding stands at one side of a row only, so tokens stand side by side.
    """

    index: Tensor
    start: int | None = None
    one_side: bool = False

    @classmethod
    def run(cls, length: int, start: int = 0, device: torch.device | str | None = None) -> "Span":
        """`length` tokens in a row from `start`, the same in each row of the batch."""
        return cls(torch.arange(start, start + length, device=device)[None], start)

    @classmethod
    def of(cls, keep: Tensor, *, one_side: bool = False) -> "Span":
        """Positions counted over real tokens only, so that padding changes nothing.

        Args:
            keep: (B, T) bool, False at padding.
            one_side: padding stands at one side only, as the caller knows.
        """
        return cls(torch.where(keep, keep.long().cumsum(-1) - 1, -1), one_side=one_side)

    @property
    def packed(self) -> bool:
        """Known on the host: two tokens are as many slots apart as positions."""
        return self.start is not None or self.one_side

    @property
    def length(self) -> int:
        """T, the number of slots."""
        return self.index.shape[-1]
