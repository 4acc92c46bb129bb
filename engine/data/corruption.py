"""Batches of corrupted documents, cut and corrupted anew in each epoch.

What is cut is drawn for a whole epoch, since it says how long rows become; what is masked is drawn for each batch.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Generator, Tensor

from engine.config.schema import RunConfig
from engine.data.buckets import BucketedBatches
from engine.data.loader import mask_generator
from engine.data.objectives import Batch, Corrupts
from engine.data.padding import Tokens, text_of
from engine.data.spans import Counts


class DocumentBatches(BucketedBatches):
    """The batch stream of documents, of which there is at least one, each with something to take out."""

    def __init__(
        self, documents: Sequence[Tokens], config: RunConfig, objective: Corrupts, device: torch.device | str = "cpu"
    ) -> None:
        self.documents, self.objective, self.device = documents, objective, device
        self._whole = lengths_of(documents)
        self._cuts: tuple[int, Counts] = (-1, self._whole)
        self.seed = config.seed
        super().__init__(lambda epoch: objective.sides(self._cut_at(epoch)), config, "document")

    def batch(self, step: int, micro: int) -> Batch:
        """Return the micro-batch `micro` of optimizer step `step` (counted from 1)."""
        epoch, rows = self.rows(step, micro)
        cuts = self._cut_at(epoch)
        documents = [self.documents[row][: cuts[row]] for row in rows.tolist()]
        return self.objective.corrupted(documents, mask_generator(self.seed, step, micro), self.device)

    def probed(self) -> Tensor:
        """Return (2, L) the beginning of the documents, as one text each."""
        half = max(1, len(self.documents) // 2)
        texts = [text_of(part, self.objective.window) for part in (self.documents[:half], self.documents[-half:])]
        return torch.cat(texts).to(self.device)

    def _cut_at(self, epoch: int) -> Counts:
        """Return (n,) how much of each document an epoch reads."""
        if self._cuts[0] != epoch:
            generator = mask_generator(self.seed, "cut", "epoch", epoch)
            self._cuts = (epoch, self.objective.cuts(self._whole, generator))
        return self._cuts[1]


def lengths_of(rows: Sequence[Tokens]) -> Counts:
    return np.array([len(row) for row in rows], dtype=np.int64)


def scored_documents(
    documents: Sequence[Tokens], objective: Corrupts, generator: Generator, size: int, device: torch.device | str
) -> Iterator[Batch]:
    """Yield documents corrupted to be scored: `size` at once, the short ones first.

    All are cut before the first is corrupted, and then drawn for one after the other in an order that is always the
    same: what is asked does not depend on how many are scored at once.
    """
    cuts = objective.cuts(lengths_of(documents), generator)
    order = np.argsort(cuts, kind="stable").tolist()
    for start in range(0, len(order), size):
        rows = [documents[row][: cuts[row]] for row in order[start : start + size]]
        yield objective.corrupted(rows, generator, device)
