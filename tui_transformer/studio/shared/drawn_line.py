"""Text lines that redraw when their size or focus changes, and map columns to what is there."""

from dataclasses import dataclass

from textual.events import Click, MouseEvent
from textual.message import Message
from textual.widgets import Static


class Drawn(Static):
    """Draws itself; a subclass says how in `draw`."""

    def __init__(self, *, id: str) -> None:
        super().__init__("", id=id)
        self.places: list[tuple[int, int, str]] = []  # columns from and to, and what is there

    def draw(self) -> None:
        raise NotImplementedError

    def on_focus(self) -> None:
        self.draw()

    def on_blur(self) -> None:
        self.draw()

    def on_resize(self) -> None:
        self.draw()

    def named(self, event: MouseEvent) -> str | None:
        at = event.get_content_offset(self)
        return next((name for start, end, name in self.places if at is not None and start <= at.x < end), None)


class NameLine(Drawn):
    @dataclass
    class Chosen(Message):
        name: str

    def on_click(self, event: Click) -> None:
        name = self.named(event)
        if name is not None:
            self.post_message(self.Chosen(name))
