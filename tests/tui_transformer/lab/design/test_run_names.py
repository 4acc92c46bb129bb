"""A run's name says what changed, and is a name that a run may have."""

import pytest

from engine.runs.names import check_name
from tui_transformer.lab.design.draft import Draft

NAMES = {
    ("demo", ()): "demo",
    ("demo", (("model.position", "none"),)): "demo-no-pe",
    ("demo", (("model.norm_placement", "post"),)): "demo-post-norm",
    ("demo", (("model.n_heads", 2), ("optimizer.lr", 1e-3))): "demo-heads2-lr1e-3",
    ("demo", (("data.corpus", "/home/me/texts/zh.txt"),)): "demo-zh",
    ("demo", (("model.parallel", True), ("model.residual", True))): "demo-parallel",
    ("demo", (("log.every", 3),)): "demo",
    ("win16", (("model.dropout", 0.2),)): "win16-dropout0.2",
    ("multi30k", (("train.epochs", 2.5),)): "multi30k-epochs2.5",
}


@pytest.mark.parametrize(("preset", "changes"), NAMES)
def test_a_runs_name_says_what_changed(preset: str, changes: tuple[tuple[str, object], ...]) -> None:
    draft = Draft.from_preset(preset)
    for key, value in changes:
        draft = draft.with_change(key, value)
    assert draft.run_name == NAMES[preset, changes]


def test_an_overlays_name_follows_its_base_and_many_changes_are_counted() -> None:
    draft = Draft.from_preset("no-pe").with_base("demo")
    assert draft.run_name == "demo-no-pe"
    for key, value in {"seed": 3, "train.steps": 20, "model.d_ff": 64, "optimizer.warmup": 5}.items():
        draft = draft.with_change(key, value)
    assert draft.run_name == "demo-no-pe-seed3-steps20-2more"


def test_no_text_makes_a_name_that_a_run_cannot_have() -> None:
    for text in ("中文.txt", "../..", "a b\x1b[31m;rm", "x" * 300, ".hidden"):
        check_name(Draft.from_preset("demo").with_change("data.corpus", text).run_name)
