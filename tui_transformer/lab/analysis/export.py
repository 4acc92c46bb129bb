"""Comparisons as files: CSV, Markdown, LaTeX, JSON. Names and notes are text, so each format escapes them its way."""

import csv
import io
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.clean import clean_line
from engine.errors import InputError, refused
from engine.runs.files import finite, write_named
from tui_transformer.lab.analysis import group_columns
from tui_transformer.lab.analysis.columns import FIXED, Column, Value, columns
from tui_transformer.lab.analysis.entry import Entry
from tui_transformer.lab.analysis.verdict import VariantResult
from tui_transformer.lab.escaping import csv_cell, latex_text, markdown_text

ALWAYS = ("verdict", "corpus", "unit", "context", "stride")  # what a number means goes wherever the number goes


@dataclass(frozen=True)
class Table:
    """Rows of text under full names; everything is cleaned.

    Args:
        columns: what stands in each, from the left.
        heads: their names, with units.
        rows: a run each; "" where it has no value.
        values: the same cells as numbers and texts.
    """

    columns: tuple[Column, ...]
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    values: tuple[tuple[Value, ...], ...]


def table(entries: Sequence[Entry], baseline: Entry | None, *, all_settings: bool = False) -> Table:
    """Everything about these runs, with what their scores mean and what may be concluded.

    Args:
        entries: the runs, in their order.
        baseline: the one that differences are to.
        all_settings: every setting, not only those that differ.
    """
    found = columns(entries, baseline, all_settings=all_settings)
    shown = {column.key for column in found}
    found += [FIXED[key] for key in ALWAYS if key not in shown]
    units = {entry.protocol.unit for entry in entries}
    unit = f"nats per {clean_line(units.pop())}" if len(units) == 1 else "nats, per unit as given"
    heads = tuple(clean_line(f"{c.name} ({unit})" if _is_loss(c) else c.name) for c in found)
    rows = tuple(tuple(clean_line(c.written(e, baseline)) for c in found) for e in entries)
    values = tuple(tuple(_plain(c.value(e, baseline)) for c in found) for e in entries)
    return Table(tuple(found), heads, rows, values)


def group_table(standings: Sequence[VariantResult], *, data: bool = False, all_settings: bool = False) -> Table:
    """The same of variants over their seeds.

    Args:
        standings: the variants, in their order.
        data: every number in a column of its own, as a program wants it; else a mean with its interval in one.
        all_settings: every setting, not only those that differ.
    """
    found = (group_columns.data_columns if data else group_columns.columns)(standings, all_settings=all_settings)
    heads = tuple(clean_line(column.name) for column in found)
    rows = tuple(tuple(clean_line(c.written(s, None)) for c in found) for s in standings)
    values = tuple(
        tuple(
            _plain(c.value(s, None)) if data or _is_amount(cell) else cell for c, cell in zip(found, row, strict=True)
        )
        for s, row in zip(standings, rows, strict=True)
    )
    return Table(tuple(found), heads, rows, values)


def _is_amount(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def _is_loss(column: Column) -> bool:
    return column.key in ("last", "best", "Δlast", "Δbest", "gap", "excess")


def _plain(value: Value) -> Value:
    return list(value) if isinstance(value, tuple) else value


def to_csv(table: Table) -> str:
    """One line a run, RFC 4180. Text that a spreadsheet would run as a formula gets an apostrophe, no number a plus."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.heads)
    for cells, values in zip(table.rows, table.values, strict=True):
        pairs = zip(cells, values, strict=True)
        writer.writerow([cell.lstrip("+") if _is_number(value) else csv_cell(cell) for cell, value in pairs])
    return out.getvalue()


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def to_markdown(table: Table) -> str:
    """A table of GitHub's flavour; no cell can end it or become anything but text."""
    lines = [
        _markdown_row([markdown_text(head) for head in table.heads]),
        _markdown_row(["---:" if column.right else ":---" for column in table.columns]),
        *(
            _markdown_row([_markdown_cell(cell, value) for cell, value in zip(cells, values, strict=True)])
            for cells, values in zip(table.rows, table.values, strict=True)
        ),
    ]
    return "\n".join(lines) + "\n"


def _markdown_row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_cell(cell: str, value: object) -> str:
    return cell.replace("-", "\u2212") if _is_number(value) else markdown_text(cell)


def to_json(table: Table) -> str:
    """An array of one object a run, keys as the filter knows them; null where there is no value."""
    keys = [column.key for column in table.columns]
    records = [finite(dict(zip(keys, values, strict=True))) for values in table.values]
    return json.dumps(records, ensure_ascii=True, indent=1, default=str) + "\n"


r"""A table in LaTeX that pdflatex compiles as it is: a plain `tabular` without any package, everything escaped.

pdflatex stops at a character that its fonts lack. So what is not ASCII, a Latin letter of Western Europe or one of a
few signs stands as its number, `[U+4E2D]`: a table that names a character beats one that does not compile.
"""


ROW, EDGE, LARGEST = 5, 40, 5000  # millimetres of a page: a row, the edges, the most


def tabular(table: Table) -> str:
    r"""The table alone, for `\input`."""
    aligned = "".join("r" if column.right else "l" for column in table.columns)
    lines = [
        r"% \input this where the table is to stand; it needs no package.",
        r"{\footnotesize\setlength{\tabcolsep}{4pt}%",
        rf"\begin{{tabular}}{{{aligned}}}",
        r"\hline",
        _latex_row([latex_text(head) for head in table.heads]),
        r"\hline",
        *(
            _latex_row([_latex_cell(cell, value) for cell, value in zip(cells, values, strict=True)])
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


def _latex_row(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


def _latex_cell(cell: str, value: object) -> str:
    if not cell or isinstance(value, bool) or not isinstance(value, int | float):
        return latex_text(cell)
    mantissa, power, exponent = cell.partition("e")
    return rf"${mantissa} \cdot 10^{{{int(exponent)}}}$" if power else f"${cell}$"


@dataclass(frozen=True)
class Format:
    """A way to write a comparison down."""

    name: str
    ending: str
    what: str
    write: Callable[[Table], str]


DATA = ("csv", "json")  # for programs: every number in a cell of its own
FORMATS = {
    "csv": Format("CSV", "csv", "for a spreadsheet or pandas", to_csv),
    "markdown": Format("Markdown", "md", "for a README or an issue", to_markdown),
    "latex": Format("LaTeX table", "tex", r"for \input in a paper; no package is needed", tabular),
    "latex-document": Format("LaTeX document", "tex", "a page that pdflatex compiles", document),
    "json": Format("JSON", "json", "for a program", to_json),
}


def save(text: str, path: Path) -> None:
    """Write it in one step.

    Raises:
        InputError: why that is not possible.
    """
    try:
        write_named(path, text)
    except OSError as error:
        raise refused(f"{str(path)[:200]} cannot be written", error) from None
    except ValueError as error:  # a zero byte in its name
        raise InputError(f"{str(path)[:200]} cannot be written: {error}") from None
