"""A line that filters what stands below it."""

from collections.abc import Callable
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import Input


class SearchLine(Input):
    """Filters as one types; escape clears it, enter and down go to what is left.

    It lets go of the keys before the next one is heard, so that this goes where it is meant to.

    Args:
        placeholder: what could be typed.
        leave: gives the keys to what is filtered, at once.
        id: of the widget.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,down", "leave", "list", show=False, priority=True),
        Binding("escape", "clear", "clear", show=False, priority=True),
    ]

    def __init__(self, placeholder: str, leave: Callable[[], object], *, id: str | None = None) -> None:
        super().__init__(placeholder=placeholder, select_on_focus=False, id=id)
        self._leave = leave

    def action_leave(self) -> None:
        self._leave()

    def action_clear(self) -> None:
        self.value = ""
        self._leave()
