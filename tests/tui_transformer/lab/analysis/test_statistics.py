"""Statistics over seeds: scipy is the oracle, and the error rates that are promised are tried on drawn studies."""

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui_transformer.lab.analysis import statistics
from tui_transformer.lab.analysis.statistics import (
    LEVEL,
    LOOKS,
    PRIMARY,
    SeedScores,
    against_baseline,
    cdf_of_absolute_t,
    holm,
    judge,
    mean_of,
    needed_seeds_and_range,
    noncentral_t_cdf,
    t_quantile,
)
from tui_transformer.lab.analysis.verdict import judgement_text

SEEDS = st.integers(2, 9)


def scores(values):
    return dict(enumerate(values))


def paired(ours, baseline, **how):
    return statistics.paired_difference(*(SeedScores(tuple(one.items()), **how) for one in (ours, baseline)))


@pytest.mark.parametrize("df", [1, 2, 3, 4, 5, 7, 8, 19, 40, 999])
def test_the_t_distribution_is_scipys(df):
    stats = pytest.importorskip("scipy.stats")
    for t in (0.0, 1e-6, 0.3, 1.0, 2.5, 12.7, 300.0):
        assert cdf_of_absolute_t(t, df) == pytest.approx(
            1 - 2 * stats.t.sf(t, df), abs=1e-10
        )  # theirs is off by 3e-11 at 1e-6
        assert cdf_of_absolute_t(-t, df) == cdf_of_absolute_t(t, df)
    for confidence in (0.5, 0.6, 0.95, 0.99, 0.9999):
        assert t_quantile(confidence, df) == pytest.approx(stats.t.ppf(0.5 + confidence / 2, df), rel=1e-9)


@given(st.lists(st.floats(-50, 50), min_size=2, max_size=9).filter(lambda v: np.std(v) > 1e-6))
def test_interval_of_a_mean_is_scipys(values):
    stats = pytest.importorskip("scipy.stats")
    found, n = mean_of(values), len(values)
    low, high = stats.t.interval(0.95, n - 1, loc=np.mean(values), scale=stats.sem(values))
    assert (found.mean - found.half, found.mean + found.half) == pytest.approx((low, high), abs=1e-9)
    assert found.sd == pytest.approx(np.std(values, ddof=1), abs=1e-9)


@settings(deadline=None)  # a busy machine is no fault
@given(st.data(), SEEDS)
def test_paired_p_and_interval_are_scipys(data, n):
    stats = pytest.importorskip("scipy.stats")
    column = st.lists(st.floats(-5, 5), min_size=n, max_size=n)
    a, b = np.array(data.draw(column)), np.array(data.draw(column))
    if np.std(a - b) < 1e-6:
        return
    found, theirs = paired(scores(a), scores(b)), stats.ttest_rel(a, b)
    interval = theirs.confidence_interval(0.95)
    assert found.p == pytest.approx(theirs.pvalue, abs=1e-9)
    assert (found.mean - found.half, found.mean + found.half) == pytest.approx(
        (interval.low, interval.high), rel=1e-7, abs=1e-9
    )


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=9))
def test_sign_flip_p_is_scipys_permutation_test(values):
    stats = pytest.importorskip("scipy.stats")
    values = [round(value * 1024) / 1024 for value in values]  # their sums are exact: equal ones stay equal
    theirs = stats.permutation_test(
        (values,), np.mean, permutation_type="samples", n_resamples=np.inf, alternative="two-sided"
    )
    assert paired(scores(values), scores([0.0] * len(values))).sign_flip_p == pytest.approx(theirs.pvalue)


@pytest.mark.parametrize(("n", "smallest"), [(3, 0.25), (5, 0.0625), (8, 0.0078125)])
def test_the_smallest_sign_flip_p_is_the_one_of_the_table(n, smallest):
    assert paired(scores([1.0 + i / 100 for i in range(n)]), scores([0.0] * n)).sign_flip_p == smallest


def test_sign_flips_of_many_seeds_are_drawn_and_repeat():
    values = np.random.default_rng(1).normal(0.3, 1, 20)
    exactly = paired(scores(values[:16]), scores([0.0] * 16)).sign_flip_p
    drawn = paired(scores(values), scores([0.0] * 20)).sign_flip_p
    assert drawn == paired(scores(values), scores([0.0] * 20)).sign_flip_p
    assert 0 < drawn <= 1
    assert 0 < exactly <= 1


@given(st.dictionaries(st.text(max_size=3), st.floats(0, 1), min_size=1, max_size=8), st.floats(0.001, 0.5))
def test_holm_rejects_what_the_step_down_procedure_rejects(p, level):
    rejected, ordered = set(), sorted(p, key=lambda name: p[name])
    for rank, name in enumerate(ordered):
        if p[name] * (len(p) - rank) > level:
            break
        rejected.add(name)
    assert {name for name, value in holm(p, dict.fromkeys(p, 1.0)).items() if value <= level} == rejected


@pytest.mark.parametrize("n", [3, 5, 8])
def test_the_interval_covers_the_truth_95_times_in_100(n):
    drawn = np.random.default_rng(n).normal(2.0, 0.7, (10_000, n))
    covered = sum(abs(found.mean - 2.0) <= found.half for found in map(mean_of, drawn.tolist()))
    assert 9_300 <= covered <= 9_700


def by_seed(scored):
    return SeedScores(tuple(scored.items()))


def beside(variants, baseline):
    """Every other variant against the baseline, in one measure."""
    others = {name: by_seed(scored) for name, scored in variants.items() if name != baseline}
    return against_baseline({"loss": others}, {"loss": by_seed(variants[baseline])}, "loss")["loss"]


def study(draws, n, effects, noise=1.0):
    """Verdicts of a study: runs of one seed share what the seed does, and each has noise of its own."""
    shared = draws.normal(0, 3, n)
    variants = {name: scores(shared + draws.normal(effect, noise, n)) for name, effect in effects.items()}
    return {name: judge(p, lower_is_better=True) for name, p in beside(variants, "base").items()}


@pytest.mark.parametrize("n", [3, 5, 8])
def test_six_variants_without_effect_get_a_false_verdict_in_at_most_a_study_in_twenty(n):
    """The rule "some |t| above its corrected quantile" on many studies at once, and `judge` on the first of them."""
    draws = np.random.default_rng(n)
    baseline, variants = draws.normal(size=(100_000, 1, n)), draws.normal(size=(100_000, 6, n))
    differences = variants - baseline
    t = differences.mean(2) / (differences.std(2, ddof=1) / math.sqrt(n))
    false = (np.abs(t) > t_quantile(1 - LEVEL / LOOKS / 6, n - 1)).any(1)
    assert false.mean() <= LEVEL / LOOKS
    assert false[:120].any()
    for i in range(120):
        scored = {"base": scores(baseline[i, 0])} | {name: scores(variants[i, k]) for k, name in enumerate("abcdef")}
        verdicts = [judge(found, lower_is_better=True).kind for found in beside(scored, "base").values()]
        assert any(kind in ("better", "worse") for kind in verdicts) == false[i]


@pytest.mark.parametrize("studies", [100, pytest.param(1_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("n", "size", "share"), [(3, 14, 0.90), (5, 5, 0.95)])
def test_a_large_difference_is_called(n, size, share, studies):
    """In standard deviations of the paired difference; five idle variants beside it ask for their correction."""
    draws, effects = np.random.default_rng(n), dict.fromkeys(["base", *"abcde"], 0.0) | {"worse": float(size)}
    called = sum(study(draws, n, effects, noise=1 / math.sqrt(2))["worse"].kind == "worse" for _ in range(studies))
    assert called >= studies * share


def test_pairing_takes_only_seeds_that_both_have():
    found = paired({1: 1.0, 2: 2.0, 4: 9.0}, {2: 1.0, 1: 0.5, 3: 7.0})
    assert (found.n, found.mean) == (2, 0.75)
    assert paired({1: 1.0}, {2: 1.0}) is None
    assert paired({1: math.nan, 2: math.inf, 3: 1e200}, {1: 1.0, 2: 1.0, 3: 1.0}) is None


def test_pairing_removes_what_the_seed_does():
    draws = random.Random(1)
    seed_effect = [draws.gauss(0, 1) for _ in range(5)]
    base = scores(seed_effect)
    found = paired(scores([value + 0.1 + draws.gauss(0, 0.01) for value in seed_effect]), base)
    assert found.correlation > 0.99
    assert found.half < 0.1 < mean_of(seed_effect).half


@pytest.mark.parametrize(
    ("ours", "base", "kind", "text"),
    [
        ({1: 1.0}, {1: 2.0}, "one-seed", "one seed: inconclusive"),
        ({1: 1.0}, {2: 2.0}, "nothing", "no seed in common: inconclusive"),
        ({1: 1.00, 2: 1.01, 3: 1.02}, {1: 2.00, 2: 2.01, 3: 2.03}, "better", "better by 1.003 ± 0.014"),
        ({1: 2.00, 2: 2.01, 3: 2.03}, {1: 1.00, 2: 1.01, 3: 1.02}, "worse", "worse by 1.003 ± 0.014"),
        ({1: 1.0, 2: 2.0}, {1: 1.0, 2: 2.0}, "same", "no difference at all"),
        ({1: 1.001, 2: 1.999, 3: 1.0}, {1: 1.0, 2: 2.0, 3: 1.0}, "same", "no difference larger than 0.002"),
        ({1: 1.1, 2: 1.8, 3: 1.2}, {1: 1.0, 2: 2.0, 3: 1.0}, "inconclusive", "there may be no difference; if"),
        ({1: 1.1, 2: 1.8, 3: 1.1}, {1: 1.0, 2: 2.0, 3: 1.0}, "inconclusive", "1,000 seeds could not detect one"),
        ({1: 1.1, 2: 1.3, 3: 1.2}, {1: 1.0, 2: 1.11, 3: 1.0}, "inconclusive", "(range 4 to 54)"),
        ({1: 1.5, 2: 2.5}, {1: 1.0, 2: 2.0}, "inconclusive", "exactly the same for every seed"),
    ],
)
def test_verdicts_in_words(ours, base, kind, text):
    found = judge(paired(ours, base), lower_is_better=True, margin=0.01)
    assert found.kind == kind and text in judgement_text(found)


def test_higher_is_better_of_a_score():
    found = paired({1: 31.0, 2: 31.1, 3: 31.2}, {1: 25.0, 2: 25.2, 3: 25.1})
    assert judge(found, lower_is_better=False).kind == "better"
    assert judge(found, lower_is_better=True).kind == "worse"


def test_a_difference_that_alone_would_count_does_not_among_six():
    base = dict.fromkeys((1, 2, 3), 0.0)
    idle = {name: {1: 1.0 + i, 2: -1.0, 3: -0.2} for i, name in enumerate("abcde")}
    found = beside({"base": base, "real": {1: 0.9, 2: 1.1, 3: 1.3}, **idle}, "base")["real"]
    assert LOOKS * found.p < LEVEL < found.adjusted_p
    assert found.comparison_count == 6
    assert judge(found, lower_is_better=True).kind == "inconclusive"


def test_the_seeds_that_are_asked_for_settle_it_four_times_in_five():
    draws = np.random.default_rng(3)
    differences = draws.normal(0, 1, 5)
    wanted = (differences - differences.mean()) / differences.std(ddof=1) + 0.8  # sd 1, mean 0.8
    n, fewest, most = needed_seeds_and_range(paired(scores(wanted), scores([0.0] * 5)))
    drawn = [paired(scores(draws.normal(0.8, 1, n)), scores([0.0] * n)) for _ in range(1_000)]
    assert 0.75 <= sum(LOOKS * found.p < LEVEL for found in drawn) / 1_000 <= 0.88
    assert fewest < n and most is None


@pytest.mark.parametrize("df", [1, 2, 4, 9, 50])
def test_the_noncentral_t_distribution_is_scipys(df):
    stats = pytest.importorskip("scipy.stats")
    for t in (0.5, 2.0, 8.0):
        for shift in (-2.0, 0.0, 1.0, 6.0):
            assert noncentral_t_cdf(t, df, np.array([shift]))[0] == pytest.approx(stats.nct.cdf(t, df, shift), abs=2e-3)


def test_equal_differences_are_not_certain():
    found = paired({1: 1.5, 2: 2.5, 3: 1.75}, {1: 1.0, 2: 2.0, 3: 1.25})
    assert (found.p, found.sd) == (None, 0.0)
    assert judge(found, lower_is_better=True).kind == "inconclusive"
    rounded = paired({1: 0.1 + 0.2, 2: 0.3, 3: 0.3}, {1: 0.1, 2: 0.1, 3: 0.1})  # 0.1 + 0.2 is not quite 0.3
    assert rounded.p is None


def test_one_procedure_corrects_all_measures_and_begins_with_the_primary():
    draws = np.random.default_rng(5)
    base = scores(draws.normal(size=3))

    def variant(effect):
        return SeedScores(tuple((seed, value + effect + draws.normal(0, 0.01)) for seed, value in base.items()))

    study = {name: {v: variant(0.0) for v in "ab"} for name in ("loss", "recall", "rhyme")}
    study["loss"]["a"] = variant(5.0)
    baseline = dict.fromkeys(study, SeedScores(tuple(base.items())))
    found = against_baseline(study, baseline, "loss")
    assert {p.comparison_count for row in found.values() for p in row.values()} == {6}
    assert found["loss"]["a"].adjusted_p == pytest.approx(LOOKS * found["loss"]["a"].p / (PRIMARY / 2))
    assert found["recall"]["a"].level == pytest.approx(LEVEL / LOOKS * (1 - PRIMARY) / 4)
    assert against_baseline(study, baseline, "bleu")["recall"]["a"].level == pytest.approx(LEVEL / LOOKS / 6)


def rejected_by_hand(p, weights, level):
    """Holm's weighted procedure as it is written in the paper."""
    left, rejected = dict(p), set()
    while left:
        name = min(left, key=lambda one: left[one] / weights[one])
        if left.pop(name) / weights[name] > level / (weights[name] + sum(weights[other] for other in left)):
            break
        rejected.add(name)
    return rejected


@given(
    st.dictionaries(st.text(max_size=3), st.tuples(st.floats(0, 0.2), st.floats(0.01, 1)), min_size=1, max_size=8),
    st.floats(0.01, 0.2),
)
def test_weighted_holm_rejects_what_the_step_down_procedure_rejects(drawn, level):
    p, weights = ({name: pair[i] for name, pair in drawn.items()} for i in (0, 1))
    adjusted = holm(p, weights)
    if any(math.isclose(value, level, rel_tol=1e-9) for value in adjusted.values()):
        return
    assert {name for name, value in adjusted.items() if value <= level} == rejected_by_hand(p, weights, level)


@pytest.mark.parametrize("places", [5, 20, 1_000])
def test_the_interval_of_equal_shares_is_wilsons(places):
    binomtest = pytest.importorskip("scipy.stats").binomtest
    for right in (0, places // 2, places):
        theirs = binomtest(right, places).proportion_ci(method="wilson")
        found = mean_of([right / places] * 3, share=True, places=places).interval
        assert found == pytest.approx((theirs.low, theirs.high), abs=1e-9)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=6), st.one_of(st.none(), st.integers(1, 5_000)))
def test_intervals_of_shares_stay_on_their_scale_and_hold_their_mean(values, places):
    found = mean_of(values, share=True, places=places)
    low, high = found.interval or (found.mean, found.mean)
    assert 0 <= low <= found.mean <= high <= 1
    difference = paired(scores(values), scores([0.5] * len(values)), share=True, places=places)
    low, high = difference.interval or (difference.mean, difference.mean)
    assert -1 <= low <= high <= 1


def test_the_interval_of_a_share_is_the_t_interval_where_that_is_narrow():
    values = [0.50, 0.51, 0.49]
    found = mean_of(values, share=True)
    assert found.interval == pytest.approx((found.mean - found.half, found.mean + found.half), abs=2e-3)


def test_few_questions_and_two_seeds_are_not_certain():
    found = paired({1: 1.0, 2: 1.0}, {1: 0.9, 2: 0.9}, share=True, places=50)
    assert found.p > 0.01
    assert judge(found, lower_is_better=False).reason == "questions"
    assert paired({1: 1.0, 2: 1.0}, {1: 0.0, 2: 0.0}, share=True, places=500).p < 1e-6


def test_no_value_has_no_mean():
    with pytest.raises(ValueError, match="no value"):
        mean_of([])
