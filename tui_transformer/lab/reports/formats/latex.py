r"""A report in LaTeX: pdflatex compiles the English one, xelatex with ctex the Chinese one.

Tables are `longtable`s, which pages may break; a column of words is as wide as what the others leave it.
"""

from collections.abc import Iterator, Mapping, Sequence

from engine.clean import clean, clean_line
from tui_transformer.lab.analysis.export import escape as ascii_only
from tui_transformer.lab.reports.document import (
    Block,
    Bullets,
    Cell,
    Code,
    Document,
    Figure,
    Formula,
    Heading,
    Inline,
    Listing,
    Math,
    Paragraph,
    Spans,
    Strong,
    Table,
    Verdict,
    typeset,
)
from tui_transformer.lab.reports.figures.style import Image

FILE = "report.tex"
FOLDER = "figures"
CHINESE = "zh"  # how the language of a document begins that needs ctex
# What xelatex and the fonts of ctex draw: ideographs, their punctuation, and full-width forms.
_IDEOGRAPHS = ((0x3000, 0x303F), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xFF00, 0xFF60))
_QUOTES = "‘’“”"
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
LONG = 14  # characters of a word that may be broken
LINE = 92  # characters of a page's width in the size of a table
NARROWEST, SMALL = 9, 105  # characters of a column of words; characters of a line from which a table is set smaller
HEAD = r"""\documentclass[11pt,a4paper]{CLASS}
% Compile with: ENGINE report.tex   (twice, for the table of contents)
\usepackage[margin=22mm]{geometry}
FONTS\usepackage{amsmath,amssymb}
\usepackage{graphicx}
\usepackage{array,longtable,booktabs}
\usepackage{xcolor}
\usepackage[font=small,labelfont=bf,labelsep=period,singlelinecheck=false,justification=raggedright]{caption}
\usepackage[hidelinks]{hyperref}
\ifdefined\pdfinfoomitdate\pdfinfoomitdate=1\fi
\ifdefined\pdftrailerid\pdftrailerid{}\fi
\setlength{\parindent}{0pt}\setlength{\parskip}{5pt plus 1pt}
\setlength{\emergencystretch}{3em}
\setlength{\LTleft}{0pt}\setlength{\LTright}{0pt plus 1fill}
\setlength{\LTpre}{8pt}\setlength{\LTpost}{4pt}\AtBeginDocument{\setlength{\LTcapwidth}{\textwidth}}
% No heading at the end of a page.
\newcommand{\room}{\par\ifdim\pagetotal>0pt\ifdim\dimexpr\pagegoal-\pagetotal\relax<11\baselineskip\newpage\fi\fi}
\definecolor{ink}{HTML}{0B5394}\definecolor{alarm}{HTML}{B3261E}\definecolor{faint}{HTML}{5D6470}
\setcounter{tocdepth}{1}
"""
CTEX = r"""\ctexset{section/format+=\raggedright}
"""
LATIN = r"""\usepackage[T1]{fontenc}
\IfFileExists{lmodern.sty}{\usepackage{lmodern}}{}
\IfFileExists{microtype.sty}{\usepackage{microtype}}{}
"""


class Writer:
    """One report in LaTeX.

    Args:
        document: the report.
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        self.chinese = document.language.startswith(CHINESE)

    def text(self, found: str) -> str:
        """Text on one line that stays text."""
        return "".join(self._letter(character) for character in typeset(clean_line(found)))

    def _letter(self, character: str) -> str:
        if self.chinese and (character in _QUOTES or any(a <= ord(character) <= b for a, b in _IDEOGRAPHS)):
            return character
        return MORE.get(character) or ascii_only(character)

    def whole(self) -> str:
        """The file."""
        document = self.document
        cls, engine = ("ctexart", "xelatex") if self.chinese else ("article", "pdflatex")
        head = HEAD.replace("CLASS", cls).replace("ENGINE", engine).replace("FONTS", CTEX if self.chinese else LATIN)
        parts = [head + r"\begin{document}"]
        parts.append(rf"{{\LARGE\bfseries {self.text(document.title)}\par}}")
        parts.append(rf"{{\large\color{{faint}} {self.text(document.subtitle)}\par}}\medskip")
        blocks = list(document.blocks)
        first, rest = blocks[0], blocks[1:]
        parts += self._block(first)
        parts.append(
            rf"\renewcommand{{\contentsname}}{{{self.text(document.contents)}}}{{\small\setlength{{\parskip}}{{0pt}}\tableofcontents}}"
        )
        for found in rest:
            parts += self._block(found)
        return "\n\n".join([*parts, r"\end{document}"]) + "\n"

    def _block(self, found: Block) -> Iterator[str]:
        match found:
            case Heading(words, level):
                command = "section" if level == 1 else "subsection"
                yield rf"\room\{command}{{{self.text(words)}}}"
            case Paragraph(spans):
                yield self._line(spans)
            case Verdict(spans, alarm):
                colour = "alarm" if alarm else "ink"
                inner = rf"\begin{{minipage}}{{\dimexpr\linewidth-14pt\relax}}{self._line(spans)}\end{{minipage}}"
                yield rf"{{\color{{{colour}}}\vrule width 3pt}}\hspace{{11pt}}{inner}"
            case Bullets(items):
                listed = "\n".join(rf"\item {self._line(item)}" for item in items)
                yield f"\\begin{{itemize}}\\setlength{{\\itemsep}}{{2pt}}\n{listed}\n\\end{{itemize}}"
            case Formula():
                source = rf" \textcolor{{faint}}{{({self.text(found.source)})}}" if found.source else ""
                yield f"{self.text(found.what)}{source}:\n\\[ {clean_line(found.latex)} \\]"
            case Listing():
                yield self._listing(found)
            case Figure():
                yield self._figure(found)
            case Table():
                yield self._table(found)

    def _line(self, spans: Spans) -> str:
        return "".join(map(self._span, spans))

    def _span(self, span: Inline) -> str:
        match span:
            case Strong(words):
                return rf"\textbf{{{self.text(words)}}}"
            case Code(words):
                return self._code(words)
            case Math(latex):
                return f"${latex}$"
        return self.text(span)

    def _code(self, words: str) -> str:
        """In type of one width, where a line may end after any of a few signs."""
        broken = "".join(self.text(c) + (r"\allowbreak{}" if c in "._-/|:," else "") for c in clean_line(words))
        return rf"\texttt{{{broken}}}"

    def _hash(self, words: str) -> str:
        """A hash may be broken anywhere."""
        return r"\texttt{" + r"\hspace{0pt}".join(self.text(c) for c in clean_line(words)) + "}"

    def _listing(self, found: Listing) -> str:
        """Line by line; spaces at the beginning of a line stay."""
        lines = []
        for line in clean(found.text).replace("\t", "    ").split("\n"):
            stripped = line.lstrip(" ")
            air = r"\ " * (len(line) - len(stripped))
            lines.append(air + self._words(stripped) + r"\strut")
        title = rf"\textit{{{self.text(found.title)}}}\nopagebreak\par" if found.title else ""
        inner = "\\\\\n".join(lines)
        block = rf"\begin{{quote}}\footnotesize\ttfamily\raggedright{{}}{inner}\end{{quote}}"
        return f"{title}\n{block}"

    def _words(self, line: str) -> str:
        return "".join(self.text(c) + (r"\hspace{0pt}" if not c.isalnum() and c != " " else "") for c in line)

    def _figure(self, found: Figure) -> str:
        width = r"\linewidth" if found.wide else r"0.62\linewidth"
        size = rf"[width={width},height=0.8\textheight,keepaspectratio]"
        picture = rf"\includegraphics{size}{{{FOLDER}/{found.name}.png}}"
        caption = rf"\captionof{{figure}}{{{self.text(found.caption)}}}"
        return f"\\begin{{center}}\n{picture}\n{caption}\n\\end{{center}}"

    def _table(self, found: Table) -> str:
        size, columns, wraps = self._layout(found)
        head = " & ".join(rf"\textbf{{{self.text(h)}}}" for h in found.heads)
        lines = [
            " & ".join(self._cell(cell, wrap) for cell, wrap in zip(row, wraps, strict=True)) for row in found.rows
        ]
        first = len(lines) - 3 if len(lines) > WHOLE else 0  # from here on no page may end
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

    def _layout(self, found: Table) -> tuple[str, str, list[bool]]:
        """The size of its letters, its columns, and which of these are paragraphs.

        Where a line is too short, a column that is wider than its fair share becomes a paragraph; all paragraphs
        share what is left of it.
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

    def _cell(self, cell: Cell, wrap: bool) -> str:
        words = clean_line(cell.text)
        if cell.code and words:
            is_hash = wrap and len(words) > 30 and words.isalnum()
            return self._hash(words) if is_hash else self._code(words)
        inner = self._code_free(words, wrap)
        return rf"\textbf{{{inner}}}" if cell.strong and inner else inner

    def _code_free(self, words: str, wrap: bool) -> str:
        """A long word of a paragraph may be broken after its dots and dashes."""
        if not wrap:
            return self.text(words)
        return " ".join(self._long(word) if len(word) > LONG else self.text(word) for word in words.split(" "))

    def _long(self, word: str) -> str:
        return "".join(self.text(c) + (r"\hspace{0pt}" if c in "._-/" else "") for c in word)


def latex(document: Document, images: Mapping[str, Image]) -> dict[str, bytes]:
    """Its files by their names."""
    files = {FILE: Writer(document).whole().encode("utf-8")}
    return files | {f"{FOLDER}/{name}.png": image.png for name, image in images.items()}


def _widest(found: Table, column: int) -> float:
    """Characters of a column; a letter of Chinese is two, one in type of one width more than others."""
    cells: Sequence[tuple[str, float]] = [
        (found.heads[column], 1.06),
        *((row[column].text, 1.12 if row[column].code else 1.06 if row[column].strong else 1.0) for row in found.rows),
    ]
    return max(factor * sum(1.0 if ord(c) < 0x2E80 else 2.0 for c in clean_line(text)) for text, factor in cells)
