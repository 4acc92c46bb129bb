"""A line between two parts of a pane that the mouse can drag."""

from dataclasses import dataclass

from rich.text import Text
from textual.events import MouseDown, MouseMove, MouseUp
from textual.message import Message
from textual.widget import Widget

GRIP = " ═══ "


class Splitter(Widget):
    @dataclass
    class Dragged(Message):
        y: int  # the screen's line it was dragged to

    def render(self) -> Text:
        line = " " if self.app.has_class("framed") else "─"  # frames are lines enough
        return Text(GRIP.center(self.size.width, line), no_wrap=True)

    def on_mouse_down(self, event: MouseDown) -> None:
        event.stop()
        self.capture_mouse()

    def on_mouse_up(self, event: MouseUp) -> None:
        event.stop()
        self.release_mouse()

    def on_mouse_move(self, event: MouseMove) -> None:
        if self.app.mouse_captured is self:
            event.stop()
            self.post_message(self.Dragged(event.screen_y))
