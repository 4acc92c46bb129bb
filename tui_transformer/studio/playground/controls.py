"""The numbers that sampling depends on, on a line: chosen and changed with arrows, the mouse wheel, or by typing."""

from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Click, MouseScrollDown, MouseScrollUp
from textual.message import Message
from textual.widgets import Static

from engine.errors import InputError
from tui_transformer.lab.play.prompt import SETTINGS, Settings, checked
from tui_transformer.studio.shared.dialog import AskText
from tui_transformer.studio.shared.palette import Palette

NAMES = {"temperature": "temperature", "top_k": "top-k", "top_p": "top-p", "seed": "seed", "length": "length"}
BRIEF = {"temperature": "temp"}
STEPS: dict[str, tuple[float | int, ...]] = {  # where a number that has no even step goes next
    "top_k": (0, 1, 2, 3, 5, 10, 20, 40, 80, 200),
    "length": (10, 25, 50, 100, 200, 400, 800, 1600, 3200),
}
EVEN = {"temperature": 0.1, "top_p": 0.05, "seed": 1}
GAP = 3


def stepped(name: str, value: float | int, by: int) -> float | int:
    """The next value of a setting, up or down; the same at its bounds."""
    if name in STEPS:
        ladder = STEPS[name]
        further = [step for step in ladder if (step > value if by > 0 else step < value)]
        return (min(further) if by > 0 else max(further)) if further else value
    wanted = round(value + by * EVEN[name], 6)
    setting = SETTINGS[name]
    low = EVEN[name] if name == "top_p" else setting.low
    within = max(low, min(setting.high, wanted))
    return int(within) if setting.kind is int else within


class Controls(Static, can_focus=True):
    """One line of numbers."""

    DEFAULT_CSS = """
    Controls { height: 1; padding: 0 1; background: $panel; }
    Controls:focus { background: $primary 25%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "choose(-1)", "setting", show=False),
        Binding("right", "choose(1)", "setting", show=False),
        Binding("up,plus", "change(1)", "more", show=False),
        Binding("down,minus", "change(-1)", "less", show=False),
        Binding("enter", "exact", "exact value"),
    ]

    class Changed(Message):
        """A number is another one."""

        def __init__(self, name: str, value: float | int) -> None:
            super().__init__()
            self.setting, self.value = name, value

    def __init__(self) -> None:
        super().__init__("", id="controls")
        self._settings: Settings = {}
        self._chosen = 0
        self._places: list[tuple[int, int]] = []

    def show(self, settings: Settings) -> None:
        """Show these."""
        self._settings = dict(settings)
        self._draw()

    def on_focus(self) -> None:
        """Light up the chosen one."""
        self._draw()

    def on_blur(self) -> None:
        """Or not."""
        self._draw()

    def on_resize(self) -> None:
        """Short names where there is little room."""
        self._draw()

    def action_choose(self, by: int) -> None:
        """Another number."""
        self._chosen = (self._chosen + by) % len(NAMES)
        self._draw()

    def action_change(self, by: int) -> None:
        """More or less of it."""
        name = list(NAMES)[self._chosen]
        if name in self._settings:
            self._become(name, stepped(name, self._settings[name], by))

    def action_exact(self) -> None:
        """Type it."""
        name = list(NAMES)[self._chosen]

        def wrong(text: str) -> str:
            try:
                checked(name, text)
            except InputError as error:
                return str(error)
            return ""

        def typed(text: str | None) -> None:
            if text:
                self._become(name, checked(name, text))

        value = str(self._settings.get(name, ""))
        self.app.push_screen(AskText(NAMES[name], value, text=SETTINGS[name].help, wrong=wrong), typed)

    def _become(self, name: str, value: float | int) -> None:
        if value != self._settings.get(name):
            self._settings[name] = value
            self._draw()
            self.post_message(self.Changed(name, value))

    def on_click(self, event: Click) -> None:
        """Choose the number under the mouse; twice: type it."""
        if self._under(event.get_content_offset(self)) and event.chain > 1:
            self.action_exact()

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """More of the number under the mouse."""
        self._turn(event, 1)

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """Less of it."""
        self._turn(event, -1)

    def _turn(self, event: MouseScrollUp | MouseScrollDown, by: int) -> None:
        event.stop()
        if self._under(event.get_content_offset(self)):
            self.action_change(by)

    def _under(self, offset: object) -> bool:
        x = getattr(offset, "x", -1)
        for i, (start, end) in enumerate(self._places):
            if start <= x < end:
                self._chosen = i
                self._draw()
                return True
        return False

    def _draw(self) -> None:
        palette, line = Palette.of(self.app.theme_variables), Text(no_wrap=True, overflow="ellipsis")
        self._places = []
        for i, (name, label) in enumerate(NAMES.items()):
            start = line.cell_len
            chosen = self.has_focus and i == self._chosen
            label = BRIEF.get(name, label) if self.content_size.width < 70 else label
            line.append(f"{label} ", "bold" if chosen else palette.dim)
            value = self._settings.get(name)
            shown = "–" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:g}"
            line.append(f"‹{shown}›" if chosen else f" {shown} ", f"bold {palette.accent}" if chosen else "bold")
            self._places.append((start, line.cell_len))
            line.append(" " * (GAP - 2))
        self.update(line)
