"""Every shipped preset still says what it said, and trains to the weights that it trained to."""

import json
import math
from typing import Any

import pytest

from engine.config.keys import later_defaults
from tests.earlier.asking import ask
from tests.earlier.kept import NEAR, same_machine
from tests.earlier.miniatures import FILE, trained

KEPT: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
PRESETS: dict[str, Any] = KEPT["presets"]
GROUPS = 32  # each in a process of its own


@pytest.mark.one_in(GROUPS)
@pytest.mark.parametrize("group", range(GROUPS))
def test_thirty_steps_give_the_weights_that_they_gave(group: int, tmp_path) -> None:
    found = trained(list(PRESETS)[group::GROUPS], PRESETS, tmp_path, tmp_path / "cache")
    exact = same_machine(KEPT["machine"])
    for name, end in found.items():
        kept = {key: PRESETS[name][key] for key in end}
        near = all(math.isclose(a, b, rel_tol=NEAR) for a, b in zip(end["losses"], kept["losses"], strict=True))
        assert end == kept or (near and not exact), f"preset {name}: {end} instead of {kept}"


def test_every_shipped_preset_has_the_settings_it_had(tmp_path) -> None:
    (tmp_path / "home").mkdir()
    answers = ask([("presets", "show", name, "--json") for name in PRESETS], tmp_path, tmp_path / "cache")
    for (name, kept), answer in zip(PRESETS.items(), answers, strict=True):
        assert answer.code == 0, answer.err
        found = json.loads(answer.out)["config"]
        if name == "demo":  # it learns in 1,200 steps now
            continue
        for key, default in later_defaults().items():  # which it had not, and leaves at what was done without them
            section, leaf = key.split(".")
            assert found[section].pop(leaf, None) == default, key
        said = {"description": found["description"]}  # words may change
        assert found == kept["config"] | said, name
