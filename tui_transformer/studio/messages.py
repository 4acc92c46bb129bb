"""Messages from panes to the studio, so that no pane knows the app."""

from dataclasses import dataclass
from pathlib import Path

from textual.message import Message
from textual.notifications import SeverityLevel


@dataclass
class Play(Message):
    """Write with a run, or with two side by side."""

    run: Path
    vs: Path | None = None


@dataclass
class Resume(Message):
    """Resume a run that ended early; `how` as in the settings, or "usual" for their choice."""

    run: Path
    how: str


@dataclass
class Say(Message):
    """Show a sentence in the corner; it is cleaned there."""

    text: str
    severity: SeverityLevel = "information"
