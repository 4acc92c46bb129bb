from typing import Any

from tui_transformer.findings import Finding, findings


def verdict(check: str, found: str, when: str, why: Any) -> dict[str, Any]:
    return {"check": check, "verdict": found, "when": when, "why": why}


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
        Finding(None, "no leak, before training", "no later token is seen"),
        Finding("STILL-FALLING", "STILL-FALLING, while training, 2 times", "0.1 a thousand steps"),
        Finding(None, "shape: ok again, after training", "it fell no more"),
    )


def test_a_verdict_of_anything_is_survived() -> None:
    assert findings([{}, {"check": 3, "verdict": ["ok"], "when": None, "why": {}}]) == (
        Finding("", ",  training, 2 times", ""),
    )


def test_a_finding_looks_as_severe_as_its_badge_and_not_by_colour_alone() -> None:
    said = ("ok", "LEAK", "OVERLAP", "IMPLAUSIBLE", "DIVERGED", "SUSPICIOUS", "STILL-FALLING", "OF-TOMORROW")
    looks = [(f.style, f.sign) for f in findings(verdict(name, name, "after", "") for name in said)]
    assert looks == [("good", "✓"), *[("bad", "✗")] * 4, *[("warn", "!")] * 3]
