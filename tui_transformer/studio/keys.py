"""Every key of the studio, from keys.toml: it makes bindings, footer, palette and help. Keys can be changed by id."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from textual.binding import Binding, BindingType


@dataclass(frozen=True)
class Key:
    """One binding.

    Args:
        id: for `keys` in the settings.
        keys: comma-separated.
        action: what it does, of the app or of the pane it stands with.
        label: one or two words, for the footer.
        what: one sentence, for the help.
        footer: shown at the bottom.
        first: heard before whatever has the focus, so that what is typed right after it goes where it leads.
    """

    id: str
    keys: str
    action: str
    label: str
    what: str
    footer: bool = True
    first: bool = False


_TABLES = tomllib.loads(Path(__file__).with_name("keys.toml").read_text(encoding="utf-8"))
PANES = {pane: tuple(Key(id, **key) for id, key in keys.items()) for pane, keys in _TABLES.items()}
EVERYWHERE, DESIGN, STUDY = PANES["everywhere"], PANES["design"], PANES["study"]
TRAIN, COMPARE, PLAYGROUND = PANES["train"], PANES["compare"], PANES["playground"]


def bindings(keys: tuple[Key, ...]) -> list[BindingType]:
    """Return keys as Textual takes them."""
    return [Binding(k.keys, k.action, k.label, show=k.footer, tooltip=k.what, id=k.id, priority=k.first) for k in keys]
