"""The diagram shows each layer as it is computed, inside its canvas."""

import pytest

from engine.base.language import translate
from engine.config.model import PARTS, ModelConfig
from tui_transformer.lab.reports.figures.diagram import diagram
from tui_transformer.lab.reports.languages import LANGUAGES, load_report_language

LEGAL = [{name: value} for name, row in PARTS.items() for value in row.on_values]
MODELS = [{}, {"norm_placement": "post"}, {"norm_placement": "sandwich"}, *LEGAL]


def drawn(model: dict, code: str = "en") -> dict[str, list[tuple[float, float]]]:
    """Where each text of a diagram stands."""
    (axes,) = diagram(ModelConfig.model_validate(model), load_report_language(code)).axes
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    found: dict[str, list[tuple[float, float]]] = {}
    for text in axes.texts:
        x, y = text.get_position()
        assert left <= x <= right and low <= y <= high
        found.setdefault(text.get_text(), []).append((x, y))
    return found


@pytest.mark.parametrize("code", LANGUAGES)
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_diagram_names_every_part_that_is_on(model: dict, code: str) -> None:
    said = "\n".join(drawn(model, code))
    for name in model.keys() & PARTS.keys():
        values = dict(ModelConfig.model_validate(model))
        assert translate(PARTS[name].label, load_report_language(code), **values) in said


@pytest.mark.parametrize(("placement", "before", "after"), [("pre", 1, 0), ("post", 0, 1), ("sandwich", 1, 1)])
def test_norms_stand_where_they_act(placement: str, before: int, after: int) -> None:
    found = drawn({"norm_placement": placement, "final_norm": False})
    norms = [y for _, y in found["layer norm"]]
    attention, feed = (found[text][0][1] for text in found if text.startswith(("self-att", "feed-f")))
    assert sum(y < attention for y in norms) == before and sum(y > feed for y in norms) == after
    assert len(norms) == 2 * (before + after)


def test_parallel_parts_stand_side_by_side() -> None:
    found = drawn({"parallel": True})
    (attention,), (feed,) = (found[text] for text in found if text.startswith(("self-att", "feed-f")))
    assert attention[1] == feed[1] and attention[0] < found["+"][0][0] < feed[0] and len(found["+"]) == 1
