"""A panel: a frame with a title, lit up by the focus, where the terminal has room for one (`.panel` in studio.tcss)."""

from collections.abc import Sequence
from typing import TypeVar

from rich.cells import cell_len
from textual.widget import Widget

DOT = " · "
W = TypeVar("W", bound=Widget)


def panel(widget: W, title: str = "") -> W:
    """Return the widget as a panel: where there is room it gets a frame with this title, lit up by the focus."""
    widget.border_title = title
    return widget.add_class("panel")


def fitting(parts: Sequence[tuple[str, int]], width: int) -> str:
    """Join the parts, each with its rank, by a dot; where they do not fit, leave out those of the highest rank."""
    kept = list(parts)
    while len(kept) > 1 and cell_len(DOT.join(text for text, _ in kept)) > width:
        kept.remove(max(reversed(kept[1:]), key=lambda part: part[1]))
    return DOT.join(text for text, _ in kept)
