"""Text that changes now and then, what a pane says while there is nothing to show, and panels with a title."""

from collections.abc import Sequence
from typing import TypeVar

from rich.cells import cell_len
from rich.text import Text
from textual.widget import Widget
from textual.widgets import Static

from engine.clean import clean_line

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


class Words(Static):
    """Text that is laid out again only if it has changed."""

    def show(self, text: Text) -> None:
        if text != self.content:
            self.update(text)


def nothing_here(title: str, hint: str, problem: str = "") -> Text:
    """Return how to make a first run, or why the runs folder cannot be read."""
    words = Text(justify="center")
    if problem:
        words.append(f"{clean_line(problem)}\n\n", "bold")
        return words.append("The studio looks again every two seconds.")
    words.append(f"{title}\n\n", "bold")
    words.append("1", "bold").append("  choose a design      ").append("f5", "bold").append("  train it\n\n")
    return words.append(hint, "dim")
