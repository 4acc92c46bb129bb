"""What stands around the panes held against stored screens: the top bar, and the keys in the last line."""

from pathlib import Path

import pytest

from tests.tui_transformer.recorded import everything
from tests.tui_transformer.studio.at_rest import take
from tests.tui_transformer.studio.stored_screens import SIZES, studio
from tui_transformer.studio.app import PANE_NAMES, TopBar
from tui_transformer.studio.shared.key_line import KeyLine


@pytest.mark.parametrize("size", SIZES)
async def test_the_keys_of_each_pane(stored, size) -> None:
    everything(Path("runs"))
    app = studio()
    async with app.run_test(size=size) as pilot:
        for number, pane in enumerate(PANE_NAMES, 1):
            await take(pilot, str(number) if pane != "playground" else "4")
            stored.shot(app, TopBar, label=f"above {pane}", stored=True)
            stored.shot(app, KeyLine, label=pane, stored=True)


async def test_too_small(stored) -> None:
    await stored.of(studio(), (40, 10), of=["#too-small"], stored=True)
