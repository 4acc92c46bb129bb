"""The user's own presets and studies: TOML files in the platform's config folder, read and written. No widget."""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import tomli_w
from platformdirs import user_config_path

from engine.base.errors import InputError, write_error
from engine.base.language import tr
from engine.config import presets
from engine.runs.files import write_atomic
from engine.runs.names import check_name
from tui_transformer.lab.design.draft import Draft, format_value
from tui_transformer.lab.work.study import Study, merge_tables, nest_keys, read_study, shipped_studies

T = TypeVar("T")
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,59}\Z")


def presets_folder() -> Path:
    return user_config_path("tui-transformer") / "presets"


def preset_file(name: str) -> Path:
    return presets_folder() / f"{name}.toml"


def studies_folder() -> Path:
    return presets_folder().with_name("studies")


def study_file(name: str) -> Path:
    return studies_folder() / f"{name}.toml"


def _read_each(paths: Iterable[Path], read: Callable[[Path], T]) -> Iterator[tuple[Path, T | None, str]]:
    """Each file's contents; None for an unreadable one, with the reason."""
    for path in paths:
        try:
            yield path, read(path), ""
        except InputError as error:
            yield path, None, str(error)


def user_presets() -> list[tuple[Path, presets.Preset | None, str]]:
    def load(path: Path) -> presets.Preset:
        return presets.extends_chain(presets.load(path))[-1]

    return list(_read_each(sorted(presets_folder().glob("*.toml")), load))


def available_studies() -> list[tuple[Study | None, str, str]]:
    """Return the available studies, shipped and the user's own, each with its name and origin.

    For an unreadable file: None, its name, and the reason.
    """
    found: list[tuple[Study | None, str, str]] = []
    for where, paths in (("", shipped_studies().values()), (tr("your own"), sorted(studies_folder().glob("*.toml")))):
        for path, study, problem in _read_each(paths, read_study):
            found.append((study, path.stem if study is None else study.name, problem or where))
    return found


def preset_name_problem(name: str) -> str:
    if not _NAME.match(name):
        return tr("use up to 60 letters, digits, '.', '_' and '-', not starting with a dot")
    if (presets.folder() / f"{name}.toml").exists():
        return tr("'{name}' is a built-in preset; choose another name", name=name)
    return ""


def run_name_problem(name: str) -> str:
    """Return what is wrong with a run's name, without the name; "" if nothing is."""
    try:
        check_name(name)
    except InputError as error:
        return re.split(": |：", str(error), maxsplit=1)[-1]
    return ""


def study_name_problem(name: str) -> str:
    if wrong := run_name_problem(name):
        return wrong
    return tr("use up to 60 characters: run names start with the study name") if len(name) > 60 else ""


def save_preset(draft: Draft, name: str) -> Path:
    """Write a draft as a preset, replacing any of that name: its parent, and only its changes."""
    links = presets.extends_chain(draft.preset)
    extends, own = draft.preset.name, list[presets.Preset]()
    if draft.on is not None:
        extends, own = draft.on, links[1:]
    elif draft.path is not None:  # only shipped presets can be extended by name
        extends, own = draft.preset.extends or "", links[-1:]
    tables = merge_tables([*(link.tables for link in own), nest_keys(draft.changes)])
    changes = ", ".join(f"{key} = {format_value(one)}" for key, one in draft.changes.items() if key != "description")
    description = (
        draft.changes.get("description")
        or tr("{name} with {changes}", name=draft.name, changes=changes or tr("no changes"))[:500]
    )
    kept = {key: value for key, value in tables.items() if key not in ("description", "preset")}
    preset = ({"extends": extends} if extends else {}) | {"description": description} | kept
    return _write(preset_file(name), tomli_w.dumps(preset))


def save_study(study: Study) -> Path:
    return _write(study_file(study.name), study.to_toml())


def _write(path: Path, text: str) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, text)
    except OSError as error:
        raise write_error(tr("{path}: cannot be written", path=path), error) from None
    return path
