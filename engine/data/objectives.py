"""What is predicted from what: an objective turns windows of tokens into inputs and targets.

B batch, T time.
"""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """One micro-batch: inputs (B, T) and targets (B, T), both int64."""

    tokens: Tensor
    targets: Tensor

    @property
    def n_targets(self) -> int:
        """Tokens that are scored. Next-token windows score all of them."""
        return self.targets.numel()


def next_token(windows: Tensor) -> Batch:
    """Predict each token from those before it.

    Args:
        windows: (B, T + 1) tokens in a row.
    """
    return Batch(windows[:, :-1], windows[:, 1:])
