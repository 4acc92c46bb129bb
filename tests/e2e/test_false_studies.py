"""The false conclusions of the founding reports, trained anew as a study: what its table says to each."""

import random
import re
from pathlib import Path

import pytest

from tests.tui_transformer.lab.work.tiny import CHANGES, started, written
from tests.waiting import PATIENCE
from tui_transformer.__main__ import main
from tui_transformer.lab.work.study import Study, Variant

VARIANTS = (
    Variant("heads4", changes={"model.n_heads": 4}),
    Variant("heads2", changes={"model.n_heads": 2}),
    Variant("both-ways", changes={"model.architecture": "encoder", "train.allow_leak": True}),
    Variant("window-forgotten", changes={"model.n_heads": 4, "model.window": 8}),  # attention stays global
    Variant("too-slow", changes={"optimizer.lr": 1e-9}),
)
CHANGED = {**CHANGES, "train.steps": 400}
LONG = {"train.steps": 500, "train.batch_size": 16, "evaluation.every": 50, "optimizer.lr": 5e-3}
LARGE = {"model.d_model": 64, "model.d_ff": 256, "model.context_length": 32, "data.validation_fraction": 0.3}


@pytest.mark.slow  # six trainings
def test_a_study_says_what_the_reports_did_not(tmp_path: Path, capsys) -> None:
    few = tmp_path / "few-words.txt"
    few.write_text(words_in_no_order())
    no_end = Variant("no-end", changes={**LONG, **LARGE, "data.corpus": str(few)})
    study = Study("false", "demo", (*VARIANTS, no_end), "heads4", seeds=(1,), changes=CHANGED)
    process = started(written(tmp_path, study), tmp_path / "runs")
    said, _ = process.communicate(timeout=10 * PATIENCE)
    assert process.returncode == 0, said
    assert main(["compare", "false", "--runs-dir", str(tmp_path / "runs")]) == 0
    said = capsys.readouterr().out
    assert verdict(said, "heads2").startswith(("one seed: inconclusive", "still falling"))
    assert verdict(said, "both-ways").startswith("LEAK: not comparable")
    assert verdict(said, "window-forgotten").startswith("INERT: not comparable")
    table = said.partition("probes and scores")[0]
    rows = {line.split()[0]: line for line in table.splitlines() if line}
    for name, badge in (("both-ways", "LEAK"), ("too-slow", "NO-LEARN"), ("no-end", "OVERFIT")):
        assert badge in rows[name], said


def words_in_no_order() -> str:
    """Words can be learned; their order can only be learned by heart."""
    draws = random.Random(1)
    words = ["".join(draws.choice("abcdefghijkl") for _ in range(draws.randint(2, 6))) for _ in range(40)]
    return " ".join(draws.choice(words) for _ in range(200))


def verdict(said: str, variant: str) -> str:
    found = re.search(rf"^{variant}: (.*)$", said, re.MULTILINE)
    assert found, said
    return found[1]
