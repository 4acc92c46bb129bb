"""What a check found: a result, and the verdict that a run records. No torch here."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

OK = "ok"
LEAK, BROKEN, NO_ORDER, INERT, OVERLAP = "LEAK", "BROKEN", "NO-ORDER", "INERT", "OVERLAP"
REPEATED = "REPEATED"
IMPLAUSIBLE, SUSPICIOUS = "IMPLAUSIBLE", "SUSPICIOUS"
NOT_LEARNING, SAME_TEXT = "NOT-LEARNING", "SAME-TEXT"
DIVERGED, OVERFIT, STILL_FALLING = "DIVERGED", "OVERFIT", "STILL-FALLING"
When = Literal["before", "evaluation", "after"]


@dataclass(frozen=True)
class CheckResult:
    """What a check of a network, a run, a device or a machine found. The table that lists the check has its name."""

    status: Literal["passed", "failed", "skipped"]  # skipped: it cannot be checked here
    why: str  # what holds, what is wrong, or why it was skipped
    figures: Mapping[str, Any] = field(default_factory=dict)  # what was measured, named with its unit
    seconds: float = 0.0


def passed(why: str, **figures: Any) -> CheckResult:
    return CheckResult("passed", why, figures)


def failed(why: str, **figures: Any) -> CheckResult:
    return CheckResult("failed", why, figures)


def skipped(why: str, **figures: Any) -> CheckResult:
    return CheckResult("skipped", why, figures)


def passed_if(holds: bool, right: str, wrong: str | None = None, **figures: Any) -> CheckResult:
    """Return a result that says what holds or what is wrong; without `wrong`, `right` states what was found."""
    return passed(right, **figures) if holds else failed(right if wrong is None else wrong, **figures)


@dataclass(frozen=True)
class Verdict:
    """A check's result as a run's checks.json has it."""

    check: str  # which check
    when: When  # before training, at an evaluation, or after
    step: int  # the optimizer step
    verdict: str  # `ok` or a badge
    value: float  # the number it is based on
    why: str  # one sentence, with the likely cause of a problem
