"""Whether the scores of two runs can be held against each other at all, and if not, why."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tui_transformer.lab.analysis.entry import Entry, Listed, Protocol
from tui_transformer.lab.analysis.language import ENGLISH, Language, Said, Word
from tui_transformer.lab.records.badges import badge


@dataclass(frozen=True)
class Difference:
    """A way in which two scores can mean different things.

    Args:
        word: what is another one.
        part: what must be equal; None and "" are not known yet, and differ from nothing.
        shown: what of it stands in a sentence.
        phrase: the sentence's, of `scored.…`.
    """

    word: str
    part: Callable[[Protocol], object]
    shown: Callable[[Protocol], object]
    phrase: str


_CORPUS = Difference("corpus", lambda p: p.corpus, lambda p: p.corpus, "corpus")
_SCORE = (
    Difference("objective", lambda p: p.objective, lambda p: p.objective, "objective"),
    Difference("unit", lambda p: p.unit, lambda p: Word(p.unit), "unit"),
    Difference("tokens", lambda p: p.tokens, lambda p: p.tokens[:8] or Word("unknown"), "tokens"),
    Difference("context", lambda p: p.context, lambda p: p.context, "context"),
    Difference("stride", lambda p: p.stride, lambda p: p.stride, "stride"),
)
DIFFERENCES = (
    _CORPUS,
    Difference("split", lambda p: p.split, lambda p: p.split[:8], "split"),
    *_SCORE,
)
# Before data.json says which text it is, the settings must do: without them nothing is known, and nothing differs.
ASKED_DIFFERENCES = (
    _CORPUS,
    Difference("corpus", lambda p: p.asked[:1], lambda p: p.asked[0], "corpus"),
    Difference("split", lambda p: p.asked[1:], lambda p: "", "cut"),
    *_SCORE,
)


def other_said(entry: Entry, baseline: Entry) -> Said | None:
    """What makes the scores of two runs different measures, as `other corpus`; None if nothing does."""
    found = _difference(entry.protocol, baseline.protocol)
    return Said("other", {"what": Word(found.word)}) if found is not None else None


def other(entry: Entry, baseline: Entry) -> str:
    """The same in English; "" if nothing does."""
    found = other_said(entry, baseline)
    return ENGLISH.tell(found) if found is not None else ""


def void(entry: Entry) -> str:
    """The badge because of which a run's loss must not be compared at all; "" if there is none."""
    return next((name for name in entry.badges if badge(name).void), "")


def comparable(entry: Entry, baseline: Entry) -> bool:
    """Whether a difference of their losses means anything."""
    return not (other(entry, baseline) or void(entry) or void(baseline))


def why_not(entry: Entry, baseline: Entry, language: Language = ENGLISH) -> str:
    """One sentence for the detail; "" where they can be compared."""
    for run in (entry, baseline):
        if void(run):
            return language.say("has-badge", name=run.name, badge=void(run), means=language.badge(void(run)).means)
    found = _difference(entry.protocol, baseline.protocol)
    if found is not None:
        own, others = (
            Said(f"scored.{found.phrase}", {"value": found.shown(p)}) for p in (entry.protocol, baseline.protocol)
        )
        return language.say("measures", a=entry.name, own=own, b=baseline.name, others=others)
    return ""


def unit_of(entries: Sequence[Listed]) -> str:
    """The unit of these runs' losses."""
    units = {entry.protocol.unit for entry in entries}
    return f"nats per {units.pop()}" if len(units) == 1 else "not all in the same unit"


def _difference(a: Protocol, b: Protocol) -> Difference | None:
    for difference in DIFFERENCES if a.split and b.split else ASKED_DIFFERENCES:
        one, two = difference.part(a), difference.part(b)
        if one and two and one != two:
            return difference
    return None
