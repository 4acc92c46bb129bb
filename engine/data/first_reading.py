"""How version 1 cut tables into rows, for runs that recorded no version (`text_files.Reading`) and for nothing else.

A row of a CSV ended at any of the characters at which `str.splitlines` does, and quotation marks around a question were
part of it. Also, the first object of JSON lines alone decided which field is the text (`tables.py`).
"""

import csv
from collections.abc import Iterator
from pathlib import Path

from engine.base.language import tr
from engine.data.text_files import FIRST, LONGEST_LINE, Reading, cut_lines, read_pieces, row_error


def read_csv(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a CSV with the numbers of their last lines."""
    csv.field_size_limit(LONGEST_LINE)
    rows = csv.reader(_all_lines(path), strict=True)
    try:
        yield from ((rows.line_num, cells) for cells in rows)
    except csv.Error as error:
        raise row_error(str(path)[:200], rows.line_num, tr("not a CSV row: {error}", error=error)) from None


def _all_lines(path: Path) -> Iterator[str]:
    held = ""
    for piece in read_pieces(path, Reading(FIRST)):
        *ended, held = (held + piece).splitlines(keepends=True)
        yield from ended
    yield held


def read_tabs(path: Path) -> Iterator[tuple[int, list[str]]]:
    lines = cut_lines(read_pieces(path, Reading(FIRST)), str(path)[:200])
    return ((number, line.removesuffix("\r").split("\t")) for number, line in enumerate(lines, start=1))
