"""Probe scores by distance: how far back what must be remembered stands, and how often it was right there.

A model's reach shows here: what stands further back than its layers can carry cannot be known, however long it trains.
Only places whose evidence lies inside the window count: at a stride of half the context, a third of what is
170 characters back would else be counted wrong for having been cut off. The stretches are the probe's own, so the
counts of runs on other texts and of other seeds can be added up.
"""

import numpy as np

from engine.data.synthetic.grammar import Probe
from engine.evaluation.metrics import Counted, TokenScores, places_shown

Stretch = list[int]  # [distance from, distance to, right, of]: characters, from ≤ distance < to; places


def scores_by_distance(
    scores: TokenScores, probes: tuple[Probe, ...], counted: Counted = places_shown
) -> dict[str, list[Stretch]]:
    """How many of the places that `probe_counts` counts were right, by distance.

    Args:
        scores: of every token of the text, one token a character.
        probes: parts of one family (near and far recall) are counted together; those without borders are left out.
        counted: which places count.

    Returns:
        Family → stretches with a place in them, nearest first. What stands nearer than the first border or further
        than the last counts to the stretch beside it.
    """
    found: dict[str, np.ndarray] = {}
    borders: dict[str, tuple[int, ...]] = {}
    for probe in probes:
        if len(probe.edges) < 2:
            continue
        family, last = probe.family or probe.name, len(probe.edges) - 2
        places = counted(scores, probe)
        stretch = np.searchsorted(probe.edges, probe.distance[places], side="right") - 1
        stretch = stretch.clip(0, last)
        right = scores.correct[probe.at[places] - 1]
        sums = np.stack([np.bincount(of, minlength=last + 1) for of in (stretch[right], stretch)])
        borders[family] = probe.edges
        found[family] = found.get(family, 0) + sums
    return {
        family: [
            [start, stop, int(right), int(of)]
            for start, stop, right, of in zip(borders[family], borders[family][1:], *sums, strict=False)
            if of
        ]
        for family, sums in found.items()
    }
