"""The measures of `engine.measures` in which runs are compared: which of them an entry has."""

from collections.abc import Sequence
from dataclasses import replace

from engine.measures import MEASURE, Measure, probe
from tui_transformer.lab.analysis.entry import SCORES, Entry

LOSS = MEASURE["loss"]
LAST = replace(LOSS, key="last", name="validation loss")
BEST = replace(LOSS, key="best", name="best validation loss")
EXCESS = MEASURE["excess"]
LOSSES = (LAST, BEST, EXCESS)


def judged(entries: Sequence[Entry]) -> tuple[Measure, ...]:
    """Return all measures in which variants of these runs are compared."""
    return (LAST, BEST, *probes(entries), *(measure for measure in scores(entries) if measure.judged))


def meant(name: str, among: Sequence[Measure]) -> Measure | None:
    """Return the measure that a study calls by this name: the loss, a score, a probe, or a family's first probe."""
    if name == LOSS.key:
        return LAST
    named = [measure for measure in among if measure.key == name]
    return next(iter([*named, *(measure for measure in among if measure.family == name)]), None)


def probes(entries: Sequence[Entry]) -> tuple[Measure, ...]:
    """Return the probes that any of these runs has, in their order."""
    return tuple(map(probe, dict.fromkeys(name for entry in entries for name in entry.probes)))


def scores(entries: Sequence[Entry]) -> tuple[Measure, ...]:
    """Return the other scores that any of these runs has."""
    return tuple(measure for key, measure in SCORES.items() if any(key in entry.scores for entry in entries))
