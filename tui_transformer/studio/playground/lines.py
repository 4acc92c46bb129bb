"""The lines around the text: the sampling settings, the three modes with a legend, prompts to try, and the prompt."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual import message, on, work
from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.events import Click, MouseEvent, MouseScrollDown, MouseScrollUp, Paste
from textual.suggester import SuggestFromList
from textual.widget import Widget
from textual.widgets import Input

from engine.base.clean import clean, clean_line
from engine.base.language import Message, tr
from tui_transformer.lab.formatting import fit_to_width
from tui_transformer.lab.play.prompt import SETTINGS, CommandPrompt, Settings, parse_setting
from tui_transformer.lab.play.written import LEVELS, SIGNS, token_label
from tui_transformer.studio.playground.likeliest import level_style
from tui_transformer.studio.shared.dialog import TextDialog, error_text
from tui_transformer.studio.shared.keys import COMMAND_KEYS
from tui_transformer.studio.shared.name_line import NameSpans, name_at
from tui_transformer.studio.shared.palette import Palette

NAMES = {
    "temperature": Message("temperature"),
    "top_k": "top-k",
    "top_p": "top-p",
    "seed": Message("seed"),
    "length": Message("length"),
}
BRIEF = {"temperature": Message("temp")}
STEPS: dict[str, tuple[float | int, ...]] = {  # next values for numbers without an even step
    "top_k": (0, 1, 2, 3, 5, 10, 20, 40, 80, 200),
    "length": (10, 25, 50, 100, 200, 400, 800, 1600, 3200),
}
EVEN = {"temperature": 0.1, "top_p": 0.05, "seed": 1}
GAP = 3


def next_value(name: str, value: float | int, by: int) -> float | int:
    """Return the next value of a setting, up or down; the same at its bounds."""
    if name in STEPS:
        ladder = STEPS[name]
        further = [step for step in ladder if (step > value if by > 0 else step < value)]
        return (min(further) if by > 0 else max(further)) if further else value
    wanted = round(value + by * EVEN[name], 6)
    setting = SETTINGS[name]
    low = EVEN[name] if name == "top_p" else setting.low
    within = max(low, min(setting.high, wanted))
    return int(within) if setting.kind is int else within


class Controls(Widget, can_focus=True):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "choose(-1)", "setting", show=False),
        Binding("right", "choose(1)", "setting", show=False),
        Binding("up,plus", "change(1)", "more", show=False),
        Binding("down,minus", "change(-1)", "less", show=False),
        Binding("enter", "exact", Message("exact value")),
    ]

    @dataclass
    class Changed(message.Message):
        setting: str
        value: float | int

    def __init__(self) -> None:
        super().__init__(id="controls")
        self._settings: Settings = {}
        self._second: Settings = {}  # of the run beside it, if there is one
        self._chosen = next(iter(NAMES))
        self._spans: NameSpans = []

    def show(self, settings: Settings, second: Settings) -> None:
        self._settings, self._second = dict(settings), dict(second)
        self.refresh()

    def action_choose(self, by: int) -> None:
        names = list(NAMES)
        self._chosen = names[(names.index(self._chosen) + by) % len(names)]
        self.refresh()

    def action_change(self, by: int) -> None:
        name = self._chosen
        if name in self._settings:
            self._set_value(name, next_value(name, self._settings[name], by))

    @work
    async def action_exact(self) -> None:
        name = self._chosen
        value, wrong = str(self._settings.get(name, "")), lambda text: error_text(lambda: parse_setting(name, text))
        asked = TextDialog(tr(NAMES[name]), value, text=SETTINGS[name].what, wrong=wrong)
        text = await self.app.push_screen_wait(asked)
        if text:
            self._set_value(name, parse_setting(name, text))

    def _set_value(self, name: str, value: float | int) -> None:
        if value != self._settings.get(name):
            self._settings[name] = value
            self._second.pop(name, None)  # a value set by hand is both runs'
            self.refresh()
            self.post_message(self.Changed(name, value))

    def on_click(self, event: Click) -> None:
        if self._choose_at(event) and event.chain > 1:
            self.action_exact()

    @on(MouseScrollUp)
    @on(MouseScrollDown)
    def _change_by_wheel(self, event: MouseScrollUp | MouseScrollDown) -> None:
        event.stop()
        if self._choose_at(event):
            self.action_change(1 if isinstance(event, MouseScrollUp) else -1)

    def _choose_at(self, event: MouseEvent) -> bool:
        name = name_at(event, self, self._spans)
        if name is not None:
            self._chosen = name
            self.refresh()
        return name is not None

    def render(self) -> Text:
        palette, line = Palette.from_app(self.app), Text(no_wrap=True, overflow="ellipsis")
        self._spans = []
        for name, label in NAMES.items():
            start = line.cell_len
            chosen = self.has_focus and name == self._chosen
            label = BRIEF.get(name, label) if self.content_size.width < 70 else label
            line.append(f"{tr(label)} ", "bold" if chosen else palette.dim)
            value = self._settings.get(name)
            values = dict.fromkeys((value, self._second.get(name, value)))  # one, or each run's own
            shown = " / ".join("–" if v is None else f"{v:,}" if isinstance(v, int) else f"{v:g}" for v in values)
            line.append(f"‹{shown}›" if chosen else f" {shown} ", f"bold {palette.accent}" if chosen else "bold")
            self._spans.append((start, line.cell_len, name))
            line.append(" " * (GAP - 2))
        return line


MODES = Message("write"), Message("surprise"), Message("attention")
NATS = ("0.7", "1.6", "3.0", "4.6")  # −log of the levels


def mode_line(chosen: str, palette: Palette, width: int) -> tuple[Text, NameSpans]:
    line = Text(no_wrap=True, overflow="ellipsis")
    places: NameSpans = []
    for mode in MODES:
        start = line.cell_len
        line.append(tr(mode), f"bold {palette.accent}" if mode == chosen else "")
        line.append(f" {COMMAND_KEYS[mode]}", palette.dim)
        places.append((start, line.cell_len, mode))
        line.append("  ")
    legend = _legend(chosen, palette, brief=width < 76)
    line.append(" " * max(1, width - line.cell_len - legend.cell_len))
    return line.append_text(legend), places


def _legend(mode: str, palette: Palette, *, brief: bool) -> Text:
    if mode == "attention":
        return Text(tr("bright: high attention; dim: masked"), palette.dim)
    words = Text()
    if mode == "write":
        words.append("" if brief else tr("probability "), palette.dim)
        for probability in LEVELS:
            words.append(f"≥{probability:g}".replace("0.", "."), level_style(palette, probability)).append(" ")
        return words.append(tr("less"), level_style(palette, 0.0))
    words.append("" if brief else tr("surprise in nats "), palette.dim)
    for nats, probability in zip(NATS, LEVELS, strict=True):
        words.append(f"≤{nats}", level_style(palette, probability)).append(" ")
    return words.append(tr("more"), level_style(palette, 0.0))


TRY = 24  # most columns of a prompt to try


def example_line(prompts: Sequence[str], palette: Palette, width: int) -> tuple[Text, NameSpans]:
    """The prompts to try, as many as fit, each to click on."""
    line, places = Text(tr("try  "), palette.dim, no_wrap=True, overflow="ellipsis"), []
    for prompt in prompts:
        name = " ".join(map(token_label, prompt.split())) or token_label(prompt)
        name = fit_to_width(name, TRY) if cell_len(name) > TRY else name
        start = line.cell_len
        if start + cell_len(name) > width:
            break
        line.append(f" {name} ", f"bold {palette.primary}")
        places.append((start, line.cell_len, prompt))
        line.append("  ")
    return line.append(tr("↑ recalls them"), palette.dim), places


END = SIGNS["\n"]
HINTS = Message("enter: write · /: commands · ↑: earlier prompts · esc: leave")


class PromptLine(Input):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "complete", "complete a /command", show=False),
        Binding("up", "past(-1)", "before", show=False),
        Binding("down", "past(1)", "after", show=False),
        Binding("ctrl+j", "line_end", Message("new line"), show=False),
        Binding("escape", "leave", Message("leave the prompt")),
    ]

    @dataclass
    class LineSubmitted(message.Message):
        line: str

    class Escaped(message.Message):
        """Escape: focus should go elsewhere."""

    def __init__(self, prompt: CommandPrompt) -> None:
        super().__init__(id="prompt", select_on_focus=False)
        self._prompt = prompt
        self.suggest_commands()
        self._tries: list[str] = []
        self._lines: list[str] = []
        self._recall_index = 0
        self._unsent_text = ""
        self._offered: list[str] = []  # completions of what was typed, to go through
        self.border_subtitle = tr(HINTS)

    def suggest_commands(self) -> None:
        """Suggest the commands there are now."""
        self.suggester = SuggestFromList(self._prompt.completions("/"))

    def show_run(self, run: str, tries: Sequence[str]) -> None:
        """Show whose prompt this is; ↑ recalls prompts to try after those that were typed."""
        self.border_title = Text(tr("Prompt · {run}", run=clean_line(run)))
        recalled = len(self._recallable_lines) - self._recall_index
        self._tries = [clean(prompt).replace("\n", END) for prompt in reversed(tries)]
        self._recall_index = max(0, len(self._recallable_lines) - recalled)

    @property
    def _recallable_lines(self) -> list[str]:
        return [*self._tries, *self._lines]

    def on_input_changed(self, event: Input.Changed) -> None:
        """Say what the command being typed does."""
        event.stop()
        name = self.value[1:].split(" ")[0].replace("-", "_")
        found = self._prompt.completions(self.value)
        known = self._prompt.table.commands.get(name if not found else found[0][1:].strip())
        self.border_subtitle = tr(HINTS)
        if self.value.startswith("/") and len(found) > 1:
            self.border_subtitle = Text("tab: " + " ".join(one.strip() for one in found))
        elif self.value.startswith("/") and known is not None:
            self.border_subtitle = Text(f"{known.argument}  {known.what}".strip())

    def action_complete(self) -> None:
        """Complete a command; once more, take the next one that fits. Elsewhere tab moves the focus."""
        if not self.value.startswith("/"):
            raise SkipAction
        if self.value not in self._offered:
            self._offered = self._prompt.completions(self.value)
            at = 0
        else:
            at = (self._offered.index(self.value) + 1) % len(self._offered)
        if self._offered:
            self.value = self._offered[at]
            self.cursor_position = len(self.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        line = self.value
        if line:
            if not self._lines or self._lines[-1] != line:
                self._lines.append(line)
            self._recall_index = len(self._recallable_lines)
            self.clear()
            self.post_message(self.LineSubmitted(line.replace(END, "\n")))

    def _on_paste(self, event: Paste) -> None:
        event.stop()
        event.prevent_default()
        text = clean(event.text.replace("\r\n", "\n").replace("\r", "\n")).replace("\n", END)
        self.insert_text_at_cursor(text)

    def action_line_end(self) -> None:
        self.insert_text_at_cursor(END)

    def action_past(self, by: int) -> None:
        """Recall an earlier line; past the last, the current input."""
        past = self._recallable_lines
        if self._recall_index == len(past):
            self._unsent_text = self.value
        at = max(0, min(len(past), self._recall_index + by))
        if at != self._recall_index:
            self._recall_index = at
            self.value = past[at] if at < len(past) else self._unsent_text
            self.cursor_position = len(self.value)

    def action_leave(self) -> None:
        self.post_message(self.Escaped())
