"""Tiny runs that really were trained, for what needs a model: a second each."""

from pathlib import Path

from engine.config.keys import parse_overrides
from engine.config.presets import merge
from engine.config.schema import RunConfig
from tests.conftest import TINY
from tests.trained_runs import cached_run

KINDS = {
    "decoder": (),
    "alibi": ("model.position=alibi",),
    "linear": ("model.attention=linear",),
    "masked": ("model.architecture=encoder", "objective.kind=masked"),
    "copy": ("model.architecture=encoder-decoder", "objective.kind=copy", "model.source_length=8"),
}


def train(runs: Path, name: str, *changes: str) -> Path:
    """A run that was trained for a few steps."""
    tables = TINY
    for override in parse_overrides(changes):
        tables = merge(tables, override)
    return cached_run(RunConfig.model_validate(tables), runs, name)


def train_all(runs: Path) -> Path:
    """One run of each kind; gives back their folder."""
    for name, changes in KINDS.items():
        train(runs, name, *changes)
    return runs
