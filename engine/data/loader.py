"""The batch stream: a pure function of (seed, step, micro-batch), so its position is two ints and resumes exactly."""

from typing import Protocol

import torch
from torch import Tensor

from engine.config.schema import RunConfig
from engine.data.objectives import Batch, next_token
from engine.errors import InputError
from engine.seeds import seed_for


class Batches(Protocol):
    """Where a trainer gets its batches from."""

    def batch(self, step: int, micro: int) -> Batch:
        """The micro-batch `micro` of optimizer step `step` (counted from 1). Pure: asking twice gives the same."""
        ...


class RandomWindows:
    """Windows of T + 1 tokens at independent random places, as nanoGPT draws them.

    Args:
        tokens: (n,) the encoded training split.
        context: T, in tokens.
        batch_size: B, windows a micro-batch.
        seed: the run's seed.
        device: where the batches go; the tokens live there too.

    Raises:
        InputError: the text is not longer than one window.
    """

    def __init__(
        self, tokens: Tensor, context: int, batch_size: int, seed: int, device: torch.device | str = "cpu"
    ) -> None:
        if tokens.numel() < context + 1:
            raise InputError(
                f"the training text has {tokens.numel():,} tokens, shorter than one context of {context:,} and its "
                f"target; use a longer text or --set model.context_length={max(1, tokens.numel() // 4)}"
            )
        self.tokens, self.context, self.batch_size, self.seed = tokens.to(device), context, batch_size, seed
        self._window = torch.arange(context + 1, device=device)

    def batch(self, step: int, micro: int) -> Batch:
        """(B, T) inputs and targets."""
        generator = torch.Generator().manual_seed(seed_for(self.seed, "data", step, micro))
        last = self.tokens.numel() - self.context
        starts = torch.randint(last, (self.batch_size, 1), generator=generator)
        return next_token(self.tokens[starts.to(self.tokens.device) + self._window].long())


class EpochWindows:
    """Every window of the text once an epoch, in an order drawn anew for each: what a shuffled DataLoader does.

    Args:
        tokens: (n,) the encoded training split.
        context: T, in tokens.
        stride: tokens between two windows; 1 takes all of them.
        batch_size: B, windows a micro-batch; the last one of an epoch may be smaller.
        accumulation: micro-batches an optimizer step.
        seed: the run's seed.
        device: where the batches go.
    """

    def __init__(
        self,
        tokens: Tensor,
        context: int,
        stride: int,
        batch_size: int,
        accumulation: int,
        seed: int,
        device: torch.device | str = "cpu",
    ) -> None:
        self.tokens, self.stride, self.batch_size, self.seed = tokens.to(device), stride, batch_size, seed
        self.n_windows = (tokens.numel() - context - 1) // stride + 1
        per_epoch = -(-self.n_windows // (batch_size * accumulation))
        self.accumulation, self.steps_per_epoch = accumulation, per_epoch
        self._window = torch.arange(context + 1, device=device)
        self._order: tuple[int, Tensor] = (-1, torch.empty(0))

    def batch(self, step: int, micro: int) -> Batch:
        """(B, T) inputs and targets, B = 0 where an epoch's last step has no more; its order depends on the seed."""
        epoch, within = divmod(step - 1, self.steps_per_epoch)
        if self._order[0] != epoch:
            generator = torch.Generator().manual_seed(seed_for(self.seed, "data", "epoch", epoch))
            self._order = (epoch, torch.randperm(self.n_windows, generator=generator))
        first = (within * self.accumulation + micro) * self.batch_size
        chosen = self._order[1][first : first + self.batch_size]
        starts = chosen[:, None].to(self.tokens.device) * self.stride
        return next_token(self.tokens[starts + self._window].long())


def training_batches(tokens: Tensor, config: RunConfig, device: torch.device | str = "cpu") -> Batches:
    """The batch stream a config asks for: epochs of windows where `data.window_stride` is set, else random ones."""
    context, size = config.model.context_length, config.train.batch_size
    drawn = RandomWindows(tokens, context, size, config.seed, device)
    if config.data.window_stride is None:
        return drawn
    stride, accumulation = config.data.window_stride, config.train.accumulation
    return EpochWindows(tokens, context, stride, size, accumulation, config.seed, device)
