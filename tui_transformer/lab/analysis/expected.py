"""What a study expected of a variant, said before it ran, beside what came out."""

from collections.abc import Sequence
from dataclasses import dataclass

from tui_transformer.lab.analysis.language import ENGLISH, Language
from tui_transformer.lab.analysis.measures import LAST, Measure
from tui_transformer.lab.analysis.standing import Standing
from tui_transformer.lab.analysis.statistics import Judgement

LOSS, UNKNOWN = "loss", "unknown"
AS_EXPECTED, NOT_AS_EXPECTED, OPEN, BEFOREHAND = "as expected", "not as expected", "open", "unknown beforehand"


@dataclass(frozen=True)
class Expectation:
    """One expectation.

    Args:
        what: "loss", or a family of probes.
        said: worse, better, same, or unknown.
        outcome: one of the four.
        found: what was judged, and how.
    """

    what: str
    said: str
    outcome: str
    found: tuple[tuple[Measure, Judgement], ...]


def expectations(standing: Standing, measures: Sequence[Measure]) -> tuple[Expectation, ...]:
    """Of one variant; none where another baseline than the study's is pinned.

    Args:
        standing: the variant.
        measures: probes and scores that its study has.
    """
    family = standing.family
    if not family.asked or family.file is None:
        return ()
    expect = family.file.expect.get(standing.group.variant, {})
    return tuple(_judged(standing, what, said, measures) for what, said in expect.items())


def _judged(standing: Standing, what: str, said: str, measures: Sequence[Measure]) -> Expectation:
    meant = [LAST] if what == LOSS else [m for m in measures if what in (m.key, m.family)]
    judged = [(m, found) for m in meant if (found := standing.judgement(m)) is not None]
    return Expectation(what, said, _outcome(said, [found.kind for _, found in judged]), tuple(judged))


def _outcome(said: str, kinds: Sequence[str]) -> str:
    """A family is as expected where all of its probes are; one that contradicts is enough."""
    if said == UNKNOWN:
        return BEFOREHAND
    if any(kind in ("better", "worse", "same") and kind != said for kind in kinds):
        return NOT_AS_EXPECTED
    return AS_EXPECTED if kinds and all(kind == said for kind in kinds) else OPEN


def summary(found: Sequence[Expectation], language: Language = ENGLISH) -> str:
    """A few words for a cell: the outcome they share, or how many had which."""
    outcomes = [expectation.outcome for expectation in found]
    counts = {outcome: outcomes.count(outcome) for outcome in (NOT_AS_EXPECTED, AS_EXPECTED, OPEN, BEFOREHAND)}
    present = [(outcome, count) for outcome, count in counts.items() if count]
    if len(present) == 1:
        return language.word(present[0][0])
    words = (f"{count} {language.word(outcome.removesuffix(' beforehand'))}" for outcome, count in present)
    return language.say("join.comma").join(words)
