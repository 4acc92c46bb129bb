"""Compare: runs side by side. The next part of the studio; until then it says what will stand here and what works."""

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static


class ComparePane(Vertical):
    """An empty pane that explains itself."""

    can_focus = True

    def compose(self) -> ComposeResult:
        """A few words."""
        words = Text("Compare\n\n", style="bold", justify="center")
        words.append(
            "Runs side by side: the settings that differ, curves over each other, the difference to a baseline,\n"
            "and whether it can be told from noise. This pane is not part of this version yet.\n\n",
            "not bold",
        )
        words.append("Now: ", "bold").append("tui-transformer runs", "not bold")
        words.append(" lists all runs with their scores; ", "not bold").append("presets diff A B", "not bold")
        words.append(" names the settings in which two designs differ.", "not bold")
        yield Static(words, classes="empty")
