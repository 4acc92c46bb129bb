"""Translations in the Design pane held against stored screens."""

from functools import partial

import pytest
from textual.pilot import Pilot

from tests.tui_transformer.studio.at_rest import Step
from tests.tui_transformer.studio.design.test_design_translation import App, app, go_to
from tests.tui_transformer.studio.stored_screens import SIZES, SMALL

__all__ = ["app"]  # a fixture


def showing(preset: str, *keys: str, at: str = "") -> tuple[Step, ...]:
    """Choose a preset, go to one of its switches, and press keys."""

    async def choose(pilot: Pilot) -> None:
        pilot.app.current_pane.choose(preset)

    return (choose, *([partial(go_to, key=at)] if at else []), *keys)


@pytest.mark.parametrize("size", SIZES)
async def test_design_of_a_translation(stored, app, size) -> None:
    await stored.of(app, size, *showing("multi30k"), of=["#columns"])


@pytest.mark.parametrize("size", SIZES)
async def test_design_of_the_reports_translation_without_its_data(stored, size) -> None:
    await stored.of(App(None), size, *showing("report-translation"), of=["#preview"])


@pytest.mark.parametrize(
    ("preset", "at"), [("multi30k", "data.corpus"), ("demo", "data.corpus"), ("demo", "objective.kind")]
)
async def test_choices_around_translation(stored, app, preset, at) -> None:
    await stored.of(app, SMALL, *showing(preset, "enter", at=at), of=[".dialog"])


@pytest.mark.parametrize("size", SIZES)
async def test_switches_of_a_translation(stored, app, size) -> None:
    await stored.of(app, size, *showing("multi30k", at="evaluation.beam"), of=["#middle"])
