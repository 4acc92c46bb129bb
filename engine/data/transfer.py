"""From the host's memory to a device."""

import torch
from torch import Tensor


def sent(tensor: Tensor, device: torch.device | str) -> Tensor:
    """Copy a tensor from the host to a device.

    For a CUDA GPU, it is pinned first and the host does not wait for the copy: it is queued like a kernel, and torch
    keeps the pinned memory until it is done.
    """
    if torch.device(device).type == "cuda":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)
