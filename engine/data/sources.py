"""Texts by path: a file, or a folder of files, read piece by piece. No torch here.

    text.txt                   one document, whatever its suffix
    data.jsonl                 one object per line; `data.jsonl:story` reads the field "story" (`tables.py` lists
                               other kinds of tables)
    folder                     files of one of these kinds, perhaps in data/ or train/ …; `folder:story`

Without a field, "text" is read, or the only one that has text. In a folder, files or subfolders named train, validation
(or valid, val, dev) and test become those splits. Several documents make one text: each ends with `<|endoftext|>`.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from pathlib import Path, PurePath

from engine.base.errors import InputError, comma_separated, invalid_path_error, reason
from engine.base.language import Message
from engine.base.plain_files import open_regular_file
from engine.data.corpus import END_OF_TEXT, SPLIT_ALIASES, is_file, path_exists
from engine.data.tables import read_columns, table_suffix
from engine.data.text_files import FIRST, LATEST, Reading, read_pieces, without_packing

IN_FOLDERS = (".jsonl", ".ndjson", ".csv", ".parquet")  # tables that are the texts of a folder
INNER = "data"  # the folder that a folder's texts may be in, besides those of a split
MAX_DEPTH = 2  # folders within a folder
MOST_FILES = 20_000
PACKED_RATIO = 4  # a text is about this many times as large as its packed file


@dataclass(frozen=True)
class Source:
    """The files of a text, in the order in which they are read."""

    path: Path
    field: str | None
    files: Mapping[str, tuple[Path, ...]]  # by split; "" for a text that is yet to be split
    # Whether rows are documents; if not, they are lines of one, and nothing is added at the end of each.
    by_document: bool = True
    reading: Reading = dataclass_field(default_factory=Reading)

    @property
    def approximate_bytes(self) -> int:
        """The approximate size of the whole text."""
        packed = {file: file.suffix.lower() == ".parquet" or without_packing(file) != file for file in self.all_files}
        return sum(file.stat().st_size * (PACKED_RATIO if one else 1) for file, one in packed.items())

    @property
    def all_files(self) -> list[Path]:
        return [file for files in self.files.values() for file in files]

    @property
    def fingerprint(self) -> list[list[str | int]]:
        """A value that changes when a file does, found without reading it; `InputError`: it may not be read."""
        found: list[list[str | int]] = [[self.field or "", int(self.by_document)]]
        if self.reading != Reading(FIRST):
            found[0] += [self.reading.version, self.reading.encoding, int(self.reading.keeps_cr)]
        for split, files in self.files.items():
            for file in files:
                try:
                    with open_regular_file(file) as opened:
                        stat = os.fstat(opened.fileno())
                except OSError as error:
                    raise _unreadable_error(file, error) from None
                found.append([split, str(file), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns])
        return found

    def pieces(self, split: str) -> Iterator[str]:
        """Yield the text of a split, in pieces of about a million characters or one document."""
        files = self.files[split]
        apart = len(self.all_files) > 1 or is_table(files[0], self.reading)
        for file in files:
            ended = True
            for piece, last in _mark_last(_read_documents(self, file)):
                ended = piece.endswith(END_OF_TEXT) if piece else ended
                yield piece
                if last and apart and self.by_document and not ended:
                    yield END_OF_TEXT


def split_field(corpus: str) -> tuple[str, str | None]:
    """`"data.jsonl:story"` → `("data.jsonl", "story")`; an existing path with a colon is taken as it is."""
    base, mark, field = corpus.rpartition(":")
    if not mark or not field or any(sign in field for sign in "/\\") or path_exists(corpus):
        return corpus, None
    return (base, field) if path_exists(base) or table_suffix(Path(base)) else (corpus, None)


def make_absolute(corpus: str) -> str:
    """Return a path made absolute, with its field; a name that no file has stays as it is."""
    base, field = split_field(corpus)
    found = str(Path(base).expanduser().resolve()) if path_exists(base) else base
    return found if field is None else f"{found}:{field}"


def is_text_folder(corpus: str) -> bool:
    """Return whether a path is a folder that has texts in it."""
    base = Path(split_field(corpus)[0]).expanduser()
    try:
        return base.is_dir() and any(map(is_text, _list_files(base)))
    except InputError:  # too many files
        return False


def find_source(corpus: str, reading: Reading | None = None) -> Source:
    """Return the files of a path. `InputError`: there is nothing, or files of several kinds, or of no known split."""
    reading = reading or Reading()
    base, field = split_field(corpus)
    try:
        path = Path(base).expanduser()
        there = path.exists()
    except (OSError, ValueError, RuntimeError) as error:  # too long, a zero byte, ~nobody
        raise invalid_path_error(corpus, error) from None
    if not there:
        raise _unreadable_error(path, FileNotFoundError(2, "No such file or directory"))
    if not path.is_dir():
        if not path.is_file():
            raise InputError(Message("corpus {path}: not a file; give a text file", path=path))
        if field is not None and not table_suffix(path):
            problem = Message(
                "corpus {path}: a plain text file has no fields; leave out :{field}",
                path=str(path)[:200],
                field=field[:40],
            )
            raise InputError(problem)
        return Source(path, field, {"": (path.resolve(),)}, reading=reading)
    return Source(path, field, group_by_split(path, _list_files(path), reading.version), reading=reading)


def _unreadable_error(path: Path, error: OSError) -> InputError:
    return InputError(Message("corpus {path}: cannot be read: {why}", path=str(path)[:200], why=reason(error)))


def group_by_split(folder: Path, found: list[Path], version: int = LATEST) -> dict[str, tuple[Path, ...]]:
    """Return the texts of a folder by split; "" if no file belongs to one. `InputError`: as `find_source`."""
    if version == FIRST:  # which knew no packed files
        found = [file for file in found if without_packing(file) == file and file.suffix.lower() != ".ndjson"]
    suffixes = [suffix for suffix in IN_FOLDERS if any(_suffix(file) == suffix for file in found)]
    if len(suffixes) > 1:
        problem = Message(
            "corpus {folder}: has files of several kinds ({kinds}); keep only one kind",
            folder=str(folder)[:200],
            kinds=comma_separated(suffixes),
        )
        raise InputError(problem)
    chosen = suffixes[0] if suffixes else ".txt"
    files = [file for file in found if _suffix(file) == chosen]
    if not files:
        kinds = comma_separated((".txt", *IN_FOLDERS))
        raise InputError(
            Message("corpus {folder}: no text in this folder (looked for {kinds})", folder=folder, kinds=kinds)
        )
    by_split: dict[str, list[Path]] = {}
    for file in files:
        by_split.setdefault(split_name(file.relative_to(folder)), []).append(file.resolve())
    if by_split.keys() == {""}:
        return {"": tuple(by_split[""])}
    if "" in by_split and "train" not in by_split:
        by_split["train"] = by_split.pop("")
    if "" in by_split:
        problem = Message(
            "corpus {folder}: {file} belongs to no split, but others do; name it train-…, validation-… or test-…, "
            "or move it",
            folder=str(folder)[:200],
            file=by_split[""][0].name,
        )
        raise InputError(problem)
    if "train" not in by_split:
        names = comma_separated(file.name for file in files[:4])
        problem = Message("corpus {folder}: nothing to train on, only {names}", folder=str(folder)[:200], names=names)
        raise InputError(problem)
    return {split: tuple(by_split[split]) for split in SPLIT_ALIASES if split in by_split}


def split_name(path: Path) -> str:
    """Return the split that a file's name, or its folder's, has as a word; "" if none."""
    for part in reversed(path.parts):
        words = re.split("[^a-z]+", part.lower())
        for split, stems in SPLIT_ALIASES.items():
            if any(stem in words for stem in stems):
                return split
    return ""


def _list_files(folder: Path) -> list[Path]:
    """Return the files of a folder in order of their paths, hidden ones left out."""
    found: list[Path] = []
    for place, folders, names in os.walk(folder):
        inner = Path(place)
        deep = len(inner.relative_to(folder).parts)
        folders[:] = [name for name in folders if deep < MAX_DEPTH and (name == INNER or split_name(Path(name)))]
        found += [inner / name for name in sorted(names) if not name.startswith(".")]
        if len(found) > MOST_FILES:
            problem = Message(
                "corpus {folder}: has more than {most:,} files; give the folder that holds the texts themselves",
                folder=str(folder)[:200],
                most=MOST_FILES,
            )
            raise InputError(problem)
    return sorted((file for file in found if is_file(file)), key=lambda file: file.relative_to(folder).parts)


def is_text(path: PurePath) -> bool:
    """Return whether a file is read as a text in a folder, by its name."""
    return _suffix(path) in (*IN_FOLDERS, ".txt")


def _suffix(path: PurePath) -> str:
    return without_packing(path).suffix.lower()


def is_table(file: Path, reading: Reading) -> bool:
    """Return whether a file is read row by row."""
    if reading.version == FIRST:
        return file.suffix.lower() in (".jsonl", ".csv", ".parquet")
    return bool(table_suffix(file))


# --- documents of one file

DocumentParts = Iterable[str]  # of one document


def _read_documents(source: Source, file: Path) -> Iterator[DocumentParts]:
    """Yield the documents of a file, each in parts, empty ones left out; or its rows, an empty one as an empty line.
    `InputError`: with the file and its line or row.
    """
    if not is_table(file, source.reading):
        yield read_pieces(file, source.reading)
        return
    for document in _read_rows(source, file):
        if not source.by_document:
            yield (document or "\n",)
        elif document and not document.isspace():
            yield (document,)
        else:
            source.reading.findings.left_out += 1


def _read_rows(source: Source, file: Path) -> Iterator[str]:
    normalizes = source.reading.version > FIRST and not source.reading.keeps_cr
    for _, (text,) in read_columns(file, [source.field], source.reading):
        if normalizes and "\r\n" in text:  # as JSON can escape it
            source.reading.findings.crlf += text.count("\r\n")
            text = text.replace("\r\n", "\n")
        yield text


def _mark_last(found: Iterable[DocumentParts]) -> Iterator[tuple[str, bool]]:
    """Yield each part of each document, and whether it is the document's last."""
    for parts in found:
        before: str | None = None
        for part in parts:
            if before is not None:
                yield before, False
            before = part
        if before is not None:
            yield before, True
