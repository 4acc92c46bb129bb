"""The result of a check. No torch here."""

from dataclasses import dataclass
from typing import Literal

OK = "ok"
LEAK, BROKEN, NO_ORDER, INERT, OVERLAP = "LEAK", "BROKEN", "NO-ORDER", "INERT", "OVERLAP"
REPEATED = "REPEATED"
IMPLAUSIBLE, SUSPICIOUS = "IMPLAUSIBLE", "SUSPICIOUS"
NOT_LEARNING, SAME_TEXT = "NOT-LEARNING", "SAME-TEXT"
DIVERGED, OVERFIT, STILL_FALLING = "DIVERGED", "OVERFIT", "STILL-FALLING"
When = Literal["before", "evaluation", "after"]


@dataclass(frozen=True)
class Verdict:
    check: str  # which check
    when: When  # before training, at an evaluation, or after
    step: int  # the optimizer step
    verdict: str  # `ok` or a badge
    value: float  # the number it is based on
    why: str  # one sentence, with the likely cause of a problem
