"""What a layer remembers while decoding, so that a new token costs one step and not a whole pass.

Keys are cached after rotation, together with their absolute positions: attention with a cache is the same function of
the same positions as attention without one.
"""

from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor

from engine.model.span import Span


class LayerState(Protocol):
    """What every kind of memory can do."""

    def select(self, rows: Tensor) -> None:
        """Reorder batch rows: row i becomes the old row rows[i]."""


class KeyValueCache:
    """All keys and values so far, (B, H, T, Dh), in buffers that double when full."""

    def __init__(self) -> None:
        self._keys: Tensor | None = None
        self._values: Tensor | None = None
        self._index: Tensor | None = None
        self._start: int | None = None
        self.length = 0

    def extend(self, k: Tensor, v: Tensor, at: Span) -> tuple[Tensor, Tensor, Span]:
        """Append new keys and values, give back all of them with their positions.

        Args:
            k: (B, H, T, Dh), already rotated.
            v: (B, H, T, Dh).
            at: positions of the new tokens.
        """
        new = k.shape[2]
        known = at.start is not None and (
            self.length == 0 or (self._start is not None and at.start == self._start + self.length)
        )
        self._start = (at.start if self.length == 0 else self._start) if known else None
        self._keys = self._room(self._keys, k, 2)
        self._values = self._room(self._values, v, 2)
        self._index = self._room(self._index, at.index, 1)
        stop = self.length + new
        self._keys[:, :, self.length : stop] = k
        self._values[:, :, self.length : stop] = v
        self._index[:, self.length : stop] = at.index
        self.length = stop
        span = Span(self._index[:, :stop], self._start)
        return self._keys[:, :, :stop], self._values[:, :, :stop], span

    def _room(self, buffer: Tensor | None, new: Tensor, axis: int) -> Tensor:
        needed = self.length + new.shape[axis]
        if buffer is not None and buffer.shape[axis] >= needed and buffer.shape[0] >= new.shape[0]:
            return buffer
        shape = list(new.shape)
        shape[axis] = max(needed, 2 * self.length, 64)
        room = new.new_zeros(shape)
        if buffer is not None:
            room.narrow(axis, 0, self.length).copy_(buffer.narrow(axis, 0, self.length))
        return room

    def select(self, rows: Tensor) -> None:
        """Reorder batch rows: row i becomes the old row rows[i]."""
        if self._keys is None or self._values is None or self._index is None:
            return
        self._keys, self._values = self._keys[rows], self._values[rows]
        if self._index.shape[0] > 1:
            self._index = self._index[rows]


class WindowCache(KeyValueCache):
    """Only what a causal window can still reach: the newest w − 1 keys besides the new ones.

    Padded rows, whose newest keys are not the same for all, keep everything: as right, only larger.
    """

    def __init__(self, window: int) -> None:
        super().__init__()
        self.window = window

    def extend(self, k: Tensor, v: Tensor, at: Span) -> tuple[Tensor, Tensor, Span]:
        """Append new keys and values, give back those the new queries may see, then forget what no later one will."""
        seen = super().extend(k, v, at)
        spare = self.length - (self.window - 1)
        if self._start is not None and spare > self.window + k.shape[2]:  # not at each token: moving costs too
            self._forget(spare)
        return seen

    def _forget(self, oldest: int) -> None:
        assert self._keys is not None and self._values is not None and self._index is not None
        assert self._start is not None
        kept = slice(oldest, self.length)
        self._keys, self._values = self._keys[:, :, kept].clone(), self._values[:, :, kept].clone()
        self._index = self._index[:, kept].clone()
        self._start += oldest
        self.length -= oldest


class LinearState:
    """Linear attention's memory, of one size for ever: Σ φ(k) vᵀ and Σ φ(k) over all keys so far, fp32 or wider."""

    def __init__(self) -> None:
        self.key_values: Tensor | None = None  # (B, H, Dh, Dh)
        self.keys: Tensor | None = None  # (B, H, Dh)

    def select(self, rows: Tensor) -> None:
        """Reorder batch rows: row i becomes the old row rows[i]."""
        if self.key_values is not None and self.keys is not None:
            self.key_values, self.keys = self.key_values[rows], self.keys[rows]


@dataclass
class Cache:
    """The state of a whole decoder: one entry a layer, and how many tokens it has seen.

    `memory` has each layer's keys and values of the source, computed once, where there is a source, `memory_at` their
    positions.
    """

    layers: list[LayerState] = field(default_factory=list)
    length: int = 0
    memory: list[tuple[Tensor, Tensor]] | None = None
    memory_at: Span | None = None

    def select(self, rows: Tensor) -> None:
        """Reorder batch rows in every layer (beam search)."""
        for layer in self.layers:
            layer.select(rows)
        if self.memory is not None:
            self.memory = [(k[rows], v[rows]) for k, v in self.memory]
        if self.memory_at is not None and self.memory_at.index.shape[0] > 1:
            self.memory_at = Span(self.memory_at.index[rows], self.memory_at.start, self.memory_at.one_side)
