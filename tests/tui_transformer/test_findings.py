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
        Finding(True, "no leak, before training", "no later token is seen"),
        Finding(False, "STILL-FALLING, while training, 2 times", "0.1 a thousand steps"),
        Finding(True, "shape: ok again, after training", "it fell no more"),
    )


def test_a_verdict_of_anything_is_survived() -> None:
    assert findings([{}, {"check": 3, "verdict": ["ok"], "when": None, "why": {}}]) == (
        Finding(False, ",  training, 2 times", ""),
    )
