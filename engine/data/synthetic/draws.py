"""Reproducible random choices: Python guarantees only `random()` from an integer seed across versions."""

import random
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Generic, TypeVar

T = TypeVar("T")


class Weighted(Generic[T]):
    """Options with weights, on any scale."""

    def __init__(self, *options: tuple[T, float]) -> None:
        self.options = tuple(option for option, _ in options)
        *borders, self.total = accumulate(weight for _, weight in options)
        self.borders = borders


class Draws:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed).random

    def chance(self, p: float) -> bool:
        return self.random() < p

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self.random() * len(options))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return the items in random order (Fisher and Yates)."""
        order = list(items)
        for last in range(len(order) - 1, 0, -1):
            chosen = int(self.random() * (last + 1))
            order[last], order[chosen] = order[chosen], order[last]
        return order

    def pick_weighted(self, choice: Weighted[T]) -> T:
        return choice.options[bisect_right(choice.borders, self.random() * choice.total)]


def draw_until(draw: Callable[[], T], fits: Callable[[T], object]) -> T:
    found = draw()
    while not fits(found):
        found = draw()
    return found
