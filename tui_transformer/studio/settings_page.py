"""The settings on a screen: each with its values to choose from; a change applies and is saved at once."""

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, get_args

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from engine.clean import clean_line
from engine.language import tr
from tui_transformer.lab.formatting import fitted
from tui_transformer.settings import Settings
from tui_transformer.studio.themes import THEMES

WORDS = {  # for values that need more than themselves
    "auto": tr("auto"),
    "ask": tr("ask"),
    "thread": tr("in the studio"),
    "process": tr("in the background"),
    "hand-over": tr("keep training in the background"),
    "stop": tr("stop and save a checkpoint"),
}


def choices() -> dict[str, tuple[object, ...]]:
    """The values of each setting that has a few."""
    return {
        "theme": tuple(theme.name for theme in THEMES),
        **{
            name: values
            for name, field in Settings.model_fields.items()
            if field.title and (values := get_args(field.annotation))
        },
    }


def titled(name: str) -> str:
    return Settings.model_fields[name].title or name


class SettingsPage(ModalScreen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "turn(-1)", tr("previous value"), show=False),
        Binding("right,space", "turn(1)", tr("next value"), show=False),
        Binding("escape", "dismiss", tr("close")),
    ]

    def __init__(self, settings: Settings, file: Path, change: Callable[[str, object], None], at: str = "") -> None:
        super().__init__()
        self._settings, self._file, self._change, self._at = settings, file, change, at

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as dialog:
            dialog.border_subtitle = tr("← →: change · esc: close")
            yield Static(Text(tr("Settings"), style="bold"), classes="dialog-title")
            yield OptionList(*(Option("", id=name) for name in choices()))
            yield Static("", classes="dialog-text", id="setting-about")

    def on_mount(self) -> None:
        names = self.query_one(OptionList)
        names.highlighted = list(choices()).index(self._at) if self._at in choices() else 0
        self._redraw()

    def _redraw(self) -> None:
        names = self.query_one(OptionList)
        for name, values in choices().items():
            value = getattr(self._settings, name)
            line = Text(fitted(titled(name), 20)).append("‹ ", "dim")
            line.append(clean_line(WORDS.get(value, str(value))), "bold").append(" ›", "dim")
            place = tr("{n:,} of {total:,}", n=values.index(value) + 1, total=len(values)) if value in values else ""
            line.append(f"   {place}", "dim")
            names.replace_option_prompt(name, line)
        chosen = names.highlighted_option
        about = Settings.model_fields[chosen.id].description if chosen is not None and chosen.id else ""
        keys = tr(
            'To change keys, put their names under [keys] in {file}, e.g. launch = "f9"; the help (?) lists the names.',
            file=self._file,
        )
        self.query_one("#setting-about", Static).update(Text(f"\n{about}\n\n{clean_line(keys)}"))

    def on_option_list_option_highlighted(self) -> None:
        self._redraw()

    def on_option_list_option_selected(self) -> None:
        self.action_turn(1)

    def action_turn(self, by: int) -> None:
        at = self.query_one(OptionList).highlighted_option
        assert at is not None and at.id is not None
        values, value = choices()[at.id], getattr(self._settings, at.id)
        self._change(at.id, values[(values.index(value) + by) % len(values)] if value in values else values[0])
        self._redraw()
