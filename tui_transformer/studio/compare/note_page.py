"""A note of any length about a run: ctrl+s keeps it, escape leaves it as it was."""

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static, TextArea

from engine.clean import clean, clean_line
from engine.runs.manage import LONGEST_NOTE


class NotePage(ModalScreen[str | None]):
    """Gives back the text, or None."""

    DEFAULT_CSS = """
    NotePage { align: center middle; background: $background 60%; }
    NotePage TextArea, NotePage TextArea:focus { height: 8; border: none; background: $surface; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "keep", "keep", priority=True),
        Binding("escape", "dismiss", "back", priority=True),
    ]

    def __init__(self, name: str, text: str) -> None:
        super().__init__()
        self._of, self._text = name, text

    def compose(self) -> ComposeResult:
        """The text, and what is wrong with it."""
        with Vertical(classes="dialog"):
            yield Static(Text(clean_line(f"A note about {self._of}"), style="bold"), classes="dialog-title")
            yield TextArea(clean(self._text), soft_wrap=True)
            yield Static("", classes="dialog-wrong")
            yield Static(Text("ctrl+s keeps it, escape does not"), classes="dialog-text")

    def on_mount(self) -> None:
        """On at its end."""
        area = self.query_one(TextArea)
        area.move_cursor(area.document.end)
        area.focus()

    def action_keep(self) -> None:
        """Give it back, unless it is too long."""
        text = self.query_one(TextArea).text.rstrip()
        if len(text) > LONGEST_NOTE:
            words = f"a note has at most {LONGEST_NOTE:,} characters, this one {len(text):,}"
            self.query_one(".dialog-wrong", Static).update(Text(words))
        else:
            self.dismiss(text)
