"""Which combinations of choices make sense, as data, and the reason why not for those that do not.

One table (`RULES`) greys out choices in the app, gives the command line its error, and generates the test grid.
No torch here.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, get_args

from engine.config.schema import ModelConfig, ObjectiveConfig, RunConfig
from engine.errors import InputError

# The axes of the grid: what a user chooses from, and every value it can take.
AXES: dict[str, tuple[str, ...]] = {
    "model.architecture": get_args(ModelConfig.model_fields["architecture"].annotation),
    "model.position": get_args(ModelConfig.model_fields["position"].annotation),
    "model.attention": get_args(ModelConfig.model_fields["attention"].annotation),
    "model.norm_placement": get_args(ModelConfig.model_fields["norm_placement"].annotation),
    "objective.kind": get_args(ObjectiveConfig.model_fields["kind"].annotation),
}


@dataclass(frozen=True)
class Rule:
    """A combination that cannot be, the keys it is about, and why a student should expect that."""

    keys: tuple[str, ...]
    broken: Callable[[RunConfig], bool]
    reason: Callable[[RunConfig], str]


def _divisors(config: RunConfig) -> str:
    width = config.model.d_model
    near = [n for n in range(1, min(width, 64) + 1) if width % n == 0]
    return ", ".join(str(n) for n in near[:8])


RULES: tuple[Rule, ...] = (
    Rule(
        ("model.n_heads", "model.d_model"),
        lambda c: c.model.d_model % c.model.n_heads != 0,
        lambda c: (
            f"{c.model.n_heads} heads cannot share d_model {c.model.d_model} equally; heads that can: {_divisors(c)}"
        ),
    ),
    Rule(
        ("model.position", "model.n_heads"),
        lambda c: c.model.position == "rope" and c.model.head_width % 2 != 0,
        lambda c: (
            f"rope turns features in pairs, and a head of {c.model.head_width} features has an odd one left; "
            f"d_model / n_heads must be even (is {c.model.d_model} / {c.model.n_heads})"
        ),
    ),
    Rule(
        ("model.position", "model.d_model"),
        lambda c: c.model.position == "sinusoidal" and c.model.d_model % 2 != 0,
        lambda c: f"sinusoidal positions come in sine-cosine pairs; d_model must be even (is {c.model.d_model})",
    ),
    Rule(
        ("model.position_init", "model.position"),
        lambda c: c.model.position_init == "zero" and c.model.position != "learned",
        lambda c: (
            f"position_init = 'zero' is about a learned table, and position = '{c.model.position}' learns none; "
            "leave it out or choose position = 'learned'"
        ),
    ),
    Rule(
        ("optimizer.decay_over", "optimizer.schedule"),
        lambda c: c.optimizer.schedule != "cosine" and c.optimizer.decay_over is not None,
        lambda c: f"decay_over is how long a cosine takes, and the schedule is '{c.optimizer.schedule}'; leave it out",
    ),
    Rule(
        ("optimizer.decay_every", "optimizer.schedule"),
        lambda c: c.optimizer.schedule == "constant" and c.optimizer.decay_every is not None,
        lambda c: "decay_every says when the rate changes, and a constant one never does; leave it out",
    ),
)


@dataclass(frozen=True)
class Refusal:
    """Why a config cannot be built: the keys it is about and one sentence."""

    keys: tuple[str, ...]
    reason: str


def check(config: RunConfig) -> Refusal | None:
    """None if the config can be built and trained, else the first reason why not."""
    for rule in RULES:
        if rule.broken(config):
            return Refusal(rule.keys, rule.reason(config))
    return None


def require(config: RunConfig, where: str) -> None:
    """Raise an `InputError` that names the reason, if the config cannot be built."""
    refusal = check(config)
    if refusal is not None:
        raise InputError(f"{where}: {' and '.join(refusal.keys)}: {refusal.reason}")


def with_value(config: RunConfig, key: str, value: Any) -> RunConfig:
    """The config with one dotted key of a section changed."""
    section, name = key.split(".")
    data = config.dump()
    data[section][name] = value
    return RunConfig.model_validate(data)


def options(config: RunConfig, key: str) -> dict[str, str | None]:
    """What an axis offers here: value → None if it can be chosen, else the reason why not."""
    offered: dict[str, str | None] = {}
    for value in AXES[key]:
        refusal = check(with_value(config, key, value))
        offered[value] = None if refusal is None else refusal.reason
    return offered


def legal_cells(base: RunConfig) -> Iterator[RunConfig]:
    """Every legal combination of the axes on top of a base config: the test grid."""
    for values in itertools.product(*AXES.values()):
        cell = base
        for key, value in zip(AXES, values, strict=True):
            cell = with_value(cell, key, value)
        if check(cell) is None:
            yield cell
