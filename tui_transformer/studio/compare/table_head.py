"""The titles over the table: a click sorts by one, an arrow says by which, angles that there are more columns."""

from typing import ClassVar

from rich.segment import Segment
from textual.events import Click
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from engine.clean import clean_line
from tui_transformer.lab.analysis.view import Shown
from tui_transformer.studio.compare.layout import GAP, MARKS, Layout, fitted

STYLES = ("title", "sorted", "more")


class TableHead(Widget):
    """One line."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"table-head--{name}" for name in STYLES}
    DEFAULT_CSS = """
    TableHead { height: 1; background: $panel; }
    TableHead .table-head--title { color: $foreground 80%; }
    TableHead .table-head--sorted { color: $accent; text-style: bold; }
    TableHead .table-head--more { color: $accent; }
    """

    class Clicked(Message):
        """Sort by this column."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self) -> None:
        super().__init__()
        self._shown, self._layout_of, self._reverse = Shown(), Layout(), False

    def show(self, shown: Shown, layout: Layout, *, reverse: bool) -> None:
        """Show the titles of what is seen."""
        before = (self._shown.columns, self._shown.sorted_by, self._layout_of, self._reverse)
        self._shown, self._layout_of, self._reverse = shown, layout, reverse
        if before != (shown.columns, shown.sorted_by, layout, reverse):
            self.refresh()

    def on_click(self, event: Click) -> None:
        """Sort by the column under the mouse."""
        index = self._layout_of.at(event.x)
        if index is not None:
            self.post_message(self.Clicked(self._shown.columns[index].key))

    def render_line(self, y: int) -> Strip:
        """The titles."""
        styles = {name: self.get_component_rich_style(f"table-head--{name}") for name in STYLES}
        segments = [Segment(fitted(" ‹" if self._layout_of.first > 1 else "", MARKS), styles["more"])]
        sorted_by = self._shown.sorted_by.key if self._shown.sorted_by is not None else ""
        for place in self._layout_of.places:
            column = self._shown.columns[place.index]
            title, style = clean_line(column.title), styles["title"]
            if column.key == sorted_by:
                arrow = "↓" if self._reverse else "↑"
                title, style = fitted(title, place.width - 1).rstrip() + arrow, styles["sorted"]
            segments.append(Segment(fitted(title, place.width, right=column.right) + " " * GAP, style))
        width = self.size.width
        strip = Strip(segments).adjust_cell_length(width - 1, self.rich_style)
        last = Segment("›" if self._layout_of.more else " ", styles["more"])
        return Strip([*strip, last]).adjust_cell_length(width, self.rich_style)
