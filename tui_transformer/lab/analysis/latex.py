r"""A table in LaTeX that pdflatex compiles as it is: a plain `tabular` without any package, everything escaped."""

from tui_transformer.lab.analysis.table import Table
from tui_transformer.lab.escaping import latex_text

ROW, EDGE, LARGEST = 5, 40, 5000  # millimetres of a page: a row, the edges, the most


def tabular(table: Table) -> str:
    r"""The table alone, for `\input`."""
    aligned = "".join("r" if column.right else "l" for column in table.columns)
    lines = [
        r"% \input this where the table is to stand; it needs no package.",
        r"{\footnotesize\setlength{\tabcolsep}{4pt}%",
        rf"\begin{{tabular}}{{{aligned}}}",
        r"\hline",
        _row([latex_text(head) for head in table.heads]),
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
        return latex_text(cell)
    mantissa, power, exponent = cell.partition("e")
    return rf"${mantissa} \cdot 10^{{{int(exponent)}}}$" if power else f"${cell}$"
