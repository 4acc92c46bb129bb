r"""A report in LaTeX: pdflatex compiles the English one, xelatex with ctex the Chinese one.

Tables are `longtable`s, which may break across pages; text columns take the remaining width. No template: column
widths and line breaks are computed here, and LaTeX's braces clash with any template's.
"""

import re
from collections.abc import Mapping
from importlib import resources

from engine.clean import clean, clean_line
from tui_transformer.lab.escaping import latex_text
from tui_transformer.lab.reports import document as doc
from tui_transformer.lab.reports.figures.style import FOLDER, Image, beside

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
WHOLE = 14  # rows of a table that stays on one page
LONG = 14  # least characters of a breakable word
LINE = 92  # characters per page width at table size
NARROWEST, SMALL = 9, 105  # characters of a text column; characters of a line from which a table is set smaller
CTEX = r"""\ctexset{section/format+=\raggedright}
"""
LATIN = r"""\usepackage[T1]{fontenc}
\IfFileExists{lmodern.sty}{\usepackage{lmodern}}{}
\IfFileExists{microtype.sty}{\usepackage{microtype}}{}
"""


def latex(document: doc.Document, images: Mapping[str, Image]) -> dict[str, bytes]:
    written = _Writer(chinese=document.language.startswith("zh")).whole(document)
    return {"report.tex": written.encode("utf-8")} | beside(images)


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

    def whole(self, document: doc.Document) -> str:
        cls, engine, fonts = ("ctexart", "xelatex", CTEX) if self.chinese else ("article", "pdflatex", LATIN)
        preamble = (resources.files("tui_transformer.lab.reports") / "templates" / "preamble.tex").read_text("utf-8")
        first, *rest = map(self._block, document.blocks)
        parts = [
            preamble.replace("CLASS", cls).replace("ENGINE", engine).replace("FONTS", fonts) + r"\begin{document}",
            rf"{{\LARGE\bfseries {self.text(document.title)}\par}}",
            rf"{{\large\color{{faint}} {self.text(document.subtitle)}\par}}\medskip",
            first,
            rf"\renewcommand{{\contentsname}}{{{self.text(document.contents)}}}"
            r"{\small\setlength{\parskip}{0pt}\tableofcontents}",
            *rest,
            r"\end{document}",
        ]
        return "\n\n".join(parts) + "\n"

    def _block(self, found: doc.Block) -> str:
        match found:
            case doc.Heading(words, level):
                command = "section" if level == 1 else "subsection"
                return rf"\room\{command}{{{self.text(words)}}}"
            case doc.Paragraph(spans):
                return self._line(spans)
            case doc.Verdict(spans, alarm):
                colour = "alarm" if alarm else "ink"
                inner = rf"\begin{{minipage}}{{\dimexpr\linewidth-14pt\relax}}{self._line(spans)}\end{{minipage}}"
                return rf"{{\color{{{colour}}}\vrule width 3pt}}\hspace{{11pt}}{inner}"
            case doc.Bullets(items):
                listed = "\n".join(rf"\item {self._line(item)}" for item in items)
                return f"\\begin{{itemize}}\\setlength{{\\itemsep}}{{2pt}}\n{listed}\n\\end{{itemize}}"
            case doc.Formula(what, formula, source):
                paper = rf" \textcolor{{faint}}{{({self.text(source)})}}" if source else ""
                return f"{self.text(what)}{paper}:\n\\[ {clean_line(formula)} \\]"
            case doc.Listing(text, title):
                above = rf"\textit{{{self.text(title)}}}\nopagebreak\par" if title else ""
                lines = "\\\\\n".join(map(self._listed, clean(text).replace("\t", "    ").split("\n")))
                block = rf"\begin{{quote}}\footnotesize\ttfamily\raggedright{{}}{lines}\end{{quote}}"
                return f"{above}\n{block}"
            case doc.Figure(name, caption):
                width = r"\linewidth" if found.wide else r"0.62\linewidth"
                picture = (
                    rf"\includegraphics[width={width},height=0.8\textheight,keepaspectratio]{{{FOLDER}/{name}.png}}"
                )
                return f"\\begin{{center}}\n{picture}\n\\captionof{{figure}}{{{self.text(caption)}}}\n\\end{{center}}"
        return self._table(found)

    def _listed(self, line: str) -> str:
        """A line of a listing; leading spaces stay, and it may break after any character."""
        stripped = line.lstrip(" ")
        signs = {c for c in stripped if not c.isalnum() and c != " "}
        return r"\ " * (len(line) - len(stripped)) + self._breakable(stripped, "".join(signs)) + r"\strut"

    def _line(self, spans: doc.Spans) -> str:
        return "".join(map(self._span, spans))

    def _span(self, span: doc.Inline) -> str:
        match span:
            case doc.Strong(words):
                return rf"\textbf{{{self.text(words)}}}"
            case doc.Code(words):
                return self._code(words)
            case doc.Math(formula):
                return f"${formula}$"
        return self.text(span)

    def _code(self, words: str) -> str:
        return rf"\texttt{{{self._breakable(words, '._-/|:,', chr(92) + 'allowbreak{}')}}}"

    def _table(self, found: doc.Table) -> str:
        size, columns, wraps = self._layout(found)
        head = " & ".join(rf"\textbf{{{self.text(h)}}}" for h in found.heads)
        lines = [
            " & ".join(self._cell(cell, wrap) for cell, wrap in zip(row, wraps, strict=True)) for row in found.rows
        ]
        first = len(lines) - 3 if len(lines) > WHOLE else 0  # no page break from here on
        rows = "\n".join(line + (r" \\*" if i >= first else r" \\") for i, line in enumerate(lines))
        note = rf"{{\footnotesize\textcolor{{faint}}{{{self.text(found.note)}}}\par}}" if found.note else ""
        table = [
            rf"{{{size}\setlength{{\tabcolsep}}{{3.2pt}}\renewcommand{{\arraystretch}}{{1.12}}",
            rf"\begin{{longtable}}{{@{{}}{columns}@{{}}}}",
            rf"\caption{{{self.text(found.caption)}}}\\",
            rf"\toprule {head} \\ \midrule \endfirsthead",
            rf"\toprule {head} \\ \midrule \endhead",
            r"\bottomrule \endlastfoot",
            rows,
            r"\end{longtable}}",
        ]
        return "\n".join([*table, note])

    def _layout(self, found: doc.Table) -> tuple[str, str, list[bool]]:
        """A table's font size, its columns, and which of these are paragraphs.

        If a row does not fit, each column wider than its fair share becomes a paragraph; paragraphs share the
        remaining width.
        """
        widths = [_widest(found, i) for i in range(len(found.heads))]
        size, line = (
            (r"\footnotesize", LINE) if sum(widths) + 2 * len(widths) <= SMALL else (r"\scriptsize", 1.22 * LINE)
        )
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

    def _cell(self, cell: doc.Cell, wrap: bool) -> str:
        words = clean_line(cell.text)
        if cell.code and wrap and len(words) > 30 and words.isalnum():  # a hash may be broken anywhere
            return r"\texttt{" + r"\hspace{0pt}".join(map(self.text, words)) + "}"
        if cell.code and words:
            return self._code(words)
        inner = self.text(words)
        if wrap:  # a long word of a paragraph may be broken after its dots and dashes
            parts = words.split(" ")
            inner = " ".join(self._breakable(part, "._-/") if len(part) > LONG else self.text(part) for part in parts)
        return rf"\textbf{{{inner}}}" if cell.strong and inner else inner


def _widest(found: doc.Table, column: int) -> float:
    """A column's width in characters; a Chinese character is two, a monospaced one over one."""
    cells = [doc.Cell(found.heads[column], strong=True), *(row[column] for row in found.rows)]
    letters = (sum(1.0 if ord(c) < 0x2E80 else 2.0 for c in clean_line(cell.text)) for cell in cells)
    factors = (1.12 if cell.code else 1.06 if cell.strong else 1.0 for cell in cells)
    return max(factor * count for factor, count in zip(factors, letters, strict=True))
