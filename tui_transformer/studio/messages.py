"""What a pane asks of the studio around it, so that no pane knows the app."""

from pathlib import Path

from textual.message import Message
from textual.notifications import SeverityLevel


class Play(Message):
    """Write with a run, or with two side by side."""

    def __init__(self, run: Path, vs: Path | None = None) -> None:
        super().__init__()
        self.run, self.vs = run, vs


class Resume(Message):
    """Go on with a run that ended early; `how` as the settings have it, or "usual" for what they say."""

    def __init__(self, run: Path, how: str) -> None:
        super().__init__()
        self.run, self.how = run, how


class Say(Message):
    """Say a sentence in the corner; it is cleaned there."""

    def __init__(self, text: str, severity: SeverityLevel = "information") -> None:
        super().__init__()
        self.text, self.severity = text, severity
