"""What is in a parallel corpus, as plain numbers, and what a reader of them should be warned of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.data.parallel.pairs import Pairs, ParallelCorpus, folded

RATIO = 3.0  # times the median ratio of lengths; beyond that a pair is seldom a translation
SMOOTHING = 10  # characters added to both sides, so that "Hi." and "Guten Tag!" are no outlier

Measure = Callable[[Sequence[str]], NDArray[np.int64]]
"""The lengths of sentences."""


def words(sentences: Sequence[str]) -> NDArray[np.int64]:
    """Return lengths in words, which white space separates."""
    return np.array([len(sentence.split()) for sentence in sentences], dtype=np.int64)


@dataclass(frozen=True)
class PairStatistics:
    """One split in numbers. Shares are between 0 and 1, of all its pairs.

    Args:
        pairs: how many.
        unit: of the lengths.
        source_mean: mean length of a source.
        target_mean: mean length of a target.
        source_longest: of all sources.
        target_longest: of all targets.
        limit: in the same unit.
        longer: share with a side longer than `limit`.
        duplicates: share whose pair stood there before, but for case and spaces.
        copies: share whose source is its own translation, but for case and spaces.
        outliers: share whose lengths are in another ratio than the others', by a factor of more than `RATIO`.
    """

    pairs: int
    unit: str
    source_mean: float
    target_mean: float
    source_longest: int
    target_longest: int
    limit: int
    longer: float
    duplicates: float
    copies: float
    outliers: float


def corpus_statistics(
    corpus: ParallelCorpus, limit: int = 100, measure: tuple[Measure, Measure] = (words, words), unit: str = "words"
) -> dict[str, PairStatistics]:
    """Return the numbers of each split.

    Args:
        corpus: all of it.
        limit: what counts as long.
        measure: lengths of sources and of targets; for tokens, what a tokenizer gives.
        unit: what `measure` counts.
    """
    return {name: statistics(pairs, limit, measure, unit) for name, pairs in corpus.splits.items()}


def statistics(
    pairs: Pairs, limit: int = 100, measure: tuple[Measure, Measure] = (words, words), unit: str = "words"
) -> PairStatistics:
    """Return the numbers of some pairs; see `corpus_statistics`."""
    count = len(pairs)
    if count == 0:
        return PairStatistics(0, unit, 0.0, 0.0, 0, 0, limit, 0.0, 0.0, 0.0, 0.0)
    lengths = measure[0](pairs.sources), measure[1](pairs.targets)
    sources, targets = ([folded(sentence) for sentence in side] for side in (pairs.sources, pairs.targets))
    smoothed = [np.array([len(one) for one in side]) + SMOOTHING for side in (pairs.targets, pairs.sources)]
    ratios = np.log(smoothed[0] / smoothed[1])
    return PairStatistics(
        pairs=count,
        unit=unit,
        source_mean=float(lengths[0].mean()),
        target_mean=float(lengths[1].mean()),
        source_longest=int(lengths[0].max()),
        target_longest=int(lengths[1].max()),
        limit=limit,
        longer=float(np.mean((lengths[0] > limit) | (lengths[1] > limit))),
        duplicates=1.0 - len(set(zip(sources, targets, strict=True))) / count,
        copies=sum(one == other for one, other in zip(sources, targets, strict=True)) / count,
        outliers=float(np.mean(np.abs(ratios - np.median(ratios)) > np.log(RATIO))),
    )


WARNINGS: tuple[tuple[str, float, str], ...] = (
    ("duplicates", 0.10, "are repetitions of others"),
    ("copies", 0.02, "have a source that is its own translation"),
    ("outliers", 0.01, "have sides of very different lengths: are the files aligned?"),
    ("longer", 0.01, "have a side longer than {limit} {unit}"),
)
"""Field, the share from which it is worth a line, and the line."""

FEW = 100  # pairs; a score on fewer says little


def warnings(split: str, numbers: PairStatistics) -> list[str]:
    lines = []
    if split != "train" and numbers.pairs < FEW:
        lines.append(f"{split}: only {numbers.pairs} pairs, and a score on so few says little")
    for field, share, text in WARNINGS:
        value = getattr(numbers, field)
        if value > share:
            lines.append(f"{split}: {value:.1%} of the pairs {text.format(limit=numbers.limit, unit=numbers.unit)}")
    return lines
