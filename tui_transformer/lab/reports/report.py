"""Build a report from runs: its sections, their order, and its folder."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from engine.base.errors import InputError
from engine.base.language import Message
from tui_transformer.lab.analysis.entry import RunEntry
from tui_transformer.lab.analysis.folder import RequestedStudy
from tui_transformer.lab.analysis.lists import join_names
from tui_transformer.lab.reports.context import ReportContext, read_context
from tui_transformer.lab.reports.document import Block, Document
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
    say = context.say
    blocks: list[Block] = [first_paragraph(context)]
    blocks += figures_note(context)
    blocks += (block for section in SECTIONS for block in section(context))
    if context.studies:
        title = say("Report on the study {names}", names=join_names(context.studies))
    elif not context.has_several_variants:
        title = say("Report on the run {name}", name=context.results[0].name)
    else:
        title = say("Report on {names}", names=join_names(s.name for s in context.results[:4]))
    description = next((study.description for study in context.studies.values() if study.description), "")
    return Document(title, description or subtitle(context), *document_words(context), tuple(blocks))


def figures_note(context: ReportContext) -> Iterator[Block]:
    """Say so where the words in the figures are not in the report's language."""
    if context.language is not context.picture_language:
        yield context.paragraph(
            "This machine has no font with Chinese characters: the words in the figures are in English."
        )


def subtitle(context: ReportContext) -> str:
    n, corpora = len(context.runs), join_names(context.corpora)
    text = Message("one run on {corpora}" if n == 1 else "{n:,} runs on {corpora}")
    return context.say(text, n=n, corpora=corpora)


def document_words(context: ReportContext) -> tuple[str, str, str, str]:
    """Return the words of a document's frame: its language in HTML, the table of contents, a figure, a table."""
    say = context.say
    return say(Message.in_context("HTML", "en")), say("Contents"), say("Figure {n}"), say("Table {n}")
