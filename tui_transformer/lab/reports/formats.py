"""All report formats: each is a template and a way to escape what fills it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from engine.base.clean import clean, clean_line
from engine.base.language import tr
from tui_transformer.lab.escaping import (
    latex_text,
    markdown_block,
    markdown_code,
    markdown_line,
    markdown_prose,
    markdown_text,
)
from tui_transformer.lab.reports.document import Document, Figure, Table, TableCell, typeset_numbers
from tui_transformer.lab.reports.figures.style import PNG, SVG, Image, image_files
from tui_transformer.lab.template import Filters, render_template

# What xelatex draws with the fonts of ctex: ideographs, their punctuation, full-width forms, and quotation marks.
_IDEOGRAPHS = re.compile("[\u3000-\u303f\u3400-\u4dbf\u4e00-\u9fff\uff00-\uff60‘’“”]")
# This program's own symbols, with the packages that a report loads.
LATEX_SYMBOLS = {
    "⊕": r"$\oplus$",
    "Σ": r"$\Sigma$",
    "≈": r"$\approx$",
    "✓": r"\checkmark{}",
    "“": "``",
    "”": "''",
    "‘": "`",
    "’": "'",
    "\u2009": r"\,",
    "\u00a0": "~",
}
BRACKETS = ("<%", "%>", "<<", ">>", "<#", "#>")  # of the template: LaTeX has its own use for braces
LONG = 14  # fewest characters of a breakable word
LINE = 92  # characters per page width at table size
NARROWEST, SMALL = 9, 105  # characters of a text column; characters of a line from which a table is set smaller


def markdown(document: Document, images: Mapping[str, Image]) -> dict[str, bytes]:
    """GitHub-flavoured, with its pictures beside it."""
    filters: Filters = {
        "strong": lambda text: _strong(inline(text).strip()),
        "code": markdown_code,
        "paragraph": lambda words: markdown_line(words.strip()),
        "formula": clean,
        "listing": markdown_block,
        "cell": _cell,
        "chomp": lambda block: block.rstrip("\n"),
    }
    page = render_template("reports", "report.md.j2", inline, filters, document=document)
    return {"report.md": page.encode("utf-8")} | image_files(images)


def inline(text: str) -> str:
    return markdown_prose(typeset_numbers(text))


def _strong(words: str) -> str:
    return f"**{words}**" if words.strip() else words


def _cell(cell: TableCell) -> str:
    if cell.code:  # in a table a pipe ends the cell, even within code
        return markdown_code(cell.text) if not set(cell.text) & set("`|") else markdown_text(cell.text)
    text = inline(cell.text)
    return _strong(text) if cell.strong else text


def html(document: Document, images: Mapping[str, Image]) -> dict[str, bytes]:
    """One self-contained page: styles, pictures and formulas inline, no scripts."""
    from markupsafe import escape

    filters: Filters = {
        "pre": lambda text: escape(clean(text)),
        "mathml": mathml,
        "picture": lambda figure: svg_of(images[figure.name][SVG], figure),
    }
    escaped = lambda text: escape(typeset_numbers(clean_line(text)))
    page = render_template("reports", "report.html.j2", escaped, filters, document=document)
    return {"report.html": page.encode("utf-8")}


def mathml(latex: str, display: str) -> str:
    """Return a formula as MathML; it contains no untrusted text."""
    from latex2mathml.converter import convert

    return convert(latex, display=display)


def svg_of(svg: bytes, figure: Figure) -> str:
    """An inline picture with unique ids, sized by the page. Its texts are escaped already."""
    from markupsafe import escape

    body = svg.decode("utf-8")
    body = body[body.index("<svg") :]
    mark = re.sub(r"[^a-z0-9-]", "", figure.name)
    body = re.sub(r'\bid="', f'id="{mark}-', body)
    body = body.replace("url(#", f"url(#{mark}-").replace('xlink:href="#', f'xlink:href="#{mark}-')
    head, end, rest = body.partition(">")
    head = re.sub(r'\s(?:width|height)="[^"]*"', "", head)
    size = re.search(r'width="([\d.]+)pt"', body)
    wide = f' style="max-width:{float(size[1]) * 96 / 72:.0f}px"' if size is not None and not figure.wide else ""
    label = f'role="img" aria-label="{escape(clean_line(figure.caption))}"'
    return f"{head} {label}{wide}{end}{rest.rstrip()}"


def latex(document: Document, images: Mapping[str, Image]) -> dict[str, bytes]:
    """pdflatex compiles the English one, xelatex with ctex the Chinese one.

    Tables are `longtable`s, which may break across pages; text columns take the remaining width, computed here.
    """
    chinese = document.language.startswith("zh")
    writer = _Writer(chinese=chinese)
    filters: Filters = {"plain": clean_line, "code": writer.code, "listing": writer.listing, "cell": writer.cell}
    given = {"document": document, "chinese": chinese, "layout": _latex_table_layout}
    page = render_template("reports", "report.tex.j2", writer.text, filters, BRACKETS, **given)
    return {"report.tex": page.encode("utf-8")} | image_files(images)


class _Writer:
    def __init__(self, *, chinese: bool) -> None:
        self.chinese = chinese

    def text(self, found: str) -> str:
        return "".join(map(self._letter, typeset_numbers(clean_line(found))))

    def _letter(self, character: str) -> str:
        if self.chinese and _IDEOGRAPHS.match(character):
            return character
        return LATEX_SYMBOLS.get(character) or latex_text(character)

    def _breakable(self, words: str, after: str, command: str = r"\hspace{0pt}") -> str:
        """Return text that may break after any of the characters in `after`."""
        return "".join(self.text(c) + (command if c in after else "") for c in clean_line(words))

    def code(self, words: str) -> str:
        return rf"\texttt{{{self._breakable(words, '._-/|:,', chr(92) + 'allowbreak{}')}}}"

    def listing(self, text: str) -> str:
        """The lines of a listing; leading spaces stay, and a line may break after any symbol."""
        lines = []
        for line in clean(text).replace("\t", "    ").split("\n"):
            stripped = line.lstrip(" ")
            signs = {c for c in stripped if not c.isalnum() and c != " "}
            indent = r"\ " * (len(line) - len(stripped))
            lines.append(indent + self._breakable(stripped, "".join(signs)) + r"\strut")
        return "\\\\\n".join(lines)

    def cell(self, cell: TableCell, wrap: bool) -> str:
        words = clean_line(cell.text)
        if cell.code and wrap and len(words) > 30 and words.isalnum():  # a hash may be broken anywhere
            return r"\texttt{" + r"\hspace{0pt}".join(map(self.text, words)) + "}"
        if cell.code and words:
            return self.code(words)
        inner = self.text(words)
        if wrap:  # a long word of a paragraph may be broken after its dots and dashes
            parts = words.split(" ")
            inner = " ".join(self._breakable(part, "._-/") if len(part) > LONG else self.text(part) for part in parts)
        return rf"\textbf{{{inner}}}" if cell.strong and inner else inner


def _latex_table_layout(found: Table) -> tuple[str, str, list[bool]]:
    """A table's font size, its columns, and which of these are paragraphs.

    If a row does not fit, each column wider than its fair share becomes a paragraph; paragraphs share the
    remaining width.
    """
    widths = [_widest(found, i) for i in range(len(found.heads))]
    size, line = (r"\footnotesize", LINE) if sum(widths) + 2 * len(widths) <= SMALL else (r"\scriptsize", 1.22 * LINE)
    room = line - 1.6 * len(widths)
    fair = max(room / len(widths), NARROWEST)
    long = [sum(widths) > room and width > fair for width in widths]
    words = [wide and side == "l" for wide, side in zip(long, found.align, strict=True)]
    fixed = sum(width for width, wrap in zip(widths, words, strict=True) if not wrap)
    wraps = words if any(words) and fixed + 1.5 * NARROWEST * sum(words) <= room else long
    left = room - sum(w for w, wrap in zip(widths, wraps, strict=True) if not wrap)
    wanted = sum(widths[i] ** 0.5 for i, wrap in enumerate(wraps) if wrap) or 1.0
    columns = ""
    for width, wrap, side in zip(widths, wraps, found.align, strict=True):
        if wrap:
            share = left * width**0.5 / wanted / line
            columns += rf">{{\raggedright\arraybackslash}}p{{{min(share, width / line + 0.02):.3f}\linewidth}}"
        else:
            columns += side
    return size, columns, wraps


def _widest(found: Table, column: int) -> float:
    """A column's width in characters; a Chinese character is two, a monospaced one over one."""
    cells = [TableCell(found.heads[column], strong=True), *(row[column] for row in found.rows)]
    letters = (sum(1.0 if ord(c) < 0x2E80 else 2.0 for c in clean_line(cell.text)) for cell in cells)
    factors = (1.12 if cell.code else 1.06 if cell.strong else 1.0 for cell in cells)
    return max(factor * count for factor, count in zip(factors, letters, strict=True))


@dataclass(frozen=True)
class ReportFormat:
    """An output format: whom it is for, its main file, and its picture forms."""

    name: str
    what: str
    file: str
    forms: tuple[str, ...]
    write: Callable[[Document, Mapping[str, Image]], dict[str, bytes]]


FORMATS = {
    "markdown": ReportFormat(
        "Markdown", tr("for a repository; pictures in separate files"), "report.md", (SVG, PNG), markdown
    ),
    "latex": ReportFormat("LaTeX", tr("for a paper or a lab report; pdflatex or xelatex"), "report.tex", (PNG,), latex),
    "html": ReportFormat(
        "HTML", tr("one page with everything in it, to read, send or print"), "report.html", (SVG,), html
    ),
}
