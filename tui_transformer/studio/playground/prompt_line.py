"""The line that prompts are typed into: up and down go through what was typed before.

A line end inside a prompt is shown as a sign: one that was pasted, or made with ctrl+j.
"""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.events import Paste
from textual.message import Message
from textual.widgets import Input

from engine.clean import clean
from tui_transformer.lab.play.written import SIGNS

END = SIGNS["\n"]


class PromptLine(Input):
    """A line with a memory."""

    DEFAULT_CSS = """
    PromptLine { height: 1; border: none; padding: 0 1; background: $surface; }
    PromptLine:focus { border: none; background: $primary 15%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "past(-1)", "before", show=False),
        Binding("down", "past(1)", "after", show=False),
        Binding("ctrl+j", "line_end", "line end", show=False),
        Binding("escape", "leave", "leave the line"),
    ]

    class Given(Message):
        """A line was given."""

        def __init__(self, line: str) -> None:
            super().__init__()
            self.line = line

    class Left(Message):
        """Escape: the keys are to go elsewhere."""

    def __init__(self) -> None:
        super().__init__(id="prompt", select_on_focus=False)
        self._lines: list[str] = []
        self._at = 0
        self._typed = ""

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter."""
        event.stop()
        line = self.value
        if line:
            if not self._lines or self._lines[-1] != line:
                self._lines.append(line)
            self._at = len(self._lines)
            self.clear()
            self.post_message(self.Given(line.replace(END, "\n")))

    def _on_paste(self, event: Paste) -> None:
        """All of it, line ends as signs."""
        event.stop()
        event.prevent_default()
        text = clean(event.text.replace("\r\n", "\n").replace("\r", "\n")).replace("\n", END)
        self.insert_text_at_cursor(text)

    def action_line_end(self) -> None:
        """A line end where the cursor is."""
        self.insert_text_at_cursor(END)

    def action_past(self, by: int) -> None:
        """Another line of those before; past the last, what was being typed."""
        if self._at == len(self._lines):
            self._typed = self.value
        at = max(0, min(len(self._lines), self._at + by))
        if at != self._at:
            self._at = at
            self.value = self._lines[at] if at < len(self._lines) else self._typed
            self.cursor_position = len(self.value)

    def action_leave(self) -> None:
        """Let go of the keys."""
        self.post_message(self.Left())
