"""Texts by path: a file, or a folder of files, read piece by piece. No torch here.

    text.txt                   one document, whatever its suffix
    data.jsonl                 one object per line; `data.jsonl:story` reads the field "story"
    data.csv                   a table with a header; `data.csv:story` reads that column
    data.parquet               the same, with pyarrow
    folder                     files of one of these kinds, perhaps in data/ or train/ …; `folder:story`

Without a field, "text" is read, or the only one that has text. In a folder, files or subfolders named train, validation
(or valid, val, dev) and test become those splits. Several documents make one text: each ends with `<|endoftext|>`.
"""

import codecs
import csv
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import IO

from engine.base.errors import InputError, comma_separated, did_you_mean, invalid_path_error, reason
from engine.base.language import tr
from engine.base.plain_files import open_regular_file
from engine.data.corpus import END_OF_TEXT, SPLIT_ALIASES, is_file, path_exists

DEFAULT_FIELD = "text"  # the field that is read if none is named
BLOCK = 1 << 20  # bytes, and about the characters of a piece
LONGEST_LINE = 1 << 28  # bytes of an object or a cell; more is damage
ROWS = 256  # of a table at once
INNER = "data"  # the folder that a folder's texts may be in, besides those of a split
MAX_DEPTH = 2  # folders within a folder
MOST_FILES = 20_000
PARQUET_RATIO = 4  # a text is about this many times as large as its packed file


@dataclass(frozen=True)
class Source:
    """The files of a text, in the order in which they are read."""

    path: Path
    field: str | None
    files: Mapping[str, tuple[Path, ...]]  # by split; "" for a text that is yet to be split
    # Whether rows are documents; if not, they are lines of one, and nothing is added at the end of each.
    by_document: bool = True

    @property
    def approximate_bytes(self) -> int:
        """The approximate size of the whole text."""
        sizes = (file.stat().st_size * (PARQUET_RATIO if _suffix(file) == ".parquet" else 1) for file in self.all_files)
        return sum(sizes)

    @property
    def all_files(self) -> list[Path]:
        return [file for files in self.files.values() for file in files]

    @property
    def fingerprint(self) -> list[list[str | int]]:
        """A value that changes when a file does, found without reading it."""
        found: list[list[str | int]] = [[self.field or "", int(self.by_document)]]
        for split, files in self.files.items():
            for file in files:
                stat = file.stat()
                found.append([split, str(file), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns])
        return found

    def pieces(self, split: str) -> Iterator[str]:
        """Yield the text of a split, in pieces of about a million characters or one document."""
        files = self.files[split]
        apart = len(self.all_files) > 1 or _suffix(files[0]) in READERS
        for file in files:
            ended = True
            for piece, last in _mark_last(read_documents(file, self.field, keep_empty_rows=not self.by_document)):
                ended = piece.endswith(END_OF_TEXT) if piece else ended
                yield piece
                if last and apart and self.by_document and not ended:
                    yield END_OF_TEXT


def split_field(corpus: str) -> tuple[str, str | None]:
    """`"data.jsonl:story"` → `("data.jsonl", "story")`; an existing path with a colon is taken as it is."""
    base, mark, field = corpus.rpartition(":")
    if not mark or not field or any(sign in field for sign in "/\\") or path_exists(corpus):
        return corpus, None
    return (base, field) if path_exists(base) or _suffix(Path(base)) in READERS else (corpus, None)


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


def find_source(corpus: str) -> Source:
    """Return the files of a path. `InputError`: there is nothing, or files of several kinds, or of no known split."""
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
            raise InputError(tr("corpus {path}: not a file; give a UTF-8 text file", path=path))
        if field is not None and _suffix(path) not in READERS:
            problem = tr(
                "corpus {path}: a plain text file has no fields; leave out :{field}",
                path=str(path)[:200],
                field=field[:40],
            )
            raise InputError(problem)
        return Source(path, field, {"": (path.resolve(),)})
    return Source(path, field, group_by_split(path, _list_files(path)))


def group_by_split(folder: Path, found: list[Path]) -> dict[str, tuple[Path, ...]]:
    """Return the texts of a folder by split; "" if no file belongs to one. `InputError`: as `find_source`."""
    suffixes = [suffix for suffix in READERS if any(_suffix(file) == suffix for file in found)]
    if len(suffixes) > 1:
        problem = tr(
            "corpus {folder}: has files of several kinds ({kinds}); keep only one kind",
            folder=str(folder)[:200],
            kinds=comma_separated(suffixes),
        )
        raise InputError(problem)
    chosen = suffixes[0] if suffixes else ".txt"
    files = [file for file in found if _suffix(file) == chosen]
    if not files:
        kinds = comma_separated((".txt", *READERS))
        raise InputError(tr("corpus {folder}: no text in this folder (looked for {kinds})", folder=folder, kinds=kinds))
    by_split: dict[str, list[Path]] = {}
    for file in files:
        by_split.setdefault(split_name(file.relative_to(folder)), []).append(file.resolve())
    if by_split.keys() == {""}:
        return {"": tuple(by_split[""])}
    if "" in by_split and "train" not in by_split:
        by_split["train"] = by_split.pop("")
    if "" in by_split:
        problem = tr(
            "corpus {folder}: {file} belongs to no split, but others do; name it train-…, validation-… or test-…, "
            "or move it",
            folder=str(folder)[:200],
            file=by_split[""][0].name,
        )
        raise InputError(problem)
    if "train" not in by_split:
        names = comma_separated(file.name for file in files[:4])
        problem = tr("corpus {folder}: nothing to train on, only {names}", folder=str(folder)[:200], names=names)
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
            problem = tr(
                "corpus {folder}: has more than {most:,} files; give the folder that holds the texts themselves",
                folder=str(folder)[:200],
                most=MOST_FILES,
            )
            raise InputError(problem)
    return sorted((file for file in found if is_file(file)), key=lambda file: file.relative_to(folder).parts)


def is_text(path: PurePath) -> bool:
    """Return whether a file is read as a text in a folder, by its name."""
    return _suffix(path) in (*READERS, ".txt")


def _suffix(path: PurePath) -> str:
    return path.suffix.lower()


# --- documents of one file

DocumentParts = Iterable[str]  # of one document
Reader = Callable[[IO[bytes], str, str | None], Iterator[str]]


def read_documents(path: Path, field: str | None, *, keep_empty_rows: bool = False) -> Iterator[DocumentParts]:
    """Yield the documents of a file, each in parts, empty ones left out; or its rows, an empty one as an empty line.
    `InputError`: with the file and its line or row.
    """
    reader, where = READERS.get(_suffix(path)), str(path)[:200]
    with _open(path) as file:
        if reader is None:
            yield _read_text(file, where)
            return
        for document in reader(file, where, field):
            if keep_empty_rows:
                yield (document or "\n",)
            elif document and not document.isspace():
                yield (document,)


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


@contextmanager
def _open(path: Path) -> Iterator[IO[bytes]]:
    try:
        with open_regular_file(path) as file:
            yield file
    except (OSError, ValueError) as error:
        raise _unreadable_error(path, error) from None


def _unreadable_error(path: Path, error: Exception) -> InputError:
    return InputError(tr("corpus {path}: cannot be read: {why}", path=str(path)[:200], why=reason(error)))


def _read_text(file: IO[bytes], where: str) -> Iterator[str]:
    """Yield the characters of a text file, line endings as they are, without a byte-order mark."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    at, begun = 0, False
    while True:
        raw = file.read(BLOCK)
        if b"\x00" in raw:
            raise InputError(tr("corpus {path}: not text (it contains NUL bytes); use UTF-8 text", path=where))
        pending = len(decoder.getstate()[0])
        try:
            text = decoder.decode(raw, final=not raw)
        except UnicodeDecodeError as error:
            problem = tr(
                "corpus {path}: not UTF-8 at byte {start}; convert it, e.g. iconv -f latin1 -t utf-8",
                path=where,
                start=at - pending + error.start,
            )
            raise InputError(problem) from None
        at += len(raw)
        if not begun and text:
            text, begun = text.removeprefix("\ufeff"), True
        if text:
            yield text
        if not raw:
            return


def _read_jsonl(file: IO[bytes], where: str, field: str | None) -> Iterator[str]:
    number = 0
    while raw := file.readline(LONGEST_LINE):
        number += 1
        line = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):  # also undecodable bytes
            raise _row_error(where, number, tr("not a JSON object; each line must be one")) from None
        if not isinstance(row, dict):
            raise _row_error(where, number, tr("not a JSON object; each line must be one"))
        field = field or _choose_field([name for name, value in row.items() if isinstance(value, str)], where)
        if field not in row:
            raise _no_field_error(where, number, field, [str(name) for name in row])
        text = row[field]
        if text is not None and not isinstance(text, str):
            raise _row_error(where, number, tr("field {field!r} is not text", field=field[:40]))
        yield _refuse_surrogates(text or "", where, number)


def _read_csv(file: IO[bytes], where: str, field: str | None) -> Iterator[str]:
    csv.field_size_limit(LONGEST_LINE)
    rows = csv.reader(codecs.getreader("utf-8-sig")(file), strict=True)
    try:
        header = next(rows, [])
        field = field or _choose_field(header, where)
        if header.count(field) != 1:
            raise _no_field_error(where, 1, field, header)
        place = header.index(field)
        for row in rows:
            if row and len(row) != len(header):
                problem = tr("{n} columns, but the header has {n2}", n=len(row), n2=len(header))
                raise _row_error(where, rows.line_num, problem)
            yield row[place] if row else ""
    except UnicodeDecodeError:
        raise _row_error(where, rows.line_num + 1, tr("not UTF-8; convert it, e.g. iconv -f latin1 -t utf-8")) from None
    except csv.Error as error:
        raise _row_error(where, rows.line_num, tr("not a CSV row: {error}", error=error)) from None


def _read_parquet(file: IO[bytes], where: str, field: str | None) -> Iterator[str]:
    try:
        import pyarrow as arrow  # an extra
        from pyarrow import parquet
    except ImportError:
        raise InputError(
            tr("corpus {path}: reading .parquet needs pyarrow: run pip install 'tui-transformer[parquet]'", path=where)
        ) from None
    number = 0
    try:
        table = parquet.ParquetFile(file)
        kinds = {one.name: one.type for one in table.schema_arrow}
        texts = [
            name for name, kind in kinds.items() if arrow.types.is_string(kind) or arrow.types.is_large_string(kind)
        ]
        field = field or _choose_field(texts, where)
        if field not in texts:
            raise _no_field_error(where, 1, field, texts)
        for rows in table.iter_batches(batch_size=ROWS, columns=[field]):
            for text in rows.column(0):
                number += 1
                yield text.as_py() or ""
    except UnicodeDecodeError:
        raise _row_error(where, number, tr("not UTF-8")) from None
    except arrow.ArrowException as error:
        said = str(error).partition("\n")[0][:200]
        raise InputError(tr("corpus {path}: not a Parquet file, or damaged: {error}", path=where, error=said)) from None


READERS: dict[str, Reader] = {".jsonl": _read_jsonl, ".csv": _read_csv, ".parquet": _read_parquet}


def _choose_field(text_fields: list[str], where: str) -> str:
    """Return the field to read where none was named."""
    if DEFAULT_FIELD in text_fields:
        return DEFAULT_FIELD
    if len(text_fields) == 1:
        return text_fields[0]
    if not text_fields:
        raise _row_error(where, 1, tr("no field has text"))
    names = comma_separated(name[:40] for name in text_fields[:8])
    problem = tr(
        "corpus {path}: which field is the text? Choose one of {names}, as in {path}:{first}",
        path=where,
        names=names,
        first=text_fields[0][:40],
    )
    raise InputError(problem)


def _no_field_error(where: str, number: int, field: str, names: list[str]) -> InputError:
    listed = comma_separated(name[:40] for name in names[:8])
    hint = did_you_mean(field, names[:1000]) or tr("; the fields are {names}", names=listed)
    return _row_error(where, number, tr("no field named {field!r}{hint}", field=field[:40], hint=hint))


def _row_error(where: str, number: int, wrong: str) -> InputError:
    rows = _suffix(PurePath(where)) == ".parquet"
    said = tr("corpus {path}: row {number}: {wrong}") if rows else tr("corpus {path}: line {number}: {wrong}")
    return InputError(said.format(path=where, number=number, wrong=wrong))


def _refuse_surrogates(text: str, where: str, number: int) -> str:
    """Refuse a lone surrogate, which JSON can escape: no file could hold the text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _row_error(where, number, tr("a lone surrogate is not text")) from None
    return text
