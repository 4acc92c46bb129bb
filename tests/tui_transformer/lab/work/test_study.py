import itertools
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.base.errors import InputError
from engine.config import presets
from engine.config.keys import diff, flatten
from engine.model.transformer import build_model
from engine.runs.names import check_name
from engine.tasks.task import make_task
from tui_transformer.lab.work.arguments import baseline_of, grid, parse_axis
from tui_transformer.lab.work.study import (
    OUTCOMES,
    SEEDS,
    Study,
    Variant,
    base_tables,
    find_study,
    read_study,
    shipped_studies,
    stage_chain,
)

STAGED = ["biographies", "biographies-characters", "report-birthplaces"]
OF_TEXT = ["attention", "components", "feed-forwards", "heads", "muon", "positions", "qk-norm", "report-decoder-heads"]
SHIPPED = sorted(
    [*OF_TEXT, *STAGED, "bulletins", "headlines", "feed-forwards-shakespeare", "shakespeare-cpu-muon", "nanogpt-muon"]
)
TWO = (Variant("a"), Variant("b", changes={"model.n_heads": 2}))


def study(**changes) -> Study:
    return Study(**{"name": "s", "base": "demo", "variants": TWO, "baseline": "a", **changes})


def small(name: str) -> Study:
    """A shipped study at a size that is built in no time, on generated text."""
    changes = {"model.d_model": 32, "model.d_ff": 64, "model.context_length": 32, "data.corpus": "playlets"}
    changes |= {"data.corpus_size": 20_000, "train.batch_size": 2, "model.vocab_size": 70}
    return replace(find_study(name), changes=changes)


def test_the_shipped_studies_are_legal_and_no_presets() -> None:
    assert list(shipped_studies()) == SHIPPED
    assert not {preset.name for preset in presets.list_presets()} & {"attention", "positions", "components"}
    for name in SHIPPED:
        found = find_study(name)
        assert (
            found.description
            and len(found.cells())
            == sum(len(stage_chain(found.stages, variant.stages)) for variant in found.variants) * len(found.seeds)
            and (found.seeds_given or found.seeds == SEEDS)
        )


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_study_says_of_each_variant_what_is_expected_and_why(name: str) -> None:
    found = find_study(name)
    for variant in found.variants:
        assert variant.why.endswith(".")
        assert bool(variant.expect) == (variant.name != found.baseline)
        assert set(variant.expect.values()) <= set(OUTCOMES)


@pytest.mark.parametrize("name", [n for n in OF_TEXT if n != "report-decoder-heads"])
@pytest.mark.parametrize("base", ["demo", "baseline"])
def test_the_studies_of_playlets_fit_either_base(name: str, base: str) -> None:
    assert replace(find_study(name), base=base).cells()


@pytest.mark.parametrize("name", SHIPPED)
def test_a_study_written_down_is_read_back_equal(tmp_path, name: str) -> None:
    path = tmp_path / "x.study.toml"
    before = replace(find_study(name), changes={"train.threads": 1, "optimizer.betas": [0.9, 0.95]})
    path.write_text(before.to_toml(), encoding="utf-8")
    assert read_study(path) == before
    assert read_study(path).cells() == before.cells()


def test_cells_come_seeds_first_and_are_named_after_study_variant_and_seed() -> None:
    names = [cell.name for cell in study(seeds=(1, 7)).cells()]
    assert names == ["s.a.s1", "s.b.s1", "s.a.s7", "s.b.s7"]
    assert [cell.config.seed for cell in study(seeds=(1, 7)).cells()] == [1, 1, 7, 7]


def test_what_a_variant_changes_wins_over_what_the_study_changes() -> None:
    found = study(
        changes={"model.n_heads": 8, "train.epochs": 2},
        variants=(Variant("a"), Variant("b", preset="heads2"), Variant("c", "heads2", {"model.n_heads": 1})),
    )
    configs = [cell.config for cell in found.cells()[:3]]
    assert [config.model.n_heads for config in configs] == [8, 2, 1]
    assert all(config.train.epochs == 2 for config in configs)


def test_a_base_may_be_an_overlay_on_another_base() -> None:
    config = study(base="win16@demo").cells()[0].config
    assert config.model.attention == "window" and config.model.d_model == 64 and config.preset == "win16@demo"
    assert flatten(base_tables("demo"))["model.d_model"] == 64


@pytest.mark.parametrize("name", OF_TEXT)
def test_variants_share_their_batches_and_where_shapes_agree_their_first_weights(name: str) -> None:
    by_seed = itertools.groupby(small(name).cells()[: 2 * len(find_study(name).variants)], key=lambda cell: cell.seed)
    for _, group in by_seed:
        configs = [cell.config for cell in group]
        task = make_task(configs[0], None)
        first = [task.batches(task.resolve_config(c, "", 1), torch.device("cpu")).batch(3, 0) for c in configs]
        assert all(torch.equal(batch.inputs[0], first[0].inputs[0]) for batch in first)
        models = [dict(build_model(c.model, 70, c.seed).named_parameters()) for c in configs]
        for model in models[1:]:
            shared = [key for key in model if key in models[0] and model[key].shape == models[0][key].shape]
            assert len(shared) > 5
            assert all(torch.equal(model[key], models[0][key]) for key in shared)


def test_another_seed_is_other_batches_and_other_weights() -> None:
    one, other = (cell.config for cell in small("heads").cells()[:: len(find_study("heads").variants)][:2])
    left, right = (build_model(c.model, 70, c.seed).state_dict() for c in (one, other))
    assert any(not torch.equal(left[key], right[key]) for key in left)


WRONG = {
    "no primary": ({"primary": "los"}, "did you mean 'loss'?"),
    "no baseline": ({"baseline": "aa"}, "baseline 'aa' is not one of the variants"),
    "one variant": ({"variants": TWO[:1]}, "at least 2"),
    "twice a name": ({"variants": (TWO[0], TWO[0])}, "two variants are called 'a'"),
    "a bad name": ({"variants": (TWO[0], Variant("b c"))}, "variant 'b c': run name"),
    "a bad study": ({"name": "../s"}, "run name '../s'"),
    "too long": ({"name": "s" * 98}, "up to 100 letters"),
    "a run's name": ({"name": "s.a.s1"}, "looks like the name of one of the study"),
    "no seed": ({"seeds": ()}, "has no seeds"),
    "a seed twice": ({"seeds": (1, 1)}, "seed 1 is listed twice"),
    "a seed below 0": ({"seeds": (-1,)}, "0 or greater"),
    "too many": ({"seeds": tuple(range(10_000))}, "20,000 runs"),
    "unknown key": ({"changes": {"model.n_head": 2}}, "unknown key 'model.n_head'; did you mean 'model.n_heads'?"),
    "a seed changed": ({"changes": {"seed": 2}}, "is set by `seeds`"),
    "its key": ({"variants": (TWO[0], Variant("b", changes={"x": 1}))}, "variant 'b': changes: unknown key 'x'"),
    "a measure": ({"variants": (TWO[0], Variant("b", expect={"recal": "worse"}))}, "did you mean 'recall'?"),
    "an outcome": ({"variants": (TWO[0], Variant("b", expect={"loss": "bad"}))}, "worse, better, same or unknown"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_a_study_is_refused_in_one_line(case: str) -> None:
    changes, said = WRONG[case]
    with pytest.raises(InputError) as error:
        study(**changes)
    assert said in str(error.value) and "\n" not in str(error.value)


ILLEGAL = {
    "a base": ({"base": "dem"}, "study 's': no preset named 'dem'; did you mean 'demo'?"),
    "an overlay": ({"variants": (TWO[0], Variant("b", "win61"))}, "variant 'b': no preset named 'win61'"),
    "no overlay": ({"variants": (TWO[0], Variant("b", "shakespeare"))}, "is a base, not an overlay"),
    "a value": ({"variants": (TWO[0], Variant("b", changes={"model.n_heads": 0}))}, "variant 'b': model.n_heads = 0"),
    "no pair": (
        {"variants": (TWO[0], Variant("b", changes={"model.attention": "linear", "model.position": "alibi"}))},
        "variant 'b': model.position and model.attention: linear attention has no score matrix",
    ),
    "the same": (
        {"variants": (TWO[0], Variant("b", changes={"model.n_heads": 4}))},
        "variants 'a' and 'b' have the same config",
    ),
}


@pytest.mark.parametrize("case", ILLEGAL)
def test_what_a_variant_asks_for_and_cannot_have_is_named_with_its_reason(case: str) -> None:
    changes, said = ILLEGAL[case]
    with pytest.raises(InputError) as error:
        study(**changes).cells()
    assert said in str(error.value)


FILES = {
    'base = "demo"\n': "'baseline' is missing",
    'bass = "demo"\n': "unknown key 'bass'; did you mean 'base'?",
    'base = 3\nbaseline = "a"\nvariants = []\n': "base = 3: must be text",
    'base = "demo"\nbaseline = "a"\nvariants = [1]\n': "variant 1 = 1: must be a table",
    'base = "demo"\nbaseline = "a"\n[[variants]]\npreset = "rope"\n': "variant 1 has no name",
    'base = "demo"\nbaseline = "a"\n[[variants]]\nname = "a"\nexpects = {}\n': "did you mean 'expect'?",
    'schema = 2\nbase = "demo"\nbaseline = "a"\nvariants = []\n': "this version reads 1",
    "base = \n": "not valid TOML",
    'base = "demo"\nbaseline = "a"\nseeds = ["x"]\n[[variants]]\nname = "a"\n[[variants]]\nname = "b"\n': "seed 'x'",
}


@pytest.mark.parametrize("text", FILES)
def test_a_bad_file_is_named_with_what_would_be_right(tmp_path, text: str) -> None:
    path = tmp_path / "s.toml"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_study(path)
    assert str(path) in str(error.value) and FILES[text] in str(error.value)


def test_an_unknown_study_is_answered_with_the_nearest() -> None:
    said = "no study named 'atention' (a file, NAME.toml, works too); did you mean 'attention'"
    with pytest.raises(InputError, match=re.escape(said)):
        find_study("atention")


def test_a_started_study_is_found_by_its_name(tmp_path) -> None:
    (tmp_path / "s.study.toml").write_text(study().to_toml())
    assert find_study("s", tmp_path) == study() == find_study(str(tmp_path / "s.study.toml"))


def test_axes_become_variants_with_legal_names() -> None:
    axes = dict(parse_axis(text) for text in ("model.n_heads=1,2", "model.position=rope, alibi"))
    variants = grid(axes)
    assert [variant.name for variant in variants] == [
        *("n_heads-1.position-rope", "n_heads-1.position-alibi"),
        *("n_heads-2.position-rope", "n_heads-2.position-alibi"),
    ]
    assert variants[3].changes == {"model.n_heads": 2, "model.position": "alibi"}
    config = presets.resolve(presets.find("demo"))
    assert baseline_of(variants, config) == "n_heads-1.position-rope"
    assert baseline_of(grid(dict([parse_axis("model.n_heads=2,4,8")])), config) == "n_heads-4"


@pytest.mark.parametrize(
    "axis", ["optimizer.betas=[0.9, 0.95],[0.9, 0.98]", "model.residual=true,false", "optimizer.warmup='5 epochs',100"]
)
def test_a_value_of_any_kind_can_stand_in_a_runs_name(axis: str) -> None:
    variants = grid(dict([parse_axis(axis)]))
    assert all(check_name(f"s.{variant.name}.s1") for variant in variants)
    found = Study("s", "demo", variants, variants[0].name)
    assert len({str(cell.config.dump()) for cell in found.cells()}) == 2 * len(SEEDS)
    first, *others = (cell.config for cell in found.cells())
    assert {key for other in others for key in diff(first, other)} - {"seed"} == {axis.partition("=")[0]}


AXES = {
    "model.n_heads": "write KEY=VALUE,VALUE",
    "model.n_head=1,2": "did you mean 'model.n_heads'?",
    "model.n_heads=1": "at least two values",
    "seed=1,2": "--seeds 5",
    "model=1,2": "is a section",
}


@pytest.mark.parametrize("text", AXES)
def test_a_bad_axis_is_refused(text: str) -> None:
    with pytest.raises(InputError) as error:
        parse_axis(text)
    assert AXES[text] in str(error.value)


def test_a_run_is_held_to_what_its_cell_asks_for_and_not_to_what_its_start_filled_in() -> None:
    asked = {"optimizer.warmup": "1 epochs", "data.corpus_size": 20_000, "evaluation.stride": 1000, "train.epochs": 1}
    found = study(changes=asked)
    cell = found.cells()[0]
    ran = make_task(cell.config, None).resolve_config(cell.config, "", 1)
    assert ran != cell.config and cell.config_differences(ran) == {}
    other = study(changes={**asked, "optimizer.lr": 1e-3}).cells()[0]
    assert other.config_differences(ran) == {"optimizer.lr": (1e-2, 1e-3)}


def test_shipped_studies_are_inside_the_folder_that_the_wheel_takes() -> None:
    assert all(path.parent == Path(presets.folder()) / "studies" for path in shipped_studies().values())


def test_a_study_names_its_primary_measure_and_keeps_it(tmp_path) -> None:
    for primary in ("loss", "bleu", "recall<110", "recall>=110"):
        (tmp_path / "s.study.toml").write_text(study(primary=primary).to_toml())
        assert read_study(tmp_path / "s.study.toml").primary == primary
