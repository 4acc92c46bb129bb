"""A report's output: a folder of its own. Files that are not a report's are never touched."""

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from engine.base.errors import InputError, reason, write_error
from engine.base.language import Message, tr
from tui_transformer.lab.reports.figures.style import FOLDER
from tui_transformer.lab.reports.formats import FORMATS

REPORTS = frozenset(kind.file for kind in FORMATS.values())
# The pictures, and what compiling a report leaves beside it.
REPORT_FILE = re.compile(
    rf"{FOLDER}(?:/(?:model|curves|ablation|distance)(?:-\d+)?\.(?:svg|png))?\Z"
    r"|report\.(?:aux|log|out|pdf|toc|fls|fdb_latexmk|synctex\.gz|xdv)\Z"
)
STAGED = re.compile(r"\.(?P<name>(?:report|model|curves|ablation|distance)[-\d]*\.\w+)\.(?:new|old)\Z")


def write(files: Mapping[str, bytes], folder: Path) -> list[Path]:
    """Write a report's files; return their paths, sorted.

    An older report's pictures that this one lacks are removed; reports in other formats stay.
    """
    shown = str(folder)[:200]
    try:
        if folder.is_dir():
            for path in sorted(folder.rglob("*")):
                name = path.relative_to(folder).as_posix()
                if name not in REPORTS and not REPORT_FILE.match(name) and not STAGED.match(path.name):
                    raise InputError(
                        Message(
                            "--out {folder}: contains {path}, which is not part of a report; name a new or empty "
                            "folder, or one that holds a report",
                            folder=shown,
                            path=path.relative_to(folder),
                        )
                    )
        elif folder.exists() or folder.is_symlink():
            raise InputError(Message("--out {folder}: is a file; a report needs a folder", folder=shown))
        folder.mkdir(parents=True, exist_ok=True)
        _replace_files(files, folder)
        pictures = folder / FOLDER
        if pictures.is_dir() and not any((folder / name).exists() for name in REPORTS - files.keys()):
            for path in sorted(pictures.iterdir()):
                name = path.relative_to(folder).as_posix()
                if REPORT_FILE.match(name) and name not in files:
                    path.unlink()
    except OSError as error:
        name = Path(error.filename or folder).name
        staged = STAGED.match(name)
        name = staged["name"] if staged else name
        raise write_error(tr("--out {folder}: {name} cannot be written", folder=shown, name=name), error) from None
    except ValueError as error:  # a zero byte in its name
        raise InputError(f"--out {shown!r}: {tr(reason(error))}") from None
    return sorted(folder / name for name in files)


def _replace_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Put all files in place or, if one cannot be written, none: the older report is restored.

    All are written before the first moves into place. The main file is the first to go and the last to return, so an
    interruption in between leaves a report that is clearly incomplete.
    """

    def aside(path: Path, kind: str) -> Path:
        return path.with_name(f".{path.name}.{kind}")

    paths = [folder / name for name in sorted(files, key=lambda name: (name in REPORTS, name))]
    gone: list[Path] = []
    there: list[Path] = []
    try:
        for path in paths:
            path.parent.mkdir(exist_ok=True)
            try:
                aside(path, "new").write_bytes(files[path.relative_to(folder).as_posix()])
            except OSError as error:  # a write error on a full disk lacks the file's name
                raise OSError(error.errno, error.strerror, str(path)) from error
        for path in reversed(paths):
            with suppress(FileNotFoundError):
                path.replace(aside(path, "old"))
                gone.append(path)
        for path in paths:
            aside(path, "new").replace(path)
            there.append(path)
    except OSError:
        with suppress(OSError):
            for path in there:
                path.unlink()
            for path in reversed(gone):  # the main file comes back last
                aside(path, "old").replace(path)
        raise
    else:
        for path in sorted(folder.rglob("*")):
            if STAGED.match(path.name):
                path.unlink()
    finally:
        for path in paths:
            with suppress(OSError):
                aside(path, "new").unlink()
