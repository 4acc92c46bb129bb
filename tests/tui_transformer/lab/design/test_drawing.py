"""The drawn network has every part of the model, and marks what differs from another one."""

import pytest

from engine.capabilities import check
from engine.config import presets
from tui_transformer.lab.design.draft import Draft
from tui_transformer.lab.design.drawing import GUTTER, NetworkRow, draw_network


def rows(draft: Draft, before: Draft | None = None, width: int = 40) -> list[NetworkRow]:
    assert draft.config is not None
    model = before.config.model if before is not None and before.config is not None else None
    return [row for stack in draw_network(draft.config.model, model, width) for row in stack]


def test_what_changed_is_marked_and_nothing_else() -> None:
    demo = Draft.from_preset("demo")
    assert {row.state for row in rows(demo, demo)} == {""}
    found = rows(demo.with_change("model.n_heads", 2), demo)
    assert [(row.words, row.state) for row in found if row.state] == [
        ("self-attention, 4 heads", "gone"),
        ("self-attention, 2 heads", "new"),
    ]


def test_without_residual_connections_nothing_is_added_and_the_parts_are_not_gone() -> None:
    demo = Draft.from_preset("demo")
    found = rows(demo.with_change("model.residual", False), demo)
    assert not any("⊕" in row.lines for row in found) and not any(row.state == "gone" for row in found)
    assert any("⊕" in row.lines for row in rows(demo))


def test_norms_are_where_they_act() -> None:
    demo = Draft.from_preset("demo")
    for placement, norms in (("pre", 3), ("post", 2), ("sandwich", 5)):
        words = [row.words for row in rows(demo.with_change("model.norm_placement", placement))]
        assert words.count("layer norm") == norms


@pytest.mark.parametrize("width", [28, 40])
@pytest.mark.parametrize("preset", [preset.name for preset in presets.list_presets()])
def test_every_preset_is_drawn_within_its_width(preset: str, width: int) -> None:
    draft = Draft.from_preset(preset)
    assert draft.config is not None and check(draft.config) is None
    found = rows(draft, width=width)
    assert all(len(row.lines) < GUTTER and len(row.words) <= width - GUTTER for row in found)
    assert any("attention" in row.words for row in found)
