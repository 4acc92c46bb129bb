import pytest

from engine.config import lints, presets
from engine.config.schema import RunConfig


def test_a_setting_that_does_nothing_here_is_named_with_what_it_needs() -> None:
    config = RunConfig.model_validate({"model": {"window": 8, "rope_base": 500.0}})
    found = [lint for lint in lints.lint(config) if "no effect" in lint.text]
    assert [lint.key for lint in found] == ["model.window"]
    assert (
        "attention = 'window'" in found[0].text
        and "model.rope_base has no effect either (needs position = 'rope')" in found[0].text
    )
    acting = RunConfig.model_validate({"model": {"window": 8, "attention": "window"}})
    assert not [lint for lint in lints.lint(acting) if "no effect" in lint.text]


@pytest.mark.parametrize("name", [preset.name for preset in presets.list_presets()])
def test_no_preset_sets_what_does_nothing(name: str) -> None:
    for config in (presets.resolve(presets.find(name)), presets.resolve(presets.find(name)).miniature()):
        assert not [lint for lint in lints.lint(config) if "no effect" in lint.text]


@pytest.mark.parametrize(
    ("attention", "context", "warned"),
    [
        ("window", 119, 1),
        ("window", 120, 0),
        ("linear", 511, 1),
        ("linear", 512, 0),
        ("sparse", 4096, 1),
        ("global", 128, 0),
    ],
)
def test_what_saves_no_time_says_so(attention: str, context: int, warned: int) -> None:
    config = RunConfig.model_validate({"model": {"attention": attention, "context_length": context}})
    assert len([lint for lint in lints.lint(config) if lint.key == "model.attention"]) == warned


@pytest.mark.parametrize(("ema", "steps", "warned"), [(0.0, 100, 0), (0.98, 100, 0), (0.995, 100, 1), (0.995, 1000, 0)])
def test_a_moving_average_over_more_steps_than_there_are_is_warned_of(ema: float, steps: int, warned: int) -> None:
    config = RunConfig.model_validate({"train": {"ema": ema, "steps": steps}})
    found = [lint for lint in lints.lint(config) if lint.key == "train.ema"]
    assert len(found) == warned and all("--set train.ema=0.9)" in lint.text for lint in found)


@pytest.mark.parametrize(
    ("tables", "key"),
    [
        ({"optimizer": {"momentum": 0.9}}, "optimizer.momentum"),
        ({"optimizer": {"kind": "sgd", "momentum": 0.9, "eps": 1e-6}}, "optimizer.eps"),
        ({"optimizer": {"decay_from": 0.5}}, "optimizer.decay_from"),
        ({"optimizer": {"head_lr": 1e-4}, "model": {"tie_embeddings": True}}, "optimizer.head_lr"),
        ({"optimizer": {"head_lr": 1e-4, "matrix_lr": 1e-3, "kind": "muon", "momentum": 0.9}}, None),
    ],
    ids=str,
)
def test_what_an_optimizer_does_not_read_is_named(tables: dict, key: str | None) -> None:
    found = [lint.key for lint in lints.lint(RunConfig.model_validate(tables)) if "no effect" in lint.text]
    assert found == ([] if key is None else [key])


def warmups(tables: dict) -> list[lints.Lint]:
    return [lint for lint in lints.lint(RunConfig.model_validate(tables)) if lint.key == "optimizer.warmup"]


@pytest.mark.parametrize(
    ("model", "warmup", "warned"),
    [
        ({"architecture": "encoder-decoder", "n_layers": 3}, 0, True),
        ({"architecture": "encoder-decoder", "n_layers": 2, "n_encoder_layers": 4}, 0, True),
        ({"architecture": "encoder-decoder", "n_layers": 2}, 0, False),
        ({"n_layers": 4}, 0, False),
        ({"n_layers": 6}, 0, True),
        ({"n_layers": 6}, 100, False),
        ({"n_layers": 6, "norm_placement": "pre"}, 0, False),
        ({"n_layers": 6, "norm": "none", "norm_placement": "pre"}, 0, False),
    ],
)
def test_deep_post_norm_without_warm_up_is_warned_of(model: dict, warmup: int, warned: bool) -> None:
    found = warmups({"model": {"norm_placement": "post"} | model, "optimizer": {"warmup": warmup}})
    assert bool(found) is warned and all("Xiong" in lint.text for lint in found)


def test_the_report_s_translation_model_is_warned_of_and_the_report_s_decoder_which_learned_is_not() -> None:
    named = {preset.name for preset in presets.list_presets()}
    deep = {name for name in named if "Xiong" in str([*lints.lint(presets.resolve(presets.find(name)))])}
    assert deep == {name for name in named if name.startswith("report-translation")}


def test_a_run_in_epochs_is_not_judged_by_steps_that_nobody_set() -> None:
    tables = {"optimizer": {"warmup": 4_000}, "evaluation": {"every": 5_000}}
    assert len([*lints.lint(RunConfig.model_validate(tables))]) == 2
    assert not [*lints.lint(RunConfig.model_validate(tables | {"train": {"epochs": 10.0}}))]


def test_sentences_are_not_judged_as_windows_of_a_text() -> None:
    translation = {"model": {"architecture": "encoder-decoder"}, "objective": {"kind": "translation"}}
    for tables, warned in (({}, True), (translation, False)):
        found = lints.lint(RunConfig.model_validate(tables), train_tokens=500)
        assert any(lint.key == "model.context_length" for lint in found) is warned


@pytest.mark.parametrize(("section", "key", "value"), [("data", "bpe_size", 4_000), ("data", "max_length", 40)])
def test_settings_of_translations_are_idle_elsewhere(section: str, key: str, value: int) -> None:
    found = lints.lint(RunConfig.model_validate({section: {key: value}}))
    assert [lint.key for lint in found] == [f"{section}.{key}"]


@pytest.mark.parametrize(
    ("validation", "changes", "said"),
    [
        (100_000_000, {}, "100,000,000 tokens, which takes about 16 times as long as the 250 steps before it"),
        (100_000_000, {"evaluation": {"stride": 64}}, "400,000,000 tokens, which takes about 65 times"),
        (100_000_000, {"evaluation": {"every": 10}, "train": {"steps": 5}}, "814 times as long as the 5 steps"),
        (100_000_000, {"evaluation": {"every": 0}}, "about 2 times as long as the 2,000 steps"),
        (6_000_000, {}, ""),
        (900_000, {"evaluation": {"every": 1}}, ""),
        (None, {}, ""),
    ],
)
def test_an_evaluation_longer_than_the_training_before_it_is_warned_of(validation, changes: dict, said: str) -> None:
    tables = {"model": {"context_length": 256}, "train": {"batch_size": 32, "steps": 2_000}}
    tables["data"] = {"corpus": "notes.txt"}  # playlets are scored with half of the stride
    config = RunConfig.model_validate({**tables, **changes, "train": tables["train"] | changes.get("train", {})})
    found = [lint for lint in lints.lint(config, None, validation) if lint.key == "data.validation_fraction"]
    assert bool(found) is bool(said) and all(said in lint.text for lint in found), found
