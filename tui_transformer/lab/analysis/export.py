"""Comparisons as files: CSV, Markdown, LaTeX, JSON. Names and notes are text, so each format escapes them its way."""

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.errors import InputError, refused
from engine.runs.files import finite, write_named
from tui_transformer.lab.analysis.latex import document, tabular
from tui_transformer.lab.analysis.table import Table
from tui_transformer.lab.escaping import csv_cell, markdown_text


@dataclass(frozen=True)
class Format:
    """A way to write a comparison down."""

    name: str
    ending: str
    what: str
    write: Callable[[Table], str]


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
        _row([markdown_text(head) for head in table.heads]),
        _row(["---:" if column.right else ":---" for column in table.columns]),
        *(
            _row([_markdown_cell(cell, value) for cell, value in zip(cells, values, strict=True)])
            for cells, values in zip(table.rows, table.values, strict=True)
        ),
    ]
    return "\n".join(lines) + "\n"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_cell(cell: str, value: object) -> str:
    return cell.replace("-", "\u2212") if _is_number(value) else markdown_text(cell)


def to_json(table: Table) -> str:
    """An array of one object a run, keys as the filter knows them; null where there is no value."""
    keys = [column.key for column in table.columns]
    records = [finite(dict(zip(keys, values, strict=True))) for values in table.values]
    return json.dumps(records, ensure_ascii=True, indent=1, default=str) + "\n"


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
