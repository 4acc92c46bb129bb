"""A report from its runs: which sections there are, in which order, and the folder it becomes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.errors import InputError
from tui_transformer.lab.analysis.entry import Entry
from tui_transformer.lab.analysis.folder import StudyFile
from tui_transformer.lab.analysis.language import Language
from tui_transformer.lab.reports.context import ReportContext
from tui_transformer.lab.reports.document import Block, Document, Paragraph
from tui_transformer.lab.reports.figures.style import Fonts, rendered
from tui_transformer.lab.reports.folder import write
from tui_transformer.lab.reports.formats import FORMATS
from tui_transformer.lab.reports.languages import language as language_of
from tui_transformer.lab.reports.report_data import ReportData, gather
from tui_transformer.lab.reports.sections.closing import environment, limits, made_with, repeat
from tui_transformer.lab.reports.sections.first_paragraph import first_paragraph
from tui_transformer.lab.reports.sections.results import probing, results, texts, training
from tui_transformer.lab.reports.sections.setup import data, model, runs, settings

ROOT = Path("reports")  # where reports go unless --out says otherwise
Section = Callable[[ReportContext], Iterator[Block]]
SECTIONS: tuple[Section, ...] = (
    *(runs, model, data, settings),
    *(training, results, probing, texts),
    *(limits, environment, repeat, made_with),
)


@dataclass(frozen=True)
class WrittenReport:
    """All files of a report, sorted; and the one to open."""

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
) -> WrittenReport:
    """Write a report.

    Args:
        entries: the runs.
        studies: those that were named, by name.
        kind: a key of `FORMATS`.
        language: one of `LANGUAGES`.
        out: its folder; one of its own under `reports` where there is none.
        pinned: a run of the variant that is the baseline; the study's own, or the first run, where there is none.
        fonts: of the pictures; this machine's where none are given.

    Raises:
        InputError: no run, or a folder that cannot be written or is not a report's.
    """
    if not entries:
        raise InputError("a report needs at least one run")
    written = FORMATS[kind]
    fonts = Fonts.found() if fonts is None else fonts
    spoken = language_of(language)
    drawn = spoken if fonts.chinese else language_of("en")
    gathered = gather(entries, studies, pinned)
    document = report(gathered, spoken, drawn)
    images = {figure.name: rendered(figure.draw, fonts, written.forms) for figure in document.figures}
    folder = out if out is not None else ROOT / gathered.folder_name
    files = write(written.write(document, images), folder)
    return WrittenReport(tuple(files), folder / written.file)


def report(data: ReportData, language: Language, drawn: Language) -> Document:
    """The whole report before it has a format; `drawn` is the language of the words in its pictures."""
    context = ReportContext(data, language, drawn)
    say = context.say
    blocks: list[Block] = [first_paragraph(context)]
    if language is not drawn:
        blocks.append(Paragraph((say("figures-in-english"),)))
    blocks += (block for section in SECTIONS for block in section(context))
    if data.studies:
        title = say("title.study", names=language.joined(data.studies))
    elif not data.several:
        title = say("title.run", name=data.standings[0].name)
    else:
        title = say("title.runs", names=language.joined(s.name for s in data.standings[:4]))
    description = next((study.description for study in data.studies.values() if study.description), "")
    subtitle = description or language.counted("subtitle", len(data.runs), corpora=context.corpora())
    numbered = (language.phrases["numbered.figure"], language.phrases["numbered.table"])
    return Document(title, subtitle, say("html-language"), say("contents"), *numbered, tuple(blocks))
