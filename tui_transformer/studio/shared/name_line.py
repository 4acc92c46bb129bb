"""A line of names to click on."""

from collections.abc import Callable

from textual.events import Click, MouseEvent
from textual.visual import VisualType
from textual.widget import Widget

NameSpans = list[tuple[int, int, str]]  # first column, the column after the last, and the name


def name_at(event: MouseEvent, widget: Widget, places: NameSpans) -> str | None:
    at = event.get_content_offset(widget)
    return next((name for start, end, name in places if at is not None and start <= at.x < end), None)


class NameLine(Widget):
    """Shows what `written` returns for a width; `refresh` calls it again. A click calls `chosen` with the name."""

    def __init__(
        self, written: Callable[[int], tuple[VisualType, NameSpans]], chosen: Callable[[str], object], *, id: str
    ) -> None:
        super().__init__(id=id)
        self._line_for, self._chosen = written, chosen
        self._spans: NameSpans = []

    def render(self) -> VisualType:
        line, self._spans = self._line_for(self.content_size.width)
        return line

    def on_click(self, event: Click) -> None:
        name = name_at(event, self, self._spans)
        if name is not None:
            self._chosen(name)
