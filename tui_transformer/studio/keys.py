"""The studio's keys, from keys.toml: the source of bindings, footer, palette and help. Users remap them by id."""

import tomllib
from pathlib import Path

from textual.binding import Binding

_TABLES = tomllib.loads(Path(__file__).with_name("keys.toml").read_text(encoding="utf-8"))
PANES = {pane: [Binding(id=id, **key) for id, key in keys.items()] for pane, keys in _TABLES.items()}
