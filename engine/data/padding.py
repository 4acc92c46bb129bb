"""Pad token rows of different lengths into one tensor, and copy it to a device."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.model.positions import Positions

Tokens = NDArray[np.int64]
Counts = NDArray[np.int64]
AnyDevice = torch.device | str


def copy_to_device(tensor: Tensor, device: AnyDevice) -> Tensor:
    """Copy a tensor from host to device; to a CUDA GPU from pinned memory, asynchronously."""
    if torch.device(device).type == "cuda":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def pad_rows(rows: Sequence[Tokens], value: int, first: int | None = None, last: int | None = None) -> Tensor:
    """Return (B, longest) rows padded on the right, optionally with a token before and one after each."""
    parts = [[] if token is None else [token] for token in (first, last)]
    length = max(len(row) for row in rows) + len(parts[0]) + len(parts[1])
    out = np.full((len(rows), length), value, dtype=np.int64)
    for i, row in enumerate(rows):
        filled = np.concatenate((parts[0], row, parts[1])).astype(np.int64)
        out[i, : len(filled)] = filled
    return torch.from_numpy(out)


def right_padded_positions(lengths: Sequence[int], device: AnyDevice) -> Positions:
    """Return the token positions of rows that are padded on the right."""
    real = torch.tensor(list(lengths))
    at = Positions.of_tokens(torch.arange(int(real.max()))[None] < real[:, None], one_side=True)
    return Positions(copy_to_device(at.index, device), one_sided_padding=True)
