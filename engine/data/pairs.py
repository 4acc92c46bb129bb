"""Batches of sentence pairs. Notation: B pairs, S source time, T target time."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.config.schema import RunConfig
from engine.config.sections import END, PAD, SPECIAL_TOKENS, START
from engine.data.buckets import BucketedBatches
from engine.data.objectives import IGNORED, Batch, Objective
from engine.data.padding import Tokens, pad_rows, sent, stands_at, text_of
from engine.errors import InputError
from engine.model.positions import Positions


@dataclass(frozen=True)
class Specials:
    """The tokens of one side of a translation that are no text."""

    pad: int
    start: int
    end: int

    @classmethod
    def after(cls, n_tokens: int) -> "Specials":
        """Return those numbered after a text's tokens, in the order of `SPECIAL_TOKENS`."""
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
        return EncodedPairs([self.sources[i] for i in rows], [self.targets[i] for i in rows])


def read_sources(sources: Sequence[Tokens], special: Specials, device: torch.device | str) -> tuple[Tensor, Positions]:
    """Return (B, S) sources with their end tokens, padded on the right, and where their tokens stand."""
    padded = pad_rows(sources, special.pad, last=special.end)
    return sent(padded, device), stands_at([len(row) + 1 for row in sources], device)


def pair_batch(pairs: EncodedPairs, special: BothSpecials, device: torch.device | str = "cpu") -> Batch:
    """Return the batch of some pairs: each target is predicted token by token, its end included."""
    source, source_at = read_sources(pairs.sources, special.source, device)
    tokens = pad_rows(pairs.targets, special.target.pad, first=special.target.start)
    targets = pad_rows(pairs.targets, IGNORED, last=special.target.end)
    # Padding of the target stands on the right, where a causal decoder never looks: it needs no positions of its own.
    scored = int((targets != IGNORED).sum())
    return Batch(sent(tokens, device), sent(targets, device), scored, source, source_at)


class PairBatches(BucketedBatches):
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
        if not len(pairs):
            raise InputError("no sentence pair is left to train on; raise data.max_length or model.context_length")
        or_else = ", or leave longer ones out with data.max_length"
        super().__init__(lambda epoch: pairs.lengths, config, "sentence", or_else)

    def batch(self, step: int, micro: int) -> Batch:
        _, rows = self.rows(step, micro)
        return pair_batch(self.pairs.chosen(rows.tolist()), self.special, self.device)

    def probed(self) -> Tensor:
        """Return (1, L) the beginning of the training text's targets."""
        return text_of(self.pairs.targets, self.objective.window).to(self.device)
