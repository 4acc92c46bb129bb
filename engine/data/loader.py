"""The batch stream: a pure function of (seed, step, micro-batch), so its position is two ints and resumes exactly."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from engine.base.errors import InputError
from engine.base.language import Message
from engine.base.seeds import seed_for
from engine.config.schema import RunConfig
from engine.data.objectives import IGNORED, Batch, Objective, TokenOrigins
from engine.data.padding import AnyDevice, copy_to_device
from engine.data.shards import TokenShards
from engine.data.tokenizers.protocol import Tokenizer

CHUNK_TOKENS = 1 << 24  # tokens compared at a time


class BatchStream(Protocol):
    """Batches of examples with their objective."""

    @property
    def objective(self) -> Objective: ...

    def batch(self, step: int, micro: int) -> Batch:
        """Return micro-batch `micro` of optimizer step `step` (counted from 1). Pure."""

    def leak_probe_examples(self) -> Tensor | Sequence[tuple[Batch, TokenOrigins]]:
        """Return what the leak probe reads: (B, L) int64 text of which the objective makes examples, or the first rows
        of the first batch, each as a batch, with the places that they predict.
        """

    def locate_largest_batch(self) -> tuple[int, int]:
        """Return (step, micro-batch) of the largest batch of the first epoch."""


class StoredTokens:
    """(n,) tokens that stay in files; indexing them gives a tensor on the device, like indexing a tensor there."""

    def __init__(self, shards: TokenShards, device: AnyDevice = "cpu") -> None:
        self.shards, self.device = shards, torch.device(device)

    def numel(self) -> int:
        return len(self.shards)

    def to(self, device: AnyDevice) -> "StoredTokens":
        return StoredTokens(self.shards, device)

    def __getitem__(self, places: Tensor | slice | int) -> Tensor:
        if isinstance(places, int):
            places = torch.tensor(places)
        found = self.shards[places if isinstance(places, slice) else places.cpu().numpy()]
        return copy_to_device(torch.from_numpy(found.astype(np.int64)), self.device)

    def unfold(self, dimension: int, size: int, step: int) -> Tensor:
        whole = torch.from_numpy(self.shards[:].astype(np.int32))
        return whole.to(self.device).unfold(dimension, size, step)

    def numpy(self) -> Any:
        return self.shards


TextTokens = Tensor | StoredTokens  # (n,) of a text


def wrap_tokens(found: "NDArray[Any] | TokenShards") -> TextTokens:
    return StoredTokens(found) if isinstance(found, TokenShards) else torch.from_numpy(found)


def occurrences(tokens: TextTokens, token: int) -> int:
    """Return how often a token occurs in a text."""
    starts = range(0, tokens.numel(), CHUNK_TOKENS)
    return sum(int((tokens[start : start + CHUNK_TOKENS] == token).sum()) for start in starts)


def token_positions(tokens: TextTokens, token: int) -> Tensor:
    """Return (m,) the places of a token in a text."""
    starts = range(0, tokens.numel(), CHUNK_TOKENS)
    return torch.cat([(tokens[at : at + CHUNK_TOKENS] == token).nonzero()[:, 0].cpu() + at for at in starts])


def boundary_token(config: RunConfig, tokenizer: Tokenizer) -> int | None:
    """Return the token that windows do not see across; None if they see across every token."""
    return tokenizer.end_of_text if config.task.continues and not config.data.across_documents else None


class TextBatches:
    """Windows of a text, (n,) tokens on the device, made into batches by an objective.

    They start at independent random places, as in nanoGPT. With a `stride` every window is used once per epoch, in a
    new order each time, like a shuffled DataLoader; an epoch's last micro-batches may be smaller. `InputError`: the
    text is shorter than one window.

    Nothing is predicted across a `boundary`: targets after one are left out. So a window at a random place is moved to
    the first boundary in its first half, if there is one.
    """

    def __init__(
        self,
        tokens: TextTokens,
        objective: Objective,
        batch_size: int,
        seed: int,
        device: AnyDevice = "cpu",
        stride: int | None = None,
        accumulation: int = 1,
        boundary: int | None = None,
    ) -> None:
        length = objective.window
        if tokens.numel() < length:
            problem = Message(
                "the training text has {numel:,} tokens, fewer than the {length:,} that one example needs; use a "
                "longer text or --set model.context_length={max}",
                numel=tokens.numel(),
                length=length,
                max=max(1, tokens.numel() // 4),
            )
            raise InputError(problem)
        self.tokens, self.objective, self.seed = tokens.to(device), objective, seed
        self.batch_size, self.stride, self.accumulation = batch_size, stride, accumulation
        self.boundary = boundary
        self.n_windows = (tokens.numel() - length) // (stride or 1) + 1
        self.steps_per_epoch = -(-self.n_windows // (batch_size * accumulation))
        self._window = torch.arange(length, device=device)
        self._order: tuple[int, Tensor] = (-1, torch.empty(0))
        if boundary is not None:  # the last one is past every window
            never = torch.tensor([tokens.numel() + length])
            self._boundaries = torch.cat((token_positions(self.tokens, boundary), never))

    def windows(self, step: int, micro: int) -> Tensor:
        """Return (B, L) int64, as pure as the batches; B = 0 if an epoch's last step has no more."""
        return self._gather_windows(self.starts(step, micro))

    def starts(self, step: int, micro: int) -> Tensor:
        """Return the places (B, 1) where the windows start, on the CPU: a GPU need not be waited for."""
        if self.stride is not None:
            epoch, within = divmod(step - 1, self.steps_per_epoch)
            if self._order[0] != epoch:
                generator = torch.Generator().manual_seed(seed_for(self.seed, "data", "epoch", epoch))
                self._order = (epoch, torch.randperm(self.n_windows, generator=generator))
            first = (within * self.accumulation + micro) * self.batch_size
            return self._order[1][first : first + self.batch_size, None] * self.stride
        generator = torch.Generator().manual_seed(seed_for(self.seed, "data", step, micro))
        starts = torch.randint(self.n_windows, (self.batch_size, 1), generator=generator)
        if self.boundary is None:
            return starts
        ahead = self._distance_to_boundary(starts)
        moved = torch.where(ahead < self.objective.window // 2, starts + ahead, starts)
        return moved.clamp(max=self.n_windows - 1)

    def _distance_to_boundary(self, starts: Tensor) -> Tensor:
        """Return how far (B, 1) the first boundary is after the first token of each window."""
        return self._boundaries[torch.searchsorted(self._boundaries, starts + 1)] - starts

    def _gather_windows(self, starts: Tensor) -> Tensor:
        if isinstance(self.tokens, StoredTokens):
            return self.tokens[starts + self._window.cpu()]
        return self.tokens[copy_to_device(starts, self.tokens.device) + self._window].long()

    def batch(self, step: int, micro: int) -> Batch:
        starts = self.starts(step, micro)
        made = self.objective.batch(self._gather_windows(starts), mask_generator(self.seed, step, micro))
        if self.boundary is None:
            return made
        past = (made.tokens[:, 1:] == self.boundary).cumsum(1) > 0
        targets = torch.cat((made.targets[:, :1], made.targets[:, 1:].masked_fill(past, IGNORED)), 1)
        left_out = (targets.shape[1] - self._distance_to_boundary(starts)).clamp(min=0).sum()
        return replace(made, targets=targets, n_targets=targets.numel() - int(left_out))

    def leak_probe_examples(self) -> Tensor:
        return self.windows(1, 0)

    def locate_largest_batch(self) -> tuple[int, int]:
        return 1, 0  # all have one size


def mask_generator(seed: int, *counters: int | str) -> Generator:
    return torch.Generator().manual_seed(seed_for(seed, "mask", *counters))


def training_batches(
    tokens: TextTokens, config: RunConfig, objective: Objective, device: AnyDevice = "cpu", boundary: int | None = None
) -> TextBatches:
    train, stride = config.train, config.data.window_stride
    return TextBatches(tokens, objective, train.batch_size, config.seed, device, stride, train.accumulation, boundary)
