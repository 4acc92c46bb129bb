"""From runs to a folder with a report. The one way in, for the command and the studio."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.errors import InputError
from tui_transformer.lab.analysis.entry import Entry
from tui_transformer.lab.analysis.folder import StudyFile
from tui_transformer.lab.reports.figures.style import Fonts, rendered
from tui_transformer.lab.reports.folder import write
from tui_transformer.lab.reports.formats.all import FORMATS
from tui_transformer.lab.reports.gathered import gather
from tui_transformer.lab.reports.languages import LANGUAGES
from tui_transformer.lab.reports.report import name_of, report

ROOT = Path("reports")  # where reports go unless --out says otherwise


@dataclass(frozen=True)
class Made:
    """A report that was written.

    Args:
        files: all of them, sorted.
        main: the one to open.
    """

    files: tuple[Path, ...]
    main: Path


def make(
    entries: Sequence[Entry],
    studies: Mapping[str, StudyFile],
    *,
    kind: str,
    language: str,
    out: Path | None,
    pinned: Path | None = None,
    fonts: Fonts | None = None,
) -> Made:
    """Write a report.

    Args:
        entries: the runs.
        studies: those that were named, by name.
        kind: a key of `FORMATS`.
        language: a key of `LANGUAGES`.
        out: its folder; one of its own under `reports` where there is none.
        pinned: a run of the variant that is the baseline; the study's own, or the first run, where there is none.
        fonts: of the pictures; this machine's where none are given.

    Raises:
        InputError: no run, or a folder that cannot be written or is not a report's.
    """
    if not entries:
        raise InputError("a report needs at least one run")
    chosen, written = LANGUAGES[language], FORMATS[kind]
    fonts = Fonts.found() if fonts is None else fonts
    drawn = chosen if fonts.chinese or language == "en" else LANGUAGES["en"]
    gathered = gather(entries, studies, pinned)
    document = report(gathered, chosen, drawn)
    images = {figure.name: rendered(figure.draw, fonts, written.forms) for figure in document.figures}
    folder = out if out is not None else ROOT / name_of(gathered)
    files = write(written.write(document, images), folder)
    return Made(tuple(files), folder / written.file)
