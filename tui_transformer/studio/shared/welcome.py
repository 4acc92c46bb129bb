"""The first start: what this is, and how two keys lead to a curve that grows."""

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static


class Welcome(ModalScreen[bool]):
    """One screen; True if the person wants the demo."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,f5", "start", "start"),
        Binding("escape", "look", "look around"),
    ]

    def compose(self) -> ComposeResult:
        """The words."""
        words = Text()
        words.append("A studio for Transformers\n\n", "bold")
        words.append("Build one from its parts, train it, watch it learn, and trust what the comparison says.\n\n")
        words.append("  1  Design      ", "bold").append("a preset, its switches, what they cost and mean\n")
        words.append("  2  Train       ", "bold").append("curves as they grow; pause, stop, resume\n")
        words.append("  3  Compare     ", "bold").append("runs side by side\n")
        words.append("  4  Playground  ", "bold").append("write with what a run has learned\n\n")
        words.append("enter", "bold reverse").append("  chooses a demo that a laptop trains in two to three minutes;  ")
        words.append("f5", "bold reverse").append("  then trains it.\n\n")
        words.append("escape looks around first.   ?  shows the keys, wherever you are.", "dim")
        with Vertical(classes="dialog"):
            yield Static(words)

    def action_start(self) -> None:
        """With the demo."""
        self.dismiss(True)

    def action_look(self) -> None:
        """Without."""
        self.dismiss(False)
