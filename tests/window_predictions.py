"""What the optimal predictor of a window expects next."""

from collections import defaultdict
from functools import cache
from typing import Any

from engine.data.synthetic.belief import Belief, WindowFilter
from engine.data.synthetic.grammar import Choice


def next_characters(reads: WindowFilter[Any], belief: Belief[Any]) -> dict[str, float]:
    found: dict[str, float] = defaultdict(float)
    for (state, typed), p in belief.items():
        for character, share in _spelled(reads.choice_at(state), typed).items():
            found[character] += p * share
    return dict(found)


@cache
def _spelled(choice: Choice, typed: str) -> dict[str, float]:
    return choice.next_characters(typed)
