"""Your own documents, by path: a text file whose lines are documents, or a folder with questions beside it.

    notes.txt                  a document a line, perhaps .gz; empty lines are ignored
    folder                     documents.txt, and perhaps train.tsv and validation.tsv (or valid, val, dev): question,
                               tab, answer; perhaps test.tsv, with or without answers, and documents-validation.txt

Without a file of validation documents, `data.validation_fraction` of the lines are split off. Equal lines share a side:
lines are ordered by the hash of their text, so neither reordering nor adding lines moves the others.
"""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from engine.base.errors import InputError, invalid_path_error, join_and
from engine.base.language import Message, tr
from engine.config.sections import DataConfig
from engine.data import first_reading
from engine.data.corpus import SPLIT_ALIASES
from engine.data.documents.corpus import DocumentCorpus, Question
from engine.data.parallel.by_path import TABLES
from engine.data.parallel.lines import read_lines
from engine.data.tables import read_delimited, without_final_blanks
from engine.data.text_files import FIRST, LATEST, Reading, row_error

DOCUMENTS_FILE = "documents.txt"
VALIDATION_DOCUMENTS_FILE = "documents-validation.txt"
HEADINGS = (Message("question"), Message("answer"))


def accepts_path(corpus: str) -> bool:
    """Return whether a path is a folder of documents."""
    return (Path(corpus).expanduser() / DOCUMENTS_FILE).is_file()


def load_path(data: DataConfig, version: int = LATEST) -> DocumentCorpus:
    reading = Reading.of(data, version)
    try:
        path = Path(data.corpus).expanduser()
        source = str(path.resolve())
        folder = path.is_dir()
    except (OSError, ValueError, RuntimeError) as error:  # too long, a zero byte, ~nobody
        raise invalid_path_error(data.corpus, error) from None
    if not folder and path.name.lower().endswith(TABLES):
        problem = Message(
            "{path}: this is a table, but questions need documents to go with them: give a folder with "
            "{documents}, train.tsv and validation.tsv",
            path=path,
            documents=DOCUMENTS_FILE,
        )
        raise InputError(problem)
    if not folder:
        documents = _split_documents(read_documents(path, reading), data, str(path)[:200])
        return DocumentCorpus(path.name, path.name, source, (), documents, reading=reading)
    if not (path / DOCUMENTS_FILE).is_file():
        problem = Message(
            "{path}: no {documents} in this folder (one document per line); train.tsv and validation.tsv go with it",
            path=path,
            documents=DOCUMENTS_FILE,
        )
        raise InputError(problem)
    own = read_documents(path / DOCUMENTS_FILE, reading)
    notes: tuple[str, ...] = ()
    if (path / VALIDATION_DOCUMENTS_FILE).is_file():
        held_out = read_documents(path / VALIDATION_DOCUMENTS_FILE, reading)
        documents = {"train": tuple(own), "validation": tuple(held_out)}
    else:
        documents = _split_documents(own, data, str(path / DOCUMENTS_FILE)[:200])
        notes = (
            Message(
                "{n:,} of the {n2:,} documents are held out, and facts found only in them cannot be learned; add "
                "{validation_documents} to use other documents instead",
                n=len(own) - len(documents["train"]),
                n2=len(own),
                validation_documents=VALIDATION_DOCUMENTS_FILE,
            ),
        )
    name = path.resolve().name
    questions = _read_question_files(path, reading)
    return DocumentCorpus(name, name, source, notes, documents, questions, reading=reading)


def read_documents(path: Path, reading: Reading | None = None) -> list[str]:
    return [line for line in read_lines(path, reading).lines if line.strip()]


def _split_documents(documents: Sequence[str], data: DataConfig, where: str) -> dict[str, tuple[str, ...]]:
    """Return training, validation and perhaps test documents that share no line, each in the file's order."""
    order = distinct_sorted_by_hash(documents)
    validation = max(1, round(len(order) * data.validation_fraction))
    test = max(1, round(len(order) * data.test_fraction)) if data.test_fraction else 0
    if validation + test >= len(order):
        problem = Message(
            "{where}: {n:,} distinct lines are too few to hold some out for validation; each line "
            "is a document, and training needs at least a few hundred",
            where=where,
            n=len(order),
        )
        raise InputError(problem)
    held_out, tested, train = order[:validation], order[validation : validation + test], order[validation + test :]
    parts = {"train": set(train), "validation": set(held_out), "test": set(tested)}
    return {name: tuple(text for text in documents if text in part) for name, part in parts.items() if part}


def distinct_sorted_by_hash(documents: Iterable[str]) -> list[str]:
    return sorted(set(documents), key=lambda text: hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())


def _read_question_files(folder: Path, reading: Reading) -> dict[str, tuple[Question, ...]]:
    files = {}
    for split, stems in SPLIT_ALIASES.items():
        found = next((folder / f"{stem}.tsv" for stem in stems if (folder / f"{stem}.tsv").is_file()), None)
        if found is not None:
            files[split] = found
    for split in ("train", "validation"):
        if files and split not in files:
            has = join_and(path.name for path in files.values())
            problem = Message(
                "{folder}: found {has} but no {split}.tsv; training and held-out questions are both needed",
                folder=folder,
                has=has,
                split=split,
            )
            raise InputError(problem)
    return {split: read_questions(path, reading, may_lack_answers=split == "test") for split, path in files.items()}


def read_questions(
    path: Path, reading: Reading | None = None, *, may_lack_answers: bool = False
) -> tuple[Question, ...]:
    """Return a file's questions: `question`, a tab, `answer`; a first line of just these words is a header. With
    `may_lack_answers`, they may be missing, as in a test split scored elsewhere; then all must be.
    """
    where, old = str(path)[:200], reading is not None and reading.version == FIRST
    found = first_reading.read_tabs(path) if old else read_delimited(path, reading, "\t")
    rows = list(without_final_blanks(found))
    if not rows:
        raise InputError(
            Message("{where}: this file is empty; it needs a question and its answer per line", where=where)
        )
    first = int(tuple(cell.strip().lower() for cell in rows[0][1]) in (HEADINGS, HEADINGS[:1]))
    if first == len(rows):
        raise row_error(where, 1, tr("a header and nothing below it"))
    columns = 1 if may_lack_answers and len(rows[first][1]) == 1 else 2
    wanted = (
        tr("expected a question, a tab and the answer")
        if columns == 2
        else tr("the first question has no answer, so no other may have one")
    )
    questions = []
    for number, cells in rows[first:]:
        if len(cells) != columns:
            shown = tr("one column") if len(cells) == 1 else tr("{n} columns", n=len(cells))
            shown = shown if any(cell.strip() for cell in cells) else tr("an empty line")
            raise row_error(where, number, f"{shown}; {wanted}")
        for name, cell in zip(HEADINGS, cells, strict=False):
            if not cell.strip():
                raise row_error(where, number, tr("the {name} is empty; remove the line", name=tr(name)))
        questions.append(Question(cells[0].strip(), cells[1].strip() if columns == 2 else None))
    return tuple(questions)
