"""One proof, and where it runs. No torch here: the process that prints the table needs none."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.runs.verdict import CheckResult

THREADS = 1  # CPU threads per proof; beside another program, more would wait for each other


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
    run: Callable[[Context], CheckResult]  # in another process, so it must be picklable
    seconds: float = 5.0  # usual duration
    limit: float = 120.0  # seconds after which it counts as hung
