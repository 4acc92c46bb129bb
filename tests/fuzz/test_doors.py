"""Every door of the product, tried with generated input: it is taken, or refused in one line. Never a traceback."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from engine.base.errors import InputError
from tests.fuzz.doors import DOORS

IN_CI, IN_ALL = 25, 10_000  # inputs at each door
PARTS = 5  # of the long run, so that each is of a bearable length
SECONDS = 1.0  # of the processor, that one input may take
UNSHRUNK = (Phase.explicit, Phase.generate)  # of thousands of inputs one is small enough to read
RELAXED: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "database": None,
    "report_multiple_bugs": False,
}


def try_door(
    name: str, folder, count: int, clock: Callable[[], float] = time.process_time, **how: Any
) -> tuple[float, Any]:
    """Generated inputs at one door; gives back the longest time, seconds of the processor, and which input took it."""
    door, slowest, tried = DOORS[name], (0.0, None), 0

    def attempt(value: Any) -> None:
        nonlocal slowest, tried
        began = clock()
        try:
            door.knock(folder, value)
        except InputError as error:
            assert "\n" not in str(error)
        slowest = max(slowest, (clock() - began, value), key=lambda found: found[0])
        tried += 1

    for value in door.once:
        attempt(value)
    test = settings(max_examples=count, **RELAXED, **{k: v for k, v in how.items() if k != "seed"})(
        given(door.inputs)(attempt)
    )
    (seed(how["seed"])(test) if "seed" in how else test)()
    print(f"{name}: {tried} inputs, the slowest {slowest[0]:.3f} s")
    return slowest


@pytest.mark.parametrize("name", DOORS)
def test_no_generated_input_breaks_a_door(name: str, prepared, nothing_starts) -> None:
    try_door(name, prepared, IN_CI, lambda: 0.0, derandomize=True)  # to ask for the time may take a millisecond


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", DOORS)
def test_no_generated_input_breaks_a_door_ten_thousand(name: str, part: int, prepared, nothing_starts) -> None:
    slowest, value = try_door(name, prepared, IN_ALL // PARTS, seed=part, phases=UNSHRUNK)
    assert slowest <= SECONDS, repr(value)[:2000]
