r"""A report in LaTeX: pdflatex compiles the English one, xelatex with ctex the Chinese one.

Tables are `longtable`s, which may break across pages; text columns take the remaining width, which is computed here.
"""

import re
from collections.abc import Mapping

from engine.clean import clean, clean_line
from tui_transformer.lab.escaping import latex_text
from tui_transformer.lab.reports import document as doc
from tui_transformer.lab.reports.figures.style import Image, beside
from tui_transformer.lab.template import filled

# What xelatex and the fonts of ctex draw: ideographs, their punctuation, full-width forms, and quotation marks.
_IDEOGRAPHS = re.compile("[\u3000-\u303f\u3400-\u4dbf\u4e00-\u9fff\uff00-\uff60‘’“”]")
# This program's own symbols, with the packages that a report loads.
MORE = {
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
LONG = 14  # least characters of a breakable word
LINE = 92  # characters per page width at table size
NARROWEST, SMALL = 9, 105  # characters of a text column; characters of a line from which a table is set smaller


def latex(document: doc.Document, images: Mapping[str, Image]) -> dict[str, bytes]:
    chinese = document.language.startswith("zh")
    writer = _Writer(chinese=chinese)
    filters = {"plain": clean_line, "code": writer.code, "listing": writer.listing, "cell": writer.cell}
    given = {"document": document, "chinese": chinese, "layout": _layout}
    page = filled("reports", "report.tex.j2", writer.text, filters, BRACKETS, **given)
    return {"report.tex": page.encode("utf-8")} | beside(images)


class _Writer:
    def __init__(self, *, chinese: bool) -> None:
        self.chinese = chinese

    def text(self, found: str) -> str:
        return "".join(map(self._letter, doc.typeset(clean_line(found))))

    def _letter(self, character: str) -> str:
        if self.chinese and _IDEOGRAPHS.match(character):
            return character
        return MORE.get(character) or latex_text(character)

    def _breakable(self, words: str, after: str, command: str = r"\hspace{0pt}") -> str:
        """Text that may break after any of some characters."""
        return "".join(self.text(c) + (command if c in after else "") for c in clean_line(words))

    def code(self, words: str) -> str:
        return rf"\texttt{{{self._breakable(words, '._-/|:,', chr(92) + 'allowbreak{}')}}}"

    def listing(self, text: str) -> str:
        """The lines of a listing; leading spaces stay, and a line may break after any sign."""
        lines = []
        for line in clean(text).replace("\t", "    ").split("\n"):
            stripped = line.lstrip(" ")
            signs = {c for c in stripped if not c.isalnum() and c != " "}
            indent = r"\ " * (len(line) - len(stripped))
            lines.append(indent + self._breakable(stripped, "".join(signs)) + r"\strut")
        return "\\\\\n".join(lines)

    def cell(self, cell: doc.Cell, wrap: bool) -> str:
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


def _layout(found: doc.Table) -> tuple[str, str, list[bool]]:
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


def _widest(found: doc.Table, column: int) -> float:
    """A column's width in characters; a Chinese character is two, a monospaced one over one."""
    cells = [doc.Cell(found.heads[column], strong=True), *(row[column] for row in found.rows)]
    letters = (sum(1.0 if ord(c) < 0x2E80 else 2.0 for c in clean_line(cell.text)) for cell in cells)
    factors = (1.12 if cell.code else 1.06 if cell.strong else 1.0 for cell in cells)
    return max(factor * count for factor, count in zip(factors, letters, strict=True))
