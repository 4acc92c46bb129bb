"""What a run says at its end."""

from engine.config import presets
from engine.config.keys import parse_overrides
from tui_transformer.cli.run.summary import ablation_arguments


def after(preset: str, *overrides: str, corpus: str | None = None) -> list[str]:
    """What is proposed after a run of a preset with its vocabulary filled in."""
    tables = parse_overrides(overrides) + ([{"data": {"corpus": corpus}}] if corpus else [])
    config = presets.resolve(presets.find(preset), overrides=[*tables, {"model": {"vocab_size": 65}}])
    return ablation_arguments(config)


def test_the_ablation_that_is_proposed_has_the_same_text_and_settings() -> None:
    assert after("demo") == ["--preset", "no-pe", "--on", "demo"]
    own = after("shakespeare-cpu", "data.encoding=gb18030", "model.n_layers=2", corpus="/texts/novel.txt")
    assert own[:6] == ["--preset", "no-pe", "--on", "shakespeare-cpu", "--corpus", "/texts/novel.txt"]
    assert sorted(own[6:]) == ["--set", "--set", "data.encoding=gb18030", "model.n_layers=2"]


def test_none_is_proposed_that_changes_nothing_or_is_none_of_a_preset() -> None:
    assert after("no-pe") == [] and after("demo", "model.position=none") == []
    assert ablation_arguments(presets.resolve(presets.find("demo")).model_copy(update={"preset": "mine"})) == []
