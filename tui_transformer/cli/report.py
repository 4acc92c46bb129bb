"""`report`: runs or a study as a report that can be handed in, in a folder of its own."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from engine.clean import clean_line
from engine.errors import InputError, nearest, one_of
from tui_transformer.cli.exit_codes import ExitCode
from tui_transformer.cli.meant import find
from tui_transformer.cli.output import answer, emit, say
from tui_transformer.lab.reports.formats import FORMATS
from tui_transformer.lab.reports.languages import LANGUAGES

ENGINES = {"en": "pdflatex", "zh": "xelatex"}


def report_command(
    runs: Sequence[str], *, kind: str, language: str, out: Path | None, as_json: bool, runs_dir: Path
) -> int:
    """Write a report.

    Args:
        runs: runs, or studies; the first of several runs is the baseline.
        kind: a key of `FORMATS`.
        language: one of `LANGUAGES`.
        out: its folder; one under `reports` where none is named.
        as_json: say which files were written as JSON.
        runs_dir: where runs are.

    Raises:
        InputError: no such run, format or language, or a folder that cannot be written.
    """
    for option, value, known in (("--format", kind, FORMATS), ("--language", language, LANGUAGES)):
        if value not in known:
            raise InputError(f"{option} {value[:40]!r}: must be {one_of(known)}{nearest(value, known)}")
    meant = find(runs, runs_dir)
    from tui_transformer.lab.reports.report import make

    made = make(meant.entries, meant.studies, kind=kind, language=language, out=out)
    if as_json:
        emit({"kind": "report", "format": kind, "language": language, "files": [str(path) for path in made.files]})
    else:
        answer(clean_line(str(made.main)))
    if kind == "latex":
        say(how_to_compile(made.main, language))
    return ExitCode.DONE


def how_to_compile(main: Path, language: str) -> str:
    """Which program makes a PDF of it, and whether this machine has it."""
    engine = ENGINES[language]
    needs = "" if language == "en" else " and the package ctex"
    found = "is here" if shutil.which(engine) else "was not found on this machine (it comes with TeX Live)"
    return f"{engine}{needs} makes a PDF of it, and {found}: cd {main.parent} && {engine} {main.name}, twice"
