"""The keys that do something now, on the last line of a screen."""

from collections.abc import Sequence
from itertools import accumulate
from typing import ClassVar, NamedTuple

from rich.text import Text
from textual import events
from textual.screen import Screen
from textual.widget import Widget

from engine.base.language import tr
from tui_transformer.studio.shared.typing_order import accepts_as_text


class ShownKey(NamedTuple):
    key: str
    words: Text
    tooltip: str


class KeyLine(Widget):
    """Draws all keys as one line that can be clicked.

    Textual's Footer has a widget for each key, which it makes and styles anew whenever the focus moves: 30 ms.
    """

    COMPONENT_CLASSES: ClassVar = {"keys--key", "keys--words", "keys--edge", "keys--hover"}
    ALLOW_SELECT = False

    def __init__(self, *, palette: bool = True, spare: Sequence[str] = ()) -> None:
        """`spare`: ids of bindings that follow the usual ones where there is room for all of those, in this order."""
        super().__init__()
        self._palette, self._spare = palette, spare
        self._shown_keys: list[ShownKey] = []
        self._palette_key: ShownKey | None = None  # the command palette's, at the right
        self._hovered: ShownKey | None = None

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._schedule_update)

    def on_unmount(self) -> None:
        self.screen.bindings_updated_signal.unsubscribe(self)

    def _schedule_update(self, screen: Screen[object]) -> None:
        if screen.app.app_focus and self.is_attached and screen is self.screen:
            self.call_after_refresh(self._update_keys)

    def _update_keys(self) -> None:
        if not self.is_attached:  # the screen was closed meanwhile
            return
        focused, by_action = self.screen.focused, dict[str, ShownKey]()
        active = {  # Textual leaves out only keys that would be typed before the user changed them
            key: one
            for key, one in self.screen.active_bindings.items()
            if one.node is focused or not accepts_as_text(focused, key)
        }
        usual = [one for one in active.values() if one.binding.show]
        by_id = {one.binding.id: one for one in active.values() if not one.binding.show}
        spare = [by_id[name] for name in self._spare if name in by_id]
        for _, binding, enabled, tooltip in (*usual, *spare):
            if enabled and binding.action not in by_action:
                words = self._key_text(self.app.get_key_display(binding), tr(binding.description))
                by_action[binding.action] = ShownKey(binding.key, words, tr(tooltip or binding.tooltip))
        last = None
        if self._palette and (found := next((a for a in active.values() if a.binding.id == "palette"), None)):
            words = self._key_text(self.app.get_key_display(found.binding), tr(found.binding.description))
            last = ShownKey(found.binding.key, words, tr(found.binding.tooltip or found.binding.description))
        if (shown := list(by_action.values())) != self._shown_keys or last != self._palette_key:
            self._shown_keys, self._palette_key = shown, last
            self.refresh()

    def _key_text(self, key: str, description: str) -> Text:
        key_style, style = (self.get_component_rich_style(f"keys--{part}", partial=True) for part in ("key", "words"))
        return Text.assemble((key, key_style), (f" {description}" if description else "", style))

    def notify_style_update(self) -> None:
        super().notify_style_update()
        if self.is_mounted and self._shown_keys:
            self._shown_keys = []
            self.call_after_refresh(self._update_keys)

    def render(self) -> Text:
        line = Text(no_wrap=True, end="")
        for one in self._keys_that_fit():
            line.append_text(self._words_with_hover_style(one)).append(" ")
        line.truncate(self._room, pad=True)
        if self._palette_key is not None:
            line.append("▏", self.get_component_rich_style("keys--edge", partial=True))
            line.append_text(self._words_with_hover_style(self._palette_key))
        return line

    def _keys_that_fit(self) -> list[ShownKey]:
        """The first keys, as many as there is room for: none is cut."""
        ends = accumulate(one.words.cell_len + 1 for one in self._shown_keys)  # with a space, which the last may lose
        return [one for one, end in zip(self._shown_keys, ends, strict=True) if end <= self._room + 1]

    @property
    def _room(self) -> int:
        """Columns to the left of the last key, which stands at the edge."""
        return max(0, self.size.width - (0 if self._palette_key is None else self._palette_key.words.cell_len + 1))

    def _words_with_hover_style(self, one: ShownKey) -> Text:
        words = one.words.copy()
        if one is self._hovered:
            words.stylize(self.get_component_rich_style("keys--hover", partial=True))
        return words

    # The mouse

    def _key_at(self, x: int) -> ShownKey | None:
        edge = self.size.width - (0 if self._palette_key is None else self._palette_key.words.cell_len)
        if x >= edge - 1:
            return self._palette_key
        start = 0
        for one in self._keys_that_fit():
            if start <= x < start + one.words.cell_len:
                return one
            start += one.words.cell_len + 1
        return None

    def on_mouse_move(self, event: events.MouseMove) -> None:
        self._hover(self._key_at(event.x))

    def on_leave(self) -> None:
        self._hover(None)

    def _hover(self, one: ShownKey | None) -> None:
        if one is not self._hovered:
            self._hovered, self.tooltip = one, None if one is None else one.tooltip or None
            self.refresh()

    def on_mouse_down(self, event: events.MouseDown) -> None:
        if (one := self._key_at(event.x)) is not None:
            self.app.simulate_key(one.key)
