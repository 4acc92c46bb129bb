"""The batch stream: a pure function of (seed, step, micro-batch), so its position is two ints and resumes exactly."""

from typing import Protocol

import torch
from torch import Tensor

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
        return next_token(self.tokens[starts.to(self.tokens.device) + self._window])
