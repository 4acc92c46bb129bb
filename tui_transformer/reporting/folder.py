"""Where a report is written: a folder of its own. What is not a report's is never touched."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from engine.errors import InputError
from tui_transformer.reporting.formats.all import FORMATS
from tui_transformer.reporting.formats.latex import FOLDER

PICTURES = re.compile(r"(?:model|curves|ablation|distance)(?:-\d+)?\.(?:svg|png)\Z")
# What compiling a report leaves beside it.
COMPILED = re.compile(r"report\.(?:aux|log|out|pdf|toc|fls|fdb_latexmk|synctex\.gz|xdv)\Z")
REPORTS = frozenset(kind.file for kind in FORMATS.values())


def is_ours(folder: Path, path: Path) -> bool:
    """Whether a file has a name that a report's files have."""
    name = path.relative_to(folder)
    if name.parts[0] == FOLDER:
        return len(name.parts) == 1 or (len(name.parts) == 2 and PICTURES.match(path.name) is not None)
    return len(name.parts) == 1 and (path.name in REPORTS or COMPILED.match(path.name) is not None)


def write(files: Mapping[str, bytes], folder: Path) -> list[Path]:
    """Write a report's files; gives back their paths, sorted.

    Pictures that an older report had and this one has not are removed; reports in other formats stay.

    Raises:
        InputError: the folder has something that is no report's, or cannot be written.
    """
    try:
        _require_ours(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            staged = path.with_name(f".{path.name}.new")
            staged.write_bytes(content)
            staged.replace(path)
        _clear(folder, files)
    except OSError as error:
        raise InputError(f"--out {str(folder)[:200]} cannot be written: {error.strerror or error}") from None
    except ValueError as error:  # a zero byte in its name
        raise InputError(f"--out {str(folder)[:200]!r}: {error}") from None
    return sorted(folder / name for name in files)


def _require_ours(folder: Path) -> None:
    if folder.is_dir():
        other = next((path for path in _inside(folder) if not is_ours(folder, path)), None)
        if other is not None:
            raise InputError(
                f"--out {str(folder)[:200]}: has {other.relative_to(folder)}, which is no report's; "
                "name a new or empty folder, or one with a report"
            )
    elif folder.exists() or folder.is_symlink():
        raise InputError(f"--out {str(folder)[:200]}: is a file; a report is a folder")


def _inside(folder: Path) -> Iterable[Path]:
    """All that is in it but what an interrupted report left behind."""
    return (path for path in sorted(folder.rglob("*")) if not _STAGED.match(path.name))


_STAGED = re.compile(r"\.(?:report|model|curves|ablation|distance)[-\d]*\.\w+\.new\Z")


def _clear(folder: Path, files: Mapping[str, bytes]) -> None:
    """Take away pictures that no report in the folder shows any more."""
    if any((folder / name).exists() for name in REPORTS if name not in files):
        return
    pictures = folder / FOLDER
    for path in sorted(pictures.iterdir()) if pictures.is_dir() else ():
        if PICTURES.match(path.name) and f"{FOLDER}/{path.name}" not in files:
            path.unlink()
