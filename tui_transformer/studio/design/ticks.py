"""A list to tick: space ticks, enter takes what is ticked, escape takes nothing. What is impossible says why."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from engine.clean import clean_line


@dataclass(frozen=True)
class Tick:
    """One line.

    Args:
        name: short.
        what: a few words.
        ticked: at first.
        why_not: why it cannot be ticked; "" if it can.
    """

    name: str
    what: str
    ticked: bool = False
    why_not: str = ""


class Ticks(ModalScreen[frozenset[int] | None]):
    """Gives back which lines are ticked, by their places, or None.

    Args:
        title: the question.
        ticks: the lines.
    """

    DEFAULT_CSS = """
    Ticks #ticks { width: 100; max-width: 94%; height: 90%; padding: 1 2; background: $panel; border: round $primary; }
    Ticks #how { margin-bottom: 1; color: $foreground 80%; }
    Ticks OptionList { height: 1fr; border: none; padding: 0; background: $panel; scrollbar-size-vertical: 1;
        scrollbar-color: $foreground 30%; scrollbar-background: $panel; }
    Ticks OptionList:focus { border: none; background-tint: $foreground 0%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "back"),
        Binding("space", "tick", "tick"),
        Binding("enter", "take", "take", priority=True),
    ]

    def __init__(self, title: str, ticks: Sequence[Tick]) -> None:
        super().__init__()
        self._title, self._ticks = title, ticks
        self._ticked = {at for at, tick in enumerate(ticks) if tick.ticked}
        self._width = max((len(tick.name) for tick in ticks), default=0)

    def compose(self) -> ComposeResult:
        """Title, how, lines."""
        with Vertical(id="ticks"):
            yield Static(Text(clean_line(self._title), style="bold"))
            yield Static(Text("space ticks · enter takes them · escape leaves all as it was"), id="how")
            yield OptionList(*(Option(self._line(at)) for at in range(len(self._ticks))))  # all can be gone to and read

    def on_mount(self) -> None:
        """The first that can be ticked."""
        self.query_one(OptionList).highlighted = next((i for i, t in enumerate(self._ticks) if not t.why_not), None)

    def _line(self, at: int) -> RenderableType:
        tick = self._ticks[at]
        mark = "✗" if tick.why_not and not tick.ticked else "●" if at in self._ticked else "○"
        line = Table.grid(padding=(0, 2, 0, 0))
        line.add_column(width=self._width + 2, no_wrap=True)
        line.add_column()
        words = Text(clean_line(tick.why_not), "italic") if tick.why_not else Text(clean_line(tick.what))
        line.add_row(Text(f"{mark} ").append(clean_line(tick.name), "bold"), words)
        return line

    def action_tick(self) -> None:
        """Tick the line at hand, or no longer."""
        names = self.query_one(OptionList)
        at = names.highlighted
        if at is not None and not self._ticks[at].why_not:
            self._ticked ^= {at}
            names.replace_option_prompt_at_index(at, self._line(at))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """A click ticks."""
        event.stop()
        self.action_tick()

    def action_take(self) -> None:
        """Give back what is ticked."""
        self.dismiss(frozenset(self._ticked))
