"""Whether the scores of two runs can be held against each other at all, and if not, why."""

from collections.abc import Callable
from dataclasses import dataclass

from tui_transformer.badges import badge
from tui_transformer.comparison.entry import Entry, Protocol


@dataclass(frozen=True)
class Difference:
    """A way in which two scores can mean different things.

    Args:
        word: what is another one.
        part: what must be equal.
        shown: how it is said in a sentence.
    """

    word: str
    part: Callable[[Protocol], object]
    shown: Callable[[Protocol], str]


DIFFERENCES = (
    Difference("corpus", lambda p: p.corpus, lambda p: f"on {p.corpus}"),
    Difference("objective", lambda p: p.objective, lambda p: f"by {p.objective}"),
    Difference("unit", lambda p: p.unit, lambda p: f"in nats per {p.unit}"),
    Difference("tokens", lambda p: p.tokens, lambda p: f"over tokens of vocabulary {p.tokens[:8] or 'unknown'}"),
    Difference("context", lambda p: p.context, lambda p: f"with context {p.context}"),
    Difference("stride", lambda p: p.stride, lambda p: f"with stride {p.stride}"),
)


def other(entry: Entry, baseline: Entry) -> str:
    """What makes the scores of two runs different measures, as `other corpus`; "" if nothing does."""
    found = _difference(entry.protocol, baseline.protocol)
    if found is not None:
        return f"other {found.word}"
    return "other split" if _other_split(entry.protocol, baseline.protocol) else ""


def void(entry: Entry) -> str:
    """The badge because of which a run's loss must not be compared at all; "" if there is none."""
    return next((name for name in entry.badges if badge(name).void), "")


def comparable(entry: Entry, baseline: Entry) -> bool:
    """Whether a difference of their losses means anything."""
    return not (other(entry, baseline) or void(entry) or void(baseline))


def why_not(entry: Entry, baseline: Entry) -> str:
    """One sentence for the detail; "" where they can be compared."""
    for run in (entry, baseline):
        if void(run):
            return f"{run.name} has the badge {void(run)}: {badge(void(run)).means}"
    found = _difference(entry.protocol, baseline.protocol)
    if found is not None:
        own, others = found.shown(entry.protocol), found.shown(baseline.protocol)
        return f"{entry.name} was scored {own}, {baseline.name} {others}: the two losses are different measures."
    if _other_split(entry.protocol, baseline.protocol):
        return f"{entry.name} and {baseline.name} were scored on different texts."
    return ""


def _difference(a: Protocol, b: Protocol) -> Difference | None:
    for difference in DIFFERENCES:
        one, two = difference.part(a), difference.part(b)
        if one is not None and two is not None and one != two:
            return difference
    return None


def _other_split(a: Protocol, b: Protocol) -> bool:
    return a.split != b.split if a.split and b.split else a.asked != b.asked
