"""A run's checks of itself, made cheap for tests that train again and again and whose claim is not these checks.

Tests of the checks themselves, and tests that plant a bug in what is checked, use none of this.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import Tensor

from engine.config.schema import RunConfig
from engine.data.loader import BatchStream
from engine.evaluation import checks
from engine.model.transformer import Network
from engine.runs.verdict import Verdict, When
from engine.tasks.task import Task
from engine.training import inspector

PROBES: dict[tuple[str, When, int], Verdict] = {}
SELF_CHECKS: dict[str, tuple[list[Verdict], int]] = {}
probed, self_check, BUDGET = inspector.run_leak_probe, inspector.self_check, checks.BUDGET


@contextmanager
def cached_checks() -> Iterator[None]:
    """Run each leak probe and self-check once per config, weights, text and number of places, and reuse its result.

    Weights that differ, as after a wrong resumption, are checked again.
    """
    inspector.run_leak_probe, inspector.self_check = cached_probe, cached_self_check
    try:
        yield
    finally:
        inspector.run_leak_probe, inspector.self_check = probed, self_check


@contextmanager
def without_self_check() -> Iterator[None]:
    """Skip the self-check, not the leak probe."""
    before, inspector.self_check = inspector.self_check, lambda *_: []
    try:
        yield
    finally:
        inspector.self_check = before


@contextmanager
def minimal_leak_probe() -> Iterator[None]:
    """Probe for leaks at the fewest places that a run may choose: in long texts it tries hundreds."""
    before, checks.BUDGET = checks.BUDGET, dict.fromkeys(checks.BUDGET, 0.0)
    try:
        yield
    finally:
        checks.BUDGET = before


def cached_probe(config: RunConfig, model: Network, batches: BatchStream, *, when: When, step: int) -> Verdict:
    key = (_hash(config, model, batches), when, step)
    if key not in PROBES:
        PROBES[key] = probed(config, model, batches, when=when, step=step)
    return PROBES[key]


def cached_self_check(
    config: RunConfig, model: Network, task: Task, between: Callable[[], None] = lambda: None
) -> list[Verdict]:
    """Call `between` as often as a real check does, so that stop requests are heard."""
    key = _hash(config, model, task.batches(config, next(model.parameters()).device))
    if key not in SELF_CHECKS:
        calls = 0

        def counted() -> None:
            nonlocal calls
            calls += 1
            between()

        SELF_CHECKS[key] = self_check(config, model, task, counted), calls
    else:
        for _ in range(SELF_CHECKS[key][1]):
            between()
    return list(SELF_CHECKS[key][0])


def _hash(config: RunConfig, model: Network, batches: BatchStream) -> str:
    found = hashlib.sha256(f"{config.model_dump_json()} {checks.BUDGET}".encode())
    for name, weight in model.state_dict().items():
        found.update(f"{name} {weight.device.type} {weight.dtype} {tuple(weight.shape)}".encode())
        found.update(weight.detach().cpu().contiguous().numpy().tobytes())
    first = batches.batch(1, 0)
    for part in (batches.leak_probe_examples(), first.tokens, first.targets, first.source):
        if isinstance(part, Tensor):
            found.update(part.cpu().numpy().tobytes())
    return found.hexdigest()
