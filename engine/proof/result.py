"""What a proof is, takes and returns. No torch here: the process that prints the table does not need it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Status = Literal["passed", "failed", "skipped"]
Figure = float | int | str | bool


@dataclass(frozen=True)
class Result:
    """The outcome of a proof; figures are named with their unit, `skipped` means that this machine cannot run it."""

    status: Status
    why: str
    figures: Mapping[str, Figure] = field(default_factory=dict)
    seconds: float = 0.0


def passed(why: str, **figures: Figure) -> Result:
    return Result("passed", why, figures)


def failed(why: str, **figures: Figure) -> Result:
    return Result("failed", why, figures)


def skipped(why: str, **figures: Figure) -> Result:
    return Result("skipped", why, figures)


def judged(holds: bool, right: str, wrong: str, **figures: Figure) -> Result:
    """Return passed with one sentence, or failed with another."""
    return Result("passed" if holds else "failed", right if holds else wrong, figures)


@dataclass(frozen=True)
class Context:
    """Where a proof runs: cpu, cuda:i or mps, an empty folder for its files, and CPU threads."""

    device: str
    folder: Path
    threads: int = 1

    @property
    def on_cuda(self) -> bool:
        return self.device.startswith("cuda")


@dataclass(frozen=True)
class Proof:
    """One row of the table.

    Args:
        name: unique.
        group: consecutive proofs of one group with the same result share a row.
        run: runs in another process, so it must be picklable; an exception is a failure.
        seconds: how long it usually takes, to estimate the time left.
        limit: seconds after which it counts as hung.
    """

    name: str
    group: str
    run: Callable[[Context], Result]
    seconds: float = 5.0
    limit: float = 120.0
