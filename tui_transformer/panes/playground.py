"""Playground: write with what a run learned. The next part of the studio; until then it says what works."""

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static


class PlaygroundPane(Vertical):
    """An empty pane that explains itself."""

    can_focus = True

    def compose(self) -> ComposeResult:
        """A few words."""
        words = Text("Playground\n\n", style="bold", justify="center")
        words.append(
            "Sampling with live controls, tokens coloured by their probability, attention of any layer and head.\n"
            "This pane is not part of this version yet.\n\n",
            "not bold",
        )
        words.append("Now: ", "bold").append("tui-transformer sample RUN", "not bold")
        words.append(" is a prompt that writes with a run, at any temperature.", "not bold")
        yield Static(words, classes="empty")
