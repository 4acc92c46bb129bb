import pytest

from engine.config import lints, presets
from engine.config.schema import RunConfig


def test_a_setting_that_does_nothing_here_is_named_with_what_it_needs() -> None:
    config = RunConfig.model_validate({"model": {"window": 8, "rope_base": 500.0}})
    found = [lint for lint in lints.lint(config) if "no effect" in lint.text]
    assert [lint.key for lint in found] == ["model.window"]
    assert "attention = 'window'" in found[0].text and "model.rope_base (position = 'rope')" in found[0].text
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
