"""One seed per purpose, from the run's seed: drawing more often from one never disturbs another."""

import hashlib
from typing import Literal

Purpose = Literal["init", "data", "dropout", "mask", "sample", "probe"]


def seed_for(seed: int, purpose: Purpose, *counters: int | str) -> int:
    """Return a 63-bit seed for a purpose and its counters: a step, a micro-batch, a parameter's name."""
    text = "\x1f".join(str(part) for part in (seed, purpose, *counters))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1
