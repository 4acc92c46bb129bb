"""Stopping in the middle of a step, which may take a minute on a busy machine: a check before each layer, both ways.

The hooks see when a layer is computed, never what: no number depends on them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from engine.model.layers import Layer


@contextmanager
def heeding(model: nn.Module, heed: Callable[[], None]) -> Iterator[None]:
    """Call `heed` before each layer of a model, forward and backward; an exception from it ends the step.

    Args:
        model: any network.
        heed: must be cheap; it is called thousands of times a second.
    """

    def before(layer: nn.Module, given: Any) -> None:
        heed()

    def after(layer: nn.Module, given: Any, out: Tensor) -> None:
        if out.requires_grad:
            out.register_hook(lambda gradient: heed())  # type: ignore[no-untyped-call]

    layers = [module for module in model.modules() if isinstance(module, Layer)]
    hooks = [layer.register_forward_pre_hook(before) for layer in layers]
    hooks += [layer.register_forward_hook(after) for layer in layers]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
