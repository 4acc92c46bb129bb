"""The settings on a screen, with their values to choose from, and the keys; a change applies and is saved at once."""

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Literal, get_args, get_origin

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from engine.base.clean import clean_line
from engine.base.errors import comma_separated
from engine.base.language import Message, tr
from tui_transformer.lab.formatting import fit_to_width
from tui_transformer.settings import Settings
from tui_transformer.studio.shared.dialog import Answer, ChoiceDialog
from tui_transformer.studio.shared.keys import PANE_BINDINGS, key_problem, key_symbols, pane_title
from tui_transformer.studio.themes import THEMES

KEYS = "keys"  # the setting
WORDS = {  # for values that need more than themselves
    "auto": Message("auto"),
    "ask": Message("ask"),
    "thread": Message("in the studio"),
    "process": Message("in the background"),
    "hand-over": Message("keep training in the background"),
    "stop": Message("stop and save a checkpoint"),
}


def setting_choices() -> dict[str, tuple[object, ...]]:
    """The values of each setting on the screen; none of the keys, which have a list of their own."""
    return {
        "theme": tuple(theme.name for theme in THEMES),
        **{
            name: get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
            for name, field in Settings.model_fields.items()
            if field.title and name != "theme"
        },
    }


def setting_title(name: str) -> str:
    return tr(Settings.model_fields[name].title or name)


def setting_description(name: str) -> str:
    return tr(Settings.model_fields[name].description or "")


class SettingsPage(ModalScreen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "turn(-1)", Message("previous value"), show=False),
        Binding("right,space", "turn(1)", Message("next value"), show=False),
        Binding("escape", "dismiss", Message("close")),
    ]

    def __init__(self, settings: Settings, file: Path, change: Callable[[str, object], None], at: str = "") -> None:
        super().__init__()
        self._settings, self._file, self._change, self._first_setting = settings, file, change, at

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as dialog:
            dialog.border_subtitle = tr("← →: change · esc: close")
            yield Static(Text(tr("Settings"), style="bold"), classes="dialog-title")
            yield OptionList(*(Option("", id=name) for name in setting_choices()))
            yield Static("", classes="dialog-text", id="setting-about")

    def on_mount(self) -> None:
        names = self.query_one(OptionList)
        names.highlighted = (
            list(setting_choices()).index(self._first_setting) if self._first_setting in setting_choices() else 0
        )
        self._redraw()

    def _redraw(self) -> None:
        names = self.query_one(OptionList)
        for name, values in setting_choices().items():
            value = getattr(self._settings, name)
            if name == KEYS:
                said = tr("{n} changed", n=len(value)) if value else tr("unchanged")
                line = Text(fit_to_width(setting_title(name), 22)).append(f"{said} …", "bold")
                names.replace_option_prompt(name, line)
                continue
            line = Text(fit_to_width(setting_title(name), 20)).append("‹ ", "dim")
            line.append(clean_line(tr(WORDS[value]) if value in WORDS else str(value)), "bold").append(" ›", "dim")
            place = tr("{n:,} of {total:,}", n=values.index(value) + 1, total=len(values)) if value in values else ""
            line.append(f"   {place}", "dim")
            names.replace_option_prompt(name, line)
        chosen = names.highlighted_option
        about = setting_description(chosen.id) if chosen is not None and chosen.id else ""
        kept = tr("Settings are stored in {file}.", file=self._file)
        self.query_one("#setting-about", Static).update(Text(f"\n{about}\n\n{clean_line(kept)}"))

    def on_option_list_option_highlighted(self) -> None:
        self._redraw()

    def on_option_list_option_selected(self) -> None:
        self.action_turn(1)

    def action_turn(self, by: int) -> None:
        at = self.query_one(OptionList).highlighted_option
        assert at is not None and at.id is not None
        if at.id == KEYS:
            self._change_keys()
            return
        values, value = setting_choices()[at.id], getattr(self._settings, at.id)
        self._change(at.id, values[(values.index(value) + by) % len(values)] if value in values else values[0])
        self._redraw()

    @work
    async def _change_keys(self) -> None:
        """List the commands by pane; ask for one's new key, until escape."""
        at: tuple[str, str] | None = None
        while True:
            changed = dict(self._settings.keys)
            answers = [
                Answer(
                    (pane, key.id or ""),
                    ("● " if key.id in changed else "  ") + key_symbols(key, changed),
                    description=" · ".join((pane_title(pane), tr(key.description), tr(key.tooltip))),
                )
                for pane in sorted(PANE_BINDINGS, key=lambda pane: pane == "everywhere")
                for key in PANE_BINDINGS[pane]
            ]
            at = await self.app.push_screen_wait(ChoiceDialog(tr("Change which key?"), answers, at=at))
            if at is None:
                return
            pressed = await self.app.push_screen_wait(KeyPrompt(*at, changed))
            if pressed is None:
                continue
            changed.pop(at[1], None)
            self._change(KEYS, changed | ({at[1]: pressed} if pressed else {}))
            self._redraw()


class KeyPrompt(ModalScreen[str | None]):
    """Asks for a command's new key; returns it, "" for the default, or None."""

    takes_every_key = True  # see `typing_order`

    def __init__(self, pane: str, id: str, changed: dict[str, str]) -> None:
        super().__init__()
        self._command, self._changed = next(key for key in PANE_BINDINGS[pane] if key.id == id), changed

    def compose(self) -> ComposeResult:
        command = self._command
        panes = [pane for pane, keys in PANE_BINDINGS.items() if any(key.id == command.id for key in keys)]
        now, usual = key_symbols(command, self._changed), key_symbols(command, {})
        default = tr("; default: {keys}", keys=usual) * (now != usual)
        words = tr("Press the new key. Current: {keys}", keys=now) + default
        with Vertical(classes="dialog") as dialog:
            dialog.border_subtitle = tr("del: default · esc: cancel")
            title = f"{comma_separated(map(pane_title, panes))} · {tr(command.description)} · {tr(command.tooltip)}"
            yield Static(Text(title, style="bold"), classes="dialog-title")
            yield Static(Text(words), classes="dialog-text")
            yield Static("", classes="dialog-wrong")

    def on_key(self, event: Key) -> None:
        event.stop()
        pressed = "" if event.key in ("delete", "backspace", self._command.key) else event.key
        if event.key == "escape":
            self.dismiss(None)
        elif wrong := key_problem(self._command.id or "", pressed, self._changed):
            self.query_one(".dialog-wrong", Static).update(Text(wrong))
        else:
            self.dismiss(pressed)
