"""Statistics of sentence pairs, and warnings about them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine.data.framing import folded

if TYPE_CHECKING:
    from engine.data.parallel.pairs import Pairs

RATIO = 3.0  # times the median length ratio; beyond that a pair is seldom a translation
SMOOTHING = 10  # characters added to both sides, so that "Hi." and "Guten Tag!" are not an outlier

LIMIT, UNIT = 100, "words"  # from which a sentence counts as long, and its unit


@dataclass(frozen=True)
class PairStatistics:
    """Statistics of a split. Shares are of all its pairs, 0 to 1."""

    pairs: int  # how many
    unit: str  # of the lengths
    source_mean: float  # mean length of a source
    target_mean: float  # mean length of a target
    source_longest: int  # of all sources
    target_longest: int  # of all targets
    limit: int  # in the same unit
    longer: float  # share with a side longer than `limit`
    duplicates: float  # share of pairs that repeat an earlier one, ignoring case and spaces
    copies: float  # share whose source equals its target, ignoring case and spaces
    outliers: float  # share whose length ratio differs from the median by a factor of more than `RATIO`


def statistics(pairs: "Pairs") -> PairStatistics:
    count = len(pairs)
    if count == 0:
        return PairStatistics(0, UNIT, 0.0, 0.0, 0, 0, LIMIT, 0.0, 0.0, 0.0, 0.0)
    lengths = [np.array([len(sentence.split()) for sentence in side]) for side in (pairs.sources, pairs.targets)]
    sources, targets = ([folded(sentence) for sentence in side] for side in (pairs.sources, pairs.targets))
    smoothed = [np.array([len(one) for one in side]) + SMOOTHING for side in (pairs.targets, pairs.sources)]
    ratios = np.log(smoothed[0] / smoothed[1])
    return PairStatistics(
        pairs=count,
        unit=UNIT,
        source_mean=float(lengths[0].mean()),
        target_mean=float(lengths[1].mean()),
        source_longest=int(lengths[0].max()),
        target_longest=int(lengths[1].max()),
        limit=LIMIT,
        longer=float(np.mean((lengths[0] > LIMIT) | (lengths[1] > LIMIT))),
        duplicates=1.0 - len(set(zip(sources, targets, strict=True))) / count,
        copies=sum(one == other for one, other in zip(sources, targets, strict=True)) / count,
        outliers=float(np.mean(np.abs(ratios - np.median(ratios)) > np.log(RATIO))),
    )


# Field, the share at which to warn, and the warning.
WARNINGS: tuple[tuple[str, float, str], ...] = (
    ("duplicates", 0.10, "are repetitions of others"),
    ("copies", 0.02, "have a source that is its own translation"),
    ("outliers", 0.01, "have sides of very different lengths: are the files aligned?"),
    ("longer", 0.01, "have a side longer than {limit} {unit}"),
)
FEW = 100  # pairs; a score on fewer means little


def warnings(split: str, numbers: PairStatistics) -> list[str]:
    lines = []
    if split != "train" and numbers.pairs < FEW:
        lines.append(f"{split}: only {numbers.pairs} pairs, and a score on so few says little")
    for field, share, text in WARNINGS:
        value = getattr(numbers, field)
        if value > share:
            lines.append(f"{split}: {value:.1%} of the pairs {text.format(limit=LIMIT, unit=UNIT)}")
    return lines
