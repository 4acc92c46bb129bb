"""How version 1 read tables, for runs that recorded no version (`text_files.Reading`); nothing else may use it.

A row of a CSV ended at any of the characters at which `str.splitlines` does, the first object of JSON lines alone said
which field is the text, and quotation marks around a question were part of it.
"""

import codecs
import csv
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO

from engine.base.errors import InputError, reason
from engine.base.language import tr
from engine.base.plain_files import open_regular_file
from engine.data.tables import Row, choose_field, no_field_error, require_characters
from engine.data.text_files import FIRST, LONGEST_LINE, Reading, cut_lines, read_pieces, row_error

Reader = Callable[[IO[bytes], str, str | None], Iterator[str]]


def _read_jsonl(file: IO[bytes], where: str, field: str | None) -> Iterator[str]:
    number = 0
    while raw := file.readline(LONGEST_LINE):
        number += 1
        line = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):  # also undecodable bytes
            raise row_error(where, number, tr("not a JSON object; each line must be one")) from None
        if not isinstance(row, dict):
            raise row_error(where, number, tr("not a JSON object; each line must be one"))
        field = field or choose_field([name for name, value in row.items() if isinstance(value, str)], where)
        if field not in row:
            raise no_field_error(where, number, field, [str(name) for name in row])
        text = row[field]
        if text is not None and not isinstance(text, str):
            raise row_error(where, number, tr("field {field!r} is not text", field=field[:40]))
        yield require_characters(text or "", where, number)


def _read_csv(file: IO[bytes], where: str, field: str | None) -> Iterator[str]:
    csv.field_size_limit(LONGEST_LINE)
    rows = csv.reader(codecs.getreader("utf-8-sig")(file), strict=True)
    try:
        header = next(rows, [])
        field = field or choose_field(header, where)
        if header.count(field) != 1:
            raise no_field_error(where, 1, field, header)
        place = header.index(field)
        for row in rows:
            if row and len(row) != len(header):
                problem = tr("{n} columns, but the header has {n2}", n=len(row), n2=len(header))
                raise row_error(where, rows.line_num, problem)
            yield row[place] if row else ""
    except UnicodeDecodeError:
        raise row_error(where, rows.line_num + 1, tr("not UTF-8; convert the file to UTF-8")) from None
    except csv.Error as error:
        raise row_error(where, rows.line_num, tr("not a CSV row: {error}", error=error)) from None


def _read(reader: Reader, path: Path, field: str | None) -> Iterator[str]:
    where = str(path)[:200]
    try:
        with open_regular_file(path) as file:
            yield from reader(file, where, field)
    except (OSError, ValueError) as error:
        raise InputError(tr("{where}: cannot be read: {why}", where=where, why=reason(error))) from None


READERS = {".jsonl": partial(_read, _read_jsonl), ".csv": partial(_read, _read_csv)}


def read_tabs(path: Path) -> Iterator[Row]:
    lines = cut_lines(read_pieces(path, Reading(FIRST)), str(path)[:200])
    return ((number, line.removesuffix("\r").split("\t")) for number, line in enumerate(lines, start=1))
