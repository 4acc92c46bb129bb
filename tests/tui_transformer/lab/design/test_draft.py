"""Drafts: a design and its command line are one thing, and what cannot be chosen says why."""

import random
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from engine.base.errors import InputError
from engine.config import presets
from engine.data.catalogue import kind_of
from engine.data.corpus import VocabularySizes
from engine.data.known import names_of
from tests.legal_cells import AXES
from tui_transformer.cli.run.run import Request
from tui_transformer.lab.design.draft import Draft, allowed_values, toml_argument
from tui_transformer.studio.design import own_files
from tui_transformer.studio.design.switches import BY_KEY

NAMES = [preset.name for preset in presets.list_presets()]


def resolved(command: str):
    """What the command line would train, by the command line's own classes."""
    program, verb, *words = shlex.split(command)
    assert (program, verb) == ("tui-transformer", "run")
    found: dict[str, str] = {}
    overrides = []
    for option, value in zip(words[::2], words[1::2], strict=True):
        if option == "--set":
            overrides.append(value)
        else:
            found[option] = value
    config = Path(found["--config"]) if "--config" in found else None
    seed = int(found["--seed"]) if "--seed" in found else None
    return Request(
        found.get("--preset"), config, found.get("--on"), tuple(overrides), found.get("--corpus"), seed
    ).resolve()


@pytest.mark.parametrize("name", NAMES)
def test_the_command_trains_what_is_shown(name: str) -> None:
    draft = Draft.from_preset(name)
    assert resolved(draft.command()) == draft.config
    chance = random.Random(name)
    for _ in range(6):
        switch = chance.choice(list(BY_KEY.values()))
        value = switch.next_value(draft, chance.choice((-1, 1)))
        draft = draft if value is None else switch.with_value(draft, value)
        assert resolved(draft.command()) == draft.config and not draft.problem


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("evaluation.sample_prompt", " to \"be\" or $HOME\n'not' \\ "),
        ("evaluation.sample_prompt", "true"),
        ("evaluation.sample_prompt", "12"),
        ("evaluation.sample_prompt", "\x7f\x1b[31m"),
        ("description", "größer; rm -rf *"),
        ("optimizer.warmup", "5 epochs"),
        ("optimizer.betas", [0.9, 0.999]),
        ("optimizer.lr", 1e-7),
        ("model.residual", False),
        ("data.corpus", "/tmp/a text; with 'signs'.txt"),
        ("seed", 2**62),
        ("train.epochs", 2.5),
        ("train.batch_tokens", 4096),
    ],
)
def test_any_value_survives_the_shell(key: str, value: object) -> None:
    draft = Draft.from_preset("demo").with_change(key, value)
    assert draft.config is not None and key in draft.changes
    assert resolved(draft.command()) == draft.config


def test_another_base_is_in_the_command() -> None:
    draft = replace(Draft.from_preset("win16"), on="demo").with_change("model.window", 8)
    assert "--on demo" in draft.command()
    assert resolved(draft.command()) == draft.config
    assert draft.name == "win16@demo" and draft.parent == "demo"
    assert replace(Draft.from_preset("demo"), on="baseline").problem


def test_a_refused_choice_says_why_and_what_would_make_it_possible() -> None:
    draft = Draft.from_preset("demo")
    choices = dict(draft.values_with_refusals("model.architecture"))
    assert choices["decoder"] == "" and "next-token" in choices["encoder-decoder"]
    for key in AXES:
        for value, reason in draft.values_with_refusals(key):
            assert bool(reason) == bool(draft.with_change(key, value).problem)
    way = draft.changes_to_allow("model.architecture", "encoder")
    assert way == {"model.architecture": "encoder", "objective.kind": "masked"}
    for name, value in way.items():
        draft = draft.with_change(name, value)
    assert not draft.problem
    assert Draft.from_preset("alibi").changes_to_allow("model.attention", "linear")["model.position"] == "sinusoidal"


@pytest.mark.parametrize("name", ["demo", "copy", "encoder-mlm", "multi30k", "win16"])
def test_a_translation_and_back_are_each_one_choice(name: str) -> None:
    draft = Draft.from_preset(name)
    for kind in ("translation", "next-token", "masked", "copy"):
        way = draft.changes_to_allow("objective.kind", kind) or {"objective.kind": kind}
        there = draft.with_changes(way)
        assert not there.problem and there.config.objective.kind == kind
        assert kind_of(there.config.data.corpus) == ("pairs" if kind == "translation" else "text")
        assert resolved(there.command()) == there.config


def test_a_corpus_of_the_other_kind_brings_its_objective_and_network() -> None:
    draft = Draft.from_preset("demo")
    assert "sentence pairs" in draft.why_refused("data.corpus", "multi30k")
    assert draft.changes_to_allow("data.corpus", "multi30k") == {
        "data.corpus": "multi30k",
        "objective.kind": "translation",
    }
    possible = [
        value for value, reason in Draft.from_preset("multi30k").values_with_refusals("data.corpus") if not reason
    ]
    assert possible == names_of("pairs")
    assert [value for value, reason in draft.values_with_refusals("data.corpus") if not reason] == names_of("text")


def test_there_is_no_way_where_a_setting_would_have_to_be_left_out() -> None:
    assert (
        Draft.from_preset("report-translation").changes_to_allow("objective.kind", "next-token") is None
    )  # source_vocab_size is set


def kind(name: str) -> tuple[str, ...]:
    """What is asked for below: presets that are alike in it have the same ways."""
    config = Draft.from_preset(name).config
    return config.model.architecture, config.objective.kind, config.data.corpus, config.data.tokenizer


KINDS = list({kind(name): name for name in NAMES}.values())


@pytest.mark.parametrize("names", [KINDS, pytest.param(NAMES, marks=pytest.mark.slow)], ids=["one of a kind", "all"])
def test_a_way_is_the_shortest_one(names: list[str]) -> None:
    for name in names:
        draft = Draft.from_preset(name)
        for key in ("model.architecture", "objective.kind", "data.corpus", "data.tokenizer"):
            ways = [draft.changes_to_allow(key, value) for value, reason in draft.values_with_refusals(key) if reason]
            for way in ways:
                assert way is None or all(
                    draft.with_changes({k: v for k, v in way.items() if k != left}).problem
                    for left in way
                    if left != key
                )


def test_what_is_wrong_already_is_no_fault_of_the_other_choices() -> None:
    broken = Draft.from_preset("demo").with_change("model.n_heads", 3)
    assert "heads" in broken.problem
    assert dict(broken.values_with_refusals("model.norm"))["rms"] == ""


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (("model.d_model", 0), "model.d_model"),
        (("model.n_heads", 3), "heads"),
        (("optimizer.min_lr", 1.0), "min_lr"),
        (("model.nothing", 1), "unknown key"),
        (("model.position", "\x1b[2J"), "must be"),
    ],
)
def test_a_problem_is_one_line(change: tuple[str, object], word: str) -> None:
    draft = Draft.from_preset("demo").with_change(*change)
    assert word in draft.problem and "\n" not in draft.problem
    assert draft.cost() is None and draft.lints() == [] and draft.values


def test_a_change_back_is_no_change() -> None:
    draft = Draft.from_preset("demo").with_change("model.position", "alibi").with_change("model.position", "rope")
    assert draft.changes == {} and draft == Draft.from_preset("demo")
    assert (
        Draft.from_preset("demo").with_change("train.epochs", 2.0).with_change("train.steps", 100).config.train.epochs
        is None
    )


def test_typed_text_is_read_as_set_reads_it() -> None:
    assert Draft.from_preset("demo").with_override_text("model.rope_base=50000").config.model.rope_base == 50000.0
    for wrong in ("model.rope_bass=1", "steps", "model.n_layers=x", "model.n_layers=1.5"):
        with pytest.raises(InputError):
            Draft.from_preset("demo").with_override_text(wrong)
    assert BY_KEY["train.steps"].with_typed_value(Draft.from_preset("demo"), "2e3").config.train.steps == 2000


def test_differences_tell_the_preset_s_from_mine() -> None:
    draft = Draft.from_preset("win16").with_change("model.window", 8)
    assert draft.differences_from_preset() == {"model.window": (16, 8)}
    assert set(draft.differences_from_parent()) == {"model.attention", "model.window"}
    assert Draft.from_preset("demo").differences_from_parent() == {}


def test_cost_is_that_of_the_engine() -> None:
    assert Draft.from_preset("report-decoder").cost().parameters == 3_192_897
    file = Draft.from_preset("demo").with_change("data.corpus", "/nowhere.txt")
    assert file.cost() is None and file.cost(VocabularySizes(80)).vocabulary.tokens == 80


def test_numbers_go_by_steps_that_are_possible() -> None:
    demo = Draft.from_preset("demo")
    assert BY_KEY["model.n_heads"].next_value(demo, 1) == 8 and BY_KEY["model.n_heads"].next_value(demo, -1) == 2
    assert BY_KEY["train.steps"].next_value(demo, 1) == 2000 and BY_KEY["train.steps"].next_value(demo, -1) == 1000
    assert BY_KEY["optimizer.lr"].next_value(demo, -1) == 5e-3
    assert BY_KEY["model.dropout"].next_value(demo, -1) is None
    assert BY_KEY["model.n_kv_heads"].next_value(demo, -1) == 2
    for name in ("demo", "copy", "linear", "report-encoder"):
        for switch in BY_KEY.values():
            for way in (-1, 1):
                value = switch.next_value(Draft.from_preset(name), way)
                assert value is None or not switch.with_value(Draft.from_preset(name), value).problem


@pytest.mark.parametrize(
    "draft",
    [
        Draft.from_preset("demo").with_change("model.position", "alibi"),
        replace(Draft.from_preset("win16"), on="demo").with_change("train.epochs", 3.0),
        replace(Draft.from_preset("reverse"), on="report-seq2seq-char-honest"),
    ],
)
def test_a_saved_preset_is_the_draft(draft: Draft, tmp_path: Path) -> None:
    if draft.problem:
        pytest.skip(draft.problem)
    path = own_files.save_preset(draft, "mine")
    ((_, own, _),) = own_files.user_presets()
    loaded = Draft(own, path=path)
    same = {"preset": "", "description": ""}
    assert loaded.config.model_copy(update=same) == draft.config.model_copy(update=same)
    changed = loaded.with_change("seed", 5)
    assert f"--config {path}" in changed.command() and resolved(changed.command()) == changed.config
    again = own_files.save_preset(changed.with_change("model.n_layers", 1), "mine-2")
    assert Draft(presets.load(again), path=again).config.model.n_layers == 1


def test_a_file_that_is_no_preset_is_listed_with_the_reason(tmp_path: Path) -> None:
    folder = own_files.presets_folder()
    folder.mkdir(parents=True)
    (folder / "broken.toml").write_text("[model\n")
    (folder / "orphan.toml").write_text('extends = "nobody"\n')
    assert [bool(problem) and own is None for _, own, problem in own_files.user_presets()] == [True, True]
    assert (
        own_files.preset_name_problem("../x")
        and own_files.preset_name_problem("demo")
        and not own_files.preset_name_problem("my-demo")
    )


def test_values_of_a_key_are_those_of_the_schema() -> None:
    assert allowed_values("model.residual") == (True, False)
    assert "playlets" in allowed_values("data.corpus") and allowed_values("model.n_layers") == ()
    assert toml_argument("rope") == "rope" and toml_argument(True) == "true" and toml_argument("1") == '"1"'


def test_devices_share_the_same_examples_and_stand_in_the_command() -> None:
    pair = Draft.from_preset("demo").with_ranks(2)
    assert (pair.values["train.accumulation"], pair.values["train.batch_size"]) == (2, 8)
    assert "--ranks 2" in pair.command() and "--ranks" not in Draft.from_preset("demo").command()
    assert not pair.problem and "a multiple of 2" in pair.with_change("train.accumulation", 3).problem
    assert pair.with_ranks(1).values["train.accumulation"] == 2  # the same step, on one device
    rows = Draft.from_preset("tatoeba").with_ranks(4)
    assert rows.values["train.batch_tokens"] * 4 == Draft.from_preset("tatoeba").values["train.batch_tokens"]
