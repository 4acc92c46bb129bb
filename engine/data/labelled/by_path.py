"""Your own labelled texts, by path: a CSV file, or a folder with train.csv.

    news.csv      a text a row, perhaps .gz; `data.validation_fraction` and `data.test_fraction` are split off
    folder        train.csv, and perhaps validation.csv (or valid, val, dev) and test.csv

A first row that names a column `class`, `label` or `category` is a header; the text is then in the columns named in
`TEXTS`, or in all the others. Without a header the first column is the class. Several columns of text are joined by a
space. If classes.txt stands beside the file, one name per line, classes may be numbers, counted from 0 if
a row has class 0, else from 1.

Split-off rows are ordered by the hash of their text, so neither reordering nor adding rows moves the others.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath

from engine.base.clean import clean_line
from engine.base.errors import InputError, invalid_path_error, join_or
from engine.base.language import Message, tr
from engine.config.sections import DataConfig
from engine.data.corpus import SPLIT_ALIASES
from engine.data.documents.by_path import distinct_sorted_by_hash
from engine.data.labelled.corpus import LabelledCorpus, LabelledTexts
from engine.data.parallel.lines import read_lines
from engine.data.tables import DEFAULT_FIELD, parse_delimited, read_delimited
from engine.data.text_files import (
    FIRST,
    LATEST,
    Reading,
    cut_lines,
    read_blocks,
    row_error,
    without_packing,
)

TRAIN = "train.csv"
NAMES = "classes.txt"
CLASS = frozenset(("class", "label", "category", "class index"))
TEXTS = frozenset(("text", "title", "description", "sentence", "content", "headline", "body", "review"))
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
    return without_packing(path).suffix.lower() == ".csv" and not _header_names_only_text(path)


def _header_names_only_text(file: Path) -> bool:
    try:
        raw = next(read_blocks(file), b"").replace(b"\0", b"")  # whatever the encoding: only ASCII is looked for
        _, header = next(parse_delimited(cut_lines([raw.decode("ascii", "ignore")], ""), ""), (1, []))
    except InputError:
        return False
    heads = [cell.strip().casefold() for cell in header]
    return CLASS.isdisjoint(heads) and (len(heads) == 1 or DEFAULT_FIELD in heads)


def load_path(data: DataConfig, version: int = LATEST) -> LabelledCorpus:
    reading = Reading.of(data, version)
    try:
        path = Path(data.corpus).expanduser()
        source, folder = str(path.resolve()), path.is_dir()
    except (OSError, ValueError, RuntimeError) as error:  # too long, a zero byte, ~nobody
        raise invalid_path_error(data.corpus, error) from None
    if folder and not (path / TRAIN).is_file():
        problem = Message(
            "{path}: no {train} in this folder; give a folder with one, or the path to a CSV file",
            path=path,
            train=TRAIN,
        )
        raise InputError(problem)
    home = path if folder else path.parent
    rows, notes, refused = read_table(path / TRAIN if folder else path, reading)
    parts = {"train": rows}
    if folder:
        for split, stems in SPLIT_ALIASES.items():
            found = next((path / f"{stem}.csv" for stem in stems if (path / f"{stem}.csv").is_file()), None)
            if split != "train" and found is not None:
                parts[split] = read_table(found, reading)[0]
    if "validation" not in parts:
        test = 0.0 if "test" in parts else data.test_fraction
        parts |= _split_rows(parts["train"], data.validation_fraction, test, str(path)[:200])
    classes = _sorted_classes(parts, str(path)[:200])
    numbers = {name: i for i, name in enumerate(classes)}
    splits: dict[str, LabelledTexts] = {
        split: LabelledTexts(
            tuple(text for text, _ in parts[split]), tuple(numbers[label] for _, label in parts[split])
        )
        for split in ("train", "validation", "test")
        if split in parts
    }
    name = path.resolve().name
    names = _class_names(classes, home, reading)
    return LabelledCorpus(name, name, source, notes, names, splits, refusal=refused, reading=reading)


def read_labelled(path: Path, classes: Sequence[str], reading: Reading) -> LabelledTexts:
    """Return the rows of a CSV file whose classes are these, by name, or by number as `load_path` counts them: from 0
    if a row has class 0, else from 1. `InputError`: another name, or numbers that fit either way of counting.
    """
    rows = read_table(path, reading)[0]
    labels = sorted({label for _, label in rows})
    where, numbers = str(path)[:200], {name: i for i, name in enumerate(classes)}
    if not numbers.keys() & set(labels) and all(map(str.isdecimal, labels)):
        if (path.parent / NAMES).is_file():
            names = dict(zip(labels, _class_names(labels, path.parent, reading), strict=True))
            rows = [(text, names[label]) for text, label in rows]
            labels = sorted(set(names.values()))
        else:
            numbers = _class_numbers(labels, classes, where, reading)
    unknown = next((label for label in labels if label not in numbers), None)
    if unknown is not None:
        problem = Message(
            "{file}: class '{unknown}' is not one of the run's classes; it must be {known}",
            file=where,
            unknown=unknown[:40],
            known=join_or(classes),
        )
        raise InputError(problem)
    return LabelledTexts(tuple(text for text, _ in rows), tuple(numbers[label] for _, label in rows))


def _class_numbers(labels: Sequence[str], classes: Sequence[str], where: str, reading: Reading) -> dict[str, int]:
    """Return the classes by number. `InputError`: neither way of counting is ruled out."""
    from_zero, from_one = "0" in labels, str(len(classes)) in labels
    if not (from_zero or from_one):
        problem = Message(
            "{file}: its classes are numbers, which could be counted from 0 or from 1; use their names: {known}",
            file=where,
            known=join_or(classes),
        )
        raise InputError(problem)
    start = 0 if from_zero else 1
    name = PurePath(where).name
    reading.add_note(Message("the classes of {file} are counted from {start}", file=name, start=start))
    return {str(i + start): i for i in range(len(classes))}


def read_table(path: Path, reading: Reading | None = None) -> LabelledTable:
    """Return the texts and classes of a CSV file (RFC 4180), and what there is to say about its columns."""
    where = str(path)[:200]
    rows: TextClassRows = []
    label: int | None = None
    columns: Sequence[int] = ()
    heads: Sequence[str] = ()
    notes: tuple[str, ...] = ()
    beside: dict[int, set[tuple[str, str]]] = {}  # by column: its values, each with a class of the same row
    for number, cells in read_delimited(path, reading):
        if not cells:
            continue
        if label is None:
            label, columns, is_header = _find_columns(cells, where)
            heads = [f"'{clean_line(cell)[:40]}'" if is_header else f"{i}" for i, cell in enumerate(cells, start=1)]
            beside = {column: set() for column in columns if len(columns) > 1}
            if is_header:
                if beside and TEXTS.isdisjoint(cells[column].strip().casefold() for column in columns):
                    said = Message("the columns {joined} make up the text; to read only one, name it `text`")
                    notes = (said.format(joined=", ".join(heads[column] for column in columns)),)
                continue
        if len(cells) != len(heads):
            problem = tr("{n} columns, but the first row has {width}", n=len(cells), width=len(heads))
            raise row_error(where, number, problem)
        text = " ".join(part for column in columns if (part := " ".join(cells[column].split())))
        name = cells[label].strip()
        if not text or not name:
            raise row_error(
                where, number, tr("the text is empty; remove the row") if name else tr("the class is empty")
            )
        rows.append((text, name))
        for column, pairs in beside.items():
            pairs.add((cells[column].strip().casefold(), name))
        beside = {column: pairs for column, pairs in beside.items() if len(pairs) <= MAX_CLASSES}
    if not rows:
        raise row_error(where, 1, tr("no rows with a class and a text"))
    for column, pairs in beside.items():
        values, classes = map(set, zip(*pairs, strict=True))
        if 1 < len(values) == len(classes) == len(pairs) <= len(rows) / MIN_ROWS_PER_VALUE:
            wrong = tr("column {name} repeats the class; remove it, or name the text column `text`", name=heads[column])
            return rows, notes, str(row_error(where, 1, wrong))
    return rows, notes, ""


def _find_columns(first: Sequence[str], where: str) -> tuple[int, Sequence[int], bool]:
    """Return the column of the class, those of the text, and whether this row is a header."""
    if len(first) < 2:
        raise row_error(where, 1, tr("one column; a class and a text need a comma between them"))
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
            Message(
                "{where}: {n:,} distinct texts are too few to hold some out for validation", where=where, n=len(order)
            )
        )
    place = dict.fromkeys(order[:held_out], "validation") | dict.fromkeys(order[held_out : held_out + tested], "test")
    parts: dict[str, TextClassRows] = {}
    for row in rows:
        parts.setdefault(place.get(row[0], "train"), []).append(row)
    return parts


def _sorted_classes(parts: Mapping[str, TextClassRows], where: str) -> list[str]:
    found = {label for _, label in parts["train"]}
    if not 2 <= len(found) <= MAX_CLASSES:
        problem = Message(
            "{where}: {n:,} different classes in the training rows; there must be 2 to {most:,}",
            where=where,
            n=len(found),
            most=MAX_CLASSES,
        )
        raise InputError(problem)
    for split, rows in parts.items():
        if unknown := sorted({label for _, label in rows} - found):
            problem = Message(
                "{where}: class '{unknown}' appears in the {split} rows but not in training",
                where=where,
                unknown=unknown[0][:40],
                split=split,
            )
            raise InputError(problem)
    return sorted(found, key=lambda label: (int(label) if label.isdecimal() else -1, label))


def _class_names(classes: Sequence[str], home: Path, reading: Reading) -> tuple[str, ...]:
    """Return the names of classes that are numbers, from classes.txt; others as they are. Numbers are counted from 0 if
    there is a class 0, else from 1.
    """
    file = home / NAMES
    if not file.is_file() or not all(label.isdecimal() for label in classes):
        return tuple(classes)
    names = read_lines(file, reading).without_trailing_empty()
    numbers = [int(label) for label in classes]
    start = 0 if reading.version > FIRST and 0 in numbers else 1
    if not start:
        reading.add_note(Message("the rows count classes from 0, so the first line of classes.txt names class 0"))
    last = len(names) - 1 + start
    outside = next((number for number in numbers if not start <= number <= last), None)
    if outside is not None:
        problem = Message(
            "{file}: {n} names, for classes {start} to {last}, but the rows contain class {outside}",
            file=str(file)[:200],
            n=len(names),
            start=start,
            last=last,
            outside=outside,
        )
        raise InputError(problem)
    return tuple(names[number - start].strip() for number in numbers)
