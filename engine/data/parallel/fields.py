"""Pairs in two fields of rows: .jsonl, .csv with a header, or .parquet; one file, or a folder with a file per split.

    news.jsonl#article,summary
    folder#article,highlights   train.csv, validation.csv …; also train-00000-of-00003.parquet and the like

A text of several lines becomes one line. Rows with nothing in one of the fields are left out, and counted.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

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


def note_of(left_out: int) -> tuple[str, ...]:
    said = trn("{n:,} row with an empty side is left out", "{n:,} rows with an empty side are left out", left_out)
    return (said,) if left_out else ()
