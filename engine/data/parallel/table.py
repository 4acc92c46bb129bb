"""Pairs in two columns of one tab-separated file (.tsv, .txt; also .gz).

A first line is a header if columns are asked for by name, or if both its cells are known headings ("en", "source",
"1" …). Tabs separate cells and nothing else does. A cell that a spreadsheet or pandas has quoted, with the quotation
marks inside it doubled, is unquoted; quotation marks in any other form are text.
"""

from collections.abc import Sequence
from pathlib import Path

from engine.base.errors import InputError, comma_separated, did_you_mean
from engine.base.language import tr
from engine.data.parallel.lines import NumberedLines
from engine.data.parallel.pairs import Pairs, complete_pairs, interleave_targets

# Language labels of files and columns: ISO 639-1 and 639-3 codes, and English names.
LANGUAGES = frozenset(Path(__file__).with_name("languages.txt").read_text(encoding="ascii").split())
SIDES = ("source", "target")
HEADINGS = LANGUAGES | {"source", "target", "src", "tgt", "trg", "reference", "translation", "sentence"}


def parse_pairs_and_languages(
    text: NumberedLines, columns: Sequence[str | int] = (1, 2)
) -> tuple[Pairs, tuple[str, ...]]:
    """Return the pairs of columns of tab-separated lines, named by number (from 1) or heading, and their languages.
    Of more than two, all but the first are target languages, and an empty cell is a missing translation.
    """
    lines = text.without_trailing_empty()
    first = [unquote(cell) for cell in lines[0].split("\t")]
    if len(first) < 2:
        problem = tr("one column; source and target need a tab between them, or a file each: --corpus a.en,b.de")
        raise text.error_at(1, problem)
    by_name = any(isinstance(column, str) for column in columns)
    places = [_column_index(text, first, column) for column in columns]
    if places[0] in places[1:]:
        problem = tr(
            "{where}: column {places} is chosen twice; choose one for each side", where=text.where, places=places[0] + 1
        )
        raise InputError(problem)
    header = by_name or _is_header(first, places[:2])
    if len(lines) == 1 and header:
        raise text.error_at(1, tr("a header and nothing below it"))
    rows = []
    for number, line in enumerate(lines[header:], start=1 + header):
        cells = line.split("\t")
        if len(cells) != len(first):
            shown = tr("an empty line") if not line.strip() else tr("{n} columns", n=len(cells))
            raise text.error_at(number, tr("{shown}, but line 1 has {n}", shown=shown, n=len(first)))
        row = [unquote(cells[place]) for place in places]
        empty = [(side, place) for side, place, cell in zip(SIDES, places, row, strict=False) if not cell.strip()]
        if empty and len(places) == 2:
            name, place = empty[0]
            problem = tr("column {place} ({name}) is empty; remove the line", place=place + 1, name=name)
            raise text.error_at(number, problem)
        rows.append(row)
    by_target = {}
    for i, column in enumerate(columns[1:], start=1):
        pairs, _ = complete_pairs((row[0], row[i]) for row in rows)
        if pairs.sources == pairs.targets:
            problem = tr(
                "{where}: columns {places} and {places2} contain the same text",
                where=text.where,
                places=places[0] + 1,
                places2=places[i] + 1,
            )
            raise InputError(problem)
        by_target[str(column)] = pairs
    if len(by_target) > 1:
        return interleave_targets(by_target), (str(columns[0]), *by_target)
    named = [first[place].strip().lower() for place in places] if header else SIDES
    return pairs, tuple(name if name in LANGUAGES else side for name, side in zip(named, SIDES, strict=True))


def unquote(cell: str) -> str:
    """Undo a CSV writer's quoting of a cell."""
    inside = cell[1:-1]
    if not (len(cell) > 3 and cell[0] == cell[-1] == '"' and '""' in inside):
        return cell
    return inside.replace('""', '"') if '"' not in inside.replace('""', "") else cell


def _column_index(text: NumberedLines, header: Sequence[str], column: str | int) -> int:
    if isinstance(column, int):
        if 1 <= column <= len(header):
            return column - 1
        raise text.error_at(1, tr("only {n} columns, so there is no column {column}", n=len(header), column=column))
    names = [name.strip() for name in header]
    if names.count(column) > 1:
        problem = tr(
            "{count} columns are named {column!r}; choose one by number", count=names.count(column), column=column[:40]
        )
        raise text.error_at(1, problem)
    if column in names:
        return names.index(column)
    listed = comma_separated(repr(name[:40]) for name in names[:8])
    hint = did_you_mean(column, names[:1000]) or tr("; the columns are {value}", value=listed)
    raise text.error_at(1, tr("no column named {column!r}{hint}", column=column[:40], hint=hint))


def _is_header(first: Sequence[str], places: Sequence[int]) -> bool:
    """Return whether both cells are headings, or the columns' own numbers."""
    cells = [first[place].strip() for place in places]
    # "It" and "No" are more likely sentences than languages.
    headings = [cell.lower() in HEADINGS and (len(cell) > 3 or cell in (cell.lower(), cell.upper())) for cell in cells]
    return all(headings) or cells == [str(place + 1) for place in places]
