"""Alarms speak on the founding reports' mistakes and are silent on honest scores."""

import lzma
import math
from collections import Counter

import numpy as np
import pytest

from engine.config.tasks import TASKS
from engine.evaluation.alarms import (
    check_decoding_matches_accuracy,
    check_learning,
    check_majority,
    check_plausible,
    check_repeated_sample,
)
from engine.runs.records import DataFacts, EvaluationScores, MajorityFacts
from engine.runs.verdict import NOT_LEARNING, OK, SUSPICIOUS
from tests import repetitive_texts
from tui_transformer.lab.records.badges import badge

FLOOR = {"floor": {"nats_per_char": 0.357, "se": 0.004}, "unigram": 3.0}
NO_FLOOR = {"floor": None, "plausible": None, "unigram": 3.347}
TEXT = "next-token"


def verdict(loss: float, facts: dict, kind: str = TEXT, **more: float) -> str | None:
    found = check_plausible(EvaluationScores.create(loss=loss, **more), DataFacts.read(facts), TASKS[kind], step=1)
    return found and found.verdict


def test_below_the_floor_by_more_than_four_standard_errors_is_implausible() -> None:
    assert verdict(0.357 - 0.0159, FLOOR) == "ok"
    assert verdict(0.357 - 0.0161, FLOOR) == "IMPLAUSIBLE"
    assert verdict(0.9, FLOOR, excess=-0.02) == "IMPLAUSIBLE"  # over the same characters, where that is known


def test_without_a_floor_a_bound_of_the_corpus_speaks() -> None:
    assert verdict(1.1, NO_FLOOR | {"plausible": 1.2}) == "IMPLAUSIBLE"
    assert verdict(0.0297, NO_FLOOR | {"plausible": 1.2}) == "IMPLAUSIBLE"  # the report's validation loss
    assert verdict(1.46, NO_FLOOR | {"plausible": 1.2}) == "ok"  # the best published


def test_a_low_loss_on_a_text_without_a_known_bound_is_suspicious_and_excludes_nothing() -> None:
    assert verdict(0.0297, NO_FLOOR) == SUSPICIOUS and not badge(SUSPICIOUS).void
    assert verdict(1.46, NO_FLOOR) == "ok"


@pytest.mark.parametrize("leak_free", [True, False])
def test_the_alarm_says_that_the_leak_probe_passed_only_if_it_did(leak_free: bool) -> None:
    record, more = EvaluationScores(loss=0.5), {"task": TASKS[TEXT], "step": 1}
    found = check_plausible(record, DataFacts.read(NO_FLOOR), leak_free=leak_free, **more)
    assert found is not None and ("the leak probe passed" in found.why) is leak_free
    assert "suspiciously low" in found.why and "Repetitive text" in found.why


@pytest.mark.parametrize("make", [repetitive_texts.chinese, repetitive_texts.log, repetitive_texts.code])
def test_simple_chinese_logs_and_code_never_get_a_red_badge(make) -> None:
    """At the loss of a compressor, which a trained model beats, at half and at a tenth of it."""
    text = make()
    held_out = text[len(text) * 9 // 10 :]
    known = text[: len(text) * 9 // 10].encode()
    more = len(lzma.compress(text.encode())) - len(lzma.compress(known))  # bytes
    compressed = more * 8 * math.log(2) / len(held_out)  # nats per character
    counts = np.array(list(Counter(held_out).values())) / len(held_out)
    facts = {"floor": None, "plausible": None, "unigram": float(-(counts * np.log(counts)).sum())}
    found = [verdict(compressed * share, facts) for share in (1.0, 0.5, 0.1)]
    assert found[-1] == SUSPICIOUS  # the bound of natural text would have called it implausible
    assert not any(badge(name).void for name in found if name not in (None, "ok"))


def test_conditional_and_two_sided_tasks_have_no_bound() -> None:
    assert verdict(0.0, FLOOR, "copy") is None
    assert verdict(0.01, FLOOR, "masked") is None
    assert verdict(math.nan, FLOOR) == "ok"
    assert check_plausible(EvaluationScores(), DataFacts.read(FLOOR), TASKS[TEXT], step=1) is None


@pytest.mark.parametrize(
    ("right", "best", "texts", "expected"),
    [
        (1.0, 0.913, 300, "IMPLAUSIBLE"),
        (0.999, 0.89, 2_000, "IMPLAUSIBLE"),
        (0.95, 0.89, 2_000, "IMPLAUSIBLE"),  # 6 %, and four standard errors are at most 3.6 %
        (0.92, 0.89, 2_000, "ok"),
        (0.884, 0.89, 2_000, "ok"),
        (math.nan, 0.89, 2_000, "ok"),
        (1.0, 0.9, 150, None),  # the best reader gets 15 wrong: that a model gets them right may be luck
        (1.0, 1.0, 2_000, None),
    ],
)
def test_no_classifier_beats_the_best_reader_by_more_than_luck(right, best, texts, expected) -> None:
    facts = {"unigram": 1.6, "best_reader": {"accuracy": best, "expected": 0.8896, "unordered": 0.72}}
    record = EvaluationScores.create(loss=0.3, accuracy=right, texts=texts)
    found = check_plausible(record, DataFacts.read(facts), TASKS["classification"], step=1, leak_free=True)
    assert (found and found.verdict) == expected
    if expected == "IMPLAUSIBLE":
        assert f"{right:.1%} is above {best:.1%}" in found.why and "the texts contain their class" in found.why
        assert found.value == pytest.approx(best - right) and "leak probe" not in found.why


def test_four_standard_errors_are_enough_even_for_a_reader_that_is_as_good_but_independent() -> None:
    """The worst case for the bound: wherever exactly one of the two is right, it is the model half of the time."""
    draw, alarms = np.random.default_rng(1), 0
    for _ in range(2_000):
        only_one = draw.random(500) < 0.2
        wins = only_one & (draw.random(500) < 0.5)
        best, model = (0.8 * 500 - only_one.sum() / 2 + side.sum() for side in (only_one & ~wins, wins))
        facts = {"best_reader": {"accuracy": best / 500, "expected": 0.8, "unordered": 0.7}}
        record = EvaluationScores.create(accuracy=model / 500, texts=500)
        found = check_plausible(record, DataFacts.read(facts), TASKS["classification"], step=1)
        alarms += found.verdict != OK
    assert alarms == 0


SENTENCES = {"validation": {"pairs": 500, "tokens": 5_000}}
QUESTIONS = {"validation": {"questions": 500, "tokens": 500}}


@pytest.mark.parametrize(
    ("splits", "accuracy", "scores", "expected"),
    [
        (SENTENCES, 0.997, {"translated": 500, "exact_match": 0.0}, SUSPICIOUS),  # labels that are not shifted
        (SENTENCES, 0.997, {"translated": 100, "exact_match": 0.0}, SUSPICIOUS),  # the first hundred alone
        (SENTENCES, 0.997, {"translated": 500, "exact_match": 0.97}, OK),
        (SENTENCES, 0.997, {"translated": 500, "exact_match": 0.4}, SUSPICIOUS),
        (SENTENCES, 0.9, {"translated": 500, "exact_match": 0.0}, None),  # a wrong token in each sentence
        (SENTENCES, 0.997, {"exact_match": 0.0}, None),
        (QUESTIONS, 2 / 3, {"questions": 500, "exact_match": 0.0}, None),  # both marks right, no answer: knows nothing
        (QUESTIONS, 0.99, {"questions": 500, "exact_match": 0.0}, SUSPICIOUS),
        ({}, 0.997, {"translated": 500, "exact_match": 0.0}, None),
    ],
)
def test_right_tokens_make_right_answers(splits, accuracy: float, scores: dict, expected: str | None) -> None:
    found = check_decoding_matches_accuracy(
        EvaluationScores.create(accuracy=accuracy, **scores), DataFacts.read({"splits": splits}), step=9
    )
    assert (found and found.verdict) == expected
    if expected == SUSPICIOUS:
        assert f"{accuracy:.1%} of the tokens are right" in found.why and "decoding differs" in found.why


def test_no_better_than_counting_is_not_learning_once_warm_up_is_over() -> None:
    def learning(loss: float, step: int) -> str | None:
        found = check_learning(EvaluationScores(loss=loss), DataFacts(unigram=6.6), warmup=100, step=step)
        return found and found.verdict

    assert learning(6.82, 149) is None
    assert learning(6.82, 150) == "NOT-LEARNING"  # the translation report's loss after 30 epochs
    assert learning(6.59, 150) == "NOT-LEARNING"
    assert learning(6.5, 150) == "ok"


def sample(step: int, text: str, chance: float) -> dict:
    return {"step": step, "text": text, "chances": [chance] * len(text)}


COMMON = "and the king hath sent me to your grace, and "


def test_two_samples_that_share_42_unlikely_characters_are_flagged() -> None:
    """The report's two samples at temperature 0.9 share 42 characters, whose chance was e^-61."""
    chance = math.exp(-61 / 42)
    a = sample(60, "ROMEO: what is that?" + COMMON[:42] + "then", chance)
    b = sample(120, "I know not, sir: " + COMMON[:42] + "so", chance)
    found = check_repeated_sample(b, [a, b], step=120)
    assert found.verdict == "SAME-TEXT" and "42 characters" in found.why and found.value == pytest.approx(61, abs=3)


def test_text_that_the_model_knows_by_heart_is_no_wonder() -> None:
    a, b = sample(60, COMMON, 0.95), sample(120, COMMON, 0.95)
    assert check_repeated_sample(b, [a, b], step=120).verdict == "ok"
    greedy = sample(180, COMMON, 1.0)
    assert check_repeated_sample(greedy, [a, greedy], step=180).verdict == "ok"


def test_a_sample_is_not_compared_with_itself_nor_without_chances() -> None:
    a = sample(60, COMMON, 0.2)
    assert check_repeated_sample(a, [a], step=60).verdict == "ok"
    assert check_repeated_sample({"step": 1, "text": COMMON}, [a], step=1) is None


MAJORITY = DataFacts(majority=MajorityFacts(answer="London", right=25, of=500))


@pytest.mark.parametrize(
    ("share", "verdict"), [(0.0, NOT_LEARNING), (0.05, NOT_LEARNING), (0.066, NOT_LEARNING), (0.08, OK)]
)
def test_answers_must_be_better_than_always_the_same_one(share: float, verdict: str) -> None:
    """Of 500, 25 are right with London: 5.0 %, and two standard errors are 1.9 %."""
    found = check_majority(EvaluationScores(exact_match=share), MAJORITY, step=9)
    assert found.verdict == verdict and found.value == pytest.approx(share - 0.05)
    if verdict == NOT_LEARNING:
        assert "always answering 'London' would get 5.0%" in found.why


def test_no_majority_and_no_answers_are_no_verdict() -> None:
    assert check_majority(EvaluationScores(exact_match=0.0), DataFacts(), step=9) is None
    assert check_majority(EvaluationScores(loss=1.0), MAJORITY, step=9) is None
    low, facts = EvaluationScores(loss=0.001), DataFacts(unigram=4.0)
    assert check_plausible(low, facts, TASKS["question-answer"], step=9) is None
