"""The self-check, run before a run starts and by `check`: does this code do what the config says?

One list, so that a new check is added in one place. All checks use small copies of the network (see
`engine.training.copies`); the run's own weights and torch's random state are left alone.
"""

from collections.abc import Callable

import torch

from engine.config.schema import RunConfig
from engine.data.loader import Examples
from engine.evaluation.checks import order_check
from engine.evaluation.verdict import Verdict
from engine.model.transformer import Network
from engine.training import network_checks, step_checks
from engine.training.copies import WORDS, small_copy


def self_check(
    config: RunConfig,
    model: Network,
    batches: Examples,
    reseeded: Callable[[int], Examples],
    between: Callable[[], None] = lambda: None,
) -> list[Verdict]:
    """One verdict per check; checks that do not apply to this network give none.

    Args:
        config: resolved.
        model: the run's own; only its parameters are counted.
        batches: what it is trained on.
        reseeded: the same under another seed.
        between: called before each check; may raise to stop.
    """
    few = step_checks.few_rows(config, batches)
    with torch.random.fork_rng([]), torch.enable_grad():
        copy = small_copy(config, min(model.vocab_size, WORDS))
        reader = step_checks.reader(config, batches.objective.vocab_size)
        checks: dict[str, Callable[[], Verdict | None]] = {
            "order": lambda: order_check(copy.network, copy.network.vocab_size),
            "parameters": lambda: network_checks.parameters(config, model, copy),
            "reference": lambda: network_checks.reference(copy),
            "source": lambda: network_checks.source(copy),
            "cache parity": lambda: network_checks.cache_parity(copy),
            "sampling": lambda: network_checks.sampling(copy),
            "gradient": lambda: step_checks.gradient(config, reader, few),
            "update": lambda: step_checks.update(config, reader, few),
            "dropout": lambda: step_checks.dropout(config, reader, few),
            "seed": lambda: step_checks.seed(config, copy, reseeded),
        }
        found = []
        for name, check in checks.items():
            between()
            found.append(_tried(name, check))
    return [verdict for verdict in found if verdict is not None]


def _tried(name: str, check: Callable[[], Verdict | None]) -> Verdict | None:
    """The verdict of a check; an exception is a failure too."""
    try:
        return check()
    except Exception as error:
        said = f"{type(error).__name__}: {' '.join(str(error).split())}"
        if isinstance(error, MemoryError) or "memory" in str(error):
            return network_checks.verdict(name, "", f"skipped: not enough memory ({said})")
        return network_checks.verdict(name, f"the check failed with an error: {said}", "")
