"""Text that changes now and then, and what a pane says while there is nothing to show."""

from rich.text import Text
from textual.widgets import Static

from engine.base.clean import clean_line
from engine.base.language import tr
from tui_transformer.studio.shared.keys import COMMAND_KEYS


class CachedText(Static):
    """Text that is laid out again only if it has changed."""

    def show(self, text: Text) -> None:
        if text != self.content:
            self.update(text)


def empty_pane_text(title: str, hint: str, problem: str = "") -> Text:
    """Return how to make a first run, or why the runs folder cannot be read."""
    words = Text(justify="center")
    if problem:
        words.append(f"{clean_line(problem)}\n\n", "bold")
        return words.append(tr("The studio checks again every two seconds."))
    words.append(f"{title}\n\n", "bold")
    words.append("1", "bold").append(tr("  choose a design      "))
    words.append(COMMAND_KEYS["launch"], "bold").append(tr("  train it\n\n"))
    return words.append(hint, "dim")
