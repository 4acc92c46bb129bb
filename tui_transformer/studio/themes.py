"""The studio's themes: dark, light, and one whose colours are distinct for any kind of colour vision."""

import tomllib
from pathlib import Path
from typing import Any

from textual.theme import Theme

from tui_transformer.lab.analysis.colours import ON_DARK, ON_LIGHT, run_colour_variables


def _theme(name: str, table: Any) -> Theme:
    runs = table.pop("runs", None)
    usual = ON_DARK if table["dark"] else ON_LIGHT
    return Theme(name=name, variables=run_colour_variables(*runs) if runs else usual, **table)


_TABLES = tomllib.loads(Path(__file__).with_name("themes.toml").read_text(encoding="utf-8"))
THEMES = tuple(_theme(name, table) for name, table in _TABLES.items())
