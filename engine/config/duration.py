"""How long something lasts: `100`, "100 steps", "5 epochs" or "10240 tokens", resolved to steps when a run starts."""

import math
import re
from typing import Annotated

from pydantic import BeforeValidator

MAX_STEPS = 10**12
_FORM = re.compile(r"\s*(\d{1,13}(?:\.\d{1,9})?)\s*(steps?|epochs?|tokens?)\s*\Z")


def _checked(value: object) -> int | str:
    """A whole number of steps stays one; text must name its unit."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError('must be steps, e.g. 100, or a text such as "5 epochs" or "10240 tokens"')
    if isinstance(value, int):
        if not 0 <= value <= MAX_STEPS:
            raise ValueError(f"must be from 0 to {MAX_STEPS:,} steps")
        return value
    found = _FORM.match(value)
    if found is None:
        raise ValueError('must be steps, e.g. 100, or a text such as "5 epochs" or "10240 tokens"')
    number, unit = found[1], found[2].rstrip("s")
    if unit == "step" and "." not in number:
        return int(number)
    return f"{number} {unit}s"


Duration = Annotated[int | str, BeforeValidator(_checked)]


def in_steps(duration: int | str, *, steps_per_epoch: int, tokens_per_step: int) -> int:
    """A checked duration as optimizer steps, at least 1 unless it is 0.

    Args:
        duration: steps, or a text with its unit.
        steps_per_epoch: optimizer steps that see every window of the training split once.
        tokens_per_step: tokens of one optimizer step.
    """
    if isinstance(duration, int):
        return duration
    number, unit = duration.split()
    factor = {"steps": 1.0, "epochs": float(steps_per_epoch), "tokens": 1.0 / tokens_per_step}[unit]
    steps = math.ceil(float(number) * factor - 1e-9)
    return max(1, steps) if float(number) > 0 else 0
