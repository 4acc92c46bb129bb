"""A person's own studies: TOML files beside their presets, read and written. No widget."""

from pathlib import Path

from engine.errors import InputError, refused
from engine.runs.names import check_name
from tui_transformer.lab.studies.study import Study, read_study, shipped_studies
from tui_transformer.studio.design import own_presets


def folder() -> Path:
    """Where they are."""
    return own_presets.folder().with_name("studies")


def file_of(name: str) -> Path:
    """Where a study of that name would be."""
    return folder() / f"{name}.toml"


def offered() -> list[tuple[Study | None, str, str]]:
    """Studies that can be taken, shipped ones and one's own: each with its name, and where it is from.

    Of a file that cannot be read: None, its name, and the reason.
    """
    found: list[tuple[Study | None, str, str]] = []
    for where, paths in (("", shipped_studies().values()), ("your own", sorted(folder().glob("*.toml")))):
        for path in paths:
            try:
                study = read_study(path)
                found.append((study, study.name, where))
            except InputError as error:
                found.append((None, path.stem, str(error)))
    return found


def wrong_name(name: str) -> str:
    """What is wrong with a name for a study, "" if nothing is."""
    try:
        check_name(name)
    except InputError as error:
        return str(error).replace("run name", "name")
    return "at most 60 characters, for its runs' names begin with it" if len(name) > 60 else ""


def save(study: Study) -> Path:
    """Write a study, over what is there; gives back the file.

    Raises:
        InputError: it cannot be written.
    """
    path = file_of(study.name)
    new = path.with_suffix(".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(study.to_toml(), encoding="utf-8")
        new.replace(path)
    except OSError as error:
        raise refused(f"{path}: cannot be written", error) from None
    return path
