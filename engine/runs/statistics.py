"""What may be concluded from the scores of several seeds. Nothing here knows what was scored, or draws anything.

Means come with Student's t interval; two variants are compared over the seeds that both have, by their differences;
several variants share one error rate (Holm, 1979). With few seeds nothing else holds what it promises: at three seeds
an interval of 1.96 standard errors covers 81 %, not 95 %, and the smallest p an exact sign-flip test can give is 0.25.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np

CONFIDENCE = 0.95
LEVEL = 0.05  # of all verdicts of a study together
POWER = 0.8  # with which the seeds that a verdict asks for would settle it
MOST_SEEDS = 1_000  # nobody trains more
LARGEST = 1e100  # of a score; the squares of larger ones overflow
EXACT_FLIPS = 16  # seeds up to which every flip of signs is tried

Kind = Literal["better", "worse", "same", "cannot-tell", "one-seed", "nothing"]


@dataclass(frozen=True)
class Mean:
    """A mean over seeds.

    Args:
        mean: in the unit of the values.
        half: half the width of its 95 % t interval; None with one value.
        n: values.
        sd: standard deviation over seeds, with n - 1; None with one value.
    """

    mean: float
    half: float | None
    n: int
    sd: float | None


@dataclass(frozen=True)
class Paired:
    """A variant minus the baseline, seed by seed.

    Args:
        difference: mean over the seeds that both have.
        half: half the width of its 95 % t interval, this difference alone; None with one seed.
        n: seeds that both have.
        sd: standard deviation of the differences; None with one seed.
        p: of the paired t test, two-sided; None with one seed.
        sign_flip_p: of the sign-flip test, two-sided, which assumes no bell curve; 2^(1-n) at best.
        correlation: of the two over seeds (Pearson): what pairing gains; None below three seeds.
        holm_p: p times what Holm asks for among all variants of a study; None before `against_baseline`.
        compared: variants among which Holm corrected.
    """

    difference: float
    half: float | None
    n: int
    sd: float | None
    p: float | None
    sign_flip_p: float | None
    correlation: float | None
    holm_p: float | None = None
    compared: int = 1


@dataclass(frozen=True)
class Judgement:
    """A verdict.

    Args:
        kind: for colours and counting.
        text: in words.
        seeds: about how many would settle it with the effect and the noise seen so far; None if nothing is open.
        amounts: the numbers in the text as they are written there, for who says it in another language.
    """

    kind: Kind
    text: str
    seeds: int | None = None
    amounts: tuple[str, ...] = ()


def within(t: float, df: int) -> float:
    """P(|T| < t) of Student's t with a whole number of degrees of freedom (Abramowitz & Stegun 26.7.3 and 26.7.4)."""
    angle = math.atan2(abs(t), math.sqrt(df))
    cosine = math.cos(angle)
    term = total = cosine if df % 2 else 1.0
    for k in range(3 if df % 2 else 2, df - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    if df % 2 == 0:
        return math.sin(angle) * total
    return 2 / math.pi * (angle + (math.sin(angle) * total if df > 1 else 0.0))


@cache
def t_quantile(confidence: float, df: int) -> float:
    """The t with P(|T| < t) = confidence."""
    low, high = 0.0, 1.0
    while within(high, df) < confidence:
        low, high = high, 2 * high
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if within(middle, df) < confidence else (low, middle)
    return high


def mean_of(values: Sequence[float]) -> Mean:
    """The mean of at least one value, with its 95 % t interval.

    Raises:
        ValueError: there is none.
        OverflowError: the squares of values as large as these are no numbers any more.
    """
    if not values:
        raise ValueError("no value has no mean")
    n, mean = len(values), math.fsum(values) / len(values)
    if n == 1:
        return Mean(mean, None, 1, None)
    sd = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    return Mean(mean, t_quantile(CONFIDENCE, n - 1) * sd / math.sqrt(n), n, sd)


def paired(ours: Mapping[int, float], baseline: Mapping[int, float]) -> Paired | None:
    """The difference of two variants, by seed; None where they have no seed in common.

    Args:
        ours: seed -> score; what is not finite, or larger than `LARGEST`, does not count.
        baseline: the same of the baseline.
    """
    seeds = [seed for seed in ours if _counts(ours[seed]) and _counts(baseline.get(seed, math.nan))]
    if not seeds:
        return None
    differences = [ours[seed] - baseline[seed] for seed in seeds]
    mean = mean_of(differences)
    correlation = _correlation([ours[seed] for seed in seeds], [baseline[seed] for seed in seeds])
    return Paired(mean.mean, mean.half, mean.n, mean.sd, _t_test(mean), _sign_flips(differences), correlation)


def _counts(score: float) -> bool:
    return abs(score) <= LARGEST  # not for NaN either


def against_baseline(variants: Mapping[str, Mapping[int, float]], baseline: str) -> dict[str, Paired]:
    """Every other variant against the baseline, with Holm over all that have a p.

    Args:
        variants: name -> seed -> score.
        baseline: one of the names.
    """
    found = {
        name: difference
        for name, scores in variants.items()
        if name != baseline and (difference := paired(scores, variants.get(baseline, {}))) is not None
    }
    corrected = holm({name: difference.p for name, difference in found.items() if difference.p is not None})
    return {
        name: replace(difference, holm_p=corrected.get(name), compared=max(1, len(corrected)))
        for name, difference in found.items()
    }


def holm(p: Mapping[str, float]) -> dict[str, float]:
    """Adjusted p-values: each below a level exactly where Holm's step-down procedure rejects at that level."""
    adjusted, largest = {}, 0.0
    for rank, name in enumerate(sorted(p, key=lambda name: p[name])):
        largest = max(largest, min(1.0, p[name] * (len(p) - rank)))
        adjusted[name] = largest
    return {name: adjusted[name] for name in p}


def judge(
    found: Paired | None,
    *,
    lower_is_better: bool,
    margin: float = 0.0,
    digits: Callable[[float], str] = "{:.3f}".format,
) -> Judgement:
    """A verdict in words.

    Args:
        found: of `against_baseline`; None where nothing can be paired.
        lower_is_better: as of a loss.
        margin: a difference below this matters to nobody; an interval inside of it is "no difference".
        digits: writes an amount, without a sign.
    """
    if found is None:
        return Judgement("nothing", "no seed in common: cannot tell")
    if found.half is None or found.p is None or found.sd is None:
        return Judgement("one-seed", "one seed: cannot tell")
    holm_p = found.p if found.holm_p is None else found.holm_p
    if holm_p < LEVEL:
        kind: Kind = "better" if (found.difference < 0) == lower_is_better else "worse"
        amounts = digits(abs(found.difference)), digits(found.half)
        return Judgement(kind, f"{kind} by {amounts[0]} ± {amounts[1]}", amounts=amounts)
    largest = abs(found.difference) + found.half
    if largest <= margin:
        if largest == 0:
            return Judgement("same", "no difference at all")
        return Judgement("same", f"no difference larger than {digits(largest)}", amounts=(digits(largest),))
    seeds = seeds_needed(found)
    would = f"about {seeds:,} seeds would" if seeds is not None else f"nor would {MOST_SEEDS:,} seeds"
    return Judgement("cannot-tell", f"cannot tell; {would}", seeds)


def seeds_needed(found: Paired) -> int | None:
    """Seeds with which a difference and a noise as seen so far would be told apart four times in five.

    None where more than `MOST_SEEDS` would be needed, or nothing is known of the noise. Rough: after three seeds the
    noise may be half of what it seems, or six times as much.
    """
    if not found.sd or not found.difference:
        return None
    level = 1 - LEVEL / found.compared
    for n in range(max(2, found.n), MOST_SEEDS + 1):
        enough = t_quantile(level, n - 1) + t_quantile(2 * POWER - 1, n - 1)
        if enough * found.sd / math.sqrt(n) <= abs(found.difference):
            return max(n, found.n + 1)
    return None


def _t_test(mean: Mean) -> float | None:
    if mean.sd is None:
        return None
    if mean.sd == 0:
        return 1.0 if mean.mean == 0 else 0.0
    return max(0.0, 1.0 - within(mean.mean / (mean.sd / math.sqrt(mean.n)), mean.n - 1))


def _sign_flips(differences: Sequence[float]) -> float | None:
    """The share of all 2^n ways to turn signs round (of 65,536 drawn ones if there are more) as far from zero."""
    n = len(differences)
    if n == 1:
        return None
    if n <= EXACT_FLIPS:
        signs = 1.0 - 2.0 * (np.arange(2**n)[:, None] >> np.arange(n) & 1)
    else:
        signs = np.random.default_rng(n).choice([-1.0, 1.0], size=(2**EXACT_FLIPS, n))
        signs[0] = 1.0
    sums = np.abs(signs @ np.asarray(differences))
    return float(np.mean(sums >= sums[0] * (1 - 1e-12)))


def _correlation(a: Sequence[float], b: Sequence[float]) -> float | None:
    if len(a) < 3 or min(a) == max(a) or min(b) == max(b):
        return None
    return float(np.corrcoef(a, b)[0, 1])
