"""Comparisons as CSV, Markdown, LaTeX or JSON files, in English. Each format escapes names and notes in its own way."""

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.base.clean import clean_line
from engine.base.errors import InputError, write_error
from engine.base.language import Message, tr
from engine.runs.files import replace_non_finite, write_user_file
from tui_transformer.lab.analysis import group_columns
from tui_transformer.lab.analysis.columns import FIXED_COLUMNS, Column, Value, columns
from tui_transformer.lab.analysis.entry import RunEntry
from tui_transformer.lab.analysis.verdict import VariantResult
from tui_transformer.lab.escaping import csv_cell, latex_text, markdown_text

LOSSES = ("last", "best", "Δlast", "Δbest", "gap", "excess")
ALWAYS = ("verdict", "corpus", "unit", "context", "stride")  # what numbers mean: goes with them


@dataclass(frozen=True)
class ComparisonTable:
    """Rows of text under full names; everything is cleaned."""

    columns: tuple[Column, ...]  # from the left
    heads: tuple[str, ...]  # their names, with units
    rows: tuple[tuple[str, ...], ...]  # one row per run; "" for no value
    values: tuple[tuple[Value, ...], ...]  # the same cells as numbers and texts


def comparison_table(
    entries: Sequence[RunEntry], baseline: RunEntry | None, *, all_settings: bool = False
) -> ComparisonTable:
    """Return all columns of these runs, with those that say what their scores mean and what follows from them."""
    found = columns(entries, baseline, all_settings=all_settings)
    shown = {column.key for column in found}
    found += [FIXED_COLUMNS[key] for key in ALWAYS if key not in shown]
    units = {entry.protocol.unit for entry in entries}
    unit = f"nats per {clean_line(units.pop())}" if len(units) == 1 else "nats, per the unit in each row"
    heads = tuple(clean_line(f"{c.name} ({unit})" if c.key in LOSSES else c.name) for c in found)
    rows = tuple(tuple(clean_line(c.file_text(e, baseline)) for c in found) for e in entries)
    values = tuple(tuple(c.value(e, baseline) for c in found) for e in entries)
    return ComparisonTable(tuple(found), heads, rows, values)


def variant_comparison_table(
    standings: Sequence[VariantResult], *, data: bool = False, all_settings: bool = False
) -> ComparisonTable:
    """The same for variants over seeds.

    With `data` every number has its own column, for programs; otherwise a mean and its interval share one.
    """
    found = (group_columns.data_columns if data else group_columns.columns)(standings, all_settings=all_settings)
    heads = tuple(clean_line(column.name) for column in found)
    rows = tuple(tuple(clean_line(c.file_text(s, None)) for c in found) for s in standings)
    values = tuple(
        tuple(
            c.value(s, None) if data or _is_finite_number_text(cell) else cell
            for c, cell in zip(found, row, strict=True)
        )
        for s, row in zip(standings, rows, strict=True)
    )
    return ComparisonTable(tuple(found), heads, rows, values)


def _is_finite_number_text(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def _cells(table: ComparisonTable, write: Callable[[str, Value], str]) -> Iterator[list[str]]:
    for cells, values in zip(table.rows, table.values, strict=True):
        yield [write(cell, value) for cell, value in zip(cells, values, strict=True)]


def to_csv(table: ComparisonTable) -> str:
    """One line per run, RFC 4180. Text that would run as a formula gets an apostrophe; numbers have no plus."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.heads)
    writer.writerows(_cells(table, lambda cell, value: cell.lstrip("+") if _is_number(value) else csv_cell(cell)))
    return out.getvalue()


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def to_markdown(table: ComparisonTable) -> str:
    """A GitHub-flavoured table; no cell can end it or become anything but text."""
    markdown_cell = lambda cell, value: cell.replace("-", "\u2212") if _is_number(value) else markdown_text(cell)
    heads = map(markdown_text, table.heads)
    aligned = ("---:" if column.right_aligned else ":---" for column in table.columns)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (heads, aligned, *_cells(table, markdown_cell)))


def to_json(table: ComparisonTable) -> str:
    """An array of one object per run, with the filter's keys; null where there is no value."""
    keys = [column.key for column in table.columns]
    records = [replace_non_finite(dict(zip(keys, values, strict=True))) for values in table.values]
    return json.dumps(records, ensure_ascii=True, indent=1, default=str) + "\n"


r"""A table in LaTeX that pdflatex compiles as it is: a plain `tabular` without any package, everything escaped.

pdflatex stops at a character that its fonts lack. So only ASCII, Western European letters and a few signs are kept;
any other character is written as its code point, `[U+4E2D]`.
"""


ROW, EDGE, LARGEST = 5, 40, 5000  # millimetres of a page: a row, the edges, the most


def to_latex(table: ComparisonTable) -> str:
    r"""The table alone, for `\input`."""
    aligned = "".join("r" if column.right_aligned else "l" for column in table.columns)
    lines = [
        r"% \input this where the table is to stand; it needs no package.",
        r"{\footnotesize\setlength{\tabcolsep}{4pt}%",
        rf"\begin{{tabular}}{{{aligned}}}",
        r"\hline",
        " & ".join(map(latex_text, table.heads)) + r" \\",
        r"\hline",
        *(" & ".join(cells) + r" \\" for cells in _cells(table, _latex_cell)),
        r"\hline",
        r"\end{tabular}}",
    ]
    return "\n".join(lines) + "\n"


def to_latex_document(table: ComparisonTable) -> str:
    """A standalone page, as large as the table."""
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
    return "\n".join(lines) + "\n" + to_latex(table) + "\\end{document}\n"


def _latex_cell(cell: str, value: object) -> str:
    if not cell or isinstance(value, bool) or not _is_number(value):
        return latex_text(cell)
    mantissa, power, exponent = cell.partition("e")
    return rf"${mantissa} \cdot 10^{{{int(exponent)}}}$" if power else f"${cell}$"


@dataclass(frozen=True)
class TableFormat:
    name: str
    ending: str
    what: str
    write: Callable[[ComparisonTable], str]


DATA_FORMATS = ("csv", "json")  # for programs: one number per cell
FORMATS = {
    "csv": TableFormat("CSV", "csv", tr("for a spreadsheet or pandas"), to_csv),
    "markdown": TableFormat("Markdown", "md", tr("for a README or an issue"), to_markdown),
    "latex": TableFormat(tr("LaTeX table"), "tex", tr("for \\input in a paper; needs no packages"), to_latex),
    "latex-document": TableFormat(
        tr("LaTeX document"), "tex", tr("a page to compile with pdflatex"), to_latex_document
    ),
    "json": TableFormat("JSON", "json", tr("for a program"), to_json),
}


def save(text: str | Iterable[str], path: Path) -> None:
    """Write a text, or its parts, atomically; raises InputError if it cannot."""
    try:
        write_user_file(path, text)
    except OSError as error:
        raise write_error(tr("{path} cannot be written", path=str(path)[:200]), error) from None
    except ValueError as error:  # a zero byte in its name
        raise InputError(Message("{path} cannot be written: {error}", path=str(path)[:200], error=error)) from None
