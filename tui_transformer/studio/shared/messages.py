"""What panes ask of the studio, so that no pane knows the app; and notifications, for anyone."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from textual.app import App
from textual.message import Message
from textual.notifications import SeverityLevel
from textual.widget import Widget

from engine.base.clean import clean_line
from engine.base.errors import InputError
from tui_transformer.lab.work.run_actions import LaunchMode

LaunchChoice = LaunchMode | Literal["usual"]  # "usual": as the settings say


@dataclass
class PlayRun(Message):
    """Write with a run, or with two side by side."""

    run: Path
    vs: Path | None = None


@dataclass
class ResumeRun(Message):
    """Resume a run that ended early."""

    run: Path
    how: LaunchChoice


@dataclass
class StudyTiming(Message):
    """The variants of a launched study are being timed, so it has no runs yet; or the timing is over."""

    study: str
    runs: int  # that it will have
    state: Literal["begun", "done", "failed"] = "begun"


def notify(widget: Widget | App[Any], text: str, severity: SeverityLevel = "information") -> None:
    """Show a notification, never parsed as markup; nothing if it is empty."""
    if text:
        widget.notify(clean_line(text), severity=severity, markup=False)


@contextmanager
def show_errors(widget: Widget | App[Any]) -> Iterator[None]:
    """Show an error instead of raising it."""
    try:
        yield
    except (InputError, OSError) as error:
        notify(widget, str(error), "error")
