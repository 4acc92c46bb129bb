"""A page that is drawn once: Textual would render a table of Rich's anew to measure it, and again for every part."""

from rich.console import RenderableType
from rich.segment import Segment
from textual.strip import Strip
from textual.widget import Widget


class Page(Widget):
    """Lines of a renderable, as high as they are."""

    DEFAULT_CSS = "Page { height: auto; }"

    def __init__(self) -> None:
        super().__init__(id="page")
        self._lines: list[Strip] = []

    def show(self, renderable: RenderableType, width: int) -> None:
        console = self.app.console
        lines = console.render_lines(renderable, console.options.update(width=width, height=None), pad=True)
        self._lines = [Strip([Segment(s.text, s.style) for s in line], width) for line in lines]
        if self.styles.height is None or self.styles.height.value != len(lines):
            self.styles.height = len(lines)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        if y >= len(self._lines):
            return Strip.blank(self.size.width, self.rich_style)
        return self._lines[y].adjust_cell_length(self.size.width).apply_style(self.rich_style)
