"""The studio's keys, from keys.toml: the source of bindings, footer, palette and help. Users remap them by id."""

import tomllib
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text
from textual.binding import Binding
from textual.geometry import Size
from textual.keys import key_to_character
from textual.widgets import Static

from engine.base.language import Message, tr
from tui_transformer.studio.shared.dialog import TextScreen

_TABLES = tomllib.loads(Path(__file__).with_name("keys.toml").read_text(encoding="utf-8"))


SPARE: list[str] = _TABLES.pop("spare")["keys"]  # ids: in the footer where there is room, in this order
_GROUPS: dict[str, dict[str, list[str]]] = _TABLES.pop("groups")  # of the help
_MOUSE: dict[str, dict[str, str]] = _TABLES.pop("mouse")  # by pane, for the help
WORDS: dict[str, dict[str, str]] = _TABLES.pop("words")  # what a pane's words mean
PANE_BINDINGS = {pane: [Binding(id=id, **key) for id, key in keys.items()] for pane, keys in _TABLES.items()}
NOTES = {
    "train": Message(
        "A finished run cannot be resumed: with most schedules, a longer run uses different learning rates right "
        "from the start. Press 1 and raise train.steps for a new run, or set train.init_from to start one from the "
        "finished run's weights."
    )
}
TWO_COLUMNS = 90  # least width of the help for them
GAP = 3  # between them
SIGNS = {
    "comma": ",",
    "plus": "+",
    "minus": "-",
    "question_mark": "?",
    "exclamation_mark": "!",
    "full_stop": ".",
    "number_sign": "#",
    "slash": "/",
    "delete": "del",
    "backspace": "⌫",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
}


# What lists, dialogs and lines to fill in need; and what a terminal or Textual does not leave to others.
RESERVED = {
    *("escape", "enter", "tab", "shift+tab", "space", "delete", "backspace"),
    *("up", "down", "left", "right", "home", "end", "pageup", "pagedown"),
    *("ctrl+c", "ctrl+z", *"0123456789"),
}


def _current_keys(key: Binding, changed: dict[str, str]) -> list[str]:
    return changed.get(key.id or "", key.key).split(",")


def key_symbol(key: str) -> str:
    """A key as it is shown."""
    character = SIGNS.get(key) or key_to_character(key)
    return character if character and character.isprintable() and not character.isspace() else key


def key_symbols(key: Binding, changed: dict[str, str]) -> str:
    """A command's keys as they are shown; `changed` are remapped keys by id."""
    return " ".join(map(key_symbol, _current_keys(key, changed)))


def key_problem(id: str, pressed: str, changed: dict[str, str]) -> str:
    """Why a command cannot have a key, or its default if `pressed` is "": the key is reserved, or another command's
    where this one works. "" if it can; `changed` are remapped keys by id.
    """
    if pressed in RESERVED:
        return tr("{key} is reserved for moving, choosing and typing", key=key_symbol(pressed))
    for pane, own in _all_bindings():
        for other, key in _all_bindings() if own.id == id else ():
            taken = {*([pressed] if pressed else _current_keys(own, {}))} & {*_current_keys(key, changed)}
            if key.id != id and taken and _can_conflict(pane, own, other, key):
                said = " · ".join((pane_title(other), tr(key.tooltip)))
                return tr("{key} is taken: {said}", key=key_symbol(taken.pop()), said=said)
    return ""


def _all_bindings() -> Iterator[tuple[str, Binding]]:
    return ((pane, key) for pane, keys in PANE_BINDINGS.items() for key in keys)


def _can_conflict(pane: str, key: Binding, other_pane: str, other: Binding) -> bool:
    """Whether two commands can be used at the same time; over the study builder, of the rest only what has priority."""
    if pane == other_pane:
        return True
    rest = next((one for at, one in ((pane, key), (other_pane, other)) if at == "everywhere"), None)
    return rest is not None and (rest.priority or "study" not in (pane, other_pane))


def pane_title(pane: str) -> str:
    return (tr("study builder") if pane == "study" else tr(pane)).capitalize()


COMMAND_KEYS: dict[str, str] = {}  # each command's first key by its id, as it is shown


def update_displayed_keys(changed: dict[str, str]) -> None:
    """Show the keys as the user has remapped them, by id."""
    COMMAND_KEYS.update((key.id or "", key_symbol(_current_keys(key, changed)[0])) for _, key in _all_bindings())


update_displayed_keys({})


def help_screen(pane: str, changed: dict[str, str], where: Path) -> TextScreen:
    """The keys of a pane; `changed` are remapped keys by id, from the user's file `where`."""

    def keys_of(name: str) -> KeyGroups:
        return [
            (tr(title), [(key_symbols(key, changed), tr(key.tooltip)) for key in keys])
            for title, keys in _grouped_bindings(name)
        ]

    tables = ((tr("Terms"), WORDS.get(pane)), (tr("Mouse"), _MOUSE.get(pane)))
    more = [(title, [(tr(sign), tr(text)) for sign, text in table.items()]) for title, table in tables if table]
    groups = [*keys_of(pane), *more, *keys_of("everywhere")]
    groups[-1][1].append(("tab shift+tab", tr("move between the parts of a pane; the mouse works everywhere")))
    notes = Text(f"\n{tr(NOTES[pane])}\n" if pane in NOTES else "")
    keys = (*PANE_BINDINGS[pane], *PANE_BINDINGS["everywhere"])
    names = "  ".join(f"{key.id} {key_symbols(key, changed)}" for key in keys)
    how = tr(
        'To change keys, press {key} and choose Keys, or list them under [keys] in {file}, e.g. launch = "f9":',
        key=next(key_symbols(key, changed) for key in PANE_BINDINGS["everywhere"] if key.id == "settings"),
        file=where,
    )
    notes.append(f"\n{how}\n{names}", "dim")
    return TextScreen(tr("Keys"), KeyColumns(groups), notes)


def _grouped_bindings(name: str) -> list[tuple[str, list[Binding]]]:
    groups = _GROUPS.get(name, {})
    found = [(title, [key for key in PANE_BINDINGS[name] if key.id in ids]) for title, ids in groups.items()]
    rest = [key for key in PANE_BINDINGS[name] if not any(key.id in ids for ids in groups.values())]
    return [*found, *([(tr("More") if groups else tr(name).capitalize(), rest)] if rest else [])]


KeyGroups = list[tuple[str, list[tuple[str, str]]]]


class KeyColumns(Static):
    """Groups of keys, in two columns where there is room."""

    def __init__(self, groups: KeyGroups) -> None:
        super().__init__()
        self._groups = groups
        self._rows: dict[int, list[Text]] = {}  # by width: Textual asks several times

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._rows_at(width))

    def render(self) -> Text:
        # As text: Rich lays out nested tables six times.
        return Text("\n", no_wrap=True).join(self._rows_at(self.size.width))

    def _rows_at(self, width: int) -> list[Text]:
        if width not in self._rows:
            self._rows[width] = self._lay_out(width)
        return self._rows[width]

    def _lay_out(self, width: int) -> list[Text]:
        half = len(self._groups)
        if width >= TWO_COLUMNS:  # a title, its keys and a blank line each
            sizes = [len(keys) + 2 for _, keys in self._groups]
            half = min(range(half + 1), key=lambda at: max(sum(sizes[:at]), sum(sizes[at:])))
        parts = [part for part in (self._groups[:half], self._groups[half:]) if part]
        widths = [width // len(parts) - GAP * (part is not parts[-1]) for part in parts]
        columns = [_column_lines(part, width, self.app.console) for part, width in zip(parts, widths, strict=True)]
        columns[0] += [Text(" " * (widths[0] + GAP))] * (len(columns[-1]) - len(columns[0]))
        return [Text().join(row) for row in zip_longest(*columns, fillvalue=Text())]


def _column_lines(groups: KeyGroups, width: int, console: Console) -> list[Text]:
    """The lines of groups, each padded to the width of a column and the gap after it."""
    keys = max(cell_len(signs) for _, keys in groups for signs, _ in keys) + 2
    lines = []
    for title, commands in groups:
        lines.append(Text.assemble((title, "bold underline")))  # the style is not that of the padding
        for signs, tooltip in commands:
            first, *more = Text(tooltip).wrap(console, max(1, width - keys)) or [Text()]
            lines.append(Text.assemble((signs, "bold"), " " * (keys - cell_len(signs)), first))
            lines += [Text(" " * keys) + line for line in more]
        lines.append(Text())
    for line in lines:
        line.rstrip()
        line.pad_right(width + GAP - line.cell_len)
    return lines
