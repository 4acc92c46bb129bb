"""Twins: finished runs that differ in a setting, or only in the seed, and agree to the last bit."""

import json
import math
from pathlib import Path

import pytest
from torch import nn

from engine.config.keys import parse_overrides
from engine.config.presets import merge
from engine.config.schema import RunConfig
from engine.config.toml import config_toml
from engine.runs.reader import RunReader
from engine.runs.twins import inert_switches, scores_hash
from engine.training.assemble import assemble
from tests.engine.training.test_resume import miniature


def run(config: RunConfig, root: Path, name: str) -> RunReader:
    ready = assemble(config, runs_dir=root, name=name, device="cpu")
    ready.trainer.run()
    return RunReader(ready.path)


def relabel(reader: RunReader, change: str) -> RunReader:
    """As if it had been asked for with another setting, which the code then ignored."""
    tables = merge(reader.config.dump(), *parse_overrides([change]))
    (reader.path / "config.toml").write_text(config_toml(RunConfig.model_validate(tables)), encoding="utf-8")
    return RunReader(reader.path)


def test_runs_with_different_seeds_and_equal_metrics_say_that_the_seed_had_no_effect(tmp_path, monkeypatch) -> None:
    run(miniature("baseline"), tmp_path, "a")
    real = RunConfig.__getattribute__  # every part of a run asks its config for the seed
    monkeypatch.setattr(RunConfig, "__getattribute__", lambda self, k: 1 if k == "seed" else real(self, k))
    second = run(miniature("baseline", "seed=2"), tmp_path, "b")
    assert set(second.badges) == {"INERT", "BROKEN"} and "a different seed" in second.badges["INERT"]
    monkeypatch.undo()
    assert dict(inert_switches(RunReader(second.path), tmp_path)) == {"a": {"seed": (1, 2)}}
    assert run(miniature("baseline", "seed=2"), tmp_path, "c").badges == {}


def test_a_twin_that_is_logged_less_often_is_seen(tmp_path) -> None:
    run(miniature("baseline"), tmp_path, "a")
    rarely = run(miniature("baseline", "log.every=3"), tmp_path, "b")
    assert rarely.badges == {}  # logging is no switch
    relabelled = relabel(rarely, "optimizer.weight_decay=0.4")
    assert set(dict(inert_switches(relabelled, tmp_path))["a"]) == {"optimizer.weight_decay"}


def test_clipping_is_inert_only_where_a_gradient_was_long_enough_to_be_clipped(tmp_path, monkeypatch) -> None:
    real = nn.utils.clip_grad_norm_
    never = run(miniature("baseline", "train.clip=900"), tmp_path / "high", "a")
    other = run(miniature("baseline", "train.clip=1000"), tmp_path / "high", "b")
    assert never.badges == other.badges == {}
    monkeypatch.setattr(nn.utils, "clip_grad_norm_", lambda parameters, clip: real(parameters, math.inf))
    assert set(run(miniature("baseline", "train.clip=900"), tmp_path / "low", "a").badges) == {"BROKEN"}
    ignored = run(miniature("baseline", "train.clip=0.001"), tmp_path / "low", "b")
    assert set(ignored.badges) == {"INERT", "BROKEN"} and "train.clip" in ignored.badges["INERT"]


def test_runs_of_earlier_versions_are_still_compared_with_each_other(tmp_path) -> None:
    run(miniature("baseline"), tmp_path, "a")
    second = relabel(run(miniature("baseline"), tmp_path, "b"), "optimizer.weight_decay=0.4")
    for path in (tmp_path / "a", second.path):
        summary = json.loads((path / "summary.json").read_text())
        assert summary.pop("scores_sha256") == scores_hash(path)
        (path / "summary.json").write_text(json.dumps(summary))
    assert set(dict(inert_switches(RunReader(second.path), tmp_path))) == {"a"}
    (second.path / "summary.json").write_text(json.dumps({"step": 1}))
    assert not dict(inert_switches(RunReader(second.path), tmp_path))


@pytest.mark.parametrize("changes", [(), ("evaluation.patience=5",)])
def test_a_plain_repeat_is_not_a_twin(tmp_path, changes) -> None:
    run(miniature("baseline"), tmp_path, "a")
    assert run(miniature("baseline", *changes), tmp_path, "b").badges == {}
