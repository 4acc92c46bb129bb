"""What each badge means and what to do about it, and a run's checks in words: for every pane, command and export."""

import tomllib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from engine.base.clean import clean_line
from engine.base.errors import comma_separated
from engine.base.language import Message, tr
from engine.runs.records import Notes, VerdictRecord

SIGNS = {"good": "✓", "bad": "✗", "warn": "!"}
WHEN = {"before": tr("before training"), "after": tr("after training")}  # else at an evaluation
PASSED, NONE_YET = "✓", "–"  # all checks passed; no checks yet


@dataclass(frozen=True)
class Badge:
    """Something that is wrong with a run's scores."""

    name: str  # as in checks.json
    word: str  # for little room; at most twelve columns
    means: str  # one sentence
    advice: str  # what to do about it, one sentence
    alarm: str  # what a report says of variants, `{names}`, that have it
    alarm_of_one: str = ""  # the same of one variant, if in other words
    void: bool = False  # whether its loss must not be compared with others
    full: str = ""  # the name that people read, if not the one in checks.json

    @property
    def display_name(self) -> str:
        """Its name where there is room for all of it."""
        return self.full or self.name

    @property
    def severity(self) -> Literal["bad", "warn"]:
        """Red (bad) if the score means nothing, else amber (warn)."""
        return "bad" if self.void else "warn"


_TABLES = tomllib.loads(Path(__file__).with_name("badges.toml").read_text(encoding="utf-8"))
BADGES = {name: Badge(name, **table) for name, table in _TABLES.items()}


def badge(name: str) -> Badge:
    """Return a badge's meaning in English; one from a later version is shown by name."""
    means = Message("This version does not know this badge.")
    advice = Message("Read the reason given; a newer version may explain more.")
    alarm = Message("{names} have the badge {badge}. {means}")
    of_one = Message("{names} has the badge {badge}. {means}")
    return BADGES.get(name) or Badge(name, name[:9], means, advice, alarm, of_one)


def explain(names: Iterable[str]) -> str:
    """What badges mean, a line each, in the language in use."""
    return "\n".join(f"{clean_line(badge(name).word)}: {tr(badge(name).means)}" for name in names)


def worst_first(names: Iterable[str]) -> tuple[str, ...]:
    """Return badges, those that void a score first."""
    return tuple(sorted(names, key=lambda name: not badge(name).void))


def is_warning(name: str) -> bool:
    """Whether a badge may be acknowledged: it is known, and it makes no score void."""
    return name in BADGES and not BADGES[name].void


def acknowledged_badges(names: Iterable[str], notes: Notes) -> tuple[str, ...]:
    """Return those of a run's badges that its owner has acknowledged; others in its notes mean nothing."""
    return tuple(name for name in names if name in notes.seen and is_warning(name))


def mark_if_seen(text: str, *, seen: bool) -> str:
    """Return a badge's word or name, marked if it was acknowledged."""
    return tr("{badge} (seen)", badge=text) if seen else text


def cell_text(names: Iterable[str], *, checked: bool, seen: Collection[str] = ()) -> str:
    """Return badges for a narrow cell; if none, whether checks passed or have not run yet."""
    words = [mark_if_seen(badge(name).word, seen=name in seen) for name in names]
    return " ".join(words) or (PASSED if checked else NONE_YET)


@dataclass(frozen=True)
class CheckFinding:
    badge: str | None  # what is wrong; None if nothing is
    words: str  # what it found, and when
    why: str  # one sentence

    @property
    def is_ok(self) -> bool:
        return self.badge is None

    @property
    def style(self) -> Literal["good", "bad", "warn"]:
        return "good" if self.badge is None else badge(self.badge).severity

    @property
    def sign(self) -> str:
        return SIGNS[self.style]


def findings(verdicts: Iterable[VerdictRecord]) -> tuple[CheckFinding, ...]:
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
        time, why = WHEN.get(when, tr("while training")), tr(same[-1].why)
        name = tr(check)
        if said != "ok":
            alarmed.add(check)
            words = badge(said).display_name
        elif len(passed) > 1 and when == "before" and check in passed:
            if check != passed[0]:
                continue
            words = tr("{n} more checks passed", n=len(passed))
            why = comma_separated(map(tr, passed))
        elif check == "leak":
            words = tr("no leak")
        else:
            words = tr("{check}: ok again", check=name) if check in alarmed else tr("{check}: ok", check=name)
        again = tr(", {n} times", n=len(same)) if len(same) > 1 else ""
        words = tr("{words}, {time}{again}", words=words, time=time, again=again)
        found.append(CheckFinding(None if said == "ok" else said, words, why))
    return tuple(found)
