"""A step as two CUDA graphs, its passes and its update: the host makes two launches instead of hundreds.

Otherwise, kernel launches slow small models down. The recorded kernels are those of a plain step, so the results
are the same to the last bit.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor

from engine.data.objectives import Batch

MAX_GRAPHS = 4  # graphs per run, one for each shape of a batch; each keeps the memory of one pass


class RecordedPass:
    """Records `work`, a forward and backward pass, which adds the gradient of a piece of a batch to the parameters'
    `grad`, initially None, and returns the loss.

    Raises torch.OutOfMemoryError: the graph does not fit, as it shares no memory with plain steps; RuntimeError:
    `work` does something that cannot be recorded. Random numbers are drawn anew in each replay, from the device's
    default generator.
    """

    def __init__(self, work: Callable[[Batch], Tensor], piece: Batch, parameters: Sequence[Tensor]) -> None:
        self._inputs = (piece.tokens.clone(), piece.targets.clone())
        piece = replace(piece, tokens=self._inputs[0], targets=self._inputs[1])
        here, aside = torch.cuda.current_stream(), torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(here)
        with torch.cuda.stream(aside):  # the first call sets up plans and workspaces, which must not be recorded
            work(piece)
        here.wait_stream(aside)
        for parameter in parameters:
            parameter.grad = None
        self._graph = torch.cuda.CUDAGraph()
        with _capture(self._graph):
            self._loss = work(piece)
        self._grads = [parameter.grad for parameter in parameters]
        for parameter in parameters:
            parameter.grad = None
        self.update: RecordedUpdate | None = None  # the update that reads these gradients

    def replay(self, piece: Batch) -> tuple[Tensor, list[Tensor | None]]:
        """Return the loss and the gradients of another piece of the same shape; the next replay overwrites them."""
        for kept, new in zip(self._inputs, (piece.tokens, piece.targets), strict=True):
            kept.copy_(new)
        self._graph.replay()
        return self._loss, self._grads


class RecordedUpdate:
    """Records `work`, which updates the weights from the gradients a `RecordedPass` left and returns their norm.
    Recording does not run it; run it once before, so that optimizer state exists.

    Raises RuntimeError: `work` does something that cannot be recorded.
    """

    def __init__(self, work: Callable[[], Tensor], optimizer: torch.optim.Optimizer) -> None:
        self._graph = torch.cuda.CUDAGraph()
        for group in optimizer.param_groups:
            group["capturable"] = True  # the fused optimizers always are, but torch requires the flag
        try:
            with _capture(self._graph):
                self._norm = work()
        finally:
            for group in optimizer.param_groups:
                group["capturable"] = False

    def replay(self) -> Tensor:
        """Update the weights; return the gradient's norm."""
        self._graph.replay()
        return self._norm.clone()


@contextmanager
def _capture(graph: torch.cuda.CUDAGraph) -> Iterator[None]:
    here = torch.cuda.current_stream()
    try:
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):  # other threads may use the device
            yield
    finally:
        torch.cuda.set_stream(here)  # torch stays on the graph's stream if recording fails


def can_be_recorded(piece: Batch) -> bool:
    return type(piece) is Batch and piece.source is None and piece.source_positions is None
