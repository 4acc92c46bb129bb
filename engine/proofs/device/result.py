"""The types of a proof, its context and its result. No torch here: the process that prints the table needs none."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Status = Literal["passed", "failed", "skipped"]
Figure = float | int | str | bool
THREADS = 1  # CPU threads per proof; beside another program, more would wait for each other


@dataclass(frozen=True)
class ProofResult:
    """The outcome of a proof; figures are named with their unit, `skipped` means that this machine cannot run it."""

    status: Status
    why: str
    figures: Mapping[str, Figure] = field(default_factory=dict)
    seconds: float = 0.0


def passed(why: str, **figures: Figure) -> ProofResult:
    return ProofResult("passed", why, figures)


def failed(why: str, **figures: Figure) -> ProofResult:
    return ProofResult("failed", why, figures)


def skipped(why: str, **figures: Figure) -> ProofResult:
    return ProofResult("skipped", why, figures)


def passed_if(holds: bool, right: str, wrong: str, **figures: Figure) -> ProofResult:
    return ProofResult("passed" if holds else "failed", right if holds else wrong, figures)


@dataclass(frozen=True)
class Context:
    """Where a proof runs: cpu, cuda:i or mps, and an empty folder for its files."""

    device: str
    folder: Path

    @property
    def on_cuda(self) -> bool:
        return self.device.startswith("cuda")


@dataclass(frozen=True)
class Proof:
    """One row of the table; consecutive proofs of one `group` with the same result share one."""

    name: str
    group: str
    run: Callable[[Context], ProofResult]  # in another process, so it must be picklable
    seconds: float = 5.0  # usual duration
    limit: float = 120.0  # seconds after which it counts as hung
