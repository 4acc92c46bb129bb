"""A study's TOML and its command line, to read; c copies the TOML."""

from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType

from engine.clean import clean, clean_line
from tui_transformer.studio.shared.dialog import Read
from tui_transformer.studio.shared.palette import Palette


class StudyPage(Read):
    """A study over the screen.

    Args:
        name: of it.
        toml: the whole file.
        command: what runs it.
        saved: whether that needs the study to be saved first.
        palette: colours.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("c", "copy", "copy")]

    def __init__(self, name: str, toml: str, command: str, *, saved: bool, palette: Palette) -> None:
        self._toml = toml
        body = Text().append("runs this study" + (", once s has saved it\n" if saved else "\n"), palette.dim)
        body.append(clean_line(command) + "\n\n", palette.calm).append_text(_coloured(toml, palette))
        super().__init__(f"{name}: the whole study   c copies it, escape closes", body)

    def action_copy(self) -> None:
        """Into the terminal's clipboard (OSC 52)."""
        self.app.copy_to_clipboard(self._toml)
        self.app.notify("the TOML is in the clipboard, where the terminal allows it", markup=False)


def _coloured(toml: str, palette: Palette) -> Text:
    """Tables bold, keys dim."""
    text = Text()
    for line in clean(toml).splitlines():
        if line.startswith("["):
            text.append(line + "\n", f"bold {palette.primary}".strip())
            continue
        name, equals, value = line.partition(" = ")
        text.append(name + equals, palette.dim if equals else "").append(value + "\n")
    return text
