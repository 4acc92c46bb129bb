"""Interleaved timing: contenders take turns, so that what else the machine does falls on all of them alike."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from engine.benchmark.memory import peak_bytes


@dataclass(frozen=True)
class Contender:
    """Something to time.

    Args:
        name: in tables.
        work: does a piece of work and gives back how many units that was (tokens, calls).
    """

    name: str
    work: Callable[[], int]


@dataclass(frozen=True)
class Speed:
    """Units per second over the rounds: median, slowest and fastest; and what a piece of work adds to memory."""

    name: str
    median: float
    low: float
    high: float
    rounds: int
    peak_bytes: int | None = None


def interleaved(
    contenders: Sequence[Contender],
    *,
    rounds: int,
    seconds: float,
    device: torch.device | str = "cpu",
    said: Callable[[str], None] = lambda _: None,
) -> list[Speed]:
    """Time contenders in turns.

    Args:
        contenders: each is warmed up first, once, and once more for its memory.
        rounds: turns of each; the order turns too.
        seconds: the least that one turn takes.
        device: what to wait for.
        said: told what is being timed.
    """
    found: dict[str, list[float]] = {c.name: [] for c in contenders}
    memory: dict[str, int | None] = {}
    for contender in contenders:
        said(f"warming up {contender.name}")
        contender.work()
        memory[contender.name] = peak_bytes(contender.work, torch.device(device))
    for i in range(rounds):
        for contender in [*contenders[i % len(contenders) :], *contenders[: i % len(contenders)]]:
            said(f"round {i + 1} of {rounds}: {contender.name}")
            found[contender.name].append(_rate(contender, seconds, torch.device(device)))
    return [Speed(name, statistics.median(v), min(v), max(v), rounds, memory[name]) for name, v in found.items()]


def _rate(contender: Contender, seconds: float, device: torch.device) -> float:
    """Units per second; the host waits for a GPU only at the end, as a run waits only at its log points."""
    settle(device)
    units, started = 0, time.perf_counter()
    while units == 0 or time.perf_counter() - started < seconds:
        units += contender.work()
    settle(device)
    return units / (time.perf_counter() - started)


def settle(device: torch.device) -> None:
    """Wait until a GPU has finished its queued work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
