"""Pairs in two columns of one tab-separated file (.tsv, .txt; also .gz).

A first line is a header if columns are asked for by name, or if both its cells are known headings ("en", "source",
"1" …). `tables.py` says how lines are cut into cells.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

from engine.base.errors import InputError, comma_separated, did_you_mean
from engine.base.language import tr
from engine.data.parallel.pairs import Pairs, complete_pairs, interleave_targets
from engine.data.tables import Row, without_final_blanks
from engine.data.text_files import row_error

# Language labels of files and columns: ISO 639-1 and 639-3 codes, and English names.
LANGUAGES = frozenset(Path(__file__).with_name("languages.txt").read_text(encoding="ascii").split())
SIDES = ("source", "target")
HEADINGS = LANGUAGES | {"source", "target", "src", "tgt", "trg", "reference", "translation", "sentence"}


def parse_pairs_and_languages(
    rows: Iterable[Row], where: str, columns: Sequence[str | int] = (1, 2)
) -> tuple[Pairs, tuple[str, ...]]:
    """Return the pairs of columns of a table, named by number (from 1) or heading, and their languages. Of more than
    two, all but the first are target languages, and an empty cell is a missing translation.
    """
    rows = without_final_blanks(rows)
    start, first = next(rows, (1, []))
    if len(first) < 2:
        problem = tr("one column; source and target need a tab between them, or a file each: --corpus a.en,b.de")
        raise row_error(where, start, problem)
    by_name = any(isinstance(column, str) for column in columns)
    places = [_column_index(where, first, column) for column in columns]
    if places[0] in places[1:]:
        problem = tr(
            "{where}: column {places} is chosen twice; choose one for each side", where=where, places=places[0] + 1
        )
        raise InputError(problem)
    header = by_name or _is_header(first, places[:2])
    chosen = []
    for number, cells in rows if header else chain([(start, first)], rows):
        if len(cells) != len(first):
            shown = tr("{n} columns", n=len(cells)) if cells else tr("an empty line")
            raise row_error(where, number, tr("{shown}, but line 1 has {n}", shown=shown, n=len(first)))
        row = [cells[place].replace("\n", " ") for place in places]
        empty = [(side, place) for side, place, cell in zip(SIDES, places, row, strict=False) if not cell.strip()]
        if empty and len(places) == 2:
            name, place = empty[0]
            problem = tr("column {place} ({name}) is empty; remove the line", place=place + 1, name=name)
            raise row_error(where, number, problem)
        chosen.append(row)
    if not chosen:
        raise row_error(where, start, tr("a header and nothing below it"))
    by_target = {}
    for i, column in enumerate(columns[1:], start=1):
        pairs, _ = complete_pairs((row[0], row[i]) for row in chosen)
        if pairs.sources == pairs.targets:
            problem = tr(
                "{where}: columns {places} and {places2} contain the same text",
                where=where,
                places=places[0] + 1,
                places2=places[i] + 1,
            )
            raise InputError(problem)
        by_target[str(column)] = pairs
    if len(by_target) > 1:
        return interleave_targets(by_target), (str(columns[0]), *by_target)
    named = [first[place].strip().lower() for place in places] if header else SIDES
    return pairs, tuple(name if name in LANGUAGES else side for name, side in zip(named, SIDES, strict=True))


def _column_index(where: str, header: Sequence[str], column: str | int) -> int:
    if isinstance(column, int):
        if 1 <= column <= len(header):
            return column - 1
        raise row_error(where, 1, tr("only {n} columns, so there is no column {column}", n=len(header), column=column))
    names = [name.strip() for name in header]
    if names.count(column) > 1:
        problem = tr(
            "{count} columns are named {column!r}; choose one by number", count=names.count(column), column=column[:40]
        )
        raise row_error(where, 1, problem)
    if column in names:
        return names.index(column)
    listed = comma_separated(repr(name[:40]) for name in names[:8])
    hint = did_you_mean(column, names[:1000]) or tr("; the columns are {value}", value=listed)
    raise row_error(where, 1, tr("no column named {column!r}{hint}", column=column[:40], hint=hint))


def _is_header(first: Sequence[str], places: Sequence[int]) -> bool:
    """Return whether both cells are headings, or the columns' own numbers."""
    cells = [first[place].strip() for place in places]
    # "It" and "No" are more likely sentences than languages.
    headings = [cell.lower() in HEADINGS and (len(cell) > 3 or cell in (cell.lower(), cell.upper())) for cell in cells]
    return all(headings) or cells == [str(place + 1) for place in places]
