"""The line between controls and text: what is looked at, and what its colours mean."""

from rich.text import Text
from textual.events import Click
from textual.message import Message
from textual.widgets import Static

from tui_transformer.lab.play.written import LEVELS
from tui_transformer.studio.playground.column import Mode
from tui_transformer.studio.playground.likeliest import level_style
from tui_transformer.studio.shared.palette import Palette

MODES: tuple[tuple[Mode, str], ...] = (("write", "w"), ("surprise", "s"), ("attention", "a"))
NATS = ("0.7", "1.6", "3.0", "4.6")  # −log of the levels


class ModeLine(Static):
    """The three modes; a click chooses one."""

    DEFAULT_CSS = """
    ModeLine { height: 1; padding: 0 1; }
    """

    class Chosen(Message):
        """Another mode was clicked."""

        def __init__(self, mode: Mode) -> None:
            super().__init__()
            self.mode = mode

    def __init__(self) -> None:
        super().__init__("", id="modes")
        self._mode: Mode = "write"
        self._places: list[tuple[int, int, Mode]] = []

    def show(self, mode: Mode) -> None:
        """Light up one."""
        self._mode = mode
        self._draw()

    def on_resize(self) -> None:
        """Shorter words where there is little room."""
        self._draw()

    def on_click(self, event: Click) -> None:
        """Choose the one under the mouse."""
        offset = event.get_content_offset(self)
        for start, end, mode in self._places:
            if offset is not None and start <= offset.x < end:
                self.post_message(self.Chosen(mode))

    def _draw(self) -> None:
        palette, line = Palette.of(self.app.theme_variables), Text(no_wrap=True, overflow="ellipsis")
        self._places = []
        for mode, key in MODES:
            start = line.cell_len
            line.append(mode, f"bold {palette.accent}" if mode == self._mode else "").append(f" {key}", palette.dim)
            self._places.append((start, line.cell_len, mode))
            line.append("  ")
        legend = _legend(self._mode, palette, brief=self.content_size.width < 76)
        line.append(" " * max(1, self.content_size.width - line.cell_len - legend.cell_len))
        self.update(line.append_text(legend))


def _legend(mode: Mode, palette: Palette, *, brief: bool) -> Text:
    """What the colours mean."""
    if mode == "attention":
        return Text("lightest: most of a row; faint: not seen", palette.dim)
    words = Text()
    if mode == "write":
        words.append("" if brief else "probability ", palette.dim)
        for probability in LEVELS:
            words.append(f"≥{probability:g}".replace("0.", "."), level_style(palette, probability)).append(" ")
        return words.append("less", level_style(palette, 0.0))
    words.append("" if brief else "surprise in nats ", palette.dim)
    for nats, probability in zip(NATS, LEVELS, strict=True):
        words.append(f"≤{nats}", level_style(palette, probability)).append(" ")
    return words.append("more", level_style(palette, 0.0))
