"""A report in GitHub-flavoured Markdown, with its pictures beside it."""

from collections.abc import Mapping

from engine.clean import clean
from tui_transformer.lab.escaping import markdown_block, markdown_code, markdown_line, markdown_prose, markdown_text
from tui_transformer.lab.reports.document import Cell, Document, typeset
from tui_transformer.lab.reports.figures.style import Image, beside
from tui_transformer.lab.template import filled


def markdown(document: Document, images: Mapping[str, Image]) -> dict[str, bytes]:
    filters = {
        "strong": lambda text: _strong(inline(text).strip()),
        "code": markdown_code,
        "paragraph": lambda words: markdown_line(words.strip()),
        "formula": clean,
        "listing": markdown_block,
        "cell": _cell,
        "chomp": lambda block: block.rstrip("\n"),
    }
    page = filled("reports", "report.md.j2", inline, filters, document=document)
    return {"report.md": page.encode("utf-8")} | beside(images)


def inline(text: str) -> str:
    return markdown_prose(typeset(text))


def _strong(words: str) -> str:
    return f"**{words}**" if words.strip() else words


def _cell(cell: Cell) -> str:
    if cell.code:  # within a table a pipe would end it, code or not
        return markdown_code(cell.text) if not set(cell.text) & set("`|") else markdown_text(cell.text)
    text = inline(cell.text)
    return _strong(text) if cell.strong else text
