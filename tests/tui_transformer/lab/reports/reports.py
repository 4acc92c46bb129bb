"""Reports of recorded runs: as documents, without a picture, and as folders."""

from collections.abc import Iterator
from pathlib import Path

from tui_transformer.cli.names import resolve_names
from tui_transformer.lab.reports.context import read_context
from tui_transformer.lab.reports.document import (
    Bullets,
    Code,
    Document,
    Figure,
    Formula,
    Heading,
    Listing,
    Paragraph,
    Strong,
    Table,
    TableCell,
    VerdictParagraph,
)
from tui_transformer.lab.reports.languages import load_report_language as language_of
from tui_transformer.lab.reports.report import report_document


def document(root: Path, *names: str, language: str = "en") -> Document:
    """The report on runs or studies of a folder."""
    meant = resolve_names(names, root)
    chosen = language_of(language)
    return report_document(read_context(meant.entries, meant.studies, chosen, chosen))


def spoken(span: object) -> str:
    """The words of a span."""
    return span.text if isinstance(span, Strong | Code | TableCell) else span if isinstance(span, str) else ""


def first(made: Document) -> str:
    """The words of its first paragraph."""
    assert isinstance(made.blocks[0], VerdictParagraph)
    return "".join(map(spoken, made.blocks[0].spans))


def strong(made: Document) -> str:
    """Those of them that are set off."""
    assert isinstance(made.blocks[0], VerdictParagraph)
    return " ".join(span.text for span in made.blocks[0].spans if isinstance(span, Strong))


def words(made: Document) -> Iterator[str]:
    """Every text of a document."""
    yield from (made.title, made.subtitle)
    for block in made.blocks:
        match block:
            case Heading(text):
                yield text
            case Paragraph(spans) | VerdictParagraph(spans):
                yield "".join(map(spoken, spans))
            case Bullets(items):
                yield from ("".join(map(spoken, item)) for item in items)
            case Table():
                yield from (block.caption, *block.heads, block.note)
                yield from (cell.text for row in block.rows for cell in row)
            case Figure():
                yield block.caption
            case Formula():
                yield block.what
            case Listing():
                yield from (block.title, block.text)


def headings(made: Document) -> list[str]:
    """Its sections."""
    return [block.text for block in made.blocks if isinstance(block, Heading) and block.level == 1]


def table(made: Document, words: str) -> Table:
    """The first table whose caption has these words."""
    return next(block for block in made.blocks if isinstance(block, Table) and words in block.caption)


def files(folder: Path) -> dict[str, bytes]:
    """All files of a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
