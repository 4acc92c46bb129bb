"""The switches as a list: up and down choose one, left and right change it, digits are typed into it."""

from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Key, Resize
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from engine.clean import clean_line
from engine.errors import InputError
from tui_transformer.lab.design.draft import Draft
from tui_transformer.studio.design.switch_table import BY_KEY, SWITCHES, Switch
from tui_transformer.studio.shared.palette import Palette

LABEL = 13  # columns
SIGNS = "←→ ⏎"  # the keys that change it
STARTS = "0123456789."  # what begins to type a number


class Switches(OptionList):
    """One line a switch."""

    DEFAULT_CSS = """
    Switches { height: 1fr; max-height: 100%; border: none; padding: 0; background: $background;
        scrollbar-size-vertical: 1; scrollbar-color: $foreground 20%; scrollbar-background: $background; }
    Switches:focus { border: none; background-tint: $foreground 0%; }
    Switches > .option-list--option-disabled { color: $foreground 60%; text-style: bold; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "step(-1)", "less", show=False),
        Binding("right", "step(1)", "more", show=False),
        Binding("space", "select", "choose", show=False),
    ]

    class Changed(Message):
        """A switch was changed; this is the new draft."""

        def __init__(self, draft: Draft) -> None:
            super().__init__()
            self.draft = draft

    class Pick(Message):
        """The values of a switch are to be listed."""

        def __init__(self, switch: Switch) -> None:
            super().__init__()
            self.switch = switch

    class Said(Message):
        """A sentence on the switch at hand; `wrong` if it is about a mistake."""

        def __init__(self, text: str, wrong: bool = False) -> None:
            super().__init__()
            self.text, self.wrong = text, wrong

    def __init__(self) -> None:
        super().__init__(id="switches")
        self._draft: Draft | None = None
        self._typed: str | None = None  # what is being typed into the switch at hand
        self._shown: list[str] = []  # keys, headings as "# model"

    @property
    def current(self) -> Switch | None:
        """The switch at hand."""
        option = self.highlighted_option
        return BY_KEY.get(option.id or "") if option is not None else None

    def show(self, draft: Draft) -> None:
        """Show a draft's values."""
        self._draft = draft
        self._typed = None
        ids: list[str] = []
        for group, switches in SWITCHES.items():
            seen = [switch.key for switch in switches if switch.visible(draft)]
            ids += [f"# {group}", *seen] if seen else []
        if ids != self._shown:
            at = self.current
            self._shown = ids
            self.set_options(Option("", id=name, disabled=name.startswith("#")) for name in ids)
            self.highlighted = ids.index(at.key) if at is not None and at.key in ids else 1
        self.redraw()

    def redraw(self) -> None:
        """Draw all lines again."""
        palette = Palette.of(self.app.theme_variables)
        for at, name in enumerate(self._shown):
            self.replace_option_prompt_at_index(at, self._line(name, at == self.highlighted, palette))

    def _line(self, name: str, here: bool, palette: Palette) -> Text:
        draft = self._draft
        assert draft is not None
        if name.startswith("#"):
            return Text(f"  {name[2:]}")
        switch, plain = BY_KEY[name], here and self.has_focus
        changed, broken = name in draft.changes, draft.refusal is not None and name in draft.refusal.keys
        colour = palette.bad if broken else palette.accent if changed else ""
        mark = "✗ " if broken else "● " if changed else "  "
        line = Text()
        line.append(mark, "" if plain else colour)
        line.append(f"{switch.label:<{LABEL}}", "" if plain else palette.dim)
        width = self.scrollable_content_region.width
        value = clean_line(switch.value(draft))
        if "/" in value and line.cell_len + len(value) > width:  # of a path, its end says more
            value = "…/" + value.rsplit("/", 1)[1]
        if here and self._typed is not None:
            line.append(f"{clean_line(self._typed)}▏", "underline")
        elif plain:
            arrows = len(value) + line.cell_len + 4 <= width
            line.append(f"‹ {value} ›" if arrows else value, "bold")
        else:
            line.append(value, colour)
            note = switch.note(draft.config) if switch.note and draft.config else ""
            if line.cell_len + len(note) <= width:
                line.append(note, palette.dim)
        if width > 0:
            line.truncate(width, overflow="ellipsis")
        return line

    # Keys

    def action_step(self, way: int) -> None:
        """The next value up or down."""
        switch, draft = self.current, self._draft
        if switch is None or draft is None:
            return
        if self._typed is not None:
            self._leave_typing()
            return
        value = switch.step(draft, way)
        if value is None:
            few = "enter says why" if switch.ladder is None else "type a number, or press enter"
            self.post_message(self.Said(f"{switch.label.strip()} cannot go further that way here; {few}"))
            return
        self.post_message(self.Changed(draft.with_change(switch.key, value)))

    def action_select(self) -> None:
        """Enter: accept what was typed, else list the values."""
        switch = self.current
        if self._typed is not None:
            self._accept()
        elif switch is not None:
            self.post_message(self.Pick(switch))

    def _accept(self) -> bool:
        switch, draft, typed = self.current, self._draft, self._typed
        if switch is None or draft is None or typed is None:
            return True
        try:
            changed = switch.typed(draft, typed)
        except InputError as error:
            self.post_message(self.Said(str(error), wrong=True))
            return False
        self._leave_typing()
        self.post_message(self.Changed(changed))
        return True

    def _leave_typing(self) -> None:
        self._typed = None
        self.redraw()
        self._say()

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Digits begin a number; the switch also gets the keys that continue and end it."""
        switch = self.current
        if switch is None or switch.ladder is None:
            return False
        if self._typed is None:
            return character is not None and character in STARTS
        return key in ("escape", "backspace", "up", "down") or (character is not None and character.isprintable())

    async def _on_key(self, event: Key) -> None:
        switch = self.current
        if switch is None or self._draft is None or switch.ladder is None:
            return
        typing = self._typed
        if typing is None:
            if event.character is None or event.character not in STARTS:
                return
            self._typed = event.character
        elif event.key == "escape":
            self._leave_typing()
        elif event.key == "backspace":
            self._typed = typing[:-1]
        elif event.key in ("up", "down"):
            if self._accept():
                return
        elif event.is_printable and event.character is not None:
            self._typed = (typing + event.character)[:40]
        else:
            return
        event.stop()
        event.prevent_default()
        if self._typed is not None and event.key not in ("up", "down"):
            self.redraw()
            self._say()

    def _say(self) -> None:
        """About the switch at hand."""
        switch, draft = self.current, self._draft
        if switch is None or draft is None:
            return
        if self._typed is None:
            self.post_message(self.Said(f"{switch.key} {SIGNS}" if self.has_focus else switch.key))
            return
        try:
            problem = switch.typed(draft, self._typed).problem if self._typed else ""
        except InputError as error:
            problem = str(error)
        self.post_message(self.Said(problem or "enter accepts, escape undoes", wrong=bool(problem)))

    # What else redraws it

    def watch_highlighted(self, highlighted: int | None) -> None:
        """Only the line at hand has arrows."""
        super().watch_highlighted(highlighted)
        self._typed = None
        if self._draft is not None and len(self._shown) == self.option_count:
            self.redraw()
            self._say()

    def watch_has_focus(self, has_focus: bool) -> None:
        """Show where keys go; a number half typed is undone."""
        super().watch_has_focus(has_focus)
        if self._draft is not None:
            self._leave_typing()

    def on_resize(self, event: Resize) -> None:
        """Other room."""
        if self._draft is not None:
            self.redraw()
