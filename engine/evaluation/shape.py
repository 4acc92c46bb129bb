"""What the shape of a run's curves says: it came apart, it learned its text by heart, it was not done. No torch.

All three make a comparison by the last loss wrong, and none shows in that number.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from engine.evaluation.verdict import DIVERGED, OK, OVERFIT, STILL_FALLING, Verdict, When

Records = Sequence[Mapping[str, Any]]
BLOCK = 10  # train records whose mean counts: single ones are noise
APART = (0.2, 0.1)  # a training loss that rose by this share, and by so many nats, has come apart
RISEN = (0.01, 0.01)  # a validation loss that rose by so much over its best is no accident
AFTER_BEST = 3  # evaluations: a curve may dip once
FALLING = (0.02, 0.01)  # a last tenth that took this share off the loss, and so many nats, was not the end
WIDTHS = (0.1, 0.25)  # shares of a run, the second where records are few
SURE, SURE_OF_MANY = 3.0, 5.0  # standard errors, for training losses; of many blocks one is the lowest by chance
LEAST = 3  # records of such a share


def curve(train: Records, validation: Records, *, when: When, step: int) -> Verdict | None:
    """What is wrong with the curves so far; None before the first evaluation.

    Args:
        train: train records, oldest first, thinned or not.
        validation: all validation records, oldest first.
        when: `evaluation` while it trains; `after` asks too whether the run was long enough.
        step: for the verdict.
    """
    scored = [(int(r["step"]), float(r["loss"])) for r in validation if _is_number(r.get("loss"))]
    trained = [(int(r["step"]), float(r["loss"])) for r in train if _is_number(r.get("loss"))]
    if not scored:
        return None
    found = _apart(trained) or _overfit(scored) or (_still_falling(scored, trained) if when == "after" else None)
    badge, value, why = found or (OK, 0.0, "the curves are as they should be")
    return Verdict("curve", when, step, badge, value, why)


def no_number(why: str, *, step: int) -> Verdict:
    """The verdict on a run that ended because its loss or gradient was no number any more."""
    return Verdict("curve", "after", step, DIVERGED, math.inf, f"{why}; compare nothing with it")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _apart(trained: list[tuple[int, float]]) -> tuple[str, float, str] | None:
    blocks = [trained[i : i + BLOCK] for i in range(len(trained) % BLOCK, len(trained), BLOCK)]
    if len(blocks) < 2:
        return None
    means = [statistics.fmean(loss for _, loss in block) for block in blocks]
    lowest, last = min(means), means[-1]
    best = blocks[means.index(lowest)]
    noise = SURE_OF_MANY * _error([loss for _, loss in best], [loss for _, loss in blocks[-1]])
    if last - lowest <= max(APART[0] * lowest, APART[1], noise):
        return None
    at = best[-1][0]
    why = (
        f"the training loss was {lowest:.3f} around step {at:,} and is {last:.3f} now: it came apart; "
        "a learning rate that is too large, or no warm-up, is the usual cause"
    )
    return DIVERGED, last - lowest, why


def _overfit(scored: list[tuple[int, float]]) -> tuple[str, float, str] | None:
    best, (_, last) = min(range(len(scored)), key=lambda i: scored[i][1]), scored[-1]
    at, lowest = scored[best]
    since = [loss for _, loss in scored[best + 1 :]]
    least = lowest + max(RISEN[0] * lowest, RISEN[1])
    if len(since) < AFTER_BEST or min(since[-AFTER_BEST:]) <= least:
        return None
    why = (
        f"the validation loss was best at step {at:,} ({lowest:.4f}) and has risen to {last:.4f}: from there on "
        "it learned its training text by heart; compare best with best, or stop there (evaluation.patience)"
    )
    return OVERFIT, last - lowest, why


def _still_falling(scored: list[tuple[int, float]], trained: list[tuple[int, float]]) -> tuple[str, float, str] | None:
    fall, name, last = _last_tenth(scored), "validation", scored[-1][1]
    if fall is None:
        fall, name = _last_tenth_trained(trained), "training"
    if fall is None or fall <= max(FALLING[0] * last, FALLING[1]):
        return None
    why = (
        f"the {name} loss fell by {fall:.3f} over the last tenth of the run: it had more to learn, and a variant "
        "that only learns more slowly looks worse than it is; train longer (train.steps) before comparing"
    )
    return STILL_FALLING, fall, why


def _last_tenth(scored: list[tuple[int, float]]) -> float | None:
    """Nats that the last tenth took off; None where evaluations are too far apart to say."""
    end, last = scored[-1]
    before = [(step, loss) for step, loss in scored[:-1] if step >= 0.75 * end]
    if not before:
        return None
    step, loss = min(before, key=lambda point: abs(point[0] - 0.9 * end))
    return (loss - last) * (0.1 * end) / (end - step) if step < end else None


def _last_tenth_trained(trained: list[tuple[int, float]]) -> float | None:
    end = trained[-1][0] if trained else 0
    for width in WIDTHS:
        newest = [loss for step, loss in trained if step > (1.0 - width) * end]
        before = [loss for step, loss in trained if 1.0 - 2.0 * width < step / end <= 1.0 - width]
        if min(len(newest), len(before)) >= LEAST:
            fall = statistics.fmean(before) - statistics.fmean(newest)
            return fall * 0.1 / width if fall > SURE * _error(newest, before) else 0.0
    return None


def _error(*parts: list[float]) -> float:
    """The standard error of the difference of two means."""
    return math.hypot(*(statistics.stdev(part) / len(part) ** 0.5 for part in parts))
