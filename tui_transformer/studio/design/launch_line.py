"""The last line of the Design pane: what `f5` trains, under which name, and what that takes; the name can be edited."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from engine.base.clean import clean_line
from engine.base.language import tr
from tui_transformer.lab.design.forecast import VERY_LONG, Forecast
from tui_transformer.lab.formatting import memory
from tui_transformer.studio.design.own_files import run_name_problem
from tui_transformer.studio.shared.keys import COMMAND_KEYS
from tui_transformer.studio.shared.palette import Palette

ROOMY, VERY_ROOMY = 100, 118  # columns for the whole sentence


class NameInput(Input):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "cancel", show=False, priority=True)]

    def action_leave(self) -> None:
        self.post_message(LaunchLine.NameEntered(None))

    def on_blur(self) -> None:
        self.action_leave()


class LaunchLine(Horizontal):
    @dataclass
    class NameEntered(Message):
        """The name that was typed; None: as it was."""

        name: str | None

    def __init__(self, runs_dir: Path) -> None:
        super().__init__(id="launch")
        self._runs_dir = runs_dir

    def compose(self) -> ComposeResult:
        yield Static("", id="launch-words")
        yield NameInput(id="launch-name", compact=True, max_length=100, select_on_focus=False)
        yield Static("", id="launch-wrong")

    def show(self, name: str, forecast: Forecast | None, palette: Palette, *, problem: bool) -> None:
        width, line, launch = self.size.width, Text(no_wrap=True), COMMAND_KEYS["launch"]
        if problem:
            line.append(f" {launch}  ", palette.dim).append(tr("this design cannot be trained"), palette.bad)
        else:
            line.append(f" {launch} ", "reverse").append(f" {tr('train')} " if width >= ROOMY else " ")
            line.append(clean_line(name), "bold")
        if forecast is not None and not problem:
            line.append("   ").append(forecast.time_text, f"bold {time_colour(forecast, palette)}".strip())
            on = tr(" on {device}", device=forecast.device) if width >= ROOMY else ""
            how = tr("measured") if forecast.source == "measured" else tr("estimated") if forecast.seconds else ""
            line.append(f"{on} {how}".rstrip(), palette.dim)
            words = (tr(" tensors"), tr(" disk"))
            if width >= ROOMY:
                model = tr(" for model and activations") if width >= VERY_ROOMY else tr(" for the model")
                words = (model, tr(" on disk"))
            for size, what in zip((forecast.memory, forecast.disk), words, strict=True):
                line.append(" · ", palette.dim).append(memory(size)).append(what, palette.dim)
        rename = Text.assemble((f" {COMMAND_KEYS['run-name']} ", "reverse"), f" {tr('rename')} ")
        if not problem and line.cell_len + rename.cell_len < width:
            line.append(" " * (width - line.cell_len - rename.cell_len)).append_text(rename)
        for shown in self.query("#launch-words").results(Static):  # none until composed, or as the app closes
            shown.update(line)

    # Naming

    @property
    def naming(self) -> bool:
        return self.has_class("-naming")

    def edit_name(self, name: str) -> None:
        """Edit the name in place; the next keys are meant for it."""
        line = self.query_one(NameInput)
        self.query_one("#launch-words", Static).update(Text.assemble((f" {tr('name')} ", "reverse"), " "))
        self.add_class("-naming")
        line.value, line.cursor_position = name, len(name)
        self.screen.set_focus(line)

    def stop_naming(self) -> None:
        self.remove_class("-naming")

    @property
    def typed_name(self) -> str:
        return self.query_one(NameInput).value

    def name_problem(self, name: str) -> str:
        taken = tr("a run with this name already exists") if name and (self._runs_dir / name).exists() else ""
        return run_name_problem(name) or taken

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        wrong = self.name_problem(event.value)
        said = Text(f" ✗ {clean_line(wrong)}") if wrong else Text(tr("  enter: use this name · esc: cancel"))
        line = self.query_one("#launch-wrong", Static)
        line.update(said)
        line.set_class(bool(wrong), "-wrong")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if not self.name_problem(event.value):
            self.post_message(self.NameEntered(event.value))


def time_colour(forecast: Forecast, palette: Palette) -> str:
    if not forecast.is_long or forecast.seconds is None:
        return ""
    return palette.bad if forecast.seconds >= VERY_LONG else palette.warn
