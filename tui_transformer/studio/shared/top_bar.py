"""The first line of the screen: the four panes, and where training happens."""

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.events import Click
from textual.message import Message
from textual.widgets import Static

from engine.clean import clean_line

PANES = (("design", "Design"), ("train", "Train"), ("compare", "Compare"), ("playground", "Playground"))


class Tab(Static):
    """One pane's name; a click shows the pane."""

    class Chosen(Message):
        """A tab was clicked."""

        def __init__(self, pane: str) -> None:
            super().__init__()
            self.pane = pane

    def __init__(self, number: int, pane: str, label: str) -> None:
        super().__init__(id=f"tab-{pane}", classes="tab")
        self.pane, self._number, self._label = pane, number, label
        self.tell_key(typing=False)

    def tell_key(self, *, typing: bool) -> None:
        """Show the pane's key, with alt while digits are typed into a line."""
        self.update(Text.assemble((f" {'alt+' if typing else ''}{self._number} ", "bold"), f"{self._label} "))

    def on_click(self, event: Click) -> None:
        """Show the pane."""
        event.stop()
        self.post_message(self.Chosen(self.pane))


class TopBar(Horizontal):
    """Name, tabs, and at the right what trains and on what."""

    def compose(self) -> ComposeResult:
        """The parts."""
        yield Static(Text(" tui-transformer ", style="bold"), id="brand")
        for number, (pane, label) in enumerate(PANES, 1):
            yield Tab(number, pane, label)
        yield Static("", id="where")

    def choose(self, pane: str) -> None:
        """Light up one tab."""
        for tab in self.query(Tab):
            tab.set_class(tab.pane == pane, "chosen")

    def tell_keys(self, *, typing: bool) -> None:
        """Show the keys that currently lead to the panes."""
        for tab in self.query(Tab):
            tab.tell_key(typing=typing)

    def say(self, text: str) -> None:
        """The words at the right."""
        self.query_one("#where", Static).update(Text(clean_line(text) + " "))
