"""Every setting that Design shows says in a sentence what it does, and so does each of its named values."""

import pytest

from engine.base.errors import InputError
from engine.config.keys import sentence_of
from tui_transformer.lab.design.draft import Draft, allowed_values, describe_setting
from tui_transformer.studio.design.switches import BASE, BY_KEY, RANKS

KEYS = [key for key in BY_KEY if key not in (BASE, RANKS)]


@pytest.mark.parametrize("key", KEYS)
def test_a_switch_and_its_options_say_what_they_do(key: str) -> None:
    assert describe_setting(key) and len(describe_setting(key)) <= 130
    named = [value for value in allowed_values(key) if not isinstance(value, bool) and value not in ("none", False)]
    assert [value for value in named if not describe_setting(key, value)] == []


def test_what_a_setting_says_is_in_the_schema_for_editors() -> None:
    from engine.config.schema import RunConfig

    found = RunConfig.model_json_schema(by_alias=True)["$defs"]["ModelConfig"]["properties"]["n_heads"]
    assert found["description"] == sentence_of("model.n_heads")


def test_devices_are_doubled_halved_and_typed() -> None:
    switch, demo = BY_KEY[RANKS], Draft.from_preset("demo")
    assert switch.value_text(demo) == "1" and switch.next_value(demo, -1) is None and switch.next_value(demo, 1) == 2
    assert switch.value_text(switch.with_value(demo, 2)) == "2" and switch.with_typed_value(demo, "4").ranks == 4
    with pytest.raises(InputError, match="from 1 to"):
        switch.with_typed_value(demo, "none")
