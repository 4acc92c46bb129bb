import pytest

from engine import capabilities
from engine.base.errors import InputError
from engine.config import keys, presets
from engine.config.keys import parse_override
from engine.config.lints import lint
from engine.config.schema import RunConfig
from engine.model.size import parameter_count

NAMES = [preset.name for preset in presets.list_presets()]


@pytest.mark.parametrize("name", NAMES)
def test_every_preset_is_legal_and_says_what_it_is(name: str) -> None:
    config = presets.resolve(presets.find(name))
    assert capabilities.check(config) is None
    assert config.description and config.preset == name


@pytest.mark.parametrize("name", [n for n in NAMES if presets.find(n).extends == "baseline"])
def test_an_ablation_changes_something_against_its_parent_and_on_demo(name: str) -> None:
    preset = presets.find(name)
    config = presets.resolve(preset)
    parent = presets.parent_config(preset)
    assert parent is not None and keys.diff(parent, config)
    on_demo = presets.resolve(preset, on="demo")
    assert on_demo.model.d_model == 64 and on_demo.preset == f"{name}@demo"


def test_baseline_file_states_the_defaults() -> None:
    assert keys.diff(RunConfig(), presets.resolve(presets.find("baseline"))) == {}


def test_report_decoder_counts_as_reported() -> None:
    for name in ("report-decoder", "report-decoder-2heads"):
        assert parameter_count(presets.resolve(presets.find(name)).model, 65) == 3_192_897


def test_overrides_win_over_presets() -> None:
    config = presets.resolve(presets.find("demo"), overrides=[parse_override("model.n_heads=2")])
    assert config.model.n_heads == 2


def test_a_prompt_for_another_text_is_not_taken_over() -> None:
    preset = presets.find("shakespeare-cpu")
    prompt = lambda *overrides: presets.resolve(preset, overrides=[*overrides]).evaluation.sample_prompt
    mine, own = {"data": {"corpus": "novel.txt"}}, parse_override("evaluation.sample_prompt=Call")
    assert prompt() == prompt({"data": {"corpus": "tiny-shakespeare"}}) == "ROMEO:" and prompt(mine) == ""
    assert prompt(own, mine) == "" and prompt(mine, own) == "Call"


def test_text_values_need_no_quotes() -> None:
    assert parse_override("model.position=rope") == {"model": {"position": "rope"}}
    assert parse_override("seed=3") == {"seed": 3}
    assert parse_override("optimizer.betas=[0.9, 0.95]") == {"optimizer": {"betas": [0.9, 0.95]}}


@pytest.mark.parametrize("text", ["", "=", "model.n_heads", "model.n_head=2", "model=3", "x" * 10_000, "a.b.c=1"])
def test_bad_overrides_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_override(text)


def test_cyclic_extends_is_named(tmp_path, monkeypatch) -> None:
    (tmp_path / "baseline.toml").write_text('extends = "b"')
    (tmp_path / "b.toml").write_text('extends = "baseline"')
    monkeypatch.setattr(presets, "folder", lambda: tmp_path)
    with pytest.raises(InputError, match="circular extends: b → baseline → b"):
        presets.resolve(presets.find("b"))


def test_a_base_cannot_be_put_on_another() -> None:
    with pytest.raises(InputError, match="is a base, not an overlay"):
        presets.resolve(presets.find("demo"), on="baseline")


def test_unknown_presets_get_the_nearest_name() -> None:
    with pytest.raises(InputError, match="did you mean 'demo'"):
        presets.find("dmo")


LINTS = {
    "optimizer.warmup": {"train": {"steps": 120}, "optimizer": {"warmup": 1000}},
    "evaluation.every": {"train": {"steps": 100}, "evaluation": {"every": 1000}},
    "model.context_length": {"model": {"context_length": 1000}},
}


@pytest.mark.parametrize(("key", "tables"), LINTS.items(), ids=LINTS.keys())
def test_settings_surely_not_meant_are_warned_of(key: str, tables: dict) -> None:
    found = lint(RunConfig.model_validate(tables), train_tokens=5_000)
    assert key in [warning.key for warning in found]


def test_a_sound_config_is_not_warned_of() -> None:
    assert not [*lint(RunConfig(), train_tokens=1_000_000)]
