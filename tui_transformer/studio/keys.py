"""The studio's keys, from keys.toml: the source of bindings, footer, palette and help. Users remap them by id."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from textual.binding import Binding, BindingType


@dataclass(frozen=True)
class Key:
    id: str  # for `keys` in the settings
    keys: str  # comma-separated
    action: str  # of the app or of the pane it is listed with
    label: str  # one or two words, for the footer
    what: str  # one sentence, for the help
    footer: bool = True  # shown at the bottom
    first: bool = False  # handled before the focused widget, so that the next keys go where it leads


_TABLES = tomllib.loads(Path(__file__).with_name("keys.toml").read_text(encoding="utf-8"))
PANES = {pane: tuple(Key(id, **key) for id, key in keys.items()) for pane, keys in _TABLES.items()}


def bindings(table: str) -> list[BindingType]:
    """Return the bindings of a table of keys.toml: a pane's, or those that hold everywhere."""
    return [
        Binding(key.keys, key.action, key.label, show=key.footer, tooltip=key.what, id=key.id, priority=key.first)
        for key in PANES[table]
    ]
