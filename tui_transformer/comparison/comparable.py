"""Whether the scores of two runs can be held against each other at all, and if not, why."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tui_transformer.badges import badge
from tui_transformer.comparison.entry import Entry, Listed, Protocol


@dataclass(frozen=True)
class Difference:
    """A way in which two scores can mean different things.

    Args:
        word: what is another one.
        part: what must be equal; None and "" are not known yet, and differ from nothing.
        shown: how it is said in a sentence.
    """

    word: str
    part: Callable[[Protocol], object]
    shown: Callable[[Protocol], str]


_CORPUS = Difference("corpus", lambda p: p.corpus, lambda p: f"on {p.corpus}")
_SCORE = (
    Difference("objective", lambda p: p.objective, lambda p: f"by {p.objective}"),
    Difference("unit", lambda p: p.unit, lambda p: f"in nats per {p.unit}"),
    Difference("tokens", lambda p: p.tokens, lambda p: f"over tokens of vocabulary {p.tokens[:8] or 'unknown'}"),
    Difference("context", lambda p: p.context, lambda p: f"with context {p.context}"),
    Difference("stride", lambda p: p.stride, lambda p: f"with stride {p.stride}"),
)
DIFFERENCES = (
    _CORPUS,
    Difference("split", lambda p: p.split, lambda p: f"on the text with SHA-256 {p.split[:8]}…"),
    *_SCORE,
)
# Before data.json says which text it is, the settings must do: without them nothing is known, and nothing differs.
ASKED_DIFFERENCES = (
    _CORPUS,
    Difference("corpus", lambda p: p.asked[:1], lambda p: f"on {p.asked[0]}"),
    Difference("split", lambda p: p.asked[1:], lambda p: "on a text that was cut otherwise"),
    *_SCORE,
)


def other(entry: Entry, baseline: Entry) -> str:
    """What makes the scores of two runs different measures, as `other corpus`; "" if nothing does."""
    found = _difference(entry.protocol, baseline.protocol)
    return f"other {found.word}" if found is not None else ""


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
