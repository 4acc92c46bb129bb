from typing import Any

from engine.runs.records import VerdictRecord
from tui_transformer.lab.records.badges import CheckFinding, findings


def verdict(check: str, found: str, when: str, why: Any) -> VerdictRecord:
    return VerdictRecord(check=check, verdict=found, when=when, why=why)


def test_the_same_finding_at_many_evaluations_is_one_line_with_the_newest_reason() -> None:
    found = findings(
        [
            verdict("leak", "ok", "before", "no later token is seen"),
            verdict("shape", "STILL-FALLING", "evaluation", "0.2 a thousand steps"),
            verdict("shape", "STILL-FALLING", "evaluation", "0.1 a thousand steps"),
            verdict("shape", "ok", "after", "it fell no more"),
        ]
    )
    assert found == (
        CheckFinding(None, "no leak, before training", "no later token is seen"),
        CheckFinding("STILL-FALLING", "UNDERTRAINED, while training, 2 times", "0.1 a thousand steps"),
        CheckFinding(None, "shape: ok again, after training", "it fell no more"),
    )


def test_what_passed_before_training_is_one_line_and_what_failed_has_its_own() -> None:
    parts = ("leak", "order", "reference", "cache parity", "seed")
    passed = [verdict(name, "ok", "before", f"about {name}") for name in parts]
    assert findings(passed) == (
        CheckFinding(None, "no leak, before training", "about leak"),
        CheckFinding(None, "4 more checks passed, before training", "order, reference, cache parity, seed"),
    )
    broken = [verdict("gradient", "BROKEN", "before", "half of it"), *passed, verdict("order", "ok", "after", "told")]
    assert [found.words for found in findings(broken)] == [
        "BROKEN, before training",
        "no leak, before training",
        "4 more checks passed, before training",
        "order: ok, after training",
    ]
    assert findings(passed[:2])[1] == CheckFinding(None, "order: ok, before training", "about order")


def test_a_verdict_of_anything_is_survived() -> None:
    damaged = {"check": 3, "verdict": ["ok"], "when": None, "why": {}}
    assert findings([VerdictRecord.read({}), VerdictRecord.read(damaged)]) == (
        CheckFinding("", ", while training, 2 times", ""),
    )


def test_a_finding_looks_as_severe_as_its_badge_and_not_by_colour_alone() -> None:
    said = ("ok", "LEAK", "OVERLAP", "IMPLAUSIBLE", "DIVERGED", "SUSPICIOUS", "STILL-FALLING", "OF-TOMORROW")
    looks = [(f.style, f.sign) for f in findings(verdict(name, name, "after", "") for name in said)]
    assert looks == [("good", "✓"), *[("bad", "✗")] * 4, *[("warn", "!")] * 3]
