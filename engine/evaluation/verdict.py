"""What a check found. No torch here."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

OK = "ok"
LEAK, BROKEN, NO_ORDER, INERT, OVERLAP = "LEAK", "BROKEN", "NO-ORDER", "INERT", "OVERLAP"
IMPLAUSIBLE, SUSPICIOUS = "IMPLAUSIBLE", "SUSPICIOUS"
NOT_LEARNING, SAME_TEXT = "NOT-LEARNING", "SAME-TEXT"
DIVERGED, OVERFIT, STILL_FALLING = "DIVERGED", "OVERFIT", "STILL-FALLING"
When = Literal["before", "evaluation", "after"]


@dataclass(frozen=True)
class Verdict:
    """What a check found: `ok`, or the name of what is wrong."""

    check: str  # which check
    when: When  # before training, at an evaluation, or after
    step: int  # the optimizer step
    verdict: str  # `ok` or a badge
    value: float  # the number it rests on
    why: str  # one sentence, with what is likely to be the cause where something is wrong

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
