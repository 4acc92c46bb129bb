"""The Design pane held against stored screens."""

import pytest

from tests.tui_transformer.studio.stored_screens import SIZES, studio

WINDOW_WITH_A_CHANGE = ("slash", *"win16", "enter", "enter", "down", "right")


@pytest.mark.parametrize("size", SIZES)
async def test_design(stored, size) -> None:
    await stored.of(studio("design"), size, of=["#design"], stored=True)


@pytest.mark.parametrize("size", SIZES)
async def test_design_of_a_window_with_a_change(stored, size) -> None:
    await stored.of(studio("design"), size, *WINDOW_WITH_A_CHANGE, of=["#design"])


@pytest.mark.parametrize("size", SIZES)
async def test_design_says_why_a_choice_is_not_one(stored, size) -> None:
    await stored.of(studio("design"), size, "tab", "enter", of=[".dialog"])
