"""The help: every key of the studio and of one pane, from the table that makes the bindings."""

from pathlib import Path

from rich.text import Text

from tui_transformer.studio.keys import PANES, Key
from tui_transformer.studio.shared.dialog import Read

NOTES = {"train": "In the list: the newest validation loss. A dim one with a t is a train loss: no evaluation yet."}
SIGNS = {"question_mark": "?", "slash": "/", "delete": "del", "backspace": "⌫"}


def help_screen(pane: str, changed: dict[str, str], where: Path) -> Read:
    """What can be pressed.

    Args:
        pane: the one that is shown.
        changed: keys by id that the user chose.
        where: the file that says so.
    """
    body = Text()
    for title, name in (("This pane", pane), ("Everywhere", "everywhere")):
        keys = PANES.get(name, ())
        if keys:
            body.append(f"{title}\n", "bold")
            for key in keys:
                body.append(f"  {_signs(key, changed):<16}", "bold").append(f"{key.what}")
                body.append(f"   ({key.id})\n", "dim")
            body.append("\n")
        if name in NOTES:
            body.append(f"{NOTES[name]}\n\n")
    body.append("  ctrl+p           ", "bold").append("all of this by name: the command palette\n")
    body.append("  tab, shift+tab   ", "bold").append("from part to part; the mouse works everywhere\n\n")
    body.append("Other keys: in ", "dim").append(str(where), "dim").append(', [keys], e.g. launch = "f9"', "dim")
    return Read("Keys", body)


def _signs(key: Key, changed: dict[str, str]) -> str:
    keys = changed.get(key.id, key.keys).split(",")
    return " ".join(SIGNS.get(name, name) for name in keys)
