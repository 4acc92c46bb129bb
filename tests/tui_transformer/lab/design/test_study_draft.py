"""A study in the making: what is added is what will be run, and what cannot be run is left out and says why."""

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from engine.base.errors import InputError
from engine.config import presets
from engine.config.keys import diff
from tui_transformer.lab.design import benchmarks
from tui_transformer.lab.design.draft import Benchmark, Draft
from tui_transformer.lab.design.study_draft import StudyDraft, estimate_study, seeds_argument, study_base, study_command
from tui_transformer.lab.work.arguments import StudyArgs
from tui_transformer.lab.work.plan import RunCost
from tui_transformer.lab.work.study import Variant, find_study, read_study, shipped_studies
from tui_transformer.studio.design import own_files

FIT = Benchmark(device="cpu", seconds_per_step=0.1, seconds=280.0, memory_bytes=1e8)
FILE = Path("mine.toml")
DEMO = "demo"  # the variant that is the design itself


def of(name: str, **changes: object) -> StudyDraft:
    draft = Draft.from_preset(name)
    for key, value in changes.items():
        draft = draft.with_change(key.replace("__", "."), value)
    return StudyDraft.from_design(draft)


def names(draft: StudyDraft) -> list[str]:
    return [line.variant.name for line in draft.included_lines]


def why_not(draft: StudyDraft, name: str) -> str:
    return next(line.why_not for line in draft.lines if line.variant.name == name)


def run_by(words: str):
    """The study that a command line means, by the command line's own class."""
    program, verb, *rest = shlex.split(words)
    assert (program, verb) == ("tui-transformer", "ablate")
    given: dict[str, list[str]] = {}
    for option, value in zip(rest[::2], rest[1::2], strict=True):
        given.setdefault(option, []).append(value)
    one = {option: values[0] for option, values in given.items()}
    return StudyArgs(
        *(one.get("--study"), one.get("--preset"), tuple(given.get("--vary", ())), one.get("--on"), one.get("--seeds")),
        *(tuple(given.get("--set", ())), one.get("--corpus"), one.get("--name")),
    ).resolve(Path())


def test_a_design_alone_is_no_study() -> None:
    draft = of("demo")
    assert draft.study is None and "at least two variants" in draft.problem and draft.toml() == ""


def test_a_value_is_held_against_the_design() -> None:
    draft = of("demo").with_variants_along_axes("model.n_heads=2")
    assert names(draft) == [DEMO, "n_heads-2"] and draft.effective_baseline == DEMO and draft.runs == 10
    assert draft.differences(draft.lines[1]) == {"model.n_heads": (4, 2)}


def test_the_design_gives_way_to_a_variant_that_is_the_design() -> None:
    draft = of("demo").with_variants_along_axes("model.n_heads=1,2,4,8")
    assert names(draft) == ["n_heads-1", "n_heads-2", "n_heads-4", "n_heads-8"]
    assert draft.effective_baseline == "n_heads-4" and draft.study is not None and draft.study.baseline == "n_heads-4"
    assert why_not(draft, DEMO) == "n_heads-4 is the design as it stands"


def test_two_settings_make_a_grid() -> None:
    draft = of("demo").with_variants_along_axes("model.n_heads=2,4 model.position=rope,none")
    assert names(draft) == [f"n_heads-{n}.position-{p}" for n in (2, 4) for p in ("rope", "none")]
    assert draft.effective_baseline == "n_heads-4.position-rope"


def test_every_cell_trains_the_design_with_the_variants_change_and_no_other() -> None:
    draft = of("demo", model__n_layers=1, seed=7).with_variants_along_axes("model.n_heads=2")
    assert draft.study is not None and draft.design.config is not None
    for cell in draft.study.cells():
        changed = {key for key in diff(draft.design.config, cell.config) if key != "seed"}
        assert changed == (set() if cell.variant == DEMO else {"model.n_heads"})
    assert [cell.seed for cell in draft.study.cells()] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]


def test_what_cannot_be_trained_is_left_out_with_the_reason() -> None:
    draft = of("demo").with_variants_along_axes("model.n_heads=2,3")
    assert names(draft) == [DEMO, "n_heads-2"] and "not divisible by 3 heads" in why_not(draft, "n_heads-3")
    assert draft.study is not None and draft.runs == 10


def test_what_would_be_the_same_run_twice_is_left_out() -> None:
    draft = of("demo").with_variants_along_axes("model.n_heads=2").with_added_variants([Variant("heads2", "heads2")])
    assert names(draft) == [DEMO, "n_heads-2"]
    assert "same as n_heads-2" in why_not(draft, "heads2") and draft.study is not None
    again = draft.with_variants_along_axes("model.n_heads=2")
    assert again.variants == draft.variants


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model.n_hads=1,2", "did you mean 'model.n_heads'?"),
        ("model.n_heads", "write KEY=VALUE"),
        ("model.n_heads=2,x", "should be a valid integer"),
        ("model.n_heads=3,5", "not divisible by 3 heads"),
        ("seed=1,2", "--seeds"),
        ("model.n_heads=2,4 model.n_heads=8", "appears twice"),
        (f"optimizer.lr={','.join(f'{n}e-4' for n in range(1, 102))}", "at most 100"),
        ("", "write KEY=VALUE"),
    ],
)
def test_a_setting_that_makes_no_variants_says_why(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        of("demo").with_variants_along_axes(text)


def test_overlays_are_offered_with_the_reason_against_those_that_cannot_be() -> None:
    offered = {o.variant.name: o for o in of("demo", model__position="alibi").overlays()}
    assert "no score matrix" in offered["linear"].why_not and offered["win16"].why_not == ""
    assert offered["alibi"].why_not == "the design already includes this"
    assert "report-decoder-2heads" not in offered and "baseline" not in offered
    own = {o.variant.name for o in of("report-decoder").overlays()}
    assert "report-decoder-2heads" in own and "report-encoder-win16" not in own


def test_ticking_adds_overlays_and_unticking_takes_them_out() -> None:
    draft = of("demo").with_variants_along_axes("model.n_layers=1")
    offered = draft.overlays()
    ticked = draft.with_overlays([Variant("win16", "win16"), Variant("no-pe", "no-pe")], offered)
    assert names(ticked) == [DEMO, "n_layers-1", "win16", "no-pe"]
    fewer = replace(ticked, baseline="win16").with_overlays([Variant("no-pe", "no-pe")], offered)
    assert names(fewer) == [DEMO, "n_layers-1", "no-pe"] and fewer.effective_baseline == DEMO


@pytest.mark.parametrize("name", shipped_studies())
def test_a_shipped_study_on_its_own_base_is_that_study(name: str) -> None:
    study = find_study(name)
    draft = of(study.base).with_study(study)
    assert draft.study == study
    words, saved = study_command(draft, FILE)
    assert words == f"tui-transformer ablate --study {name} --seeds {len(study.seeds)}" and not saved


def test_what_was_expected_of_another_base_is_left_out() -> None:
    study = find_study("attention")
    draft = of("demo", model__n_layers=1).with_study(study)
    assert names(draft) == ["global", "win16", "sparse", "linear"] and draft.effective_baseline == "global"
    assert draft.study is not None and not any(variant.expect or variant.why for variant in draft.study.variants)
    assert any("'s expectations apply to demo" in warning for warning in draft.warnings)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_few_seeds_are_warned_of(count: int) -> None:
    draft = of("demo").with_variants_along_axes("model.n_heads=2").with_seeds(str(count) if count > 1 else "1,")
    said = " ".join(draft.warnings)
    assert ("one seed proves nothing" in said) == (count == 1)
    assert draft.power_text.startswith(f"With {count} seeds, this study has 80 % power to detect a ") == (count > 1)


@pytest.mark.parametrize(("seconds", "seeds"), [(None, 5), (3600.0, 5), (3601.0, 3), (90_000.0, 3)])
def test_five_seeds_are_proposed_or_three_where_five_take_over_an_hour(seconds: float | None, seeds: int) -> None:
    draft = of("demo").with_variants_along_axes("model.n_heads=2")
    assert len(draft.with_proposed_seeds(seconds).seeds) == seeds
    if seconds is not None:  # the same once fewer are proposed, and none if they were chosen
        assert len(draft.with_proposed_seeds(seconds).with_proposed_seeds(seconds * seeds / 5).seeds) == seeds
        for chosen in (draft.with_seeds("4"), draft.with_seed_added_or_removed(-1)):
            assert chosen.with_proposed_seeds(seconds) == chosen


def test_a_loss_of_another_kind_is_warned_of() -> None:
    draft = of("demo").with_added_variants([Variant("encoder-mlm", "encoder-mlm"), Variant("win16", "win16")])
    found = [warning for warning in draft.warnings if "cannot be compared" in warning]
    assert len(found) == 1 and found[0].startswith("encoder-mlm: objective.kind differs")


@pytest.mark.parametrize(("text", "seeds"), [("3", (1, 2, 3)), ("1,5,9", (1, 5, 9)), ("42,", (42,))])
def test_seeds_are_written_as_they_are_read(text: str, seeds: tuple[int, ...]) -> None:
    draft = of("demo").with_seeds(text)
    assert draft.seeds == seeds and seeds_argument(seeds) == text


@pytest.mark.parametrize("text", ["", "0", "x", "1,1", "-1,2", "1.5"])
def test_seeds_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        of("demo").with_seeds(text)


def test_one_seed_always_stays() -> None:
    draft = of("demo").with_seeds("2")
    assert draft.with_seed_added_or_removed(1).seeds == (1, 2, 3)
    assert draft.with_seed_added_or_removed(-1).with_seed_added_or_removed(-1).seeds == (1,)


def test_taking_out_the_baseline_leaves_another_one() -> None:
    draft = of("demo").with_variants_along_axes("model.n_heads=2,8")
    assert draft.without_variant(DEMO).effective_baseline == "n_heads-2"
    shipped = of("demo").with_study(find_study("attention")).without_variant("global")
    assert shipped.effective_baseline == DEMO and names(shipped)[0] == DEMO
    impossible = replace(draft.with_variants_along_axes("model.n_heads=2,3"), baseline="n_heads-3")
    assert "baseline" in impossible.problem


@pytest.mark.parametrize(
    "draft",
    [
        of("demo").with_variants_along_axes("model.n_heads=1,2,4,8"),
        of("demo", model__n_layers=1)
        .with_variants_along_axes("model.n_heads=4,8 model.position=rope,none")
        .with_seeds("1,5"),
        StudyDraft.from_design(replace(Draft.from_preset("win16"), on="demo")).with_variants_along_axes(
            "model.window=8,16,32"
        ),
        of("shakespeare-cpu", data__corpus="playlets")
        .with_variants_along_axes("model.dropout=0.0,0.2")
        .with_seeds("7,"),
    ],
    ids=lambda draft: draft.design.name,
)
def test_a_command_line_without_a_file_runs_the_same_study(draft: StudyDraft) -> None:
    words, saved = study_command(draft, FILE)
    assert not saved and run_by(words) == draft.study


@pytest.mark.parametrize("axes", ["model.n_heads=2", "model.n_heads=2,8", "model.n_heads=2,3,4"])
def test_a_command_line_that_would_run_something_else_is_not_offered(axes: str) -> None:
    words, saved = study_command(of("demo").with_variants_along_axes(axes), FILE)
    assert words == "tui-transformer ablate --study mine.toml" and saved


def test_what_no_command_line_says_is_run_from_its_file(tmp_path) -> None:
    draft = of("demo").with_variants_along_axes("model.n_heads=2").with_added_variants([Variant("win16", "win16")])
    words, saved = study_command(draft, FILE, ["--device", "cpu"])
    assert words == "tui-transformer ablate --study mine.toml --device cpu" and saved
    (tmp_path / "mine.toml").write_text(draft.toml())
    assert read_study(tmp_path / "mine.toml") == draft.study


@pytest.mark.parametrize("extends", ['extends = "demo"\n', 'extends = "win16"\n', ""])
def test_a_preset_of_ones_own_is_a_base(extends: str) -> None:
    path = own_files.preset_file("mine")
    path.parent.mkdir(parents=True)
    path.write_text(f'{extends}description = "x"\n[model]\nn_layers = 3\n[train]\nepochs = 2\n')
    design = Draft(presets.load(path), path=path).with_change("model.n_heads", 2)
    draft = StudyDraft.from_design(design).with_variants_along_axes("model.position=none,rope")
    assert draft.study is not None and design.config is not None and draft.problem == ""
    for cell in draft.study.cells():
        assert {key for key in diff(design.config, cell.config) if key != "seed"} <= {"model.position"}
    assert study_command(draft, FILE)[1]


def test_a_preset_of_ones_own_is_a_variant() -> None:
    own = own_files.save_preset(Draft.from_preset("demo").with_change("model.n_layers", 1), "one-layer")
    offered = {o.variant.name: o.variant for o in of("demo").overlays([presets.load(own)])}
    assert dict(offered["one-layer"].changes) == {"model.n_layers": 1} and offered["one-layer"].preset == ""


def test_a_base_that_cannot_be_said_is_no_base() -> None:
    design = Draft.from_preset("demo").with_change("model.n_heads", 3)
    assert "cannot be trained" in StudyDraft.from_design(design).with_variants_along_axes("model.n_heads=2,4").problem
    assert study_base(Draft.from_preset("demo")) == ("demo", {})


def test_time_and_disk_follow_from_the_designs_measured_step() -> None:
    draft = of("demo").with_variants_along_axes("train.steps=600,1200")
    found = estimate_study(draft, FIT)
    each = {name: (price.seconds, price.parameters) for name, price in found.prices.items()}
    assert each == {"steps-600": (140.0, 108_352), "steps-1200": (280.0, 108_352)} and found.seconds == 5 * 420.0
    assert (found.disk_bytes or 0) > 6 * 1e6
    assert estimate_study(draft, None).seconds is None
    wider = estimate_study(of("demo").with_variants_along_axes("model.d_model=128"), FIT).prices
    assert wider["d_model-128"].seconds > wider[DEMO].seconds == 280.0


async def test_only_a_plan_is_read_as_one(monkeypatch) -> None:
    said: list[dict[str, object]] = [{"kind": "study"}, {"kind": "plan", "seconds": "soon"}]

    async def answers(*_: object) -> list[str]:
        return list(map(json.dumps, said))

    monkeypatch.setattr(benchmarks, "run_ablate", answers)
    with pytest.raises(InputError, match="no plan"):
        await benchmarks.time_study_steps(None, None)
    record = {"kind": "plan", "seconds": 9.0, "disk_bytes": 5, "jobs": 2, "threads": 1, "devices": ["cpu"]}
    said.append(record | {"prices": {"a": {"seconds": 3.0, "parameters": 7}, "b": None}})
    found = await benchmarks.time_study_steps(None, None)
    assert (found.seconds, found.disk_bytes, found.jobs, found.measured) == (9.0, 5, 2, True)
    assert found.prices == {"a": RunCost(seconds=3.0, parameters=7)}


def test_a_saved_study_is_offered_and_a_broken_one_says_why() -> None:
    study = of("demo").with_variants_along_axes("model.n_heads=1,2").study
    assert study is not None
    path = own_files.save_study(study)
    (path.parent / "torn.toml").write_text("name = ")
    found = {name: (found, where) for found, name, where in own_files.available_studies()}
    assert found["demo-study"] == (study, "your own") and found["attention"][1] == ""
    assert found["torn"][0] is None and "torn.toml" in found["torn"][1]
    assert find_study(str(path)) == study


def test_a_study_in_stages_says_of_each_variant_where_its_weights_come_from_and_counts_every_run() -> None:
    study = find_study("biographies")
    draft = of(study.base).with_study(study)
    begins = {line.variant.name: draft.initial_weights_source_text(line.variant) for line in draft.included_lines}
    assert begins == {
        "scratch": "starts from fresh weights",
        "pretrained": "starts from pretrain",
        "rope": "starts from pretrain",
    }
    assert draft.runs == len(study.cells()) == 25
    found = estimate_study(draft, FIT).prices
    assert found["pretrained"].seconds > FIT.seconds > found["scratch"].seconds
