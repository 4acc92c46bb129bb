"""The theme's few colours for the Design pane's text."""

from dataclasses import dataclass
from typing import Any

from textual.app import App


@dataclass(frozen=True)
class Palette:
    """Colours as Rich takes them; all "" leaves everything as it is."""

    accent: str = ""
    primary: str = ""
    calm: str = ""
    good: str = ""
    warn: str = ""
    bad: str = ""
    dim: str = ""

    @classmethod
    def from_app(cls, app: App[Any]) -> "Palette":
        variables = app.theme_variables
        names = {"accent": "accent", "primary": "primary", "good": "success", "warn": "warning", "bad": "error"}
        found = {ours: variables.get(theirs, "") for ours, theirs in names.items()}
        behind = variables.get("background", "")
        dim, calm = _blend(variables.get("foreground", ""), behind), _blend(found["primary"], behind, 0.75)
        return cls(**found, dim=dim, calm=calm)


def _blend(foreground: str, background: str, share: float = 0.68) -> str:
    if not (len(foreground) == len(background) == 7):
        return ""
    pairs = [(int(foreground[i : i + 2], 16), int(background[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(share * f + (1 - share) * b):02x}" for f, b in pairs)
