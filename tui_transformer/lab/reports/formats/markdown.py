"""A report in GitHub-flavoured Markdown, with its pictures beside it.

No template: every other token needs its own escaping, and blank lines are syntax.
"""

from collections.abc import Iterator, Mapping

from engine.clean import clean
from tui_transformer.lab.escaping import markdown_block, markdown_code, markdown_line, markdown_prose, markdown_text
from tui_transformer.lab.reports import document as doc
from tui_transformer.lab.reports.figures.style import FOLDER, Image, beside


def markdown(document: doc.Document, images: Mapping[str, Image]) -> dict[str, bytes]:
    parts = [f"# {inline(document.title)}", inline(document.subtitle)]
    parts += (part for number, found in document.numbered() for part in _block(inline(number), found))
    return {"report.md": ("\n\n".join(parts) + "\n").encode("utf-8")} | beside(images)


def inline(text: str) -> str:
    return markdown_prose(doc.typeset(text))


def _block(number: str, found: doc.Block) -> Iterator[str]:
    match found:
        case doc.Heading(text, level):
            yield f"{'#' * (level + 1)} {inline(text)}"
        case doc.Paragraph(spans):
            yield _line(spans)
        case doc.Verdict(spans):
            yield f"> {_line(spans)}"
        case doc.Bullets(items):
            yield "\n".join(f"* {_line(item)}" for item in items)
        case doc.Formula(what, latex, source):
            said = inline(what) + (f" ({inline(source)})" if source else "")
            yield f"{said}:\n\n$$\n{clean(latex)}\n$$"
        case doc.Listing(text, title):
            if title:
                yield f"*{inline(title)}*"
            yield markdown_block(text)
        case doc.Figure(name, caption):
            yield f"![{inline(caption)}]({FOLDER}/{name}.png)"
            yield f"*{number}. {inline(caption)}*"
        case doc.Table(caption, heads, rows, align, note):
            yield f"*{number}. {inline(caption)}*"
            rule = ["---:" if side == "r" else ":---" for side in align]
            lines = [[*map(inline, heads)], rule, *([*map(_cell, row)] for row in rows)]
            yield "\n".join(f"| {' | '.join(line)} |" for line in lines)
            if note:
                yield f"<sub>{inline(note)}</sub>"


def _line(spans: doc.Spans) -> str:
    return markdown_line("".join(map(_span, spans)).strip())


def _span(span: doc.Inline) -> str:
    match span:
        case doc.Strong(text):
            inner = inline(text).strip()
            return f"**{inner}**" if inner else ""
        case doc.Code(text):
            return markdown_code(text)
        case doc.Math(latex):
            return f"${latex}$"
    return inline(span)


def _cell(cell: doc.Cell) -> str:
    if cell.code:  # within a table a pipe would end it, code or not
        return markdown_code(cell.text) if not set(cell.text) & set("`|") else markdown_text(cell.text)
    text = inline(cell.text)
    return f"**{text}**" if cell.strong and text.strip() else text
