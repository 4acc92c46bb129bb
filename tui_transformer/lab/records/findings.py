"""A run's check findings in words, with repeats over evaluations in one line. No Textual, no torch."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from engine.runs.records import VerdictRecord
from tui_transformer.lab.records.badges import badge

SIGNS = {"good": "✓", "bad": "✗", "warn": "!"}


@dataclass(frozen=True)
class Finding:
    badge: str | None  # what is wrong; None if nothing is
    words: str  # what it found, and when
    why: str  # one sentence

    @property
    def fine(self) -> bool:
        return self.badge is None

    @property
    def style(self) -> Literal["good", "bad", "warn"]:
        return "good" if self.badge is None else badge(self.badge).severity

    @property
    def sign(self) -> str:
        return SIGNS[self.style]


def findings(verdicts: Iterable[VerdictRecord]) -> tuple[Finding, ...]:
    """Return a run's verdicts in brief.

    The same verdict at many evaluations is one finding, with the newest reason; so are all checks that passed before
    training, except the leak probe. checks.json and `check` have every reason.
    """
    alike: dict[tuple[str, str, str], list[VerdictRecord]] = {}
    for verdict in verdicts:
        alike.setdefault((verdict.check, verdict.verdict, verdict.when), []).append(verdict)
    passed = [check for check, said, when in alike if said == "ok" and when == "before" and check != "leak"]
    found, alarmed = [], set()
    for (check, said, when), same in alike.items():
        time, why = f"{when} training" if when != "evaluation" else "while training", same[-1].why
        if said != "ok":
            alarmed.add(check)
            words = said
        elif len(passed) > 1 and when == "before" and check in passed:
            if check != passed[0]:
                continue
            words, why = f"{len(passed)} more checks passed", ", ".join(passed)
        elif check == "leak":
            words = "no leak"
        else:
            words = f"{check}: ok again" if check in alarmed else f"{check}: ok"
        again = f", {len(same)} times" if len(same) > 1 else ""
        found.append(Finding(None if said == "ok" else said, f"{words}, {time}{again}", why))
    return tuple(found)
