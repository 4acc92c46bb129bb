"""Every setting that Design shows says in a sentence what it does, and so does each of its named values."""

import pytest

from engine.base.errors import InputError
from engine.config.keys import sentence_of
from tui_transformer.lab.design.draft import Draft, sentence, values_of
from tui_transformer.studio.design.switches import BASE, BY_KEY, RANKS

KEYS = [key for key in BY_KEY if key not in (BASE, RANKS)]


@pytest.mark.parametrize("key", KEYS)
def test_a_switch_and_its_options_say_what_they_do(key: str) -> None:
    assert sentence(key) and len(sentence(key)) <= 130
    named = [value for value in values_of(key) if not isinstance(value, bool) and value not in ("none", False)]
    assert [value for value in named if not sentence(key, value)] == []


def test_what_a_setting_says_is_in_the_schema_for_editors() -> None:
    from engine.config.schema import RunConfig

    found = RunConfig.model_json_schema(by_alias=True)["$defs"]["ModelConfig"]["properties"]["n_heads"]
    assert found["description"] == sentence_of("model.n_heads")


def test_devices_are_doubled_halved_and_typed() -> None:
    switch, demo = BY_KEY[RANKS], Draft.of("demo")
    assert switch.value(demo) == "1" and switch.step(demo, -1) is None and switch.step(demo, 1) == 2
    assert switch.value(switch.changed(demo, 2)) == "2" and switch.typed(demo, "4").ranks == 4
    with pytest.raises(InputError, match="from 1 to"):
        switch.typed(demo, "none")
