"""Which writes are let fail: a few of them where time is short, all of them in parts otherwise."""

import random

from tests.e2e.faults.rig import BROKEN, FULL

ERRORS = {FULL: "No space left on device", BROKEN: "Input/output error"}
NAMES = ["full", "broken"]  # of the errors
PARTS = 4  # of all writes: each a test of its own


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
