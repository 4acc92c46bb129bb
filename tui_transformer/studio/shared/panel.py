"""A panel: a frame with a title, lit up by the focus, where the terminal has room for one (`.panel` in studio.tcss)."""

from collections.abc import Sequence
from typing import TypeVar

from rich.cells import cell_len
from textual.widget import Widget

from tui_transformer.lab.formatting import DOT

W = TypeVar("W", bound=Widget)


def panel(widget: W, title: str = "") -> W:
    """Return the widget as a panel: where there is room it gets a frame with this title, lit up by the focus."""
    widget.border_title = title
    return widget.add_class("panel")


def join_that_fit(parts: Sequence[tuple[str, int]], width: int) -> str:
    """Join the parts, each with its rank, by a dot: the first one, and of the others, lowest rank first, those that
    fit beside it.
    """
    kept = [0]
    for at in sorted(range(1, len(parts)), key=lambda at: parts[at][1]):
        wider = sorted([*kept, at])
        kept = wider if cell_len(DOT.join(parts[i][0] for i in wider)) <= width else kept
    return DOT.join(parts[i][0] for i in kept)
