"""What is kept of a design comes back as it was; what is no longer valid is left out."""

from dataclasses import replace

import pytest
from filelock import FileLock

from tui_transformer import settings
from tui_transformer.lab.design.draft import Draft
from tui_transformer.lab.design.kept import restore_draft, to_kept_draft
from tui_transformer.settings import KeptDesign, KeptDraft

DRAFTS = (
    Draft.from_preset("demo"),
    Draft.from_preset("demo")
    .with_override_text("model.n_layers=1")
    .with_override_text("optimizer.lr=1e-4")
    .with_override_text("train.epochs=2"),
    Draft.from_preset("demo").with_changes({"model.d_model": 96, "model.n_heads": 3}),  # neither is valid alone
    Draft.from_preset("demo").with_ranks(4),
    Draft.from_preset("no-pe").with_base("demo").with_override_text("seed=7"),
    Draft.from_preset("demo").with_change("evaluation.sample_prompt", "ROMEO:\n\tAy,\n"),
    Draft.from_preset("demo")
    .with_override_text("optimizer.betas=[0.9, 0.95]")
    .with_override_text('description=[bold]a = "b" 中文'),
)


@pytest.mark.parametrize("draft", DRAFTS, ids=lambda draft: draft.name)
def test_a_design_comes_back_from_the_file_as_it_was(draft: Draft) -> None:
    settings.save_design(KeptDesign(at="demo", drafts={"demo": to_kept_draft(draft)}))
    found, wrong = settings.load()
    assert not wrong and found.design.at == "demo"
    again = restore_draft(replace(draft, changes={}, on=None, ranks=1), found.design.drafts["demo"])
    assert again.config == draft.config and again.name == draft.name and again.ranks == draft.ranks
    assert dict(again.changes) == {k: list(v) if isinstance(v, tuple) else v for k, v in draft.changes.items()}


def test_what_is_no_longer_valid_is_left_out() -> None:
    demo = Draft.from_preset("demo")
    changes = {"model.n_layers": 1, "model.gone": 3, "model": {"n_heads": 2}, "model.n_heads": "many", "seed": 2**99}
    again = restore_draft(demo, KeptDraft(on="gone", ranks=10**9, changes=changes))
    assert again == demo.with_change("model.n_layers", 1)
    overlay = Draft.from_preset("no-pe")
    assert restore_draft(overlay, KeptDraft(on="../../gone")) == overlay


@pytest.mark.parametrize(
    "damage",
    [
        "design = 5",
        "[design]\nat = 5",
        '[design]\nat = "\\u001b[31m"\ndrafts = [1, 2]',
        '[design.drafts.demo]\nranks = "many"',
        '[design.drafts.demo]\nchanges = {"seed" = "\\u001b]0;x\\u0007", "description" = 1979-05-27}',
        '[design.drafts."\\u202e"]\nranks = 2',
        "[design.drafts.demo.changes]\nseed = " + "[" * 90 + "]" * 90,
        '[design.drafts.demo.changes]\ndescription = "' + "x" * 40_000 + '"',
    ],
)
def test_damage_costs_the_design_and_no_other_setting(damage: str, own_settings) -> None:
    own_settings.write_text(f'welcomed = true\npane = "train"\n{damage}\n')
    found, wrong = settings.load()
    assert (found.pane, found.welcomed, wrong) == ("train", True, "")
    assert not found.design.at
    for draft in found.design.drafts.values():
        assert draft == KeptDraft()
    assert "\\u" not in str(found.design)
    settings.save_design(KeptDesign(at="win16"))  # it can be written again
    assert settings.load()[0].design.at == "win16" and settings.load()[0].pane == "train"


def test_what_the_file_cannot_hold_is_not_kept(own_settings) -> None:
    mine = settings.Settings(welcomed=True)
    mine.design = KeptDesign(at="a\udcff", drafts={"\udcff": KeptDraft(), "demo": KeptDraft(changes={"seed": None})})
    assert mine.design == KeptDesign(drafts={"demo": KeptDraft()}) and settings.save(mine) == ""
    mine.design = KeptDesign(drafts={f"{n}": KeptDraft(changes={"description": "x" * 9_000}) for n in range(9)})
    assert mine.design == KeptDesign() and settings.save(mine) == "" and settings.load() == (mine, "")


def test_settings_that_another_studio_is_saving_are_waited_for(own_settings, monkeypatch) -> None:
    mine = settings.Settings(welcomed=True)
    monkeypatch.setattr(settings, "LOCK_TIMEOUT", 0.1)
    with FileLock(own_settings.with_name(".lock")):
        assert "the setting will only last until you quit" in settings.save(mine)
    assert settings.save(mine) == "" and settings.load()[0].welcomed


def test_keeping_the_design_leaves_what_was_edited_meanwhile(own_settings) -> None:
    own_settings.write_text('welcomed = true\ntheme = "mine"\n')
    settings.save_design(KeptDesign(at="win16"))
    assert settings.load()[0] == settings.Settings(welcomed=True, theme="mine", design=KeptDesign(at="win16"))
    own_settings.write_text("a mistake")
    settings.save_design(KeptDesign(at="alibi"))
    assert own_settings.read_text() == "a mistake"


def test_two_studios_keep_each_others_designs(own_settings) -> None:
    def design(**layers: int) -> settings.KeptDesign:
        return settings.KeptDesign(
            drafts={at: settings.KeptDraft(changes={"model.n_layers": n}) for at, n in layers.items()}
        )

    def layers() -> dict[str, int]:
        return {at: draft.changes["model.n_layers"] for at, draft in settings.load()[0].design.drafts.items()}

    settings.save(settings.Settings(design=design(both=1, dropped=2)))
    before = design(both=1, dropped=2)
    settings.save_design(design(both=1, dropped=2, first=3), before)  # one studio
    settings.save_design(design(both=4), before)  # the other, which knows nothing of that
    assert layers() == {"both": 4, "first": 3}
    settings.save_design(design(both=1, dropped=2, first=3), design(both=1, dropped=2, first=3))  # nothing is new
    assert layers() == {"both": 4, "first": 3}
