"""The false conclusions of the founding reports, trained anew as a study: what its table says to each."""

import re
from pathlib import Path

import pytest

from engine.runs.study import Study, Variant
from tests.tui_transformer.studies.tiny import CHANGES, started, written
from tui_transformer.__main__ import main

VARIANTS = (
    Variant("heads4", changes={"model.n_heads": 4}),
    Variant("heads2", changes={"model.n_heads": 2}),
    Variant("both-ways", changes={"model.architecture": "encoder", "train.allow_leak": True}),
    Variant("window-forgotten", changes={"model.n_heads": 4, "model.window": 8}),  # attention stays global
    Variant("too-slow", changes={"optimizer.lr": 1e-9}),
    Variant("no-end", changes={"data.corpus_size": 3_000, "train.steps": 1_200, "model.d_model": 64}),
)
FALSE = Study("false", "demo", VARIANTS, "heads4", seeds=(1,), changes={**CHANGES, "train.steps": 400})


@pytest.mark.slow  # six trainings
def test_a_study_says_what_the_reports_did_not(tmp_path: Path, capsys) -> None:
    process = started(written(tmp_path, FALSE), tmp_path / "runs")
    said, _ = process.communicate(timeout=550)
    assert process.returncode == 0, said
    assert main(["compare", "false", "--runs-dir", str(tmp_path / "runs")]) == 0
    said = capsys.readouterr().out
    assert verdict(said, "heads2").startswith(("one seed: cannot tell", "still falling"))
    assert verdict(said, "both-ways").startswith("LEAK: not comparable")
    assert verdict(said, "window-forgotten").startswith("INERT: not comparable")
    rows = {line.split()[0]: line for line in said.splitlines() if line.startswith(("both", "window", "too", "no-"))}
    for name, badge in (("both-ways", "LEAK"), ("too-slow", "NOT-LEARNING"), ("no-end", "OVERFIT")):
        assert badge in rows[name], said


def verdict(said: str, variant: str) -> str:
    found = re.search(rf"^{variant}: (.*)$", said, re.MULTILINE)
    assert found, said
    return found[1]
