"""What is compared over seeds: each measure with its direction, its digits, and a difference that matters to nobody."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tui_transformer.lab.analysis.entry import SCORES, Entry
from tui_transformer.lab.analysis.statistics import Mean, Paired

_FAMILY = re.compile(r"[^<>=\s@]+")


@dataclass(frozen=True)
class Measure:
    """A number that every run of a variant has.

    Args:
        key: what sorting, filtering and a study's `expect` call it.
        name: in a sentence.
        of: its value for a run.
        digits: how many behind the point.
        margin: a difference below it matters to nobody.
        lower: whether less is better.
        scale: what it is multiplied with to be read, 100 for a share.
        unit: of the scaled number; "" for a number alone.
        judged: whether variants are held against each other in it.
    """

    key: str
    name: str
    of: Callable[[Entry], float | None]
    digits: int = 4
    margin: float = 0.0
    lower: bool = False
    scale: float = 1.0
    unit: str = ""
    judged: bool = True

    @property
    def family(self) -> str:
        """`recall` of `recall<110`."""
        found = _FAMILY.match(self.key)
        return found[0] if found else self.key

    @property
    def share(self) -> bool:
        """Whether it lies between 0 and 1."""
        return self.unit == "%"

    def amount(self, value: float, *, sign: bool = False) -> str:
        """A number of it, without its unit."""
        scaled = value * self.scale
        shown = f"{scaled:{'+' if sign else ''}.{self.digits}f}"
        return shown if abs(scaled) < 1e6 else f"{scaled:{'+' if sign else ''}.4g}"

    def spread(self, found: Mean, *, sign: bool = False) -> str:
        """`1.2431 ± 0.0031`, or for a share `97.1 [90.2, 99.8]`; just the number if there is no interval."""
        own = self.amount(found.mean, sign=sign)
        if self.share:
            return own + self._between(found.interval)
        return own + ("" if found.half is None else f" ± {self.amount(found.half)}")

    def change(self, found: Paired) -> str:
        """`+0.0476 ± 0.0050`, or for shares in points `-21.1 [-30.3, -11.9]`; just the number with one seed."""
        own = self.amount(found.difference, sign=True)
        if self.share:
            return own + self._between(found.interval if found.half else None, sign=True)
        return own + ("" if found.half is None else f" ± {self.amount(found.half)}")

    def _between(self, interval: tuple[float, float] | None, *, sign: bool = False) -> str:
        if interval is None:
            return ""
        low, high = (self.amount(end, sign=sign) for end in interval)
        return f" [{low}, {high}]"


LOSS = "loss"  # its name in a study file
LOSS_MARGIN = 0.01  # nats: one per cent of perplexity
SHARE_MARGIN = 0.02
POINTS_MARGIN = 0.5  # of BLEU and chrF

LAST = Measure("last", "validation loss", lambda e: e.last, margin=LOSS_MARGIN, lower=True)
BEST = Measure("best", "best validation loss", lambda e: e.best, margin=LOSS_MARGIN, lower=True)
EXCESS = Measure("excess", "loss above the floor", lambda e: e.excess, lower=True, judged=False)
LOSSES = (LAST, BEST, EXCESS)
_JUDGED_SCORES = {
    "accuracy": (0.01, 1, 100.0, "%"),
    "bleu": (POINTS_MARGIN, 1, 1.0, ""),
    "chrf": (POINTS_MARGIN, 1, 1.0, ""),
    "exact_match": (SHARE_MARGIN, 1, 100.0, "%"),
}


def score(name: str) -> Measure:
    """Another score of the last evaluation; those that follow from the loss are not judged once more."""
    of: Callable[[Entry], float | None] = lambda entry: entry.scores.get(name)
    title = {"bleu": "BLEU", "chrf": "chrF"}.get(name, name.replace("_", " "))
    if name in _JUDGED_SCORES:
        margin, digits, scale, unit = _JUDGED_SCORES[name]
        return Measure(name, title, of, digits, margin, scale=scale, unit=unit)
    return Measure(name, title, of, lower=True, judged=False)


def probe(name: str) -> Measure:
    """A probe: the share it got right, read as per cent."""
    return Measure(name, name, lambda entry: entry.probes.get(name), 1, SHARE_MARGIN, scale=100.0, unit="%")


def judged(entries: Sequence[Entry]) -> tuple[Measure, ...]:
    """All measures in which variants of these runs are compared."""
    return (LAST, BEST, *probes(entries), *(measure for measure in scores(entries) if measure.judged))


def meant(name: str, among: Sequence[Measure]) -> Measure | None:
    """The measure with this name in a study: `loss`, a score, a probe, or a probe family (its first probe)."""
    if name == LOSS:
        return LAST
    named = [measure for measure in among if measure.key == name]
    return next(iter([*named, *(measure for measure in among if measure.family == name)]), None)


def probes(entries: Sequence[Entry]) -> tuple[Measure, ...]:
    """Of the probes that any of these runs has, in their order."""
    return tuple(map(probe, dict.fromkeys(name for entry in entries for name in entry.probes)))


def scores(entries: Sequence[Entry]) -> tuple[Measure, ...]:
    """Of the other scores that any of these runs has."""
    return tuple(score(name) for name in SCORES if any(name in entry.scores for entry in entries))
