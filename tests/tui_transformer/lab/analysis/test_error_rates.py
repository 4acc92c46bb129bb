"""Error rates and power of verdicts, measured on simulated studies: the tables of docs/explanation/verdicts.md.

pytest -m slow -s tests/tui_transformer/lab/analysis/test_error_rates.py
"""

import math

import numpy as np
import pytest

from engine import capabilities
from engine.base.language import translate
from engine.config.toml import validate
from tests.tui_transformer.lab.analysis.studies import attention, standings
from tui_transformer.catalogues import catalogue
from tui_transformer.lab.analysis import statistics, verdict
from tui_transformer.lab.analysis.entry import LAST, read_entry
from tui_transformer.lab.analysis.power import power_sentence, similar_studies_sd
from tui_transformer.lab.analysis.statistics import (
    LEVEL,
    LOOKS,
    POWER,
    PairedDifference,
    SeedScores,
    against_baseline,
    detectable_difference,
    judge,
    needed_seeds_and_range,
)
from tui_transformer.lab.work.study import nest_keys

VARIANTS, MEASURES = 4, 5
MOST = 0.06  # of studies with a false verdict, noise of the simulation included
LATE = 150  # seeds that a simulated study follows advice to at most


def paired(ours, baseline, **how):
    return statistics.paired_difference(*(SeedScores(tuple(one.items()), **how) for one in (ours, baseline)))


@pytest.fixture(autouse=True)
def without_sign_flips(monkeypatch):
    """They take most of the time, and no verdict rests on them."""
    monkeypatch.setattr(statistics, "_sign_flips", lambda differences: None)
    statistics.paired_difference.cache_clear()
    yield
    statistics.paired_difference.cache_clear()


def noise(draws, kind, shape):
    return draws.normal(size=shape) if kind == "normal" else draws.standard_t(3, size=shape)


def judged(scores):
    """A study as the product judges it. `scores`: (measures, baseline and variants, seeds)."""
    study, baseline = {}, {}
    for measure, rows in enumerate(scores.tolist()):
        base, *variants = (SeedScores(tuple(enumerate(row))) for row in rows)
        baseline[f"m{measure}"], study[f"m{measure}"] = base, dict(enumerate(variants))
    return against_baseline(study, baseline, "m0")


def called(study):
    return any(found.adjusted_p < LEVEL for row in study.values() for found in row.values())


def told(study):
    """The seeds suggested by the primary measure's verdicts."""
    sizes = ((abs(found.mean), found) for found in study["m0"].values() if found.adjusted_p >= LEVEL)
    return [n for size, found in sizes if (n := statistics._seeds_for(size, found)) is not None]


def false_verdicts(kind, n, studies):
    """Shares of studies without any effect that get a false verdict: at once, and after following the advice once."""
    draws, once, twice = np.random.default_rng(n), 0, 0
    for i in range(studies):
        scores = noise(draws, kind, (MEASURES, VARIANTS + 1, n))
        found = judged(scores)
        wrong = called(found)
        once += wrong
        named = told(found)
        if not wrong and named:
            more = min(LATE, max(named) if i % 2 else min(named)) - n
            added = noise(draws, kind, (MEASURES, VARIANTS + 1, more))
            wrong = called(judged(np.concatenate([scores, added], axis=2)))
        twice += wrong
    return once / studies, twice / studies


def test_a_few_studies_of_noise_get_few_false_verdicts() -> None:
    once, twice = false_verdicts("normal", 3, 60)
    assert once <= twice <= 0.15  # four standard errors above the level


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["normal", "heavy-tailed"])
@pytest.mark.parametrize("n", [2, 3, 5])
def test_studies_of_noise_get_a_false_verdict_in_at_most_six_of_a_hundred(kind, n) -> None:
    once, twice = false_verdicts(kind, n, 4_000)
    print(f"\n| {kind} | {n} | {once:.1%} | {twice:.1%} |")
    assert once <= MOST and twice <= MOST


def test_the_verdict_is_the_one_that_the_rates_count() -> None:
    draws = np.random.default_rng(1)
    for _ in range(10):
        scores = draws.normal(size=(2, 3, 3))
        scores[0, 1] += 60
        for row in judged(scores).values():
            for found in row.values():
                verdict = judge(found, lower_is_better=True)
                assert (verdict.kind in ("better", "worse")) == (found.adjusted_p < LEVEL)
                if verdict.seeds is not None:
                    assert verdict.seeds == statistics._seeds_for(abs(found.mean), found)


def false_counts(questions, share, n, *, shared, studies):
    """The share of false verdicts on two equal variants that answer so many questions. Shared: alike in every seed."""
    draws, wrong = np.random.default_rng(questions + n), 0
    kept: dict[tuple, PairedDifference] = {}
    for _ in range(studies):
        right = draws.binomial(questions, share, size=(2, 1 if shared else n)).tolist()
        own, base = (tuple(row * n if shared else row) for row in right)
        if (own, base) not in kept:
            scores = (dict(enumerate(answered / questions for answered in row)) for row in (own, base))
            kept[own, base] = paired(*scores, share=True, places=questions)
        p = kept[own, base].p
        wrong += p is not None and LOOKS * p < LEVEL
    return wrong / studies


@pytest.mark.parametrize("n", [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (3, 5))])
@pytest.mark.parametrize(("questions", "share"), [(20, 0.9), (50, 0.98), (100, 0.98)])
def test_equal_variants_scored_by_few_questions_get_few_false_verdicts(questions, share, n) -> None:
    rates = [false_counts(questions, share, n, shared=shared, studies=3_000) for shared in (False, True)]
    print(f"\n| {questions} | {share:.0%} | {n} | {rates[0]:.1%} | {rates[1]:.1%} |")
    assert max(rates) <= MOST


def advice(d, n, studies):
    """The verdict on a study of one variant whose difference is d standard deviations."""
    draws = np.random.default_rng(round(100 * d) + n)
    verdicts, named, settled, open_ended, ranged, held = 0, [], 0, 0, 0, 0
    truth = statistics._seeds_for(d, PairedDifference(d, 0.0, 1, 1.0, p=0.5)) if d else None
    for _ in range(studies):
        values = draws.normal(d, 1, n)
        found = paired(dict(enumerate(values.tolist())), dict.fromkeys(range(n), 0.0))
        if LOOKS * found.p < LEVEL:
            verdicts += 1
            continue
        seeds, fewest, most = needed_seeds_and_range(found)
        open_ended += most is None
        if seeds is None:
            named.append(math.inf)
            continue
        named.append(seeds)
        ranged += fewest is not None
        held += fewest is not None and (most is None if truth is None else fewest <= truth <= (most or math.inf))
        more = np.concatenate([values, draws.normal(d, 1, seeds - n)]).tolist()
        again = paired(dict(enumerate(more)), dict.fromkeys(range(seeds), 0.0))
        settled += LOOKS * again.p < LEVEL
    low, middle, high = np.quantile(named, [0.1, 0.5, 0.9], method="nearest")
    waiting = studies - verdicts
    return {
        "at once": verdicts / studies,
        "told": (middle, low, high),
        "truth": truth,
        "may be none": open_ended / waiting,
        "range holds it": held / max(1, ranged),
        "settled": settled / waiting,
    }


def power(d, n, studies):
    """The share of studies that call the one variant worse which is, by d sd of its paired difference."""
    draws, found = np.random.default_rng(round(100 * d) + n), 0
    for _ in range(studies):
        scores = draws.normal(0, math.sqrt(0.5), (MEASURES, VARIANTS + 1, n))
        scores[0, 1] += d
        found += judge(judged(scores)["m0"][0], lower_is_better=True).kind == "worse"
    return found / studies


@pytest.mark.parametrize("n", [3, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 5, 10))])
def test_a_detectable_difference_is_called_worse_four_times_in_five(n) -> None:
    studies, d = 400 if n == 3 else 2_000, detectable_difference(n, VARIANTS + 1)
    chance = 4 * math.sqrt(POWER * (1 - POWER) / studies)  # four standard errors
    assert power(d, n, studies) == pytest.approx(POWER, abs=chance + 0.02)


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 3, 5, 10])
def test_the_power_of_a_usual_study(n) -> None:
    rates = [power(d, n, 2_000) for d in (1, 2, 5, 10)]
    print(f"\n| {n} | {' | '.join(f'{rate:.1%}' for rate in rates)} | {detectable_difference(n, VARIANTS + 1):.1f} |")
    assert rates == sorted(rates)
    assert all(
        rate < POWER + 0.04 for rate, d in zip(rates, (1, 2, 5, 10), strict=True) if d < detectable_difference(n, 5)
    )


def test_a_plan_gives_its_power_in_nats_where_earlier_studies_show_the_spread(tmp_path) -> None:
    attention(tmp_path)
    ran = read_entry(tmp_path / "att.global.s1").config
    asked = validate(nest_keys({**ran, "seed": 9}), "asked")
    compared = [s for s in standings(tmp_path).values() if s.difference(LAST) is not None]
    differences = [[own.last - base.last for own, base in pairs(s)] for s in compared]
    degrees = sum(len(row) - 1 for row in differences)
    sd = similar_studies_sd(tmp_path, asked)
    assert sd == pytest.approx(math.sqrt(sum(np.var(row) * len(row) for row in differences) / degrees), rel=1e-6)
    nats = LAST.format_value(detectable_difference(3, 4) * sd)
    assert f"this study has 80 % power to detect a difference of {nats} nats (" in power_sentence(3, 4, sd)
    assert "奈特" in translate(power_sentence(3, 4, sd), catalogue("zh"))
    assert power_sentence(1, 4) == power_sentence(3, 1) == ""
    assert similar_studies_sd(tmp_path, capabilities.with_value(asked, "train.steps", 7)) is None
    assert similar_studies_sd(tmp_path / "none", asked) is None


def pairs(standing):
    """The runs of a variant and its baseline that count, by seed."""
    base = standing.family.baseline.counted_runs
    return [(run, base[seed]) for seed, run in standing.group.counted_runs.items() if seed in base]


def test_most_studies_without_a_difference_are_told_that_there_may_be_none() -> None:
    found = advice(0.0, 3, 100)
    assert found["may be none"] > 0.85 and found["settled"] < 0.13


@pytest.mark.slow
@pytest.mark.parametrize("d", [0.0, 0.25, 0.5, 1.0, 2.0])
def test_the_suggested_seeds_compared_to_those_actually_needed(d) -> None:
    found = advice(d, 3, 4_000)
    middle, low, high = (f"{n:,.0f}" if n < math.inf else "> 1,000" for n in found["told"])
    truth = "none" if found["truth"] is None else f"{found['truth']:,}"
    shares = (f"{found[key]:.0%}" for key in ("at once", "may be none", "range holds it", "settled"))
    print(f"\n| {d:g} | {middle} ({low} to {high}) | {truth} | {' | '.join(shares)} |")
    assert found["range holds it"] >= 0.85
    assert found["settled"] <= LEVEL + 0.01 if d == 0 else True
    assert found["may be none"] > 0.85 if d == 0 else True


def test_a_study_of_runs_is_judged_by_the_function_that_the_rates_are_of(tmp_path, monkeypatch) -> None:
    attention(tmp_path)
    asked = []
    monkeypatch.setattr(verdict, "against_baseline", lambda *args: asked.append(against_baseline(*args)) or asked[-1])
    found = standings(tmp_path)["win16"]
    for measure in found.family.measures:
        assert found.difference(measure) == asked[0][measure.key].get(found.path)
    assert len(asked) == 1 and found.verdict() == "worse"
    one, other = (read_entry(tmp_path / f"att.{name}.s1") for name in ("win16", "global"))
    assert verdict.verdict(one, other) == "one seed: inconclusive" and len(asked) == 2
