"""Ranks: the processes that train one run together, and how they communicate.

Rank 0 leads: it alone writes the run directory, and it alone decides. The others wait for its orders, and take part in
nothing that was not ordered, so evaluating, sampling or pausing on rank 0 leaves nobody in a collective. What is
exchanged is numbers, never pickled objects.

Gradients are summed in one binary tree over a step's micro-batches, whatever the number of ranks (`TreeSum`): a + b is
b + a to the last bit, so only the grouping matters. Each rank owns a slice of the weights. It computes a block of
consecutive micro-batches, sends every other rank its partial sums for that rank's slice, completes the tree for its own
slice, and gathers the finished slices. Where each block is one node of the tree, that sends as many bytes as a ring
all-reduce.
"""

import ctypes
import os
import signal
import socket
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from itertools import zip_longest
from pathlib import Path
from typing import TypeVar

import numpy as np
import psutil
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from engine.base.language import Message
from engine.model.devices import resolve_device
from engine.model.torch_private import add_each_
from engine.runs.control import RankLost, StopRequested
from engine.runs.process import PARENT_VARIABLE

FOREVER = timedelta(days=365)  # rank 0 may sample for hours; a rank that ends is noticed at once
STEP, SCORE, BEGIN, END = 1, 2, 3, 4  # orders
SUCCEEDED, STOPPED, NO_MEMORY, FAILED = 0, 1, 2, 3  # how a rank's part went
MAX_ERROR_BYTES = 200  # bytes of a rank's error text
PR_SET_PDEATHSIG = 1  # prctl.h
DEATH_TIMEOUT = 1.0  # seconds to wait for a dead process to show up as dead

Grads = list[Tensor | None]
T = TypeVar("T")


class Ranks:
    """This process's place among the ranks of a run."""

    rank, size, local_size = 0, 1, 1
    slowest: int | None = None  # the rank that the others waited for in the last step
    lag_seconds: float | None = None  # for how many seconds

    def __init__(self, device: torch.device) -> None:
        self.device = device

    @property
    def leads(self) -> bool:
        return self.rank == 0

    def micro_batch_range(self, rank: int, micro_batches: int) -> range:
        """Return the micro-batches of a step that a rank computes."""
        each = micro_batches // self.size
        return range(rank * each, (rank + 1) * each)

    def own_micro_batch_range(self, micro_batches: int) -> range:
        return self.micro_batch_range(self.rank, micro_batches)

    def broadcast_instruction(self, *numbers: int) -> None:
        """On rank 0: send the others an order and up to two numbers."""

    def broadcast_checkpoint_path(self, checkpoint: Path) -> None:
        """On rank 0: have the others load a checkpoint."""

    def all_gather(self, numbers: Sequence[int]) -> list[int]:
        """Return the numbers from all ranks, in rank order; every rank passes as many."""
        return list(numbers)

    def wrap_data_parallel(self, forward: nn.Module) -> DistributedDataParallel:
        """Wrap a network so that its backward pass also averages gradients over ranks; there must be several."""
        raise NotImplementedError

    def gather_losses(self, found: list[Tensor], most: int) -> list[Tensor]:
        """Return the losses of all ranks, each of which has at most `most`; what is missing is 0."""
        return found

    def run_collectively(self, work: Callable[[], T]) -> T:
        """Do this rank's part of a job that all ranks do; raise on all if one of them stops or fails."""
        return work()

    def sum_over_ranks(self, tree: "TreeSum", targets: Sequence[int]) -> Grads:
        """Return the sum over all micro-batches; `targets` has the number of targets of each."""
        return tree.total()

    def gather_round_robin(self, parts: list[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
        """On rank 0, return the parts (m, k) of a list dealt out round-robin, in the list's order."""
        return parts

    def close(self) -> None:
        """End the other ranks."""


SINGLE = Ranks(torch.device("cpu"))


class ProcessGroup(Ranks):
    """Several ranks, as torchrun started them. They talk over gloo; gradients on GPUs go over NCCL."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(device)
        self.local_size = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        # Ranks that share a GPU exchange in main memory: NCCL refuses them.
        direct = device.type == "cuda" and self.local_size <= torch.cuda.device_count()
        dist.init_process_group("cpu:gloo,cuda:nccl" if direct else "gloo", timeout=FOREVER)
        self.exchange_device = device if direct else torch.device("cpu")  # where tensors are exchanged
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self._where = zlib.crc32(socket.gethostname().encode())
        self._processes = self.all_gather([os.getpid(), self._where])
        self._lost = False
        self.stop_signal = ""  # by a signal to this rank

    # Communication

    def broadcast_instruction(self, *numbers: int) -> None:
        self._call_distributed(dist.broadcast, torch.tensor([*numbers, 0, 0][:3]), 0)

    def receive_instruction(self) -> tuple[int, int, int]:
        """Wait for rank 0's next order."""
        order = torch.zeros(3, dtype=torch.int64)
        self._call_distributed(dist.broadcast, order, 0)
        what, first, second = order.tolist()
        return what, first, second

    def broadcast_checkpoint_path(self, checkpoint: Path) -> None:
        data = np.frombuffer(str(checkpoint.resolve()).encode(), np.uint8).copy()
        self.broadcast_instruction(BEGIN, len(data))
        self._call_distributed(dist.broadcast, torch.from_numpy(data), 0)

    def receive_checkpoint_path(self) -> Path | None:
        """Wait for the checkpoint to begin from; None if rank 0 ends before."""
        what, length, _ = self.receive_instruction()
        if what == END:
            return None
        data = torch.zeros(length, dtype=torch.uint8)
        self._call_distributed(dist.broadcast, data, 0)
        return Path(data.numpy().tobytes().decode())

    def all_gather(self, numbers: Sequence[int]) -> list[int]:
        return self._all_gather(torch.tensor(list(numbers), dtype=torch.int64)).tolist()

    def gather_losses(self, found: list[Tensor], most: int) -> list[Tensor]:
        own = torch.zeros(most, device=self.exchange_device)
        if found:
            own[: len(found)] = torch.stack(found).to(self.exchange_device)
        return list(self._all_gather(own).to(self.device).unbind())

    def wrap_data_parallel(self, forward: nn.Module) -> DistributedDataParallel:
        return DistributedDataParallel(forward)

    def run_collectively(self, work: Callable[[], T]) -> T:
        code, done, began = SUCCEEDED, None, time.perf_counter()
        error: Exception | None = None
        try:
            done = work()
        except RankLost:
            raise
        except StopRequested as stop:
            code, error = STOPPED, stop
        except torch.OutOfMemoryError as full:
            code, error = NO_MEMORY, full
        except Exception as other:
            code, error = FAILED, other
        if self.stop_signal and code == SUCCEEDED:
            code = STOPPED
        took = self.all_gather([code, round(1e6 * (time.perf_counter() - began))])
        codes, took = took[::2], took[1::2]
        self.slowest, self.lag_seconds = took.index(max(took)), (max(took) - min(took)) / 1e6
        if not any(codes):
            return done  # type: ignore[return-value]
        worst = codes.index(max(codes))
        why = self._gather_errors(error)[worst] if codes[worst] == FAILED else ""
        if error is not None:
            raise error
        if codes[worst] == FAILED:
            raise RankLost(Message("rank {rank} failed: {why}", rank=worst, why=why))
        if codes[worst] == NO_MEMORY:
            raise torch.OutOfMemoryError(f"rank {worst}")
        raise StopRequested(Message("rank {rank} was told to stop", rank=worst))

    def _gather_errors(self, error: Exception | None) -> list[str]:
        said = b"" if error is None else f"{type(error).__name__}: {error}".encode()[:MAX_ERROR_BYTES]
        own = torch.zeros(MAX_ERROR_BYTES, dtype=torch.uint8)
        own[: len(said)] = torch.from_numpy(np.frombuffer(said, np.uint8).copy())
        rows = self._all_gather(own).view(self.size, MAX_ERROR_BYTES)
        return [row.numpy().tobytes().rstrip(b"\0").decode(errors="replace") for row in rows]

    # Sums

    def sum_over_ranks(self, tree: "TreeSum", targets: Sequence[int]) -> Grads:
        # After the gradients comes a flag for each weight: whether it has one.
        has_one = [any(grads[i] is not None for _, grads in tree.nodes if grads) for i in range(len(tree.weights))]
        whole = sum(weight.numel() for weight in tree.weights) + len(has_one)
        piece = -(-whole // self.size)
        where = self.exchange_device
        flags = torch.tensor(has_one, dtype=torch.float32, device=where)
        sent = torch.empty(len(tree.nodes), piece * self.size, device=where)
        for row, (_, grads) in zip(sent, tree.nodes, strict=True):
            if grads is not None:
                flat = [_flat(grad, weight, where) for grad, weight in zip(grads, tree.weights, strict=True)]
                torch.cat([*flat, flags], out=row[:whole])
        sizes = [node_sizes(self.micro_batch_range(rank, len(targets))) for rank in range(self.size)]
        got = torch.empty(sum(map(len, sizes)) * piece, device=self.exchange_device)
        self._call_distributed(
            dist.all_to_all_single,
            got,
            sent.view(len(tree.nodes), self.size, piece).transpose(0, 1).contiguous().view(-1),
            [len(nodes) * piece for nodes in sizes],
            [len(tree.nodes) * piece] * self.size,
        )
        found, at = TreeSum([got[:piece]]), 0
        for size, part in zip((size for nodes in sizes for size in nodes), got.view(-1, piece), strict=True):
            found.add(size, [part] if any(targets[at : at + size]) else None)
            at += size
        (own,) = found.total()
        together = self._all_gather(own if own is not None else got.new_zeros(piece))
        summed: Grads = []
        at, with_one = 0, together[whole - len(has_one) : whole].tolist()
        for i, weight in enumerate(tree.weights):
            part = together[at : at + weight.numel()].view(weight.shape)
            summed.append(part.to(weight.device) if with_one[i] else None)
            at += weight.numel()
        return summed

    def gather_round_robin(self, parts: list[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
        longest = max(self.all_gather([len(parts)]))
        lengths = torch.tensor(self.all_gather([len(part) for part in parts] + [0] * (longest - len(parts))))
        lengths = lengths.view(self.size, longest)
        if not self.leads:
            if parts:
                self._call_distributed(dist.send, torch.from_numpy(np.concatenate(parts)), 0)
            return []
        columns, of_rank = parts[0].shape[1], [parts]
        for rank in range(1, self.size):
            rows = lengths[rank][lengths[rank] > 0].tolist()
            got = torch.empty(sum(rows), columns, dtype=torch.float64)
            if rows:
                self._call_distributed(dist.recv, got, rank)
            of_rank.append(np.split(got.numpy(), np.cumsum(rows)[:-1]))
        return [part for turn in zip_longest(*of_rank) for part in turn if part is not None]

    # Closing and errors

    def close(self) -> None:
        if self.leads and not self._lost:
            with suppress(RankLost):
                self.broadcast_instruction(END)
        dist.destroy_process_group()

    def _all_gather(self, own: Tensor) -> Tensor:
        """Return the equally long tensors (n,) of all ranks, one after the other."""
        found = own.new_empty(self.size * own.numel())
        # gloo's all_gather is many times slower
        self._call_distributed(dist.all_to_all_single, found, own.repeat(self.size))
        return found

    def _ended_rank(self) -> str:
        """Return, in words, the first rank found to have ended on this machine; "" if none has."""
        deadline, own = time.monotonic() + DEATH_TIMEOUT, range(0, 2 * self.size, 2)
        while True:
            for rank, at in enumerate(own):
                process, where = self._processes[at : at + 2]
                if where == self._where and not _alive(process):
                    return Message("rank {rank} (process {process}) ended", rank=rank, process=process)
            if time.monotonic() > deadline:
                return ""
            time.sleep(DEATH_TIMEOUT / 20)

    def _call_distributed(self, operation: Callable[..., object], *arguments: object) -> None:
        try:
            operation(*arguments)
        except RuntimeError as error:
            self._lost = True
            why = self._ended_rank() or Message("the other ranks cannot be reached: {error}", error=error)
            raise RankLost(why) from None


class TreeSum:
    """The gradients of the micro-batches of a step, summed in one binary tree.

    Micro-batches 0 and 1 are added first, then 2 and 3, then these two sums, and so on, like carries in a binary
    counter: only O(log n) sums are held at once for n micro-batches. Missing gradients are skipped.
    """

    def __init__(self, weights: Sequence[Tensor], start: int = 0) -> None:
        self.weights, self.stop = weights, start
        self.nodes: list[tuple[int, Grads | None]] = []  # micro-batches in it, their sum

    def add(self, size: int, grads: Grads | None) -> None:
        """Add the sum over the next `size` micro-batches, a node of the tree; None if they have no targets."""
        self.stop += size
        while self.nodes and self.nodes[-1][0] == size and self.stop % (2 * size) == 0:
            grads = _sum_in_place(self.nodes.pop()[1], grads)
            size *= 2
        self.nodes.append((size, grads))

    def total(self) -> Grads:
        grads: Grads | None = None
        while self.nodes:
            grads = _sum_in_place(self.nodes.pop()[1], grads)
        return [None] * len(self.weights) if grads is None else grads


def node_sizes(block: range) -> list[int]:
    """Return the sizes of the nodes of the tree that make up a block of micro-batches."""
    sizes, at = [], block.start
    while at < block.stop:
        size = at & -at or 1 << block.stop.bit_length()
        while at + size > block.stop:
            size //= 2
        sizes.append(size)
        at += size
    return sizes


def _sum_in_place(first: Grads | None, second: Grads | None) -> Grads | None:
    if first is None or second is None:
        return second if first is None else first
    both = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    if both:
        add_each_([a for a, _ in both], [b for _, b in both])
    return [b if a is None else a for a, b in zip(first, second, strict=True)]


def _flat(grad: Tensor | None, weight: Tensor, device: torch.device) -> Tensor:
    return torch.zeros(weight.numel(), device=device) if grad is None else grad.reshape(-1).to(device)


def _alive(process: int) -> bool:
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def join_ranks(device: str) -> Ranks:
    """Return this process's ranks: those that torchrun started, else itself alone; `device` as in `resolve_device`.

    A rank is told to stop when the process that started it ends. Ranks on one machine share its GPUs round-robin.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or "RANK" not in os.environ:
        return Ranks(resolve_device(device))
    end_with_parent()
    where = resolve_device(device)
    if device in ("auto", "cuda") and where.type == "cuda":
        where = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    return ProcessGroup(where)


def end_with_parent() -> None:
    """Have Linux send this process SIGTERM when its parent ends, however it ends, or has already ended."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if str(os.getppid()) != os.environ.get(PARENT_VARIABLE, str(os.getppid())):
            os.kill(os.getpid(), signal.SIGTERM)
