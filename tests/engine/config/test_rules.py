import string
from collections.abc import Iterator

import pytest

from engine.capabilities import LAYER_RULES, RULES
from engine.config.keys import all_keys
from engine.config.model import PARTS
from engine.config.rules import Rule
from engine.config.schemes import SCHEMES
from engine.config.tasks import TASKS


def rules() -> Iterator[Rule]:
    rows = [*PARTS.values(), *TASKS.values(), *(row for rows in SCHEMES.values() for row in rows.values())]
    tables = [RULES, LAYER_RULES, *(row.rules for row in rows)]
    yield from {id(rule): rule for table in tables for rule in table if isinstance(rule, Rule)}.values()


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: " ".join(rule.keys))
def test_a_rule_names_settings_that_exist_and_fills_its_text_with_them(rule: Rule) -> None:
    assert set(rule.keys) <= set(all_keys())
    text = rule.reason if isinstance(rule.reason, str) else ""
    gaps = {gap for _, gap, _, _ in string.Formatter().parse(text) if gap is not None}
    assert gaps <= {key.partition(".")[2] for key in rule.keys}


def test_the_tables_of_rules_are_found() -> None:
    assert len(list(rules())) > 60
