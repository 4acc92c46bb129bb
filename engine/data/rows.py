"""Batches of rows of similar length, within a budget of tokens: a pure function of the step.

An epoch has every row once, in its own order: shuffled, sorted by length within pools, cut into batches, and the
batches shuffled. So a run's position is two ints, as for texts, and padding costs little. The tasks build the batches
(`engine.tasks`).
"""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.base.errors import InputError
from engine.base.language import Message
from engine.base.seeds import seed_for
from engine.config.schema import RunConfig
from engine.data.objectives import (
    Batch,
    Objective,
    TokenOrigins,
    joined_batch,
    number_tokens,
    origins_in_target,
    source_target_batch,
)
from engine.data.padding import AnyDevice, Counts, Tokens, copy_to_device, pad_rows, right_padded_positions
from engine.model.positions import Positions

N_PROBED_ROWS = 2  # rows that the leak probe reads
POOL = 64  # batches per pool of rows sorted by length
Relabel = Callable[[Tokens], Tokens]
AnyObjective = TypeVar("AnyObjective", bound=Objective)


def identity(tokens: Tokens) -> Tokens:
    return tokens


class BucketedBatches(ABC, Generic[AnyObjective]):
    """Each row once per epoch, batched with rows of similar length; subclasses build the batches. `lengths` gives, for
    an epoch, the (n, sides) lengths of the rows as batched. A batch has `train.batch_tokens` of the longer side,
    padding included, or `train.batch_size` rows. Raises InputError: a row of the first epoch is longer than the budget.
    """

    objective: AnyObjective

    def __init__(self, lengths: Callable[[int], Counts], config: RunConfig, of: str, or_else: str = "") -> None:
        self.lengths = lengths
        self.seed, self.accumulation = config.seed, config.train.accumulation
        self._budget, self._size = config.train.batch_tokens, config.train.batch_size
        longest = int(lengths(0).max())
        if self._budget is not None and longest > self._budget:
            problem = Message(
                "train.batch_tokens = {budget}: the longest {of} has {longest} tokens; set it to at least "
                "that{or_else}",
                budget=self._budget,
                of=of,
                longest=longest,
                or_else=or_else,
            )
            raise InputError(problem)
        self._starts = [0]  # of epochs, in micro-batches
        self._plans: dict[int, list[Counts]] = {}

    def leak_probe_examples(self) -> Sequence[tuple[Batch, TokenOrigins]]:
        made, (_, rows) = partial(self._make_batch, step=1, micro=0), self.epoch_and_rows(1, 0)
        few = [[row] for row in rows[:N_PROBED_ROWS].tolist()]
        return [(made(row), origins_in_target(made(row, relabel=number_tokens))) for row in few]

    def batch(self, step: int, micro: int) -> Batch:
        _, rows = self.epoch_and_rows(step, micro)
        return self._make_batch(rows.tolist(), step, micro)

    @abstractmethod
    def _make_batch(self, rows: Sequence[int], step: int, micro: int, relabel: Relabel = identity) -> Batch:
        """Return a batch of these rows of a micro-batch, with `relabel` applied to what each predicts."""

    @property
    def steps_per_epoch(self) -> int:
        """Optimizer steps in the first epoch; others may differ by a few."""
        return -(-len(self._plan(0)) // self.accumulation)

    @property
    def padding_share(self) -> float:
        """Share of an epoch's places that are padding."""
        lengths = self.lengths(0)
        places = sum(lengths.shape[1] * len(rows) * int(lengths[rows].max()) for rows in self._plan(0))
        return float(1.0 - lengths.sum() / places)

    def epoch_and_rows(self, step: int, micro: int) -> tuple[int, Counts]:
        """Return the epoch, and the rows in micro-batch `micro` of optimizer step `step` (counted from 1)."""
        at = (step - 1) * self.accumulation + micro
        while self._starts[-1] <= at:
            self._starts.append(self._starts[-1] + len(self._plan(len(self._starts) - 1)))
        epoch = bisect_right(self._starts, at) - 1
        return epoch, self._plan(epoch)[at - self._starts[epoch]]

    def locate_largest_batch(self) -> tuple[int, int]:
        """Return (step, micro-batch) of the first epoch's batch with the most tokens, padding included."""
        lengths, plan = self.lengths(0), self._plan(0)
        at = int(np.argmax([len(rows) * lengths[rows].max(0).sum() for rows in plan]))
        return at // self.accumulation + 1, at % self.accumulation

    def _plan(self, epoch: int) -> list[Counts]:
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
            batches += self._cut_batches(rows[np.lexsort((sums[rows], longest[rows]))], longest)
        self._plans[epoch] = [batches[i] for i in torch.randperm(len(batches), generator=generator).tolist()]
        return self._plans[epoch]

    def _cut_batches(self, rows: Counts, longest: Counts) -> list[Counts]:
        if self._budget is None:
            return [rows[i : i + self._size] for i in range(0, len(rows), self._size)]
        cuts, first = [0], 0
        for i, length in enumerate(longest[rows]):
            if (i + 1 - first) * int(length) > self._budget:
                cuts.append(i)
                first = i
        return [rows[a:b] for a, b in zip(cuts, [*cuts[1:], len(rows)], strict=True)]


# --- sentence pairs: B pairs, S source time, T target time


class Specials(NamedTuple):
    """The special tokens of one side of a translation, in the order in which the task lists them."""

    pad: int
    start: int
    end: int

    @classmethod
    def numbered_from(cls, n_tokens: int) -> "Specials":
        """Return special tokens numbered after a text's."""
        return cls(*range(n_tokens, n_tokens + 3))


class BothSpecials(NamedTuple):
    """The special tokens of source and target; the same if they share a vocabulary."""

    source: Specials
    target: Specials


@dataclass(frozen=True)
class EncodedPairs:
    """Sentences and their translations, or questions and their answers, as token ids without special tokens."""

    sources: Sequence[Tokens]
    targets: Sequence[Tokens]

    def __len__(self) -> int:
        return len(self.sources)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """(n, 2) tokens of source and target, each with its end token."""
        pairs = zip(self.sources, self.targets, strict=True)
        return np.array([(len(s) + 1, len(t) + 1) for s, t in pairs], dtype=np.int64).reshape(-1, 2)

    @property
    def joined_lengths(self) -> NDArray[np.int64]:
        """(n, 1) tokens that a decoder reads of each pair: the source, the start token and the target."""
        both: NDArray[np.int64] = self.lengths.sum(1, keepdims=True) - 1
        return both

    def select(self, rows: Sequence[int]) -> "EncodedPairs":
        return EncodedPairs([self.sources[i] for i in rows], [self.targets[i] for i in rows])


def pad_sources(sources: Sequence[Tokens], special: Specials, device: AnyDevice) -> tuple[Tensor, Positions]:
    """Return (B, S) sources with end tokens, padded on the right, and their token positions."""
    padded = pad_rows(sources, special.pad, last=special.end)
    return copy_to_device(padded, device), right_padded_positions([len(row) + 1 for row in sources], device)


def pair_batch(pairs: EncodedPairs, special: BothSpecials, device: AnyDevice = "cpu", *, joined: bool = False) -> Batch:
    """Return the batch of some pairs: each target is predicted token by token, its end included. `joined`: source and
    target are one text, as a decoder reads them.
    """
    sources, targets = (
        [np.append(row, end) for row in rows]
        for rows, end in ((pairs.sources, special.source.end), (pairs.targets, special.target.end))
    )
    if joined:
        return joined_batch(pairs.sources, targets, special.target.start, special.target.pad, device)
    return source_target_batch(sources, targets, special.target.start, special.target.pad, device, special.source.pad)


def lengths_of(rows: Sequence[Tokens]) -> Counts:
    return np.array([len(row) for row in rows], dtype=np.int64)
