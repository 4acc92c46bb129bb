"""Files of sentences, one per line, in memory: plain, packed (`text_files.py`) or inside a zip archive, size-capped."""

import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePath

from engine.base.errors import InputError, reason
from engine.base.language import Message, tr
from engine.base.plain_files import open_regular_file
from engine.data.text_files import (
    Reading,
    cut_lines,
    decode,
    limit_unpacking,
    read_pieces,
    row_error,
)

MAX_CHARACTERS = 2 * 1024**3  # of unpacked text
MAX_LINE_LENGTH = 100_000  # characters per line; a longer one is no sentence
TRAILING = 10  # empty lines ignored at the end of a file
DAMAGED_ZIP = (
    *(zipfile.BadZipFile, EOFError, zlib.error, NotImplementedError),
    *(RuntimeError, ValueError, struct.error),  # a password, an undecodable name, truncated fields
)


@dataclass(frozen=True)
class NumberedLines:
    """The lines of a file, line `i` at index `i - 1`."""

    where: str  # the file's name in errors
    lines: list[str]  # without line endings

    def error_at(self, number: int, wrong: str) -> InputError:
        return row_error(self.where, number, wrong)

    def without_trailing_empty(self) -> list[str]:
        """Return the lines without a few empty ones at the end."""
        stop = len(self.lines)
        while stop > max(0, len(self.lines) - TRAILING) and not self.lines[stop - 1].strip():
            stop -= 1
        return self.lines[:stop]


def trim_both(source: NumberedLines, target: NumberedLines) -> tuple[list[str], list[str]]:
    """Return both files' lines without a few empty ones at the end; files of one length stay so."""
    if len(source.lines) != len(target.lines):
        return source.without_trailing_empty(), target.without_trailing_empty()
    stop = max(len(source.without_trailing_empty()), len(target.without_trailing_empty()))
    return source.lines[:stop], target.lines[:stop]


def uneven_error(source: NumberedLines, target: NumberedLines, sources: int, targets: int) -> InputError:
    """Return the error for files of unequal length: which ends first, and where."""
    (last, short), (most, long) = sorted(((sources, source.where), (targets, target.where)))
    problem = Message(
        "{where} has {sources:,} lines and {where2} has {targets:,}: {short} ends after line "
        "{last:,}, but {long} goes on to line {most:,}; every line needs a translation",
        where=source.where,
        sources=sources,
        where2=target.where,
        targets=targets,
        short=short,
        last=last,
        long=long,
        most=most,
    )
    return InputError(problem)


def read_lines(path: Path, reading: Reading | None = None, max_lines: int | None = None) -> NumberedLines:
    """Return the lines of a text file, or the first `max_lines`. Raises as `read_pieces` and `collect_lines`."""
    return collect_lines(read_pieces(path, reading), str(path)[:200], max_lines)


def read_text(path: Path) -> tuple[str, str]:
    """Return the characters of a file, and its name in errors."""
    where = str(path)[:200]
    return "".join(_limit(read_pieces(path), where)), where


def read_member(archive: Path, name: str) -> tuple[str, str]:
    """Return the characters of a file in any folder of a zip archive, and its name in errors."""
    where = f"{str(archive)[:200]} ({name})"
    try:
        with open_regular_file(archive) as packed, zipfile.ZipFile(packed) as opened:
            member = next((one for one in opened.infolist() if one.filename.rpartition("/")[2] == name), None)
            if member is None:
                problem = Message("{archive}: no {name} in it; is this the right archive?", archive=archive, name=name)
                raise InputError(problem)
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # others ask for memory at will
                raise InputError(
                    Message(
                        "{where}: compressed with an unsupported method; unpack it next to the archive", where=where
                    )
                )
            with opened.open(member) as file:  # nothing is unpacked to disk, so no name can escape a folder
                blocks = limit_unpacking(file, os.fstat(packed.fileno()).st_size, where)
                return "".join(_limit(decode(blocks, PurePath(where)), where)), where
    except DAMAGED_ZIP as error:
        raise InputError(
            Message(
                "{where}: damaged zip archive ({error}); get a fresh copy from its source", where=where, error=error
            )
        ) from None
    except OSError as error:
        raise InputError(Message("{where}: cannot be read: {strerror}", where=where, strerror=reason(error))) from None


def _limit(pieces: Iterable[str], where: str) -> Iterator[str]:
    """Yield the pieces of a text. `InputError`: it is too large to keep in memory."""
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > MAX_CHARACTERS:
            problem = Message(
                "{where}: larger than {most:,} characters; use part of it", where=where, most=MAX_CHARACTERS
            )
            raise InputError(problem)
        yield piece


def collect_lines(pieces: Iterable[str], where: str, most: int | None = None) -> NumberedLines:
    """Return the lines of a text, or the first `most`. `InputError`: it is empty or too large."""
    found = NumberedLines(where, [])
    for line in islice(cut_lines(_limit(pieces, where), where), most):
        found.lines.append(line.removesuffix("\r"))
        if len(line) > MAX_LINE_LENGTH:
            problem = tr(
                "{n:,} characters is too long for a sentence; the maximum is {longest:,}",
                n=len(line),
                longest=MAX_LINE_LENGTH,
            )
            raise found.error_at(len(found.lines), problem)
    if not any(map(str.strip, found.lines)):
        raise InputError(Message("{where}: this file is empty; it needs one sentence per line", where=where))
    return found


def split_lines(text: str, where: str) -> NumberedLines:
    return collect_lines([text], where)
