"""Your own labelled texts, by path: a CSV file, or a folder with train.csv.

    news.csv      a text a row, perhaps .gz; `data.validation_fraction` and `data.test_fraction` are split off
    folder        train.csv, and perhaps validation.csv (or valid, val, dev) and test.csv

A first row that names a column `class`, `label` or `category` is a header; the text is then in the columns named in
`TEXTS`, or in all the others. Without a header the first column is the class. Several columns of text are joined by a
space. Where classes.txt stands beside the file, a name a line, classes may be numbers from 1.

Split-off rows are ordered by the hash of their text, so neither reordering nor adding rows moves the others.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.base.clean import clean_line
from engine.base.errors import InputError, invalid_path_error, join_or
from engine.base.language import english, tr
from engine.base.plain_files import open_regular_file
from engine.config.sections import DataConfig
from engine.data.corpus import SPLIT_ALIASES
from engine.data.documents.by_path import distinct_sorted_by_hash
from engine.data.labelled.corpus import LabelledCorpus, LabelledTexts
from engine.data.parallel.lines import NumberedLines, read_lines
from engine.data.sources import DEFAULT_FIELD

ENDINGS = (".csv", ".csv.gz")
TRAIN = "train.csv"
NAMES = "classes.txt"
CLASS = frozenset(("class", "label", "category", "class index"))
TEXTS = frozenset(("text", "title", "description", "sentence", "content", "headline", "body", "review"))
MAX_HEADER_BYTES = 1 << 16  # bytes of a first row that are looked at, at most
MAX_CLASSES = 1_000  # classes; more are not classes but, for example, numbers of rows
MIN_ROWS_PER_VALUE = 3  # rows per value of a column that repeats the class; with fewer, it may be chance
TextClassRows = list[tuple[str, str]]  # text and class
LabelledTable = tuple[TextClassRows, tuple[str, ...], str]  # the rows, and `notes` and `refused` of `LabelledCorpus`


def accepts_path(corpus: str) -> bool:
    """Return whether a path is a CSV file, or a folder with one to train on; not if its header names a text but no
    class: that is read as a text (`sources.py`).
    """
    path = Path(corpus).expanduser()
    inner = path / TRAIN
    if inner.is_file():
        return not _header_names_only_text(inner)
    return corpus.lower().endswith(ENDINGS) and not _header_names_only_text(path)


def _header_names_only_text(file: Path) -> bool:
    try:
        with open_regular_file(file) as opened:
            first = opened.readline(MAX_HEADER_BYTES).decode("utf-8-sig", "replace")
        heads = [cell.strip().casefold() for cell in next(csv.reader([first]), [])]
    except (OSError, ValueError, csv.Error):
        return False
    return CLASS.isdisjoint(heads) and (len(heads) == 1 or DEFAULT_FIELD in heads)


def load_path(data: DataConfig) -> LabelledCorpus:
    try:
        path = Path(data.corpus).expanduser()
        source, folder = str(path.resolve()), path.is_dir()
    except (OSError, ValueError, RuntimeError) as error:  # too long, a zero byte, ~nobody
        raise invalid_path_error(data.corpus, error) from None
    if folder and not (path / TRAIN).is_file():
        problem = tr(
            "{path}: no {train} in this folder; give a folder with one, or the path to a CSV file",
            path=path,
            train=TRAIN,
        )
        raise InputError(problem)
    home = path if folder else path.parent
    rows, notes, refused = read_table(path / TRAIN if folder else path)
    parts = {"train": rows}
    if folder:
        for split, stems in SPLIT_ALIASES.items():
            found = next((path / f"{stem}.csv" for stem in stems if (path / f"{stem}.csv").is_file()), None)
            if split != "train" and found is not None:
                parts[split] = read_table(found)[0]
    if "validation" not in parts:
        test = 0.0 if "test" in parts else data.test_fraction
        parts |= _split_rows(parts["train"], data.validation_fraction, test, str(path)[:200])
    classes = _sorted_classes(parts, home, str(path)[:200])
    numbers = {name: i for i, name in enumerate(classes)}
    splits: dict[str, LabelledTexts] = {
        split: LabelledTexts(
            tuple(text for text, _ in parts[split]), tuple(numbers[label] for _, label in parts[split])
        )
        for split in ("train", "validation", "test")
        if split in parts
    }
    name = path.resolve().name
    return LabelledCorpus(name, name, source, notes, _class_names(classes, home), splits, refusal=refused)


def read_labelled(path: Path, classes: Sequence[str]) -> LabelledTexts:
    """Return the rows of a CSV file whose classes are these, by name or, as in `load_path`, by number from 1."""
    rows = read_table(path)[0]
    labels = sorted({label for _, label in rows})
    names = dict(zip(labels, _class_names(labels, path.parent), strict=True))
    numbers = {name: i for i, name in enumerate(classes)}
    if not numbers.keys() & names.values():
        numbers = {str(i): i - 1 for i in range(1, len(classes) + 1)}
    unknown = [name for name in names.values() if name not in numbers]
    if unknown:
        problem = tr(
            "{file}: class '{unknown}' is not one of the run's classes; it must be {known}",
            file=str(path)[:200],
            unknown=unknown[0][:40],
            known=join_or(classes),
        )
        raise InputError(problem)
    return LabelledTexts(tuple(text for text, _ in rows), tuple(numbers[names[label]] for _, label in rows))


def read_table(path: Path) -> LabelledTable:
    """Return the texts and classes of a CSV file (RFC 4180), and what there is to say about its columns."""
    lines = read_lines(path)
    reader = csv.reader(io.StringIO("\n".join(lines.lines)), strict=True)
    rows: TextClassRows = []
    label: int | None = None
    columns: Sequence[int] = ()
    heads: Sequence[str] = ()
    notes: tuple[str, ...] = ()
    beside: dict[int, set[tuple[str, str]]] = {}  # by column: its values, each with a class of the same row
    while True:
        start = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise lines.error_at(max(reader.line_num, 1), tr("not CSV: {error}", error=error)) from None
        if cells is None:
            break
        if not cells:
            continue
        if label is None:
            label, columns, is_header = _find_columns(cells, lines)
            heads = [f"'{clean_line(cell)[:40]}'" if is_header else f"{i}" for i, cell in enumerate(cells, start=1)]
            beside = {column: set() for column in columns if len(columns) > 1}
            if is_header:
                if beside and TEXTS.isdisjoint(cells[column].strip().casefold() for column in columns):
                    said = english("the columns {joined} make up the text; to read only one, name it `text`")
                    notes = (said.format(joined=", ".join(heads[column] for column in columns)),)
                continue
        if len(cells) != len(heads):
            problem = tr("{n} columns, but the first row has {width}", n=len(cells), width=len(heads))
            raise lines.error_at(start, problem)
        text = " ".join(part for column in columns if (part := " ".join(cells[column].split())))
        name = cells[label].strip()
        if not text or not name:
            raise lines.error_at(start, tr("the text is empty; remove the row") if name else tr("the class is empty"))
        rows.append((text, name))
        for column, pairs in beside.items():
            pairs.add((cells[column].strip().casefold(), name))
        beside = {column: pairs for column, pairs in beside.items() if len(pairs) <= MAX_CLASSES}
    if not rows:
        raise lines.error_at(1, tr("no rows with a class and a text"))
    for column, pairs in beside.items():
        values, classes = map(set, zip(*pairs, strict=True))
        if 1 < len(values) == len(classes) == len(pairs) <= len(rows) / MIN_ROWS_PER_VALUE:
            wrong = tr("column {name} repeats the class; remove it, or name the text column `text`", name=heads[column])
            return rows, notes, str(lines.error_at(1, wrong))
    return rows, notes, ""


def _find_columns(first: Sequence[str], lines: NumberedLines) -> tuple[int, Sequence[int], bool]:
    """Return the column of the class, those of the text, and whether this row is a header."""
    if len(first) < 2:
        raise lines.error_at(1, tr("one column; a class and a text need a comma between them"))
    heads = [cell.strip().casefold() for cell in first]
    label = next((i for i, head in enumerate(heads) if head in CLASS), None)
    if label is None:
        return 0, range(1, len(first)), False
    named = [i for i, head in enumerate(heads) if head in TEXTS]
    return label, named or [i for i in range(len(first)) if i != label], True


def _split_rows(rows: TextClassRows, validation: float, test: float, where: str) -> dict[str, TextClassRows]:
    order = distinct_sorted_by_hash(text for text, _ in rows)
    held_out, tested = max(1, round(len(order) * validation)), max(1, round(len(order) * test)) if test else 0
    if held_out + tested >= len(order):
        raise InputError(
            tr("{where}: {n:,} distinct texts are too few to hold some out for validation", where=where, n=len(order))
        )
    place = dict.fromkeys(order[:held_out], "validation") | dict.fromkeys(order[held_out : held_out + tested], "test")
    parts: dict[str, TextClassRows] = {}
    for row in rows:
        parts.setdefault(place.get(row[0], "train"), []).append(row)
    return parts


def _sorted_classes(parts: Mapping[str, TextClassRows], home: Path, where: str) -> list[str]:
    found = {label for _, label in parts["train"]}
    if not 2 <= len(found) <= MAX_CLASSES:
        problem = tr(
            "{where}: {n:,} different classes in the training rows; there must be 2 to {most:,}",
            where=where,
            n=len(found),
            most=MAX_CLASSES,
        )
        raise InputError(problem)
    for split, rows in parts.items():
        if unknown := sorted({label for _, label in rows} - found):
            problem = tr(
                "{where}: class '{unknown}' appears in the {split} rows but not in training",
                where=where,
                unknown=unknown[0][:40],
                split=split,
            )
            raise InputError(problem)
    return sorted(found, key=lambda label: (int(label) if label.isdecimal() else -1, label))


def _class_names(classes: Sequence[str], home: Path) -> tuple[str, ...]:
    """Return the names of classes that are numbers, from classes.txt; others as they are."""
    file = home / NAMES
    if not file.is_file() or not all(label.isdecimal() for label in classes):
        return tuple(classes)
    names = read_lines(file).without_trailing_empty()
    if any(not 1 <= int(label) <= len(names) for label in classes):
        problem = tr(
            "{file}: {n} names, but the rows contain class {last}",
            file=str(file)[:200],
            n=len(names),
            last=classes[-1][:40],
        )
        raise InputError(problem)
    return tuple(names[int(label) - 1].strip() for label in classes)
