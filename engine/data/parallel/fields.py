"""Pairs in two fields of rows: .jsonl, .csv with a header, or .parquet; one file, or a folder with a file per split.

    news.jsonl#article,summary
    folder#article,highlights   train.csv, validation.csv …; also train-00000-of-00003.parquet and the like

A text of several lines becomes one line. Rows with nothing in one of the fields are left out, and counted.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path

from engine.base.errors import InputError
from engine.base.language import Message, trn
from engine.data.parallel.pairs import Pairs, complete_pairs
from engine.data.tables import read_columns, table_suffix
from engine.data.text_files import Reading


def has_fields(path: Path) -> bool:
    return table_suffix(path) not in ("", ".tsv")


def read_fields(
    files: Mapping[str, Sequence[Path]],
    fields: Sequence[str],
    most: Callable[[str], int | None] = lambda split: None,
    reading: Reading | None = None,
) -> tuple[dict[str, Pairs], tuple[str, ...]]:
    """Return the pairs of each split's files, the first `most` or all, and a note if rows were left out. `InputError`:
    with the file, and its line or row.
    """
    how = reading or Reading()
    read = {split: _read_pairs(found, fields, most(split), how) for split, found in files.items()}
    left_out = sum(n for _, n in read.values())
    return {split: pairs for split, (pairs, _) in read.items()}, left_out_note(left_out)


def _read_pairs(files: Iterable[Path], fields: Sequence[str], most: int | None, reading: Reading) -> tuple[Pairs, int]:
    if fields[0] == fields[1]:
        raise InputError(Message("the field {field!r} is chosen twice; choose one for each side", field=fields[0][:40]))
    rows = chain.from_iterable(read_columns(file, fields, reading) for file in files)
    lines = ([" ".join(cell.split()) for cell in cells] for _, cells in rows)
    return complete_pairs(((source, target) for source, target in lines), most)


def left_out_note(left_out: int) -> tuple[str, ...]:
    said = trn("{n:,} row with an empty side is left out", "{n:,} rows with an empty side are left out", left_out)
    return (said,) if left_out else ()
