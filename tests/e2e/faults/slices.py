"""The smallest run, and which of its writes are let fail: a few where time is short, all of them otherwise."""

import random
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from tests.e2e.faults.rig import BROKEN, FULL
from tests.engine.training.test_crash import BUSY

ERRORS = {FULL: "No space left on device", BROKEN: "Input/output error"}
NAMES = ["full", "broken"]  # of the errors
# A few steps with a checkpoint each, and two evaluations.
BRIEF = BUSY.model_copy(update={"train": BUSY.train.model_copy(update={"steps": 8})})
PARTS = 4  # of all writes: each a test of its own


SETTINGS = {
    "model": "n_layers=1 d_model=16 n_heads=2 context_length=16",
    "train": "steps=2 batch_size=4 threads=1",
    "evaluation": "every=2 sample_every=2 sample_length=4",
    "checkpoint": "every=2",
    "data": "corpus_size=10000",
    "log": "every=1",
}


def sets(settings: Mapping[str, str] = MappingProxyType(SETTINGS)) -> list[str]:
    """Settings as the command line takes them; by default those of the smallest run."""
    given = [f"{section}.{setting}" for section, line in settings.items() for setting in line.split()]
    return [word for setting in given for word in ("--set", setting)]


def run_words(runs: Path, settings: Mapping[str, str] = MappingProxyType(SETTINGS), *more: str) -> list[str]:
    """A run called `a`, after `tui-transformer`."""
    return [
        "run",
        "--preset",
        "demo",
        "--name",
        "a",
        "--runs-dir",
        str(runs),
        "--device",
        "cpu",
        *sets(settings),
        *more,
    ]


def few(count: int, seed: object, writes: int) -> list[int]:
    """Some of the writes 1 to `writes`, the same each time."""
    return sorted(random.Random(str(seed)).sample(range(1, writes + 1), min(count, writes)))


def part(number: int, writes: int) -> range:
    """Every `PARTS`-th write, from the one with that number, counted from 0."""
    return range(1 + number, writes + 1, PARTS)


def complaints(said: str) -> list[str]:
    """The lines that say what went wrong."""
    lines = [line for line in said.splitlines() if line.startswith("tui-transformer: ")]
    return [line for line in lines if not line.startswith("tui-transformer: warning: ")]
