"""Your own documents, by path: a text file whose lines are documents, or a folder with questions beside it.

    notes.txt                  a document a line, perhaps .gz; empty lines are overlooked
    folder                     documents.txt, and perhaps train.tsv and validation.tsv (or valid, val, dev): question,
                               tab, answer; perhaps test.tsv, with or without answers, and documents-validation.txt

What has no file of validation documents gets them from its lines, by `data.validation_fraction`.
"""

from pathlib import Path

from engine.config.sections import DataConfig
from engine.data.documents.corpus import DocumentCorpus, Question
from engine.data.documents.questions import read_questions
from engine.data.documents.split import split_documents
from engine.data.parallel.by_path import STEMS
from engine.data.parallel.lines import read_lines
from engine.errors import InputError, not_a_path

DOCUMENTS = "documents.txt"
VALIDATION_DOCUMENTS = "documents-validation.txt"
TABLES = (".tsv", ".tsv.gz")


def is_folder_of_documents(path: Path) -> bool:
    """Whether `load_path` would read this folder."""
    return (path / DOCUMENTS).is_file()


def load_path(data: DataConfig) -> DocumentCorpus:
    """The corpus at the path that a config names.

    Raises:
        InputError: nothing there, or something wrong with it; names the file and the line.
    """
    try:
        path = Path(data.corpus).expanduser()
        source = str(path.resolve())
        folder = path.is_dir()
    except (OSError, ValueError, RuntimeError) as error:  # too long, a zero byte, ~nobody
        raise not_a_path(data.corpus, error) from None
    if folder:
        return _folder(path, data, source)
    if path.name.lower().endswith(TABLES):
        raise InputError(
            f"{path}: is a table; questions need documents beside them: name a folder with {DOCUMENTS}, train.tsv and "
            "validation.tsv"
        )
    documents = split_documents(_documents(path), data, str(path)[:200])
    return DocumentCorpus(path.name, path.name, source, (), documents)


def _folder(folder: Path, data: DataConfig, source: str) -> DocumentCorpus:
    if not is_folder_of_documents(folder):
        raise InputError(
            f"{folder}: has no {DOCUMENTS}, with a document a line; train.tsv and validation.tsv go with it"
        )
    documents, notes = _cut(folder, data)
    questions = _questions(folder)
    name = folder.resolve().name
    return DocumentCorpus(name, name, source, notes, documents, questions)


def _cut(folder: Path, data: DataConfig) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """Documents by split, and what to know of it."""
    own = _documents(folder / DOCUMENTS)
    if (folder / VALIDATION_DOCUMENTS).is_file():
        return {"train": tuple(own), "validation": tuple(_documents(folder / VALIDATION_DOCUMENTS))}, ()
    cut = split_documents(own, data, str(folder / DOCUMENTS)[:200])
    note = (
        f"{len(own) - len(cut['train']):,} of the {len(own):,} documents are held back: what only they tell cannot be "
        f"known; a file {VALIDATION_DOCUMENTS} takes their place"
    )
    return cut, (note,)


def _questions(folder: Path) -> dict[str, tuple[Question, ...]]:
    files = {}
    for split, stems in STEMS.items():
        found = next((folder / f"{stem}.tsv" for stem in stems if (folder / f"{stem}.tsv").is_file()), None)
        if found is not None:
            files[split] = found
    if not files:
        return {}
    for split in ("train", "validation"):
        if split not in files:
            has = " and ".join(path.name for path in files.values())
            raise InputError(
                f"{folder}: has {has} and no {split}.tsv; questions to learn from and held-out ones go together"
            )
    return {split: read_questions(path, blind=split == "test") for split, path in files.items()}


def _documents(path: Path) -> list[str]:
    return [line for line in read_lines(path).lines if line.strip()]
