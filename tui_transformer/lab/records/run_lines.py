"""What there is to say about a run's progress, worded once: views choose among these texts and arrange them."""

from datetime import datetime

from engine.base.language import tr
from tui_transformer.lab.formatting import done_at, duration, si_number


def step_text(step: int, steps: int) -> str:
    return tr("step {step:,} / {steps:,}", step=step, steps=steps)


def speed_text(tokens_per_second: float | None) -> str:
    return tr("{short} tok/s", short=si_number(tokens_per_second)) if tokens_per_second else ""


def time_left_text(seconds: float, now: datetime | None = None) -> str:
    """`2:10 left`, or `2:10 left, done at 14:32` if the time of day is given."""
    left = tr("{duration} left", duration=duration(seconds))
    done = done_at(seconds, now) if now is not None else ""
    return tr("{left}, {done}", left=left, done=done) if done else left


def run_time_left_text(step: int, steps: int, seconds: float | None, now: datetime | None = None) -> str:
    """The time left to a run that trains; `seconds` is None while that is not known."""
    if step >= steps:
        return tr("finishing")
    return tr("estimating the time left…") if seconds is None else time_left_text(seconds, now)
