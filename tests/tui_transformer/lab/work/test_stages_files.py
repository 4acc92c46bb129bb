"""Studies in stages: which runs there are, what each starts from, and what is no chain."""

from dataclasses import replace
from pathlib import Path

import pytest

from engine.base.errors import InputError
from tui_transformer.lab.work.study import Stage, Study, Variant, read_study, stage_chain

PRETRAIN = Stage("pretrain", changes={"train.steps": 30, "data.corpus_seed": 7})
FINETUNE = Stage("finetune", "pretrain", {"train.steps": 10})
SCRATCH = Variant("scratch", stages=("finetune",))


def study(**changes) -> Study:
    given = {"name": "s", "base": "demo", "variants": (Variant("a"), SCRATCH), "baseline": "a", "seeds": (1, 2)}
    return Study(**{**given, "stages": (PRETRAIN, FINETUNE), **changes})


def test_each_seed_of_a_variant_goes_through_its_stages_and_the_last_one_is_called_as_a_run_without_any() -> None:
    cells = study().cells()
    names = ["s.a.pretrain.s1", "s.a.s1", "s.scratch.s1", "s.a.pretrain.s2", "s.a.s2", "s.scratch.s2"]
    assert [cell.name for cell in cells] == names
    assert [cell.parent_cell for cell in cells] == ["", names[0], "", "", names[3], ""]
    assert [cell.stage for cell in cells[:3]] == ["pretrain", "", ""]
    assert [cell.config.train.init_from for cell in cells[:3]] == [None, "s.a.pretrain.s1@best", None]
    assert [cell.config.train.steps for cell in cells[:3]] == [30, 10, 10]
    assert [cell.config.seed for cell in cells] == [1, 1, 1, 2, 2, 2]
    assert [cell.name_without_seed for cell in cells[:3]] == ["a.pretrain", "a", "scratch"]
    assert [cell.parent_stage for cell in cells[:3]] == ["", "pretrain", ""]


def test_a_stage_wins_over_the_study_and_a_variant_over_its_stages() -> None:
    found = study(
        changes={"optimizer.lr": 0.1, "train.batch_size": 4},
        stages=(Stage("pretrain", changes={"optimizer.lr": 0.2}), Stage("finetune", "pretrain")),
        variants=(Variant("a"), Variant("b", "heads2", {"optimizer.lr": 0.3})),
    )
    rates = {cell.name_without_seed: cell.config.optimizer.lr for cell in found.cells()}
    assert rates == {"a.pretrain": 0.2, "a": 0.1, "b.pretrain": 0.3, "b": 0.3}
    assert {cell.config.model.n_heads for cell in found.cells() if cell.variant == "b"} == {2}
    assert {cell.config.train.batch_size for cell in found.cells()} == {4}


def test_a_stage_may_be_what_a_preset_changes_and_its_own_changes_win(tmp_path) -> None:
    stage = Stage("finetune", "pretrain", {"model.n_layers": 1}, preset="heads2")
    found = study(stages=(PRETRAIN, stage))
    models = {cell.name_without_seed: cell.config.model for cell in found.cells()}
    assert {kind: (model.n_heads, model.n_layers) for kind, model in models.items()} == {
        "a.pretrain": (models["a.pretrain"].n_heads, models["a.pretrain"].n_layers),
        "a": (2, 1),
        "scratch": (2, 1),
    }
    assert models["a.pretrain"].n_heads != 2
    path = tmp_path / "s.study.toml"
    path.write_text(found.to_toml(), encoding="utf-8")
    assert read_study(path) == found


def test_what_starts_from_a_stage_that_a_variant_leaves_out_starts_where_that_does() -> None:
    stages = (Stage("one"), Stage("two", "one@last"), Stage("three", "two"))
    assert [(stage.name, *stage.parent) for stage in stage_chain(stages, ())] == [
        *(("one", "", ""), ("two", "one", "last"), ("three", "two", "best")),
    ]
    assert [stage.parent for stage in stage_chain(stages, ("one", "three"))] == [("", ""), ("one", "last")]
    assert [stage.parent for stage in stage_chain(stages, ("three",))] == [("", "")]


def test_a_study_in_stages_written_down_is_read_back_equal(tmp_path) -> None:
    path = tmp_path / "s.study.toml"
    before = study(stages=(PRETRAIN, replace(FINETUNE, starts_from="pretrain@last")))
    path.write_text(before.to_toml(), encoding="utf-8")
    assert read_study(path) == before and read_study(path).cells() == before.cells()


def test_the_run_it_started_from_may_have_been_renamed_and_not_be_another_checkpoint() -> None:
    cell = study().cells()[1]
    ran = cell.config.model_copy(update={"train": cell.config.train.model_copy(update={"init_from": "mine@best"})})
    assert cell.config_differences(ran) == {}
    other = ran.model_copy(update={"train": ran.train.model_copy(update={"init_from": "mine@last"})})
    assert list(cell.config_differences(other)) == ["train.init_from"]
    anew = ran.model_copy(update={"train": ran.train.model_copy(update={"init_from": None})})
    assert list(cell.config_differences(anew)) == ["train.init_from"]


WRONG = {
    "one alone": ({"stages": (PRETRAIN,), "variants": (Variant("a"), Variant("b"))}, "a single stage is not a chain"),
    "twice a name": ({"stages": (PRETRAIN, replace(FINETUNE, name="pretrain"))}, "two stages are called 'pretrain'"),
    "a bad name": ({"stages": (replace(PRETRAIN, name="a b"), replace(FINETUNE, starts_from="a b"))}, "run name 'a b'"),
    "from nowhere": ({"stages": (PRETRAIN, replace(FINETUNE, starts_from="pretain"))}, "did you mean 'pretrain'?"),
    "from itself": ({"stages": (PRETRAIN, replace(FINETUNE, starts_from="finetune"))}, "is not an earlier stage"),
    "no checkpoint": ({"stages": (PRETRAIN, replace(FINETUNE, starts_from="pretrain@bst"))}, "did you mean 'best'?"),
    "no such preset": ({"stages": (PRETRAIN, replace(FINETUNE, preset="heads3"))}, "did you mean 'heads8'?"),
    "a preset that is a base": ({"stages": (PRETRAIN, replace(FINETUNE, preset="demo"))}, "is a base, not an overlay"),
    "weights of its own choice": (
        {"base": "biographies-pretrain", "stages": (PRETRAIN, replace(FINETUNE, preset="biographies-finetune"))},
        "is already set by its `from`",
    ),
    "leads nowhere": ({"stages": (PRETRAIN, replace(FINETUNE, starts_from=""))}, "no stage starts from it"),
    "an unknown one": ({"variants": (Variant("a"), Variant("b", stages=("finetun",)))}, "did you mean 'finetune'?"),
    "not the last": ({"variants": (Variant("a"), Variant("b", stages=("pretrain",)))}, "'finetune' cannot be left out"),
    "none there": ({"stages": ()}, "the study has none"),
    "its key": ({"stages": (replace(PRETRAIN, changes={"x": 1}), FINETUNE)}, "stage 'pretrain': changes: unknown key"),
    "said twice": (
        {"stages": (PRETRAIN, replace(FINETUNE, changes={"train.init_from": "x"}))},
        "'train.init_from' is already set by its `from`",
    ),
    "one name": (
        {"variants": (Variant("a"), Variant("a.pretrain"))},
        "two of its runs would be called 's.a.pretrain.s2'",
    ),
    "too many": ({"seeds": tuple(range(4000))}, "12,000 runs"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_chain_is_refused_in_one_line(case: str) -> None:
    changes, said = WRONG[case]
    with pytest.raises(InputError) as error:
        study(**changes)
    assert said in str(error.value) and "\n" not in str(error.value)


def test_two_variants_that_go_through_the_same_stages_with_the_same_settings_are_one() -> None:
    same = (Variant("a"), Variant("b", changes={"model.n_heads": 4}))
    with pytest.raises(InputError, match="variants 'a' and 'b' have the same config"):
        study(variants=same).cells()
    assert study(variants=(Variant("a"), SCRATCH)).cells()  # the same but for where the weights come from


def test_what_a_stage_asks_for_and_cannot_have_is_named_with_it() -> None:
    wrong = replace(FINETUNE, changes={"model.n_heads": 3})
    with pytest.raises(
        InputError,
        match="variant 'a', stage 'finetune': model.n_heads and model.d_model: d_model 64 is not divisible by 3 heads",
    ):
        study(stages=(PRETRAIN, wrong)).cells()


FILES = {
    '[[stages]]\nname = "a"\nform = "b"\n': "did you mean 'from'?",
    '[[stages]]\nfrom = "b"\n': "stage 1 has no name",
    'stages = ["a"]\n': "stage 1 = 'a': must be a table, [[stages]]",
}


@pytest.mark.parametrize("text", FILES)
def test_a_bad_file_is_named_with_what_would_be_right(tmp_path, text: str) -> None:
    path = tmp_path / "s.toml"
    rest = '\n[[variants]]\nname = "a"\n[[variants]]\nname = "b"\n'
    path.write_text('base = "demo"\nbaseline = "a"\n' + text + rest)
    with pytest.raises(InputError) as error:
        read_study(path)
    assert FILES[text] in str(error.value)


def test_the_study_in_the_documentation_is_one(tmp_path) -> None:
    text = (Path(__file__).parents[4] / "docs" / "how-to" / "stages.md").read_text(encoding="utf-8")
    (tmp_path / "s.toml").write_text(text.partition("```toml\n")[2].partition("```")[0])
    found = read_study(tmp_path / "s.toml")
    assert [cell.name_without_seed for cell in found.cells()[:5]] == [
        "pretrained.pretrain",
        "pretrained",
        "alibi.pretrain",
        "alibi",
        "scratch",
    ]
