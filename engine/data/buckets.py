"""Batches of rows of similar length, within a budget of tokens: a pure function of the step.

An epoch is every row once in an order of its own: shuffled, sorted by length within pools, cut into batches, and these
shuffled again. So the position of a run is two ints, as it is for texts, and padding costs little.
"""

from bisect import bisect_right
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from engine.config.schema import RunConfig
from engine.errors import InputError
from engine.seeds import seed_for

POOL = 64  # batches whose rows are sorted by length together
Counts = NDArray[np.int64]


class BucketedBatches:
    """Each row once an epoch, beside rows of similar length; what a batch is made of says the subclass.

    Args:
        lengths: epoch → (n, sides) tokens of each row as they are batched: of source and target, or of the one side.
        config: `train.batch_tokens`, so many of the longer side with its padding, or `train.batch_size` rows.
        of: what a row is, for an error.
        or_else: what else may be done about one that is too long.

    Raises:
        InputError: a row of the first epoch is longer than the budget.
    """

    def __init__(self, lengths: Callable[[int], Counts], config: RunConfig, of: str, or_else: str = "") -> None:
        self.lengths = lengths
        self.seed, self.accumulation = config.seed, config.train.accumulation
        self._budget, self._size = config.train.batch_tokens, config.train.batch_size
        longest = int(lengths(0).max())
        if self._budget is not None and longest > self._budget:
            raise InputError(
                f"train.batch_tokens = {self._budget}: a {of} has {longest} tokens; set at least that{or_else}"
            )
        self._starts = [0]  # of epochs, in micro-batches
        self._plans: dict[int, list[Counts]] = {}

    @property
    def steps_per_epoch(self) -> int:
        """Optimizer steps of the first epoch; others may differ by a few."""
        return -(-len(self._plan(0)) // self.accumulation)

    @property
    def padding(self) -> float:
        """Share of an epoch's places that hold nothing."""
        lengths = self.lengths(0)
        places = sum(lengths.shape[1] * len(rows) * int(lengths[rows].max()) for rows in self._plan(0))
        return float(1.0 - lengths.sum() / places)

    def rows(self, step: int, micro: int) -> tuple[int, Counts]:
        """Return the epoch, and the rows of micro-batch `micro` of optimizer step `step` (counted from 1)."""
        at = (step - 1) * self.accumulation + micro
        while self._starts[-1] <= at:
            self._starts.append(self._starts[-1] + len(self._plan(len(self._starts) - 1)))
        epoch = bisect_right(self._starts, at) - 1
        return epoch, self._plan(epoch)[at - self._starts[epoch]]

    def largest(self) -> tuple[int, int]:
        """Return (step, micro-batch) of the first epoch's batch with the most tokens, padding included."""
        lengths, plan = self.lengths(0), self._plan(0)
        at = int(np.argmax([len(rows) * lengths[rows].max(0).sum() for rows in plan]))
        return at // self.accumulation + 1, at % self.accumulation

    def _plan(self, epoch: int) -> list[Counts]:
        """Return the rows of each micro-batch of an epoch."""
        if epoch in self._plans:
            return self._plans[epoch]
        self._plans = {e: plan for e, plan in self._plans.items() if e in (0, epoch - 1)}
        generator = torch.Generator().manual_seed(seed_for(self.seed, "data", "epoch", epoch))
        lengths = self.lengths(epoch)
        longest, sums = lengths.max(1), lengths.sum(1)
        order = torch.randperm(len(lengths), generator=generator).numpy()
        per_batch = self._size if self._budget is None else max(1, int(self._budget / longest.mean()))
        pool = POOL * per_batch
        batches: list[Counts] = []
        for start in range(0, len(order), pool):
            rows = order[start : start + pool]
            batches += self._cut(rows[np.lexsort((sums[rows], longest[rows]))], longest)
        self._plans[epoch] = [batches[i] for i in torch.randperm(len(batches), generator=generator).tolist()]
        return self._plans[epoch]

    def _cut(self, rows: Counts, longest: Counts) -> list[Counts]:
        if self._budget is None:
            return [rows[i : i + self._size] for i in range(0, len(rows), self._size)]
        cuts, first = [0], 0
        for i, length in enumerate(longest[rows]):
            if (i + 1 - first) * int(length) > self._budget:
                cuts.append(i)
                first = i
        return [rows[a:b] for a, b in zip(cuts, [*cuts[1:], len(rows)], strict=True)]
