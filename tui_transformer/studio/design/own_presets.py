"""A person's own presets: TOML files in the platform's config folder, read and written. No widget."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w
from platformdirs import user_config_path

from engine.config import presets
from engine.errors import InputError, refused
from tui_transformer.lab.design.draft import Draft, nested, shown

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,59}\Z")


@dataclass(frozen=True)
class Own:
    """One file: its preset, or what is wrong with it."""

    path: Path
    preset: presets.Preset | None
    problem: str = ""


def folder() -> Path:
    """Where they are."""
    return user_config_path("tui-transformer") / "presets"


def own_presets() -> list[Own]:
    """All there are, by name; a file that cannot be read is among them, with the reason."""
    found = []
    for path in sorted(folder().glob("*.toml")):
        try:
            preset = presets.load(path)
            presets.chain(preset)
            found.append(Own(path, preset))
        except InputError as error:
            found.append(Own(path, None, str(error)))
    return found


def wrong_name(name: str) -> str:
    """What is wrong with a name for a preset, "" if nothing is."""
    if not _NAME.match(name):
        return "letters, digits, '.', '_' and '-', at most 60, not starting with a dot"
    if (presets.folder() / f"{name}.toml").exists():
        return f"'{name}' is a preset that comes with the program; another name keeps them apart"
    return ""


def file_of(name: str) -> Path:
    """Where a preset of that name would be."""
    return folder() / f"{name}.toml"


def overlay(draft: Draft) -> dict[str, Any]:
    """A draft as the tables of a preset file: what it extends, and only what it changes."""
    links = presets.chain(draft.preset)
    extends, own = draft.preset.name, list[presets.Preset]()
    if draft.on is not None:
        extends, own = draft.on, links[1:]
    elif draft.path is not None:  # only shipped presets can be extended by name
        extends, own = draft.preset.extends or "", links[-1:]
    tables: dict[str, Any] = {}
    for link in own:
        tables = presets.merge(tables, link.tables)
    for key, value in draft.changes.items():
        tables = presets.merge(tables, nested(key, value))
    changes = ", ".join(f"{key} = {shown(value)}" for key, value in draft.changes.items() if key != "description")
    description = draft.changes.get("description") or f"{draft.name} with {changes or 'nothing changed'}"[:500]
    kept = {key: value for key, value in tables.items() if key not in ("description", "preset")}
    return ({"extends": extends} if extends else {}) | {"description": description} | kept


def save(draft: Draft, name: str) -> Path:
    """Write a draft as a preset of that name, over what is there; gives back the file.

    Raises:
        InputError: it cannot be written.
    """
    path = file_of(name)
    new = path.with_suffix(".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(tomli_w.dumps(overlay(draft)), encoding="utf-8")
        new.replace(path)
    except OSError as error:
        raise refused(f"{path}: cannot be written", error) from None
    return path
