"""A layer's state while decoding, so that a new token costs one step instead of a full pass.

Keys are cached after rotation, with their absolute positions: attention with a cache is the same function of the same
positions as without.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.model.positions import Positions

SMALLEST_CAPACITY = 64  # tokens


class LayerState:
    """The state that every layer has."""

    def __init__(self) -> None:
        self.conv_inputs: dict[str, Tensor] = {}  # (B, W − 1, D) by sublayer: the last inputs of its convolution

    def select(self, rows: Tensor) -> None:
        """Reorder batch rows: row i becomes the old row rows[i]."""
        self.conv_inputs = {part: inputs[rows] for part, inputs in self.conv_inputs.items()}


class KeyValueCache(LayerState):
    """The keys and values so far, (B, H, T, Dh) each, in one buffer (B, 2 H, capacity, Dh) that doubles when full.

    With a causal `window` w, only those still visible are kept: the last w − 1 besides the new ones. Batches with
    padding keep all: which keys are the last differs per row.
    """

    def __init__(self, capacity: int, window: int | None) -> None:
        super().__init__()
        self.capacity, self.window = capacity, window
        self.length = 0
        self._buffer: Tensor | None = None
        self._heads = 0
        self._start: int | None = None  # tokens are consecutive from here
        self._index: Tensor | None = None  # (N, capacity) their positions, if they are not

    def extend(self, k: Tensor, v: Tensor, at: Positions) -> tuple[Tensor, Tensor, Positions]:
        """Append new, rotated keys and values (B, H, T, Dh); return all of them with their positions."""
        length, heads = self.length, k.shape[1]
        known = self._append_positions(at)
        buffer = self._buffer_for(k, heads)
        self.length = stop = length + k.shape[2]
        buffer[:, :heads, length:stop] = k
        buffer[:, heads:, length:stop] = v
        self._forget(k.shape[2])
        return buffer[:, :heads, :stop], buffer[:, heads:, :stop], known

    def append(self, keys_values: Tensor) -> tuple[Tensor, Tensor]:
        """Append the next token's (B, 2 H, 1, Dh); return the keys and values in its window, its own included."""
        length, heads = self.length, self._heads
        buffer = self._buffer
        if buffer is None or buffer.shape[2] == length:
            buffer = self._buffer_for(keys_values, keys_values.shape[1] // 2)
        self.length = stop = length + 1
        buffer[:, :, length:stop] = keys_values
        first = 0 if self.window is None else max(0, stop - self.window)
        self._forget(1)
        return buffer[:, :heads, first:stop], buffer[:, heads:, first:stop]

    def _append_positions(self, at: Positions) -> Positions:
        """Store the positions of new tokens; return all positions."""
        stop, first = self.length + at.length, self.length == 0
        follows = self._start is not None and at.start == self._start + self.length
        if at.start is not None and (first or follows):
            self._start = at.start if first else self._start
            return Positions.consecutive(stop, self._start or 0, at.index.device)
        before = self._index
        if before is None:
            before = torch.arange(self.length, device=at.index.device)[None] + (self._start or 0)
        rows = max(before.shape[0], at.index.shape[0])
        self._start = None
        self._index = torch.cat((before.expand(rows, -1), at.index.expand(rows, -1)), dim=1)
        return Positions(self._index)

    def _buffer_for(self, new: Tensor, heads: int) -> Tensor:
        needed, old = self.length + new.shape[2], self._buffer
        if old is not None and old.shape[2] >= needed:
            return old
        capacity = max(needed, 2 * self.length, self.capacity, SMALLEST_CAPACITY)
        self._buffer, self._heads = new.new_zeros(new.shape[0], 2 * heads, capacity, new.shape[3]), heads
        if old is not None:
            self._buffer[:, :, : self.length] = old[:, :, : self.length]
        return self._buffer

    def _forget(self, new: int) -> None:
        if self.window is None or self._start is None or self._buffer is None:
            return
        spare = self.length - (self.window - 1)
        if spare > self.window + new:  # moving costs time, so not at every token
            self._buffer = self._buffer[:, :, spare : self.length].clone()
            self._start += spare
            self.length -= spare

    def select(self, rows: Tensor) -> None:
        super().select(rows)
        if self._buffer is not None:
            chosen = self._buffer[:, :, : self.length].index_select(0, rows)
            if rows.numel() > self._buffer.shape[0]:
                self._buffer = self._buffer.new_zeros(rows.numel(), *self._buffer.shape[1:])
            self._buffer = self._buffer[: rows.numel()]  # in place: unwritten slots need no copy
            self._buffer[:, :, : self.length] = chosen
        if self._index is not None and self._index.shape[0] > 1:
            self._index = self._index[rows]


class LinearState(LayerState):
    """Linear attention's state of constant size: Σ φ(k) vᵀ and Σ φ(k) over all keys so far, fp32 or wider."""

    def __init__(self) -> None:
        super().__init__()
        self.key_values: Tensor | None = None  # (B, H, Dh, Dh)
        self.keys: Tensor | None = None  # (B, H, Dh)

    def select(self, rows: Tensor) -> None:
        super().select(rows)
        if self.key_values is not None and self.keys is not None:
            self.key_values, self.keys = self.key_values[rows], self.keys[rows]


@dataclass
class Cache:
    """The decoding state of a whole network."""

    layers: list[LayerState]
    length: int = 0  # tokens read
    source: list[tuple[Tensor, Tensor]] | None = None  # each layer's keys and values of the source, if there is one
    source_at: Positions | None = None
    tokens: Tensor | None = None  # (B, T) all tokens so far, if the network reprocesses them at each step

    def select(self, rows: Tensor, *, same_sources: bool = False) -> None:
        """Reorder batch rows in every layer (beam search): row i becomes the old row rows[i]. `same_sources`: the
        old row is known to have the same source.
        """
        for layer in self.layers:
            layer.select(rows)
        if self.tokens is not None:
            self.tokens = self.tokens[rows]
        if same_sources:
            return
        if self.source is not None:
            self.source = [(k[rows], v[rows]) for k, v in self.source]
        at = self.source_at
        if at is not None and at.index.shape[0] > 1:
            self.source_at = Positions(at.index[rows], at.start, at.one_sided_padding)
