"""Tables: rows of delimited text, JSON or Parquet, read one after the other. No torch here.

    .csv                a table; semicolons or tabs separate its cells where commas do not
    .tsv                a table; tabs separate its cells, and quotation marks are text unless every cell is quoted
    .jsonl .json        one object per line, or an array of objects; also .ndjson
    .parquet            with pyarrow

All but the last may be packed (`text_files.py`). Rows of delimited text end at a line feed outside quotation marks, and
nowhere else. A nested field has a dotted path, as in `message.text`.
"""

import csv
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial, reduce
from itertools import chain, islice
from pathlib import Path, PurePath
from typing import Any

from engine.base.errors import InputError, comma_separated, did_you_mean, reason
from engine.base.language import Message, tr
from engine.base.plain_files import open_regular_file
from engine.data import first_reading
from engine.data.text_files import (
    FIRST,
    LONGEST_LINE,
    Reading,
    cut_lines,
    read_pieces,
    require_plausible_size,
    row_error,
    too_long_error,
    without_packing,
)

DEFAULT_FIELD = "text"  # the field that is read if none is named
SAMPLED_ROWS, SAMPLED_CHARACTERS = 100, 1 << 20  # first rows, to tell what a table is like, and their length
DELIMITERS = {
    ",": "",
    ";": Message("semicolons separate the cells of {file}"),
    "\t": Message("tabs separate the cells of {file}"),
}
MOST_ROWS, BATCH_BYTES = 256, 1 << 22  # of Parquet, read at once
Row = tuple[int, list[str]]  # the number of its first line, and its cells


# --- delimited text


def read_delimited(path: Path, reading: Reading | None = None, delimiter: str = "") -> Iterator[Row]:
    """Yield the rows of a file of delimited text. Raises as `read_pieces` and `parse_delimited`."""
    where = str(path)[:200]
    lines = cut_lines(read_pieces(path, reading), where)
    return parse_delimited(lines, where, reading, delimiter)


def parse_delimited(
    lines: Iterator[str], where: str, reading: Reading | None = None, delimiter: str = ""
) -> Iterator[Row]:
    """Yield the rows of delimited text, a header too; blank lines have no cells. Without a delimiter, it is the first
    of `DELIMITERS` that cuts each of the first rows into as many cells, at least two. `InputError`: with the line.
    """
    reading, first = reading or Reading(), list(_first_lines(lines))
    name = PurePath(where).name
    if not delimiter and reading.version == FIRST:
        delimiter = ","
    elif not delimiter:
        delimiter = next((one for one in DELIMITERS if _is_cut_evenly(first, one)), ",")
        if DELIMITERS[delimiter]:
            reading.add_note(DELIMITERS[delimiter].format(file=name))
    elif reading.version > FIRST and _all_cells_are_quoted(first):
        reading.add_note(Message("every cell of {file} is quoted; the quotation marks are left out", file=name))
    else:
        for number, line in enumerate(chain(first, lines), start=1):
            line = line.removesuffix("\r")
            yield number, [unquote(cell) for cell in line.split("\t")] if line.strip(" ") else []
        return
    yield from _parse_rows(chain(first, lines), where, delimiter)


def _first_lines(lines: Iterator[str]) -> Iterator[str]:
    length = 0
    for line in islice(lines, SAMPLED_ROWS):
        yield line
        length += len(line)
        if length > SAMPLED_CHARACTERS:
            return


def _parse_rows(lines: Iterable[str], where: str, delimiter: str) -> Iterator[Row]:
    csv.field_size_limit(LONGEST_LINE)
    # Python's reader would end a row at a carriage return too; there are no zero characters in a text.
    rows = csv.reader((_LONE_CR.sub("\0", line) + "\n" for line in lines), delimiter=delimiter, strict=True)
    while True:
        number = rows.line_num + 1
        try:
            cells = next(rows, None)
        except csv.Error as error:
            raise row_error(where, max(rows.line_num, 1), tr("not a CSV row: {error}", error=error)) from None
        if cells is None:
            return
        if sum(map(len, cells)) > LONGEST_LINE:
            raise too_long_error(where, number, LONGEST_LINE)
        yield number, [cell.replace("\0", "\r") for cell in cells]


_LONE_CR = re.compile(r"\r(?!$)")


def _is_cut_evenly(lines: Sequence[str], delimiter: str) -> bool:
    widths = set()
    try:
        for _, cells in _parse_rows(lines, "", delimiter):
            widths.add(len(cells) if cells else None)
    except InputError:  # a row goes on after these lines, or its cells are quoted differently
        if '"' not in lines[-1]:
            return False
    widths.discard(None)
    return len(widths) == 1 and widths != {1}


def _all_cells_are_quoted(lines: Sequence[str]) -> bool:
    """Return whether a writer quoted every cell, or all but numbers: then tabs and line feeds may be within them."""
    rows: list[str] = []
    held = ""
    for line in lines:
        held += line.removesuffix("\r") + "\n"
        if held.count('"') % 2 == 0:
            rows, held = [*rows, held], ""
    return bool(rows) and all(map(_QUOTED_ROW.fullmatch, rows))


_CELL = r'(?:"(?:[^"]|"")*"|-?[0-9.]+)'
_QUOTED_ROW = re.compile(rf'(?=[^\n]*"){_CELL}(?:\t{_CELL})+\n|\n')


def unquote(cell: str) -> str:
    """Undo a CSV writer's quoting of a cell with quotation marks in it."""
    inside = cell[1:-1]
    if not (len(cell) > 3 and cell[0] == cell[-1] == '"' and '""' in inside):
        return cell
    return inside.replace('""', '"') if '"' not in inside.replace('""', "") else cell


def without_final_blanks(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield rows up to the last that is not blank."""
    held: list[Row] = []
    for row in rows:
        held.append(row)
        if any(map(str.strip, row[1])):
            yield from held
            held = []


# --- columns by name

Cells = tuple[int, list[str]]  # the number of a row, and what it has in each column; "" for nothing
Reader = Callable[[Path, Sequence[str | None], Reading], Iterator[Cells]]


def _read_delimited_columns(
    path: Path, names: Sequence[str | None], reading: Reading, delimiter: str = ""
) -> Iterator[Cells]:
    where, first = str(path)[:200], reading.version == FIRST and not delimiter
    rows = first_reading.read_csv(path) if first else read_delimited(path, reading, delimiter)
    _, header = next(rows, (1, []))
    chosen = [name or choose_field(header, where) for name in names]
    for name in chosen:
        if header.count(name) != 1:
            raise no_field_error(where, 1, name, header)
    places = [header.index(name) for name in chosen]
    for number, cells in rows:
        if cells and len(cells) != len(header):
            problem = tr("{n} columns, but the header has {n2}", n=len(cells), n2=len(header))
            raise row_error(where, number, problem)
        yield number, [cells[place] for place in places] if cells else [""] * len(places)


def _read_json_columns(path: Path, names: Sequence[str | None], reading: Reading) -> Iterator[Cells]:
    where = str(path)[:200]
    rows = _read_json_objects(path, reading)
    first = list(islice(rows, 1 if reading.version == FIRST else SAMPLED_ROWS))
    texts = _text_fields([row for _, row in first])
    chosen = [name or choose_field(texts, where) for name in names]
    for name in chosen:
        if first and all(_field(row, name) is _MISSING for _, row in first):
            raise no_field_error(where, first[0][0], name, list(dict.fromkeys(key for _, row in first for key in row)))
    for number, row in chain(first, rows):
        cells = [_field(row, name) for name in chosen]
        for name, cell in zip(chosen, cells, strict=True):
            if not (cell is None or cell is _MISSING or isinstance(cell, str)):
                raise row_error(where, number, tr("field {field!r} is not text", field=name[:40]))
        yield number, [refuse_surrogates(cell, where, number) if isinstance(cell, str) else "" for cell in cells]


_MISSING: Any = object()


def _field(row: Any, path: str) -> Any:
    """Return what an object has in a field, which may be within others; `_MISSING` if nothing."""
    if isinstance(row, dict) and path in row:
        return row[path]
    outer, dot, inner = path.partition(".")
    if isinstance(row, list) and outer.isdecimal() and int(outer) < len(row):
        return _field(row[int(outer)], inner) if dot else row[int(outer)]
    return _field(row[outer], inner) if dot and isinstance(row, dict) and outer in row else _MISSING


def _text_fields(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return the fields that are text in at least one row, and text, null or missing in the others."""
    values: dict[str, list[Any]] = {}
    for row in rows:
        for name, value in row.items():
            values.setdefault(name, []).append(value)
    of_text = (name for name, found in values.items() if all(isinstance(value, str | None) for value in found))
    return [name for name in of_text if any(isinstance(value, str) for value in values[name])]


def _read_json_objects(path: Path, reading: Reading) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a file, with the lines that they begin on."""
    where = str(path)[:200]
    lines = cut_lines(read_pieces(path, reading), where)
    numbered = ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    number, first = next(numbered, (1, ""))
    if first.lstrip().startswith("["):
        reading.add_note(Message("read as a JSON array of objects: {file}", file=path.name))
        found = _parse_array(chain([first.lstrip()[1:]], lines), where, number)
    else:
        found = _parse_lines(chain([first], lines), where, number)
    for number, row in found:
        if not isinstance(row, dict):
            raise _not_object_error(where, number)
        yield number, row


def _parse_lines(lines: Iterable[str], where: str, start: int) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(lines, start=start):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError):
                raise _not_object_error(where, number) from None


def _parse_array(lines: Iterable[str], where: str, number: int) -> Iterator[tuple[int, Any]]:
    """Yield the values of an array whose bracket is open, without reading it whole."""
    decoder, held, at, wanted = json.JSONDecoder(), "", 0, 0
    for line in chain(lines, (None,)):
        if line is not None:
            held, at = held[at:] + line + "\n", 0
            if len(held) < wanted:
                continue  # a value that was not complete is tried again when there is twice as much of it
        while (start := _BETWEEN.match(held, at).end()) < len(held):  # type: ignore[union-attr]
            number, at = number + held.count("\n", at, start), start
            if held[at] == "]":
                return
            try:
                value, end = decoder.raw_decode(held, at)
            except (ValueError, RecursionError):
                wanted = 2 * (len(held) - at)
                break
            yield number, value
            number, at, wanted = number + held.count("\n", at, end), end, 0
        if len(held) - at > LONGEST_LINE:
            raise too_long_error(where, number, LONGEST_LINE)
    raise _not_object_error(where, number)


_BETWEEN = re.compile(r"[ \t\r\n,]*")  # values of an array


def _not_object_error(where: str, number: int) -> InputError:
    return row_error(where, number, tr("not a JSON object; each line must be one, or the file an array of them"))


def refuse_surrogates(text: str, where: str, number: int) -> str:
    """Refuse a lone surrogate, which JSON can escape: no file could hold the text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise row_error(where, number, tr("a lone surrogate is not text")) from None
    return text


def _read_parquet_columns(path: Path, names: Sequence[str | None], reading: Reading) -> Iterator[Cells]:
    where = str(path)[:200]
    try:
        import pyarrow as arrow  # an extra
        from pyarrow import parquet
    except ImportError:
        raise InputError(
            Message("{path}: reading .parquet needs pyarrow: run pip install 'tui-transformer[parquet]'", path=where)
        ) from None
    number = unpacked = 0
    try:
        with open_regular_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            schema = parquet.read_schema(file)
            texts = [
                name
                for name, kind in _leaves(schema)
                if arrow.types.is_string(kind) or arrow.types.is_large_string(kind)
            ]
            chosen = [name or choose_field(texts, where) for name in names]
            for name in chosen:
                if name not in texts:
                    raise no_field_error(where, 1, name, texts)
            # Read as dictionaries, so that a value that many rows have is in memory once.
            table = parquet.ParquetFile(file, read_dictionary=chosen)
            for group in range(table.num_row_groups):
                facts = table.metadata.row_group(group)
                columns = [facts.column(i) for i in range(facts.num_columns)]
                held = sum(one.total_uncompressed_size for one in columns if one.path_in_schema in chosen)
                require_plausible_size(held, size, where)
                rows = max(1, min(MOST_ROWS, BATCH_BYTES * facts.num_rows // max(1, held)))
                for batch in table.iter_batches(rows, row_groups=[group], columns=chosen):
                    texts_of = [_column(batch, name) for name in chosen]
                    for place in range(batch.num_rows):
                        number += 1
                        cells = [column[place].as_py() or "" for column in texts_of]
                        unpacked += sum(map(len, cells))
                        require_plausible_size(unpacked, size, where)
                        yield number, cells
    except UnicodeDecodeError:
        raise row_error(where, number, tr("not UTF-8")) from None
    except arrow.ArrowException as error:
        said = str(error).partition("\n")[0][:200]
        raise InputError(Message("{path}: not a Parquet file, or damaged: {error}", path=where, error=said)) from None
    except OSError as error:
        raise InputError(Message("{path}: cannot be read: {why}", path=where, why=reason(error))) from None


def _leaves(fields: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the paths and types of a schema's fields that have no fields in them."""
    for field in fields:
        if field.type.num_fields:
            inner = [field.type.field(i) for i in range(field.type.num_fields)]
            yield from _leaves(inner, f"{before}{field.name}.")
        else:
            yield before + field.name, field.type


def _column(batch: Any, path: str) -> Any:
    from pyarrow import compute

    outer, *inner = path.split(".") if path not in batch.schema.names else [path]
    return reduce(compute.struct_field, inner, batch.column(outer))


READERS: dict[str, Reader] = {
    ".jsonl": _read_json_columns,
    ".ndjson": _read_json_columns,
    ".json": _read_json_columns,
    ".csv": _read_delimited_columns,
    ".tsv": partial(_read_delimited_columns, delimiter="\t"),
    ".parquet": _read_parquet_columns,
}


def table_suffix(path: PurePath) -> str:
    """Return the suffix in `READERS` that says what kind of table a file is, packed or not; "" if it is none."""
    suffix = without_packing(path).suffix.lower()
    return suffix if suffix in READERS else ""


def read_columns(path: Path, names: Sequence[str | None], reading: Reading) -> Iterator[Cells]:
    """Yield what each row of a table has in some columns; None stands for the one named "text", or else the only one
    with text. `InputError`: with the file, and its line or row.
    """
    return READERS[table_suffix(path)](path, names, reading)


def choose_field(texts: list[str], where: str) -> str:
    """Return the column to read where none was named."""
    if DEFAULT_FIELD in texts:
        return DEFAULT_FIELD
    if len(texts) == 1:
        return texts[0]
    if not texts:
        raise row_error(where, 1, tr("no field has text"))
    names = comma_separated(name[:40] for name in texts[:8])
    problem = Message(
        "{path}: which field is the text? Choose one of {names}, as in {path}:{first}",
        path=where,
        names=names,
        first=texts[0][:40],
    )
    raise InputError(problem)


def no_field_error(where: str, number: int, field: str, names: list[str]) -> InputError:
    listed = comma_separated(name[:40] for name in names[:8])
    hint = did_you_mean(field, names[:1000]) or tr("; the fields are {names}", names=listed)
    return row_error(where, number, tr("no field named {field!r}{hint}", field=field[:40], hint=hint))
