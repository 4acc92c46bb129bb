"""Pairs in two fields of rows: .jsonl, .csv with a header, or .parquet; one file, or a folder with a file per split.

    news.jsonl#article,summary
    folder#article,highlights   train.csv, validation.csv …; also train-00000-of-00003.parquet and the like

A text of several lines becomes one line. Rows with nothing in one of the fields are left out, and counted.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from engine.data.parallel.lines import Lines, side_by_side, uneven
from engine.data.parallel.pairs import Pairs
from engine.data.sources import READERS, documents
from engine.errors import InputError
from engine.language import tr, trn


def has_fields(path: Path) -> bool:
    return path.suffix.lower() in READERS


def read_fields(files: Iterable[Path], fields: Sequence[str]) -> tuple[Pairs, int]:
    """Return the pairs of some files, and how many rows were left out. `InputError`: with the file and its line."""
    if fields[0] == fields[1]:
        raise InputError(tr("the field {field!r} is chosen twice; choose one for each side", field=fields[0][:40]))
    sides: tuple[list[str], list[str]] = ([], [])
    left_out = 0
    for file in files:
        for rows in zip(*(documents(file, field, lines=True) for field in fields), strict=True):
            source, target = (" ".join("".join(row).split()) for row in rows)
            if source and target:
                sides[0].append(source)
                sides[1].append(target)
            else:
                left_out += 1
    return Pairs(tuple(sides[0]), tuple(sides[1])), left_out


def filled(source: Lines, target: Lines) -> tuple[Pairs, int]:
    """Return the pairs of two files, leaving out those with an empty side, and how many were left out."""
    sides = side_by_side(source, target)
    if len(sides[0]) != len(sides[1]):
        raise uneven(source, target, *map(len, sides))
    kept = [pair for pair in zip(*sides, strict=True) if all(side.strip() for side in pair)]
    return Pairs(tuple(one for one, _ in kept), tuple(other for _, other in kept)), len(sides[0]) - len(kept)


def note_of(left_out: int) -> tuple[str, ...]:
    said = trn("{n:,} row with an empty side is left out", "{n:,} rows with an empty side are left out", left_out)
    return (said,) if left_out else ()
