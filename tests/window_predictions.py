"""What the optimal predictor of a window expects next."""

from collections import defaultdict
from typing import Any

from engine.data.synthetic.belief import Belief, WindowFilter


def next_characters(reads: WindowFilter[Any], belief: Belief[Any]) -> dict[str, float]:
    found: dict[str, float] = defaultdict(float)
    for (state, typed), p in belief.items():
        for character, share in reads.choice_at(state).next_characters(typed).items():
            found[character] += p * share
    return dict(found)
