"""Every use of torch's private parts, with its reason. `tests/test_private_parts.py` tries each."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

# What torch.compile calls for a linear map on a CPU; no public function multiplies by packed weights.
CAN_PACK = torch.backends.mkldnn.is_available() and all(  # type: ignore[no-untyped-call]
    hasattr(torch.ops.mkldnn, name) for name in ("_reorder_linear_weight", "_linear_pointwise")
)


def softmax_backward(gradient: Tensor, weights: Tensor) -> Tensor:
    """Return the gradient of a softmax's input; writing it out takes three passes over (…, T) instead of one."""
    return torch._softmax_backward_data(gradient, weights, -1, weights.dtype)


def add_each_(sums: Sequence[Tensor], terms: Sequence[Tensor]) -> None:
    """Add tensors to others in place in one call, as optimizers do; there is no public form."""
    torch._foreach_add_(list(sums), list(terms))


def pack(weight: Tensor, rows: int) -> Tensor:
    """Return a weight in oneDNN's layout for products with so many rows."""
    packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight, rows)
    return packed


def packed_linear(x: Tensor, packed: Tensor, bias: Tensor | None) -> Tensor:
    """Return the linear map of a weight from `pack`."""
    made: Tensor = torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")
    return made


def has_forward_hooks(module: nn.Module) -> bool:
    """Return whether a module has forward hooks; they can only be registered and removed in public."""
    return bool(module._forward_hooks or module._forward_pre_hooks)
