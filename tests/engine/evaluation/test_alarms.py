"""Alarms speak on the founding reports' mistakes and are silent on honest scores."""

import lzma
import math
from collections import Counter

import numpy as np
import pytest

from engine.config.tasks import TASKS
from engine.evaluation.alarms import implausible, majority_only, not_learning, same_text
from engine.evaluation.verdict import NOT_LEARNING, OK, SUSPICIOUS
from engine.runs.records import DataFacts, MajorityFacts, Scores
from tests import repetitive_texts
from tui_transformer.lab.records.badges import badge

FLOOR = {"floor": {"nats_per_char": 0.357, "se": 0.004}, "unigram": 3.0}
NO_FLOOR = {"floor": None, "plausible": None, "unigram": 3.347}
TEXT = "next-token"


def verdict(loss: float, facts: dict, kind: str = TEXT, **more: float) -> str | None:
    found = implausible(Scores.made(loss=loss, **more), DataFacts.read(facts), TASKS[kind], step=1)
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
    record, more = Scores(loss=0.5), {"task": TASKS[TEXT], "step": 1}
    found = implausible(record, DataFacts.read(NO_FLOOR), leak_free=leak_free, **more)
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
    assert implausible(Scores(), DataFacts.read(FLOOR), TASKS[TEXT], step=1) is None


def test_no_better_than_counting_is_not_learning_once_warm_up_is_over() -> None:
    def learning(loss: float, step: int) -> str | None:
        found = not_learning(Scores(loss=loss), DataFacts(unigram=6.6), warmup=100, step=step)
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
    found = same_text(b, [a, b], step=120)
    assert found.verdict == "SAME-TEXT" and "42 characters" in found.why and found.value == pytest.approx(61, abs=3)


def test_text_that_the_model_knows_by_heart_is_no_wonder() -> None:
    a, b = sample(60, COMMON, 0.95), sample(120, COMMON, 0.95)
    assert same_text(b, [a, b], step=120).verdict == "ok"
    greedy = sample(180, COMMON, 1.0)
    assert same_text(greedy, [a, greedy], step=180).verdict == "ok"


def test_a_sample_is_not_compared_with_itself_nor_without_chances() -> None:
    a = sample(60, COMMON, 0.2)
    assert same_text(a, [a], step=60).verdict == "ok"
    assert same_text({"step": 1, "text": COMMON}, [a], step=1) is None


MAJORITY = DataFacts(majority=MajorityFacts(answer="London", right=25, of=500))


@pytest.mark.parametrize(
    ("share", "verdict"), [(0.0, NOT_LEARNING), (0.05, NOT_LEARNING), (0.066, NOT_LEARNING), (0.08, OK)]
)
def test_answers_must_be_better_than_always_the_same_one(share: float, verdict: str) -> None:
    """Of 500, 25 are right with London: 5.0 %, and two standard errors are 1.9 %."""
    found = majority_only(Scores(exact_match=share), MAJORITY, step=9)
    assert found.verdict == verdict and found.value == pytest.approx(share - 0.05)
    if verdict == NOT_LEARNING:
        assert "always answering 'London' would get 5.0%" in found.why


def test_no_majority_and_no_answers_are_no_verdict() -> None:
    assert majority_only(Scores(exact_match=0.0), DataFacts(), step=9) is None
    assert majority_only(Scores(loss=1.0), MAJORITY, step=9) is None
    low, facts = Scores(loss=0.001), DataFacts(unigram=4.0)
    assert implausible(low, facts, TASKS["question-answer"], step=9) is None
