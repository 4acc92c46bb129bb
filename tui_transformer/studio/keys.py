"""The studio's keys, from keys.toml: the source of bindings, footer, palette and help. Users remap them by id."""

import tomllib
from pathlib import Path

from rich.text import Text
from textual.binding import Binding

from tui_transformer.studio.shared.dialog import Read

_TABLES = tomllib.loads(Path(__file__).with_name("keys.toml").read_text(encoding="utf-8"))
PANES = {pane: [Binding(id=id, **key) for id, key in keys.items()] for pane, keys in _TABLES.items()}
NOTES = {"train": "In the list: the newest validation loss. A dim one with a t is a train loss: no evaluation yet."}
SIGNS = {"question_mark": "?", "slash": "/", "delete": "del", "backspace": "⌫"}
SIGNS |= {"left_square_bracket": "[", "right_square_bracket": "]"}


def help_screen(pane: str, changed: dict[str, str], where: Path) -> Read:
    """The keys of a pane; `changed` are remapped keys by id, from the user's file `where`."""
    body = Text()
    for title, name in (("This pane", pane), ("Everywhere", "everywhere")):
        body.append(f"{title}\n", "bold")
        for key in PANES[name]:
            signs = " ".join(SIGNS.get(sign, sign) for sign in changed.get(key.id or "", key.key).split(","))
            body.append(f"  {signs:<16}", "bold").append(f"{key.tooltip}")
            body.append(f"   ({key.id})\n", "dim")
        body.append("\n")
        if name in NOTES:
            body.append(f"{NOTES[name]}\n\n")
    body.append("  ctrl+p           ", "bold").append("all of this by name: the command palette\n")
    body.append("  tab, shift+tab   ", "bold").append("from part to part; the mouse works everywhere\n\n")
    body.append("Other keys: in ", "dim").append(str(where), "dim").append(', [keys], e.g. launch = "f9"', "dim")
    return Read("Keys", body)
