"""Small corpora on disk, each of the kind and in the format of a run's own, for the run's own functions to read.

Rows and documents have unequal lengths, capitals, multi-byte characters, and words that occur nowhere else, three times
each: a tokenizer that knows a word of another split has read text that it must not see.
"""

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from engine.data.corpora import TextCorpus
from engine.data.corpus import END_OF_TEXT, Corpus
from engine.data.labelled.corpus import LabelledCorpus
from engine.data.parallel.pairs import ParallelCorpus
from engine.data.sources import is_table
from engine.data.tables import DEFAULT_FIELD, table_suffix
from engine.data.text_files import Reading
from engine.data.tokenizers.tagged import add_tag

SHARED = ("the", "River", "near", "Käse", "we", "saw", "東京", "an", "old", "boat", "Über")  # in every split
DOCUMENTS = 24  # of a text's training split
ROWS = 40
QUESTIONS = {"train": 9, "validation": 4}
CLASSES = ("east", "north", "west")
SEARCHED = 1_000  # files of a folder
Row = tuple[str, ...]


@dataclass(frozen=True)
class SmallCorpus:
    corpus: str  # `data.corpus`
    text: str = ""  # of a text: all of it, as its documents are joined
    train: int = 0  # of a text: the characters before its held-out part
    rows: Sequence[Row] = ()  # of any other kind: source and target, text and class, or document
    questions: Sequence[Row] = ()  # of documents: question and answer


def write_like(corpus: Corpus, folder: Path, train_share: float) -> SmallCorpus:
    """Write a small corpus like another into a folder; `train_share` is the share of a text that is trained on."""
    suffix = _table_suffix(corpus)
    if isinstance(corpus, TextCorpus):
        return _write_text(folder / f"small{'.csv' if suffix == '.tsv' else suffix or '.txt'}", train_share)
    if isinstance(corpus, ParallelCorpus):
        return _write_pairs(folder / f"small{suffix or '.tsv'}", corpus.tagged_languages)
    if isinstance(corpus, LabelledCorpus):
        rows = [(_sentence(i, "own"), CLASSES[i % len(CLASSES)]) for i in range(ROWS)]
        _write(folder / "small.csv", ("text", "class"), rows)
        return SmallCorpus(str(folder / "small.csv"), rows=rows)
    documents = [(f"{_sentence(i, 'Own')} {_sentence(i + 3, 'of')}",) for i in range(ROWS)]
    _write(folder / "documents.txt", (), documents)
    questions = [(f"Where is Own{i}?", f"near of{i}") for i in range(sum(QUESTIONS.values()))]
    unasked = iter(questions)
    for split, n in QUESTIONS.items():
        _write(folder / f"{split}.tsv", (), [*islice(unasked, n)])
    return SmallCorpus(str(folder), rows=documents, questions=questions)


def _table_suffix(corpus: Corpus) -> str:
    """Return the suffix of the table that a corpus was read from; "" for any other file, or a generated corpus."""
    path, reading = Path(corpus.source), Reading(corpus.reading.version)
    files = [path] if path.is_file() else islice(path.rglob("*"), SEARCHED) if path.is_dir() else []
    tables = (table_suffix(file) for file in files if is_table(file, reading))
    return next(tables, "")


def _sentence(number: int, name: str) -> str:
    """Return a sentence with its own word, `name` and number, three times among up to 7 others."""
    own, others = f"{name}{number}", [SHARED[(5 * number + 3 * i) % len(SHARED)] for i in range(number % 8)]
    return " ".join((own, *others[:4], own, *others[4:], own)) + "."


def _write_text(path: Path, train_share: float) -> SmallCorpus:
    documents = [f"{_sentence(i, 'Own')}\n{_sentence(i + 4, 'too')}" for i in range(DOCUMENTS)]
    train = total = sum(len(one) + len(END_OF_TEXT) for one in documents)
    while int(total * train_share) < train:
        total += 1
    left, number = total - train, 0
    while left > 0:  # the last document is cut to what is left
        document = f"{_sentence(number, 'New')}\n{_sentence(number + 3, 'held')}"
        if left < 2 * len(document):
            document = (document * 3)[: max(1, left - len(END_OF_TEXT))]
        documents.append(document)
        left, number = left - len(document) - len(END_OF_TEXT), number + 1
    _write(path, (DEFAULT_FIELD,), [(one,) for one in documents])
    return SmallCorpus(str(path), "".join(one + END_OF_TEXT for one in documents), train)


def _write_pairs(path: Path, tags: Sequence[str]) -> SmallCorpus:
    names = ("source", *(tags or ("target",)))
    rows = [tuple(_sentence(i + 2 * j, name.title()) for j, name in enumerate(names)) for i in range(ROWS)]
    _write(path, names, [names, *rows] if path.suffix == ".tsv" else rows)
    if tags:
        rows = [(add_tag(row[0], tag), target) for row in rows for tag, target in zip(tags, row[1:], strict=True)]
    return SmallCorpus(f"{path}#{','.join(names)}", rows=rows)


def _write(path: Path, columns: Sequence[str], rows: Sequence[Row]) -> None:
    if path.suffix == ".parquet":
        import pyarrow as arrow
        from pyarrow import parquet

        parquet.write_table(arrow.table(dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True))), path)
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        if path.suffix == ".csv":
            csv.writer(file).writerows((columns, *rows))
        elif path.suffix in (".jsonl", ".ndjson", ".json"):
            file.writelines(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows)
        elif path.suffix == ".txt" and columns:  # a text
            file.writelines(text + END_OF_TEXT for (text,) in rows)
        else:
            file.writelines("\t".join(row) + "\n" for row in rows)
