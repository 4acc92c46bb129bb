import pytest

from engine import capabilities
from engine.config.schema import RunConfig

REFUSED = {
    "heads that do not divide": {"d_model": 64, "n_heads": 3},
    "rope on an odd head": {"d_model": 9, "n_heads": 3, "position": "rope"},
    "odd sinusoidal": {"d_model": 9, "n_heads": 3},
    "initialising a table that is not there": {"position": "rope", "position_init": "zero"},
}


@pytest.mark.parametrize("model", REFUSED.values(), ids=REFUSED.keys())
def test_impossible_models_are_refused_with_a_reason(model: dict) -> None:
    refusal = capabilities.check(RunConfig.model_validate({"model": model}))
    assert refusal is not None and len(refusal.reason) > 30
    assert all(key.startswith("model.") for key in refusal.keys)


def test_options_grey_out_what_cannot_be_chosen() -> None:
    offered = capabilities.options(RunConfig.model_validate({"model": {"d_model": 6, "n_heads": 2}}), "model.position")
    assert offered["sinusoidal"] is None
    assert offered["rope"] is not None and "pairs" in offered["rope"]


def test_the_grid_covers_every_value_of_every_axis() -> None:
    cells = list(capabilities.legal_cells(RunConfig()))
    for key, values in capabilities.AXES.items():
        section, name = key.split(".")
        assert {getattr(getattr(cell, section), name) for cell in cells} == set(values)
