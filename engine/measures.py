"""What an evaluation measures, in one table that every chart, table, verdict and export reads.

Knows neither torch nor a screen. A probe is measured like any other share; probes that a corpus brings along and that
have no row here get one by `probe`.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

LARGEST_LOSS = 50.0  # nats; e to a higher power is no perplexity worth a line
_BAND = re.compile(r"[<>=\s@]")


class Estimate(Protocol):
    """A value with its interval: `half` of its width, and for a share both ends."""

    @property
    def mean(self) -> float: ...
    @property
    def half(self) -> float | None: ...
    @property
    def interval(self) -> tuple[float, float] | None: ...


@dataclass(frozen=True)
class Measure:
    """A number that an evaluation gives.

    Args:
        key: its field in an evaluation's record, or the probe's name.
        name: as tables, charts and sentences call it; other languages have a word for it.
        about: what it is, for who reads a single number, with gaps for `unit` and `floor`; "" where the name says it.
        lower: whether less is better.
        share: whether it lies between 0 and 1, and is read in per cent.
        probe: whether it is the share of a probe's questions that were answered right.
        digits: decimals in a comparison.
        exact: its format by itself; `brief` that in a table or a line with others.
        margin: a difference smaller than this matters to nobody.
        judged: whether variants are compared in it, so that it counts in the correction for many comparisons.
        charted: whether the charts of a run offer it.
        tabled: whether a report's table of evaluations has it.
        of_loss: computes it from a loss, for train records and floors; None where only an evaluation knows it.
        tolerance: (relative, absolute) by which it may differ when it is computed again on another machine.
    """

    key: str
    name: str
    about: str = ""
    lower: bool = False
    share: bool = False
    probe: bool = False
    digits: int = 4
    exact: str = "{:.4f}"
    brief: str = "{:.4f}"
    margin: float = 0.0
    judged: bool = False
    charted: bool = False
    tabled: bool = False
    of_loss: Callable[[float], float] | None = None
    tolerance: tuple[float, float] = (0.0, 0.0)

    @property
    def family(self) -> str:
        return family(self.key)

    @property
    def unit(self) -> str:
        """The unit of `amount`; "" for a number alone."""
        return "%" if self.share else ""

    def amount(self, value: float, *, sign: bool = False) -> str:
        """Return a value as a comparison writes it, without its unit."""
        scaled = value * 100 if self.share else value
        shown = f"{scaled:{'+' if sign else ''}.{self.digits}f}"
        return shown if abs(scaled) < 1e6 else f"{scaled:{'+' if sign else ''}.4g}"

    def spread(self, found: Estimate, *, sign: bool = False) -> str:
        """Return `1.2431 ± 0.0031`, of a share `97.1 [90.2, 99.8]`; the value alone where there is no interval."""
        own = self.amount(found.mean, sign=sign)
        if not self.share:
            return own if found.half is None else f"{own} ± {self.amount(found.half)}"
        if found.interval is None:
            return own
        low, high = (self.amount(end, sign=sign) for end in found.interval)
        return f"{own} [{low}, {high}]"


def _share(key: str, name: str, *, exact: str = "{:.2%}", **more: Any) -> Measure:
    return Measure(key, name, share=True, digits=1, exact=exact, brief="{:.1%}", **more)


def _probe(key: str, name: str = "", *, charted: bool = False) -> Measure:
    return _share(key, name or key, probe=True, margin=0.02, judged=True, charted=charted)


def _perplexity(loss: float) -> float:
    return math.exp(loss) if loss < LARGEST_LOSS else math.nan


MEASURES = (
    Measure(
        "loss",
        "loss",
        "loss, nats per {unit}",
        lower=True,
        margin=0.01,  # nats: one per cent of perplexity
        judged=True,
        charted=True,
        tabled=True,
        of_loss=lambda loss: loss,
        tolerance=(1e-4, 0.0),
    ),
    Measure(
        "perplexity",
        "perplexity",
        lower=True,
        brief="{:.3f}",
        charted=True,
        tabled=True,
        of_loss=_perplexity,
        tolerance=(1e-3, 0.0),
    ),
    Measure("bits_per_character", "bits per character", lower=True, charted=True, tabled=True, tolerance=(1e-4, 0.0)),
    _share(
        "accuracy",
        "accuracy",
        about="accuracy of the likeliest token",
        margin=0.01,
        judged=True,
        charted=True,
        tabled=True,
        tolerance=(0.0, 2e-3),
    ),
    Measure(
        "excess",
        "loss above the floor",
        "above the {floor}, nats per character",
        lower=True,
        exact="{:+.4f}",
        brief="{:+.4f}",
        tabled=True,
        tolerance=(0.0, 1e-3),
    ),
    Measure("honest_loss", "honest loss", "loss of what cannot be copied, nats", lower=True, tolerance=(1e-4, 1e-3)),
    Measure(
        "nanogpt_loss",
        "nanogpt loss",
        "loss of nanoGPT's random batches, nats",
        lower=True,
        tolerance=(1e-4, 0.0),
    ),
    Measure(
        "bleu",
        "BLEU",
        digits=1,
        exact="{:.2f}",
        brief="{:.2f}",
        margin=0.5,
        judged=True,
        charted=True,
        tabled=True,
        tolerance=(0.0, 1.0),
    ),
    Measure(
        "chrf",
        "chrF",
        digits=1,
        exact="{:.2f}",
        brief="{:.1f}",
        margin=0.5,
        judged=True,
        charted=True,
        tabled=True,
        tolerance=(0.0, 1.0),
    ),
    _share(
        "exact_match",
        "exact match",
        about="exactly right",
        margin=0.02,
        judged=True,
        charted=True,
        tolerance=(0.0, 0.02),
    ),
    _probe("recall", charted=True),
    _probe("recall-reworded", "recall, reworded", charted=True),
    _probe("recall-continued", "recall, continued", charted=True),
    *map(_probe, ("counter", "rhyme", "bracket", "bind")),
)
MEASURE = {measure.key: measure for measure in MEASURES}


def family(name: str) -> str:
    """Return what the bands of a probe have in common: `recall` of `recall<110`."""
    return _BAND.split(name, maxsplit=1)[0] or name


def probe(name: str) -> Measure:
    """Return the measure of any probe, called as the run that it is of calls it."""
    return _probe(name)
