"""Batches of corrupted documents, of like length side by side: cut and corrupted anew in each epoch.

What is cut is drawn for a whole epoch, since it says how long rows become; what is masked is drawn for each batch.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Generator, Tensor

from engine.config.schema import RunConfig
from engine.data.buckets import Buckets
from engine.data.loader import mask_generator
from engine.data.objectives import Batch, Corrupts
from engine.data.padding import Tokens, text_of
from engine.data.spans import Counts


class DocumentBatches:
    """The batch stream of documents: each once an epoch.

    Args:
        documents: what is trained on, at least one, each with something to take out.
        config: `train.batch_size` documents, or `train.batch_tokens` with their padding.
        objective: cuts and corrupts.
        device: where the batches go.

    Raises:
        InputError: a document is longer than the budget.
    """

    def __init__(
        self,
        documents: Sequence[Tokens],
        config: RunConfig,
        objective: Corrupts,
        device: torch.device | str = "cpu",
    ) -> None:
        self.documents, self.objective, self.device, self.seed = documents, objective, device, config.seed
        self._lengths = lengths_of(documents)
        self._cuts: tuple[int, Counts] = (-1, self._lengths)
        self._buckets = Buckets(lambda epoch: objective.sides(self._cut(epoch)), config, "document")

    @property
    def steps_per_epoch(self) -> int:
        """Optimizer steps of the first epoch; others may differ by a few."""
        return self._buckets.steps_per_epoch

    @property
    def padding(self) -> float:
        """Share of an epoch's places that hold nothing."""
        return self._buckets.padding

    def largest(self) -> tuple[int, int]:
        """(step, micro-batch) of the largest batch of the first epoch."""
        return self._buckets.largest()

    def batch(self, step: int, micro: int) -> Batch:
        """The micro-batch `micro` of optimizer step `step` (counted from 1)."""
        epoch, rows = self._buckets.rows(step, micro)
        cuts = self._cut(epoch)
        documents = [self.documents[row][: cuts[row]] for row in rows.tolist()]
        return self.objective.corrupted(documents, mask_generator(self.seed, step, micro), self.device)

    def probed(self) -> Tensor:
        """(2, L) the beginning of the documents, as one text each."""
        half = max(1, len(self.documents) // 2)
        texts = [text_of(part, self.objective.window) for part in (self.documents[:half], self.documents[-half:])]
        return torch.cat(texts).to(self.device)

    def _cut(self, epoch: int) -> Counts:
        """(n,) how much of each document an epoch reads."""
        if self._cuts[0] != epoch:
            generator = mask_generator(self.seed, "cut", "epoch", epoch)
            self._cuts = (epoch, self.objective.cuts(self._lengths, generator))
        return self._cuts[1]


def lengths_of(rows: Sequence[Tokens]) -> Counts:
    """(n,) tokens of each."""
    return np.array([len(row) for row in rows], dtype=np.int64)


def scored_documents(
    documents: Sequence[Tokens], objective: Corrupts, generator: Generator, size: int, device: torch.device | str
) -> Iterator[Batch]:
    """Documents corrupted to be scored: `size` at once, the short ones first.

    All are cut before the first is corrupted, and then drawn for one after the other in an order that is always the
    same: what is asked does not depend on how many are scored at once.
    """
    cuts = objective.cuts(lengths_of(documents), generator)
    order = np.argsort(cuts, kind="stable").tolist()
    for start in range(0, len(order), size):
        rows = [documents[row][: cuts[row]] for row in order[start : start + size]]
        yield objective.corrupted(rows, generator, device)
