"""Build a report from runs: its sections, their order, and its folder."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.base.errors import InputError
from engine.base.language import Message
from tui_transformer.lab.analysis.entry import RunEntry
from tui_transformer.lab.analysis.folder import RequestedStudy
from tui_transformer.lab.reports.context import ReportContext, read_context
from tui_transformer.lab.reports.document import Block, Document, Paragraph
from tui_transformer.lab.reports.figures.style import chinese_font, render
from tui_transformer.lab.reports.folder import write
from tui_transformer.lab.reports.formats import FORMATS
from tui_transformer.lab.reports.languages import load_report_language as language_of
from tui_transformer.lab.reports.sections.closing import environment, limits, made_with, repeat
from tui_transformer.lab.reports.sections.first_paragraph import first_paragraph
from tui_transformer.lab.reports.sections.results import confusion_tables, probing, results, texts, training
from tui_transformer.lab.reports.sections.setup import data, model, runs, settings

ROOT = Path("reports")  # default folder for reports
SECTIONS = (
    *(runs, model, data, settings, training, results, probing, confusion_tables, texts),
    *(limits, environment, repeat, made_with),
)


def write_report(
    entries: Sequence[RunEntry],
    studies: Mapping[str, RequestedStudy],
    *,
    kind: str,
    language: str,
    out: Path | None,
    pinned: Path | None = None,
) -> tuple[Path, list[Path]]:
    """Write a report of runs and named studies: `kind` of `FORMATS`, `language` of `LANGUAGES`.

    Returns the file to open, and all files, sorted. `out` is its folder, by default a new one under `reports`; `pinned`
    as for `read_context`. Raises InputError if there is no run, or the folder cannot be written or is not a report's.
    """
    if not entries:
        raise InputError(Message("a report needs at least one run"))
    written = FORMATS[kind]
    spoken, font = language_of(language), chinese_font()
    drawn = spoken if font else language_of("en")
    gathered = read_context(entries, studies, spoken, drawn, pinned)
    document = report_document(gathered)
    images = {figure.name: render(figure.draw, font, written.forms) for figure in document.figures}
    folder = out if out is not None else ROOT / gathered.folder_name
    return folder / written.file, write(written.write(document, images), folder)


def report_document(context: ReportContext) -> Document:
    say, language = context.phrase, context.language
    blocks: list[Block] = [first_paragraph(context)]
    if language is not context.picture_language:
        blocks.append(Paragraph((say("figures-in-english"),)))
    blocks += (block for section in SECTIONS for block in section(context))
    if context.studies:
        title = say("title.study", names=language.join_list(context.studies))
    elif not context.has_several_variants:
        title = say("title.run", name=context.results[0].name)
    else:
        title = say("title.runs", names=language.join_list(s.name for s in context.results[:4]))
    description = next((study.description for study in context.studies.values() if study.description), "")
    corpora = language.join_list(context.corpora)
    subtitle = description or language.format_count("subtitle", len(context.runs), corpora=corpora)
    numbered = (language.phrases["numbered.figure"], language.phrases["numbered.table"])
    return Document(title, subtitle, say("html-language"), say("contents"), *numbered, tuple(blocks))
