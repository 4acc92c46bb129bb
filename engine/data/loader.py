"""The batch stream: a pure function of (seed, step, micro-batch), so its position is two ints and resumes exactly."""

from typing import Protocol

import torch
from torch import Generator, Tensor

from engine.config.schema import RunConfig
from engine.data.objectives import Batch, Objective
from engine.data.padding import sent
from engine.errors import InputError
from engine.seeds import seed_for


class Batches(Protocol):
    def batch(self, step: int, micro: int) -> Batch:
        """Return the micro-batch `micro` of optimizer step `step` (counted from 1). Pure: twice gives the same."""


class Examples(Batches, Protocol):
    """Batches that say what they ask."""

    @property
    def objective(self) -> Objective: ...

    def probed(self) -> Tensor:
        """Return (B, L) int64 text that the leak probe asks about."""

    def largest(self) -> tuple[int, int]:
        """Return (step, micro-batch) of the largest batch of the first epoch."""


class Windows(Protocol):
    def windows(self, step: int, micro: int) -> Tensor:
        """Return (B, L) int64, as pure as the batches are."""


class RandomWindows:
    """Windows at independent random places, as nanoGPT draws them.

    Args:
        tokens: (n,) the encoded training split.
        length: L, tokens of one window.
        batch_size: B, windows a micro-batch.
        seed: the run's seed.
        device: where the batches go; the tokens live there too.

    Raises:
        InputError: the text is shorter than one window.
    """

    def __init__(
        self, tokens: Tensor, length: int, batch_size: int, seed: int, device: torch.device | str = "cpu"
    ) -> None:
        if tokens.numel() < length:
            raise InputError(
                f"the training text has {tokens.numel():,} tokens, shorter than one example of {length:,}; "
                f"use a longer text or --set model.context_length={max(1, tokens.numel() // 4)}"
            )
        self.tokens, self.length, self.batch_size, self.seed = tokens.to(device), length, batch_size, seed
        self._window = torch.arange(length, device=device)

    def windows(self, step: int, micro: int) -> Tensor:
        generator = torch.Generator().manual_seed(seed_for(self.seed, "data", step, micro))
        last = self.tokens.numel() - self.length + 1
        starts = torch.randint(last, (self.batch_size, 1), generator=generator)
        return self.tokens[sent(starts, self.tokens.device) + self._window].long()


class EpochWindows:
    """Every window of the text once an epoch, in an order drawn anew for each: what a shuffled DataLoader does.

    Args:
        tokens: (n,) the encoded training split.
        length: L, tokens of one window.
        stride: tokens between two windows; 1 takes all of them.
        batch_size: B, windows a micro-batch; the last one of an epoch may be smaller.
        accumulation: micro-batches an optimizer step.
        seed: the run's seed.
        device: where the batches go.
    """

    def __init__(
        self,
        tokens: Tensor,
        length: int,
        stride: int,
        batch_size: int,
        accumulation: int,
        seed: int,
        device: torch.device | str = "cpu",
    ) -> None:
        self.tokens, self.stride, self.batch_size, self.seed = tokens.to(device), stride, batch_size, seed
        self.n_windows = (tokens.numel() - length) // stride + 1
        per_epoch = -(-self.n_windows // (batch_size * accumulation))
        self.accumulation, self.steps_per_epoch = accumulation, per_epoch
        self._window = torch.arange(length, device=device)
        self._order: tuple[int, Tensor] = (-1, torch.empty(0))

    def windows(self, step: int, micro: int) -> Tensor:
        """Return (B, L), B = 0 where an epoch's last step has no more; its order depends on the seed."""
        epoch, within = divmod(step - 1, self.steps_per_epoch)
        if self._order[0] != epoch:
            generator = torch.Generator().manual_seed(seed_for(self.seed, "data", "epoch", epoch))
            self._order = (epoch, torch.randperm(self.n_windows, generator=generator))
        first = (within * self.accumulation + micro) * self.batch_size
        chosen = self._order[1][first : first + self.batch_size]
        starts = sent(chosen[:, None], self.tokens.device) * self.stride
        return self.tokens[starts + self._window].long()


class TextBatches:
    """Windows of a text, made into batches by an objective."""

    def __init__(self, windows: Windows, objective: Objective, seed: int) -> None:
        self.windows, self.objective, self.seed = windows, objective, seed

    def batch(self, step: int, micro: int) -> Batch:
        return self.objective.batch(self.windows.windows(step, micro), mask_generator(self.seed, step, micro))

    def probed(self) -> Tensor:
        return self.windows.windows(1, 0)

    def largest(self) -> tuple[int, int]:
        return 1, 0  # all are of one size


def mask_generator(seed: int, *counters: int | str) -> Generator:
    return torch.Generator().manual_seed(seed_for(seed, "mask", *counters))


def training_batches(
    tokens: Tensor, config: RunConfig, objective: Objective, device: torch.device | str = "cpu"
) -> TextBatches:
    """Return the batch stream of a config: epochs of windows where `data.window_stride` is set, else random ones."""
    size, seed = config.train.batch_size, config.seed
    windows: Windows = RandomWindows(tokens, objective.window, size, seed, device)
    if config.data.window_stride is not None:
        stride, accumulation = config.data.window_stride, config.train.accumulation
        windows = EpochWindows(tokens, objective.window, stride, size, accumulation, seed, device)
    return TextBatches(windows, objective, seed)
