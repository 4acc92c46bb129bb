"""A text in which each token has a colour of its own and can be stood on with a cursor. Draws only what is in view."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tui_transformer.studio.playground.layout import Layout, sign_of

WEIGHTS = 8  # shades of how much is looked at
STYLES = ("given", "unseen", *(f"p{i}" for i in range(5)), *(f"w{i}" for i in range(WEIGHTS + 1)), "cursor")
LOUD = ("p3", "p4")  # a line end of these levels is drawn as a sign


@dataclass(frozen=True)
class Token:
    """A token as it is shown: its text, and the name of a style."""

    text: str
    style: str


class TokenText(ScrollView, can_focus=True):
    """Tokens on lines."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"token-text--{name}" for name in STYLES}
    DEFAULT_CSS = """
    TokenText { height: 1fr; padding: 0 1; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0;
        overflow-x: hidden; scrollbar-color: $foreground 20%; scrollbar-background: $background; }
    TokenText:focus { background: $foreground 4%; }
    TokenText .token-text--given { color: $foreground 60%; }
    TokenText .token-text--unseen { color: $foreground 35%; }
    TokenText .token-text--p0 { color: $foreground; }
    TokenText .token-text--p1 { color: $success; }
    TokenText .token-text--p2 { color: $warning; }
    TokenText .token-text--p3 { color: $error; text-style: underline; }
    TokenText .token-text--p4 { color: $error; text-style: bold underline; }
    TokenText .token-text--w0 { color: $foreground 70%; }
    TokenText .token-text--w1 { color: $foreground 80%; background: $primary 10%; }
    TokenText .token-text--w2 { color: $foreground 90%; background: $primary 20%; }
    TokenText .token-text--w3 { color: $foreground; background: $primary 30%; }
    TokenText .token-text--w4 { color: $foreground; background: $primary 42%; }
    TokenText .token-text--w5 { color: $foreground; background: $primary 54%; text-style: underline; }
    TokenText .token-text--w6 { color: $background; background: $primary 74%; text-style: underline; }
    TokenText .token-text--w7 { color: $background; background: $primary 87%; text-style: bold underline; }
    TokenText .token-text--w8 { color: $background; background: $primary; text-style: bold underline; }
    TokenText .token-text--cursor { background: $foreground 25%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "step(-1)", "token", show=False),
        Binding("right", "step(1)", "token", show=False),
        Binding("up", "line(-1)", "line", show=False),
        Binding("down", "line(1)", "line", show=False),
        Binding("pageup", "line(-10)", "line", show=False),
        Binding("pagedown", "line(10)", "line", show=False),
        Binding("home", "step(-999999)", "first", show=False),
        Binding("end", "step(999999)", "last", show=False),
    ]

    class Moved(Message):
        """The cursor went to another token."""

        def __init__(self, text: "TokenText", at: int) -> None:
            super().__init__()
            self.text, self.at = text, at

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.tokens: list[Token] = []
        self.cursor: int | None = None
        self._lines = Layout()

    def show(self, tokens: Sequence[Token], *, follow: bool = False) -> None:
        """Show these; what is already there and stays is not laid out again."""
        old = len(self.tokens)
        grown = len(tokens) >= old and all(a.text == b.text for a, b in zip(self.tokens, tokens, strict=False))
        self.tokens = list(tokens)
        if not grown:
            self._lines.clear()
            old = 0
            if self.cursor is not None and self.cursor >= len(tokens):
                self.cursor = None
        self._lines.extend(token.text for token in tokens[old:])
        self._settle(follow=follow)

    def put(self, tokens: Sequence[Token]) -> None:
        """More of them at the end, which is kept in view if it was."""
        follow = self.scroll_offset.y >= self.max_scroll_y - 1
        self.tokens += tokens
        self._lines.extend(token.text for token in tokens)
        self._settle(follow=follow)

    def stand(self, at: int | None) -> None:
        """Put the cursor on a token, or nowhere."""
        self.cursor = at
        if at is not None and self.tokens:
            y = self._lines.line_of(at)
            self.scroll_to_region(Region(0, y, 1, 1), animate=False, force=True)
        self.refresh()

    def _settle(self, *, follow: bool = False) -> None:
        self.virtual_size = Size(self.size.width, len(self._lines.lines))
        if follow:
            self.scroll_to(y=len(self._lines.lines), animate=False, force=True)
        self.refresh()

    def on_resize(self) -> None:
        """Other lines."""
        self._lines.reflow(max(4, self.scrollable_content_region.width))
        self._settle()

    def on_focus(self) -> None:
        """The cursor is brighter, and stands somewhere."""
        if self.cursor is None and self.tokens:
            self._go(len(self.tokens) - 1)
        self.refresh()

    def on_blur(self) -> None:
        """Or darker."""
        self.refresh()

    def action_step(self, by: int) -> None:
        """To another token."""
        if self.tokens:
            here = len(self.tokens) - 1 if self.cursor is None else self.cursor
            self._go(max(0, min(len(self.tokens) - 1, here + by)))

    def action_line(self, by: int) -> None:
        """To another line, at the same column."""
        if not self.tokens:
            return
        here = len(self.tokens) - 1 if self.cursor is None else self.cursor
        line = max(0, min(len(self._lines.lines) - 1, self._lines.line_of(here) + by))
        found = self._lines.token_at(line, self._lines.column_of(here))
        if found is not None:
            self._go(found)

    def on_click(self, event: Click) -> None:
        """To the token under the mouse."""
        offset = event.get_content_offset(self)
        if offset is not None:
            found = self._lines.token_at(offset.y + self.scroll_offset.y, offset.x)
            if found is not None:
                self._go(found)

    def _go(self, at: int) -> None:
        self.stand(at)
        self.post_message(self.Moved(self, at))

    def render_line(self, y: int) -> Strip:
        """One line."""
        width, at = self.scrollable_content_region.width, y + self.scroll_offset.y
        lines = self._lines.lines
        if not 0 <= at < len(lines):
            return Strip.blank(width, self.rich_style)
        base, segments = self.rich_style, []
        for cell in self._lines.cells[slice(*lines[at])]:
            name = self.tokens[cell.token].style
            style = self.get_component_rich_style(f"token-text--{name}")
            text = sign_of(cell) if name in LOUD else cell.text
            if cell.token == self.cursor:
                marked = self.get_component_rich_style("token-text--cursor")
                style += Style(reverse=True) if self.has_focus else Style(bgcolor=marked.bgcolor)
                text = sign_of(cell)
            segments.append(Segment(text, base + style))
        return Strip(Segment.simplify(segments)).adjust_cell_length(width, Style(bgcolor=base.bgcolor))
