"""Batches of sentence pairs: of like length side by side, within a budget of tokens, a pure function of the step.

An epoch is every pair once in an order of its own: shuffled, sorted by length within pools, cut into batches, and these
shuffled again. So the position of a run is two ints, as it is for texts, and padding costs little.
Notation: B pairs, S source time, T target time.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.config.schema import END, PAD, SPECIAL_TOKENS, START, RunConfig
from engine.data.objectives import IGNORED, Batch, Objective
from engine.errors import InputError
from engine.model.span import Span
from engine.seeds import seed_for

POOL = 64  # batches whose sentences are sorted by length together
Tokens = NDArray[np.int64]


@dataclass(frozen=True)
class Specials:
    """The tokens of one side of a translation that are no text."""

    pad: int
    start: int
    end: int

    @classmethod
    def after(cls, n_tokens: int) -> "Specials":
        """Numbered after a text's tokens, in the order of `SPECIAL_TOKENS`."""
        at = {name: n_tokens + i for i, name in enumerate(SPECIAL_TOKENS["translation"])}
        return cls(at[PAD], at[START], at[END])


@dataclass(frozen=True)
class BothSpecials:
    """Those of source and target; the same where they share a vocabulary."""

    source: Specials
    target: Specials


@dataclass(frozen=True)
class EncodedPairs:
    """Sentences as token ids, without special tokens; sources[i] is translated by targets[i]."""

    sources: Sequence[Tokens]
    targets: Sequence[Tokens]

    def __len__(self) -> int:
        return len(self.sources)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """(n, 2) tokens of source and target, each with its end token."""
        pairs = zip(self.sources, self.targets, strict=True)
        return np.array([(len(s) + 1, len(t) + 1) for s, t in pairs], dtype=np.int64).reshape(-1, 2)

    def chosen(self, rows: Sequence[int]) -> "EncodedPairs":
        """Some of them, in this order."""
        return EncodedPairs([self.sources[i] for i in rows], [self.targets[i] for i in rows])


def pad_rows(rows: Sequence[Tokens], value: int, first: int | None = None, last: int | None = None) -> Tensor:
    """(B, longest) rows filled up on the right, perhaps with a token before each and one after."""
    parts = [[] if token is None else [token] for token in (first, last)]
    length = max(len(row) for row in rows) + len(parts[0]) + len(parts[1])
    out = np.full((len(rows), length), value, dtype=np.int64)
    for i, row in enumerate(rows):
        filled = np.concatenate((parts[0], row, parts[1])).astype(np.int64)
        out[i, : len(filled)] = filled
    return torch.from_numpy(out)


def read_sources(sources: Sequence[Tokens], special: Specials, device: torch.device | str) -> tuple[Tensor, Span]:
    """(B, S) sources with their end tokens, padded on the right, and where their tokens stand."""
    padded = pad_rows(sources, special.pad, last=special.end)
    lengths = torch.tensor([len(row) + 1 for row in sources])
    at = Span.of(torch.arange(padded.shape[1])[None] < lengths[:, None], one_side=True)
    return padded.to(device), Span(at.index.to(device), one_side=True)


def pair_batch(pairs: EncodedPairs, special: BothSpecials, device: torch.device | str = "cpu") -> Batch:
    """The batch of some pairs: each target is predicted token by token, its end included."""
    source, source_at = read_sources(pairs.sources, special.source, device)
    tokens = pad_rows(pairs.targets, special.target.pad, first=special.target.start)
    targets = pad_rows(pairs.targets, IGNORED, last=special.target.end)
    # Padding of the target stands on the right, where a causal decoder never looks: it needs no positions of its own.
    scored = int((targets != IGNORED).sum())
    return Batch(tokens.to(device), targets.to(device), scored, source, source_at)


class PairBatches:
    """The batch stream of sentence pairs.

    Args:
        pairs: what is trained on; too long ones were left out before.
        config: `train.batch_tokens`, so many of the longer side with its padding, or `train.batch_size` pairs.
        objective: for the leak probe.
        special: special tokens.
        device: where the batches go.

    Raises:
        InputError: a pair is longer than the budget, or there is none.
    """

    def __init__(
        self,
        pairs: EncodedPairs,
        config: RunConfig,
        objective: Objective,
        special: BothSpecials,
        device: torch.device | str = "cpu",
    ) -> None:
        self.pairs, self.objective, self.special, self.device = pairs, objective, special, device
        self.seed, self.accumulation = config.seed, config.train.accumulation
        self._budget, self._size = config.train.batch_tokens, config.train.batch_size
        lengths = pairs.lengths
        if not len(lengths):
            raise InputError("no sentence pair is left to train on; raise data.max_length or model.context_length")
        self._longest = lengths.max(1)
        if self._budget is not None and self._longest.max() > self._budget:
            raise InputError(
                f"train.batch_tokens = {self._budget}: a sentence has {self._longest.max()} tokens; set at least that, "
                "or leave longer ones out with data.max_length"
            )
        self._sums = lengths.sum(1)
        self._starts = [0]  # of epochs, in micro-batches
        self._plans: dict[int, list[NDArray[np.int64]]] = {}

    @property
    def steps_per_epoch(self) -> int:
        """Optimizer steps of the first epoch; others may differ by a few."""
        return -(-len(self._plan(0)) // self.accumulation)

    @property
    def padding(self) -> float:
        """Share of an epoch's places that hold nothing."""
        places = sum(2 * len(rows) * int(self._longest[rows].max()) for rows in self._plan(0))
        return 1.0 - int(self._sums.sum()) / places

    def batch(self, step: int, micro: int) -> Batch:
        """The micro-batch `micro` of optimizer step `step` (counted from 1)."""
        at = (step - 1) * self.accumulation + micro
        while self._starts[-1] <= at:
            self._starts.append(self._starts[-1] + len(self._plan(len(self._starts) - 1)))
        epoch = bisect_right(self._starts, at) - 1
        rows = self._plan(epoch)[at - self._starts[epoch]]
        return pair_batch(self.pairs.chosen(rows.tolist()), self.special, self.device)

    def probed(self) -> Tensor:
        """(1, L) the beginning of the training text's targets."""
        length = self.objective.window
        text = np.concatenate(self.pairs.targets[: max(1, length)])
        row: Tensor = torch.from_numpy(np.resize(text, length).astype(np.int64))
        return row[None].to(self.device)

    def _plan(self, epoch: int) -> list[NDArray[np.int64]]:
        """The rows of each micro-batch of an epoch."""
        if epoch not in self._plans:
            self._plans = {e: plan for e, plan in self._plans.items() if e in (0, epoch - 1)}
            generator = torch.Generator().manual_seed(seed_for(self.seed, "data", "epoch", epoch))
            self._plans[epoch] = self._planned(generator)
        return self._plans[epoch]

    def _planned(self, generator: torch.Generator) -> list[NDArray[np.int64]]:
        order = torch.randperm(len(self.pairs), generator=generator).numpy()
        per_batch = self._size if self._budget is None else max(1, int(self._budget / self._longest.mean()))
        pool = POOL * per_batch
        batches: list[NDArray[np.int64]] = []
        for start in range(0, len(order), pool):
            rows = order[start : start + pool]
            batches += self._cut(rows[np.lexsort((self._sums[rows], self._longest[rows]))])
        return [batches[i] for i in torch.randperm(len(batches), generator=generator).tolist()]

    def _cut(self, rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Rows of growing length, cut into batches that keep to the budget."""
        if self._budget is None:
            return [rows[i : i + self._size] for i in range(0, len(rows), self._size)]
        cuts, first = [0], 0
        for i, longest in enumerate(self._longest[rows]):
            if (i + 1 - first) * int(longest) > self._budget:
                cuts.append(i)
                first = i
        return [rows[a:b] for a, b in zip(cuts, [*cuts[1:], len(rows)], strict=True)]
