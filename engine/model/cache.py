"""What a layer remembers while decoding, so that a new token costs one step and not a whole pass.

Keys are cached after rotation, together with their absolute positions: attention with a cache is the same function of
the same positions as attention without one.
"""

from dataclasses import dataclass, field

from torch import Tensor

from engine.model.span import Span


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


@dataclass
class Cache:
    """The state of a whole decoder: one entry a layer, and how many tokens it has seen."""

    layers: list[KeyValueCache] = field(default_factory=list)
    length: int = 0

    @classmethod
    def of(cls, n_layers: int) -> "Cache":
        """An empty cache for `n_layers` layers."""
        return cls([KeyValueCache() for _ in range(n_layers)])

    def select(self, rows: Tensor) -> None:
        """Reorder batch rows in every layer (beam search)."""
        for layer in self.layers:
            layer.select(rows)
