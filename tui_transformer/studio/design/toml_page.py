"""The complete config, to read; c copies it."""

from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType

from engine.clean import clean
from tui_transformer.lab.design.draft import Draft
from tui_transformer.studio.shared.dialog import Read
from tui_transformer.studio.shared.palette import Palette


class TomlPage(Read):
    """A draft's TOML over the screen."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("c", "copy", "copy")]

    def __init__(self, draft: Draft, palette: Palette) -> None:
        self._toml = draft.toml()
        super().__init__(f"{draft.name}: the complete config   c copies it, escape closes", _coloured(draft, palette))

    def action_copy(self) -> None:
        """Into the terminal's clipboard (OSC 52)."""
        self.app.copy_to_clipboard(self._toml)
        self.app.notify("the TOML is in the clipboard, where the terminal allows it", markup=False)


def _coloured(draft: Draft, palette: Palette) -> Text:
    """Sections bold, keys dim, what was changed in the preset marked."""
    text, section = Text(), ""
    for line in clean(draft.toml()).splitlines():
        if line.startswith("["):
            section = line.strip("[]") + "."
            text.append(line + "\n", f"bold {palette.primary}".strip())
            continue
        name, equals, value = line.partition(" = ")
        changed = f"{section}{name}" in draft.changes
        text.append(name + equals, palette.dim if equals else "")
        text.append(value, f"bold {palette.accent}".strip() if changed else "")
        text.append("  ●\n" if changed else "\n", palette.accent)
    return text
