"""Statistics on the scores of several seeds. Nothing here knows what was scored, or draws anything.

Two variants are compared over the seeds that both have, by their differences (paired t test). A score that is a count,
the share of q questions answered, also carries the binomial error of its questions: every seed answers the same ones,
so more seeds do not reduce it. All verdicts of a study share one error rate (weighted Holm, 1979), which also covers
judging once more after adding seeds. docs/explanation/verdicts.md explains the rules and lists measured error rates.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import accumulate
from statistics import NormalDist
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

from engine.base.language import tr
from engine.config.measures import Mean

CONFIDENCE = 0.95  # of one interval by itself
LEVEL = 0.05  # chance of any false verdict in a study: all variants, all measures, all LOOKS together
LOOKS = 2  # times a study may be judged: with its first seeds, and once more after adding seeds
PRIMARY = 0.8  # share of the level allotted to the primary measure
POWER = 0.8  # chance that the suggested number of seeds would settle a verdict
RANGE = 0.90  # confidence of the range around that number
MOST_SEEDS = 1_000  # nobody trains more than this
LARGEST = 1e100  # of a score; the squares of larger ones overflow
ROUNDING = 1e-12  # of a score: differences that vary by less count as equal
SMALLEST_P = 1e-15
EXACT_FLIPS = 16  # seeds up to which every flip of signs is tried

NORMAL = NormalDist()
FloatArray = npt.NDArray[np.float64]
Key = TypeVar("Key", bound=Hashable)
Kind = Literal["better", "worse", "same", "inconclusive", "one-seed", "nothing"]
# Why a verdict is inconclusive: the difference may be zero; no number of seeds helps; the seeds do not vary; the
# questions are too few.
Reason = Literal["", "open", "never", "identical", "questions"]


@dataclass(frozen=True)
class PairedDifference(Mean):
    """A variant minus the baseline, seed by seed: the mean over the seeds both have; its interval is uncorrected."""

    # of the test, two-sided, uncorrected; None with one seed, or if all differences are equal but not zero
    p: float | None = None
    sign_flip_p: float | None = None  # of the sign-flip test, two-sided, which assumes no normality; 2^(1-n) at best
    correlation: float | None = None  # of the two over seeds (Pearson): what pairing gains; None below three seeds
    # standard error of the difference due to the choice of questions; 0 if it is not a count
    questions_error: float = 0.0
    # p corrected for all verdicts of the study and a second look; significant below `LEVEL`. None before the correction
    adjusted_p: float | None = None
    level: float = LEVEL / LOOKS  # threshold for p if no other comparison is significant
    comparison_count: int = 1  # number of comparisons corrected together


@dataclass(frozen=True)
class Judgement:
    """A verdict; `Language.judgement` puts it into words."""

    kind: Kind  # what is concluded
    amounts: tuple[str, ...] = ()  # its numbers, as written
    reason: Reason = ""  # why it is inconclusive
    # about how many would settle it if the difference is as large as observed; None if meaningless
    seeds: int | None = None
    fewest: int | None = None  # lower end of the range around `seeds`
    most: int | None = None  # upper end; None if the difference may be zero


def cdf_of_absolute_t(t: float, df: int) -> float:
    """P(|T| < t) of Student's t with integer degrees of freedom (Abramowitz & Stegun 26.7.3 and 26.7.4)."""
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
    return _least(lambda t: cdf_of_absolute_t(t, df) >= confidence)


def _least(enough: Callable[[float], bool], precision: float = 0.0) -> float:
    """Return the least positive number that is enough, as all larger ones are; exact, or to a relative precision."""
    low, high = 0.0, 1.0
    while not enough(high):
        low, high = high, 2 * high
    while (middle := (low + high) / 2) not in (low, high) and high - low > precision * high:
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def normal_quantile(confidence: float) -> float:
    """The z with P(|Z| < z) = confidence."""
    return NORMAL.inv_cdf(0.5 + confidence / 2)


def mean_of(values: Sequence[float], *, share: bool = False, places: int | None = None) -> Mean:
    """The mean of at least one value, with its 95 % interval; for `share` and `places` see `SeedScores`.

    Raises OverflowError if the squares of values overflow.
    """
    if not values:
        raise ValueError(tr("cannot take the mean of no values"))
    n, mean = len(values), math.fsum(values) / len(values)
    if n == 1:
        return Mean(mean, None, 1, None)
    sd = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    half = t_quantile(CONFIDENCE, n - 1) * sd / math.sqrt(n)
    return Mean(mean, half, n, sd, _wilson_interval(mean, half, places) if share else None)


def _wilson_interval(mean: float, half: float, places: int | None) -> tuple[float, float] | None:
    """Wilson's interval (1927), with the variance over seeds added to the binomial variance of the questions.

    It contains every share p with (mean - p)² ≤ k p (1 - p). With equal scores that is Wilson's interval for the
    questions; with many questions and a small spread, the t interval over seeds.
    """
    odds = mean * (1 - mean)
    k = (half * half / odds if odds > 0 else 0.0) + (normal_quantile(CONFIDENCE) ** 2 / places if places else 0.0)
    if k == 0 or not 0 <= mean <= 1:
        return None
    centre, reach = (mean + k / 2) / (1 + k), math.sqrt(k * odds + k * k / 4) / (1 + k)
    return max(0.0, min(mean, centre - reach)), min(1.0, max(mean, centre + reach))


@dataclass(frozen=True)
class SeedScores:
    by_seed: tuple[tuple[int, float], ...] = ()  # (seed, score) of each run that counts
    share: bool = False  # whether the scores are shares, from 0 to 1
    places: int | None = None  # questions behind each share, the same for every seed; None if unknown


@lru_cache(16_384)  # most of a folder is unchanged while one of its runs trains
def paired_difference(first: SeedScores, second: SeedScores) -> PairedDifference | None:
    """The difference of a variant from its baseline, by seed; None if they share no seed.

    Scores that are not finite, or larger than `LARGEST`, do not count.
    """
    baseline, share = dict(second.by_seed), first.share
    places = min(first.places, second.places) if first.places is not None and second.places is not None else None
    shared = ((score, baseline[seed]) for seed, score in first.by_seed if seed in baseline)
    pairs = [pair for pair in shared if all(abs(score) <= LARGEST for score in pair)]  # none with NaN
    if not pairs:
        return None
    own, others = zip(*pairs, strict=True)
    differences = [a - b for a, b in pairs]
    mean = mean_of(differences)
    if mean.sd is None or mean.half is None:
        return PairedDifference(mean.mean, None, 1, None)
    sd = mean.sd if mean.sd > ROUNDING * max(map(abs, [*own, *others])) else 0.0
    variances = [_binomial_share_variance(mean_of(scores).mean, places) if places else 0.0 for scores in (own, others)]
    error = math.sqrt(sum(variances))
    t, z = t_quantile(CONFIDENCE, mean.n - 1), normal_quantile(CONFIDENCE)
    half = math.hypot(t * sd / math.sqrt(mean.n), z * error)
    interval = (max(-1.0, mean.mean - half), min(1.0, mean.mean + half)) if share and half else None
    p = _p(mean.mean, sd / math.sqrt(mean.n), mean.n - 1, error)
    tests = _sign_flips(differences), _correlation(own, others)
    return PairedDifference(mean.mean, half, mean.n, sd, interval, p, *tests, error)


def _binomial_share_variance(share: float, places: int) -> float:
    """Variance of a share of so many questions, with a right and a wrong answer added (Agresti & Caffo, 2000)."""
    p = (min(1.0, max(0.0, share)) * places + 1) / (places + 2)
    return p * (1 - p) * (places + 2) / places**2


def _p(difference: float, seeds_error: float, df: int, questions_error: float) -> float | None:
    """The least level at which |difference|² > t² · seeds_error² + z² · questions_error².

    Each error has its own quantile: t for the seeds, z for the questions, whose error is known. Such an interval has
    at least its nominal coverage, whichever of the two is larger (Banerjee, Sankhyā A 23, 1961).
    """
    size = abs(difference)
    if questions_error == 0:
        if seeds_error == 0:
            return 1.0 if size == 0 else None  # equal in every seed: the noise is unknown
        return max(0.0, 1.0 - cdf_of_absolute_t(size / seeds_error, df))

    def p_at(t: float) -> float:
        return max(SMALLEST_P, 1.0 - cdf_of_absolute_t(t, df))

    def reaches(t: float) -> bool:
        p = p_at(t)
        z = -NORMAL.inv_cdf(p / 2)
        return math.hypot(t * seeds_error, z * questions_error) >= size or p <= SMALLEST_P

    return p_at(_least(reaches, 1e-12))


def against_baseline(
    study: Mapping[str, Mapping[Key, SeedScores]], baseline: Mapping[str, SeedScores], primary: str = ""
) -> dict[str, dict[Key, PairedDifference]]:
    """Return differences from the baseline by measure and variant, paired by seed, at one error rate.

    Weighted Holm correction over measures and variants: the primary measure's comparisons start with `PRIMARY` of the
    level; all others share the rest equally. A significant comparison passes its share on to the rest. If the
    primary measure was not scored, all have equal weight.
    """
    found: dict[str, dict[Key, PairedDifference]] = {}
    for measure, variants in study.items():
        pairs = {name: paired_difference(own, baseline[measure]) for name, own in variants.items()}
        found[measure] = {name: pair for name, pair in pairs.items() if pair is not None}
    each = [(measure, name, pair) for measure, variants in found.items() for name, pair in variants.items()]
    # One seed gives none.
    p = {(measure, name): 1.0 if pair.p is None else pair.p for measure, name, pair in each if pair.half is not None}
    first = sum(measure == primary for measure, _ in p)
    others = len(p) - first
    weights = dict.fromkeys(p, 1.0 / max(1, len(p)))
    if first and others:
        weights = {key: PRIMARY / first if key[0] == primary else (1 - PRIMARY) / others for key in p}
    for (measure, name), adjusted in holm(p, weights).items():
        pair = found[measure][name]
        both_looks = None if pair.p is None else min(1.0, LOOKS * adjusted)
        level = LEVEL / LOOKS * weights[measure, name]
        found[measure][name] = replace(pair, adjusted_p=both_looks, level=level, comparison_count=len(p))
    return found


def holm(p: Mapping[Key, float], weights: Mapping[Key, float]) -> dict[Key, float]:
    """Adjusted p-values: each is below a level exactly when Holm's step-down procedure (1979) rejects at that level."""
    ordered = sorted(p, key=lambda name: p[name] / weights[name])
    still_open = [*accumulate(weights[name] for name in reversed(ordered))]
    adjusted: dict[Key, float] = {}
    largest = 0.0
    for name, left in zip(ordered, reversed(still_open), strict=True):
        largest = max(largest, min(1.0, p[name] * left / weights[name]))
        adjusted[name] = largest
    return {name: adjusted[name] for name in p}


def judge(
    found: PairedDifference | None,
    *,
    lower_is_better: bool,
    margin: float = 0.0,
    digits: Callable[[float], str] = "{:.3f}".format,
) -> Judgement:
    """Return the verdict on a difference; `digits` formats an amount, without a sign.

    A difference below `margin` matters to nobody; an interval inside of it is "no difference".
    """
    if found is None:
        return Judgement("nothing")
    if found.half is None or found.sd is None:
        return Judgement("one-seed")
    if found.p is None:
        return Judgement("inconclusive", reason="identical")
    p = min(1.0, LOOKS * found.p) if found.adjusted_p is None else found.adjusted_p
    if p < LEVEL:
        kind: Kind = "better" if (found.mean < 0) == lower_is_better else "worse"
        return Judgement(kind, (digits(abs(found.mean)), _span(found, digits)))
    largest = abs(found.mean) + found.half
    if largest <= margin:
        return Judgement("same", (digits(largest),) if largest else ())
    seeds, fewest, most = needed_seeds_and_range(found)
    if seeds is None or fewest is None:
        too_few = found.questions_error and not _enough(MOST_SEEDS, abs(found.mean), 0.0, found)
        return Judgement("inconclusive", reason="questions" if too_few and seeds is None else "never")
    return Judgement("inconclusive", (), "open" if most is None else "", seeds, fewest, most)


def _span(found: PairedDifference, digits: Callable[[float], str]) -> str:
    """`± 0.014`; for a share `[1.2, 3.4]`, which stays on its scale."""
    assert found.half is not None
    if found.interval is None:
        return f"± {digits(found.half)}"
    low, high = sorted(end if found.mean > 0 else -end for end in found.interval)
    return f"[{digits(max(0.0, low))}, {digits(high)}]"


@lru_cache(4_096)
def needed_seeds_and_range(found: PairedDifference) -> tuple[int | None, int | None, int | None]:
    """Seeds that would settle it four times in five, if the difference is as large as observed, and a 90 % range.

    The range is that of the standardized difference, from the noncentral t distribution: after three seeds the noise
    may be half of what it seems, or six times as much. Its upper end is None if the difference may be zero, or so
    small that more than `MOST_SEEDS` would be needed.
    """
    if not found.mean or found.sd is None or not (found.sd or found.questions_error):
        return None, None, None
    error = math.hypot(found.sd / math.sqrt(found.n), found.questions_error)
    size = abs(found.mean)
    low, high = noncentrality_interval(size / error, found.n - 1, RANGE)
    most = _seeds_for(low * error, found) if low > 0 else None
    return _seeds_for(size, found), _seeds_for(high * error, found), most


def _seeds_for(size: float, found: PairedDifference) -> int | None:
    """The fewest seeds with the power to show a difference of that size; None above `MOST_SEEDS`."""
    assert found.sd is not None
    sd, more = found.sd, range(found.n + 1, MOST_SEEDS + 1)
    if not more or not _enough(MOST_SEEDS, size, sd, found):
        return None
    return more[bisect_left(more, True, key=lambda n: _enough(n, size, sd, found))]


def _enough(n: int, size: float, sd: float, found: PairedDifference) -> bool:
    """Return whether so many seeds show such a difference four times in five, if nothing else is significant."""
    spread, questions = sd / math.sqrt(n), found.questions_error
    needed = math.hypot(t_quantile(1 - found.level, n - 1) * spread, normal_quantile(1 - found.level) * questions)
    chance = t_quantile(2 * POWER - 1, n - 1) * math.hypot(spread, questions)
    return needed + chance <= size


@cache
def detectable_difference(seeds: int, variants: int) -> float:
    """Return the difference of one variant on the primary measure, in standard deviations of its paired difference,
    that a study of at least two seeds detects with the chance `POWER`; `variants` include the baseline, and nothing
    else differs. All other measures together have the rest of the level, so their number does not matter.
    """
    t = t_quantile(1 - LEVEL / LOOKS * PRIMARY / (variants - 1), seeds - 1)
    return noncentrality_interval(t, seeds - 1, 2 * POWER - 1)[1] / math.sqrt(seeds)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(200)


def noncentral_t_cdf(t: float, df: int, noncentralities: FloatArray) -> FloatArray:
    """Return (n,) P(T < t) of noncentral t distributions, to 1e-3: a normal one averaged over possible sds."""
    sds, density = _possible_sds(df)
    return np.asarray(_normal_cdf(t * sds - noncentralities[:, None]) @ density)


@lru_cache(64)
def _possible_sds(df: int) -> tuple[FloatArray, FloatArray]:
    """Return observed sds, in units of the true one, and the probability of each."""
    low, high = math.log(df) - 30 / df - 10 / math.sqrt(df), math.log(df) + 12 / math.sqrt(df)
    x = low + (high - low) / 2 * (_NODES + 1)  # log of a chi-square variable: its density is smooth for every df
    log_density = df / 2 * x - np.exp(x) / 2
    density = _WEIGHTS * np.exp(log_density - log_density.max())
    likely = density > 1e-12 * density.sum()
    return np.exp(x[likely] / 2) / math.sqrt(df), density[likely] / density[likely].sum()


_ERF = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)


def _normal_cdf(z: FloatArray) -> FloatArray:
    """P(Z < z), to 1e-7 (Abramowitz & Stegun 7.1.26)."""
    size = np.abs(z) / math.sqrt(2)
    x = 1 / (1 + 0.3275911 * size)
    tail: FloatArray = x * _ERF[0]
    for coefficient in _ERF[1:]:
        tail = (tail + coefficient) * x
    tail = tail * np.exp(-size * size) / 2
    return np.where(z < 0, tail, 1 - tail)


def noncentrality_interval(t: float, df: int, confidence: float) -> tuple[float, float]:
    """The confidence interval of a noncentrality parameter, from an observed t of at least 0."""
    tails = np.array([(1 + confidence) / 2, (1 - confidence) / 2])
    low, high = np.full(2, -10.0), np.full(2, 4 * t + 10.0)
    for _ in range(24):
        middle = (low + high) / 2
        further = noncentral_t_cdf(t, df, middle) > tails
        low, high = np.where(further, middle, low), np.where(further, high, middle)
    return float(high[0]), float(high[1])


def _sign_flips(differences: Sequence[float]) -> float:
    """The share of all 2^n sign flips (65,536 drawn ones if there are more) that end as far from zero."""
    sums = np.abs(_signs(len(differences)) @ np.asarray(differences))
    return float(np.mean(sums >= sums[0] * (1 - 1e-12)))


@lru_cache(2)  # the measures of a study have the same number of seeds, and drawing the signs takes longest
def _signs(n: int) -> FloatArray:
    """Return ±1 signs as (flips, n); the first row is all +1."""
    if n <= EXACT_FLIPS:
        return np.asarray(1.0 - 2.0 * (np.arange(2**n)[:, None] >> np.arange(n) & 1), dtype=np.float64)
    drawn = np.random.default_rng(n).choice([-1.0, 1.0], size=(2**EXACT_FLIPS, n))
    drawn[0] = 1.0
    return drawn


def _correlation(a: Sequence[float], b: Sequence[float]) -> float | None:
    if len(a) < 3 or min(a) == max(a) or min(b) == max(b):
        return None
    return float(np.corrcoef(a, b)[0, 1])
