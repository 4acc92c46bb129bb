"""The user's own presets and studies: TOML files in the platform's config folder, read and written. No widget."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w
from platformdirs import user_config_path

from engine.config import presets
from engine.errors import InputError, refused
from engine.runs.names import check_name
from tui_transformer.lab.design.draft import Draft, nested, shown
from tui_transformer.lab.studies.study import Study, read_study, shipped_studies

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,59}\Z")


def presets_folder() -> Path:
    return user_config_path("tui-transformer") / "presets"


def preset_file(name: str) -> Path:
    return presets_folder() / f"{name}.toml"


def studies_folder() -> Path:
    return presets_folder().with_name("studies")


def study_file(name: str) -> Path:
    return studies_folder() / f"{name}.toml"


@dataclass(frozen=True)
class OwnPreset:
    """One file: its preset, or what is wrong with it."""

    path: Path
    preset: presets.Preset | None
    problem: str = ""


def own_presets() -> list[OwnPreset]:
    """Return the user's own presets, by name; a file that cannot be read is among them, with the reason."""
    found = []
    for path in sorted(presets_folder().glob("*.toml")):
        try:
            preset = presets.load(path)
            presets.chain(preset)
            found.append(OwnPreset(path, preset))
        except InputError as error:
            found.append(OwnPreset(path, None, str(error)))
    return found


def offered_studies() -> list[tuple[Study | None, str, str]]:
    """Return the studies that can be taken, shipped ones and the user's own: each with its name, and where it is from.

    Of a file that cannot be read: None, its name, and the reason.
    """
    found: list[tuple[Study | None, str, str]] = []
    for where, paths in (("", shipped_studies().values()), ("your own", sorted(studies_folder().glob("*.toml")))):
        for path in paths:
            try:
                study = read_study(path)
                found.append((study, study.name, where))
            except InputError as error:
                found.append((None, path.stem, str(error)))
    return found


def wrong_preset_name(name: str) -> str:
    """Return what is wrong with a name for a preset, "" if nothing is."""
    if not _NAME.match(name):
        return "letters, digits, '.', '_' and '-', at most 60, not starting with a dot"
    if (presets.folder() / f"{name}.toml").exists():
        return f"'{name}' is a preset that comes with the program; another name keeps them apart"
    return ""


def wrong_study_name(name: str) -> str:
    """Return what is wrong with a name for a study, "" if nothing is."""
    try:
        check_name(name)
    except InputError as error:
        return str(error).replace("run name", "name")
    return "at most 60 characters, for its runs' names begin with it" if len(name) > 60 else ""


def save_preset(draft: Draft, name: str) -> Path:
    """Write a draft as a preset of that name, over what is there: what it extends, and only what it changes.

    Returns:
        the file.

    Raises:
        InputError: it cannot be written.
    """
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
    preset = ({"extends": extends} if extends else {}) | {"description": description} | kept
    return _write(preset_file(name), tomli_w.dumps(preset))


def save_study(study: Study) -> Path:
    """Write a study, over what is there, and return the file.

    Raises:
        InputError: it cannot be written.
    """
    return _write(study_file(study.name), study.to_toml())


def _write(path: Path, text: str) -> Path:
    new = path.with_suffix(".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(text, encoding="utf-8")
        new.replace(path)
    except OSError as error:
        raise refused(f"{path}: cannot be written", error) from None
    return path
