"""Dialogs of the Design pane and the study builder. Impossible choices say why."""

import re
from collections.abc import Container, Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Key
from textual.screen import ModalScreen
from textual.suggester import SuggestFromList
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from engine.base.clean import clean, clean_line
from engine.base.language import Message, tr
from engine.config.keys import all_keys, unknown_key_message
from tui_transformer.lab.design.draft import Draft, allowed_values, toml_argument
from tui_transformer.lab.design.study_draft import StudyDraft, VariantLine
from tui_transformer.studio.design.switches import CORPUS, Switch
from tui_transformer.studio.shared.dialog import Filter, TextDialog, TextScreen, error_text
from tui_transformer.studio.shared.messages import notify
from tui_transformer.studio.shared.palette import Palette

NUMBER_BEGUN = re.compile(r"[+-]?[\d_]*\.?\d*(e[+-]?\d*)?", re.IGNORECASE)


class PresetChecklist(ModalScreen[StudyDraft | None]):
    """A checklist of overlays as variants; enter returns the study with the ticked ones, escape None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", Message("back")),
        Binding("space", "tick", Message("toggle")),
        Binding("enter", "take", Message("apply"), priority=True),
    ]

    def __init__(self, draft: StudyDraft, offered: Sequence[VariantLine]) -> None:
        super().__init__()
        self._draft, self._offered = draft, offered
        self._ticked = {at for at, overlay in enumerate(offered) if draft.has_variant(overlay.variant)}
        self._width = max((cell_len(overlay.variant.name) for overlay in offered), default=0)
        self._filter, self._shown = Filter(len(offered)), list(range(len(offered)))

    def compose(self) -> ComposeResult:
        with Vertical(id="ticks"):
            title = clean_line(tr("Pick the changes for {name}", name=self._draft.design.name))
            yield Static(Text(title, style="bold"))
            yield Static(Text(tr("space: toggle · enter: apply · esc: cancel")), id="how")
            yield Static(self._filter.line, classes="dialog-filter")
            yield OptionList(*(Option(self._line(at)) for at in self._shown))  # all must stay readable

    def on_mount(self) -> None:
        self._highlight_first_allowed()

    def on_key(self, event: Key) -> None:
        if event.key == "space" or not self._filter.handle_key(event):  # space always ticks
            return
        self.query_one(".dialog-filter", Static).update(self._filter.line)
        self._shown = self._filter.matching(list(range(len(self._offered))), self._search_text)
        self.query_one(OptionList).set_options([Option(self._line(at)) for at in self._shown])
        self._highlight_first_allowed()

    def _search_text(self, at: int) -> tuple[str, str]:
        overlay = self._offered[at]
        return overlay.variant.name, overlay.why_not or overlay.description

    def _highlight_first_allowed(self) -> None:
        possible = (place for place, at in enumerate(self._shown) if not self._offered[at].why_not)
        self.query_one(OptionList).highlighted = next(possible, None)

    def _line(self, at: int) -> RenderableType:
        overlay = self._offered[at]
        name, why_not = overlay.variant.name, overlay.why_not
        mark = "✗" if why_not and not self._draft.has_variant(overlay.variant) else "●" if at in self._ticked else "○"
        line = Table.grid(padding=(0, 2, 0, 0))
        line.add_column(width=self._width + 2, no_wrap=True)
        line.add_column()
        words = Text(clean_line(why_not), "italic") if why_not else Text(clean_line(overlay.description))
        line.add_row(Text(f"{mark} ").append(clean_line(name), "bold"), words)
        return line

    def action_tick(self) -> None:
        names = self.query_one(OptionList)
        place = names.highlighted
        if place is not None and not self._offered[at := self._shown[place]].why_not:
            self._ticked ^= {at}
            names.replace_option_prompt_at_index(place, self._line(at))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.action_tick()

    def action_take(self) -> None:
        ticked = [overlay.variant for at, overlay in enumerate(self._offered) if at in self._ticked]
        self.dismiss(self._draft.with_overlays(ticked, self._offered))


class TomlPage(TextScreen):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("C", "copy", Message("copy"))]

    def __init__(
        self, title: str, toml: str, palette: Palette, *, changed: Container[str] = (), above: Text | None = None
    ) -> None:
        """Show a TOML file with the `changed` dotted keys marked and the words `above` over it."""
        self._toml = toml
        text, section = above or Text(), ""
        for line in clean(toml).splitlines():
            if line.startswith("["):
                section = line.strip("[]") + "."
                text.append(line + "\n", f"bold {palette.primary}".strip())
                continue
            name, equals, value = line.partition(" = ")
            marked = f"{section}{name}" in changed
            text.append(name + equals, palette.dim if equals else "")
            text.append(value, f"bold {palette.accent}".strip() if marked else "")
            text.append("  ●\n" if marked else "\n", palette.accent if marked else "")
        super().__init__(tr("{title}   C: copy · esc: close", title=title), text)

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self._toml)  # OSC 52
        notify(self, tr("copied the TOML to the clipboard (if your terminal allows it)"))


def number_dialog(draft: Draft, switch: Switch) -> TextDialog:
    def wrong(text: str) -> str:
        return (
            error_text(lambda: switch.with_typed_value(draft, text).problem) if text.strip() else tr("enter a number")
        )

    value = draft.values.get(switch.key)
    written = "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)

    def hopeless(text: str) -> str:
        return "" if NUMBER_BEGUN.fullmatch(text.strip()) else wrong(text)

    title = tr("{name} ({key})", name=tr(switch.label).strip(), key=switch.key)
    return TextDialog(title, written, wrong=wrong, hopeless=hopeless)


def setting_dialog(draft: Draft) -> TextDialog:
    def wrong(text: str) -> str:
        return error_text(lambda: draft.with_override_text(text).problem)

    def hopeless(text: str) -> str:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            return "" if any(name.startswith(key) for name in all_keys()) else unknown_key_message(key)
        if key not in all_keys():
            return wrong(text)
        few = allowed_values(key) if key != CORPUS else ()  # a corpus may be a path as well
        begun = not few or any(toml_argument(one).startswith(value.strip("\"'")) for one in few)
        return "" if begun else wrong(text)

    return TextDialog(
        tr("Change any setting"),
        placeholder="KEY=VALUE",
        text=tr("KEY=VALUE, e.g. model.rope_base=50000; → completes the key"),
        wrong=wrong,
        hopeless=hopeless,
        suggester=SuggestFromList([f"{name}=" for name in all_keys()]),
    )
