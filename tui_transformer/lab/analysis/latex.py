r"""A table in LaTeX that pdflatex compiles as it is: a plain `tabular` without any package, everything escaped.

pdflatex stops at a character that its fonts lack. So what is not ASCII, a Latin letter of Western Europe or one of a
few signs stands as its number, `[U+4E2D]`: a table that names a character beats one that does not compile.
"""

import unicodedata

from tui_transformer.lab.analysis.table import Table

SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "|": r"$|$",
    '"': r"\char34{}",
    "'": r"{'}",  # two of them would be one quotation mark
    "`": r"{`}",
    "-": r"{-}",  # two of them would be a dash
    "[": r"{[}",  # after a line's end it would be an argument
    "]": r"{]}",
    "*": r"{*}",
    "?": r"{?}",  # ?` and !` are Spanish marks
    "!": r"{!}",
    "Δ": r"$\Delta$",
    "−": r"$-$",
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "±": r"$\pm$",
    "→": r"$\to$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "ß": r"\ss{}",
    "æ": r"\ae{}",
    "Æ": r"\AE{}",
    "ø": r"\o{}",
    "Ø": r"\O{}",
    "œ": r"\oe{}",
    "Œ": r"\OE{}",
    "å": r"\aa{}",
    "Å": r"\AA{}",
    "ı": r"\i{}",
}
ACCENTS = {"\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0308": '"', "\u030c": "v", "\u0327": "c"}
ROW, EDGE, LARGEST = 5, 40, 5000  # millimetres of a page: a row, the edges, the most


def escape(text: str) -> str:
    """Text for a cell, in ASCII."""
    return "".join(SPECIAL.get(c) or (c if " " <= c <= "~" else _letter(c)) for c in text)


def _letter(character: str) -> str:
    """An accented letter by its accent, anything else by its number."""
    parts = unicodedata.normalize("NFD", character)
    if len(parts) == 2 and parts[0].isascii() and parts[0].isalpha() and parts[1] in ACCENTS:
        base = rf"\{parts[0]}{{}}" if parts[0] in "ij" else parts[0]
        return rf"\{ACCENTS[parts[1]]}{{{base}}}"
    return f"{{[}}U+{ord(character):04X}{{]}}"


def tabular(table: Table) -> str:
    r"""The table alone, for `\input`."""
    aligned = "".join("r" if column.right else "l" for column in table.columns)
    lines = [
        r"% \input this where the table is to stand; it needs no package.",
        r"{\footnotesize\setlength{\tabcolsep}{4pt}%",
        rf"\begin{{tabular}}{{{aligned}}}",
        r"\hline",
        _row([escape(head) for head in table.heads]),
        r"\hline",
        *(
            _row([_cell(cell, value) for cell, value in zip(cells, values, strict=True)])
            for cells, values in zip(table.rows, table.values, strict=True)
        ),
        r"\hline",
        r"\end{tabular}}",
    ]
    return "\n".join(lines) + "\n"


def document(table: Table) -> str:
    """A page of its own, as large as the table."""
    widths = [max(map(len, column)) for column in zip(table.heads, *table.rows, strict=True)]
    wide = min(LARGEST, sum(2 * width + 4 for width in widths) + EDGE)
    high = min(LARGEST, ROW * (len(table.rows) + 3) + EDGE)
    lines = [
        r"\documentclass{article}",
        rf"\pdfpagewidth={wide}mm \pdfpageheight={high}mm",
        rf"\textwidth={wide - EDGE // 2}mm \textheight={high - EDGE // 2}mm",
        r"\hoffset=-1in \voffset=-1in \oddsidemargin=10mm \topmargin=10mm",
        r"\headheight=0pt \headsep=0pt \parindent=0pt",
        r"\pagestyle{empty}",
        r"\begin{document}",
    ]
    return "\n".join(lines) + "\n" + tabular(table) + "\\end{document}\n"


def _row(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


def _cell(cell: str, value: object) -> str:
    if not cell or isinstance(value, bool) or not isinstance(value, int | float):
        return escape(cell)
    mantissa, power, exponent = cell.partition("e")
    return rf"${mantissa} \cdot 10^{{{int(exponent)}}}$" if power else f"${cell}$"
