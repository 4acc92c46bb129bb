"""What a run checks of itself, for tests that train again and again and whose claim is not these checks.

Tests of the checks themselves, and tests that plant a bug in what is checked, use none of this.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from engine.config.schema import RunConfig
from engine.data.loader import Examples
from engine.evaluation import checks
from engine.evaluation.verdict import Verdict, When
from engine.model.transformer import Network
from engine.training import inspector
from engine.training.task import Task

PROBED: dict[tuple[str, When, int], Verdict] = {}
CHECKED: dict[str, tuple[list[Verdict], int]] = {}
probed, self_check, BUDGET = inspector.probed, inspector.self_check, checks.BUDGET


@contextmanager
def remembered() -> Iterator[None]:
    """Leak probe and self-check are made in full once, and found again for the same config, weights, text and number
    of places.

    A difference in any of these, as after a wrong resumption, has them made anew.
    """
    inspector.probed, inspector.self_check = remembered_probe, remembered_check
    try:
        yield
    finally:
        inspector.probed, inspector.self_check = probed, self_check


@contextmanager
def left_out() -> Iterator[None]:
    """There is no self-check; leaks are still looked for."""
    before, inspector.self_check = inspector.self_check, lambda *_: []
    try:
        yield
    finally:
        inspector.self_check = before


@contextmanager
def at_few_places() -> Iterator[None]:
    """Leaks are looked for at the fewest places that a run may choose: in long texts it tries hundreds."""
    before, checks.BUDGET = checks.BUDGET, dict.fromkeys(checks.BUDGET, 0.0)
    try:
        yield
    finally:
        checks.BUDGET = before


def remembered_probe(config: RunConfig, model: Network, batches: Examples, *, when: When, step: int) -> Verdict:
    key = (_hash(config, model, batches), when, step)
    if key not in PROBED:
        PROBED[key] = probed(config, model, batches, when=when, step=step)
    return PROBED[key]


def remembered_check(
    config: RunConfig, model: Network, task: Task, between: Callable[[], None] = lambda: None
) -> list[Verdict]:
    """As often as before, `between` is called: whoever asks it to stop is heard."""
    key = _hash(config, model, task.batches(config, next(model.parameters()).device))
    if key not in CHECKED:
        calls = 0

        def counted() -> None:
            nonlocal calls
            calls += 1
            between()

        CHECKED[key] = self_check(config, model, task, counted), calls
    else:
        for _ in range(CHECKED[key][1]):
            between()
    return list(CHECKED[key][0])


def _hash(config: RunConfig, model: Network, batches: Examples) -> str:
    found = hashlib.sha256(f"{config.model_dump_json()} {checks.BUDGET}".encode())
    for name, weight in model.state_dict().items():
        found.update(f"{name} {weight.device.type} {weight.dtype} {tuple(weight.shape)}".encode())
        found.update(weight.detach().cpu().contiguous().numpy().tobytes())
    first = batches.batch(1, 0)
    for part in (batches.probed(), first.tokens, first.targets, first.source):
        if part is not None:
            found.update(part.cpu().numpy().tobytes())
    return found.hexdigest()
