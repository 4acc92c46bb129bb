"""Read files into lines: plain, gzip-compressed or inside a zip archive, size-capped, UTF-8 only.

Only a line feed ends a line. `str.splitlines` also splits at U+2028, U+0085 and others that occur within sentences,
which would misalign the two sides of a corpus.
"""

import codecs
import gzip
import io
import os
import struct
import zipfile
import zlib
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

from engine.base.errors import InputError, did_you_mean, reason
from engine.base.language import tr
from engine.base.plain_files import open_regular_file

MAX_BYTES = 2 * 1024**3  # of unpacked text
MAX_LINE_LENGTH = 100_000  # characters per line; a longer one is no sentence
TRAILING = 10  # empty lines ignored at the end of a file
BLOCK = 1 << 20
MAX_UNPACKING_RATIO = 200  # largest unpacking ratio of a packed file; text has 3 to 10
DAMAGED_ZIP = (
    *(zipfile.BadZipFile, EOFError, zlib.error, NotImplementedError),
    *(RuntimeError, ValueError, struct.error),  # a password, an undecodable name, truncated fields
)
UNCHECKED_BYTES = 64 << 20  # unpacked bytes allowed at any ratio
COMPRESSED = {
    b"\x1f\x8b": tr("gzip-compressed; unpack it, or add .gz to its name"),
    b"PK\x03\x04": tr("a zip archive; unpack it"),
    b"BZh": tr("bzip2-compressed; unpack it"),
    b"\xfd7zXZ": tr("xz-compressed; unpack it"),
}


@dataclass(frozen=True)
class NumberedLines:
    """The lines of a file, line `i` at index `i - 1`."""

    where: str  # the file's name in errors
    lines: list[str]  # without line endings

    def error_at(self, number: int, wrong: str) -> InputError:
        return InputError(tr("{where}: line {number}: {wrong}", where=self.where, number=number, wrong=wrong))

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
    problem = tr(
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


def read_lines(path: Path, max_lines: int | None = None) -> NumberedLines:
    """Return the lines of a text file, or the first `most`, unpacked if its name ends in .gz. Raises as `read_bytes`
    and `split_lines`.
    """
    where = str(path)[:200]
    return split_lines(read_bytes(path, where, max_lines), where)


def read_bytes(path: Path, where: str, max_lines: int | None = None) -> bytes:
    """Return the content of a file, or its first `most` lines, unpacked if its name ends in .gz."""
    try:
        if path.is_dir():
            raise InputError(tr("{where}: this is a folder; a text file is needed", where=where))
        with open_regular_file(path) as packed:
            size = os.fstat(packed.fileno()).st_size
            if size > MAX_BYTES:
                raise _too_large_error(where)
            if path.suffix != ".gz":
                return packed.read(MAX_BYTES) if max_lines is None else b"".join(islice(packed, max_lines))
            with gzip.GzipFile(fileobj=packed) as file:
                return _read_unpacked(file, size, where, max_lines)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        problem = tr("{where}: damaged gzip file ({error}); get a fresh copy from its source", where=where, error=error)
        raise InputError(problem) from None
    except FileNotFoundError:
        try:
            hint = did_you_mean(path.name, sorted(p.name for p in path.parent.iterdir())[:1000])
        except OSError:
            hint = tr("; the folder {parent} does not exist either", parent=str(path.parent)[:120])
        raise InputError(tr("{where}: no such file{hint}", where=where, hint=hint)) from None
    except (OSError, ValueError) as error:
        why = reason(error)
        raise InputError(tr("{where}: cannot be read: {why}", where=where, why=why)) from None


def read_member(archive: Path, name: str) -> tuple[bytes, str]:
    """Return the content of a file in any folder of a zip archive, and its name in errors."""
    where = f"{str(archive)[:200]} ({name})"
    try:
        with open_regular_file(archive) as packed, zipfile.ZipFile(packed) as opened:
            member = next((one for one in opened.infolist() if one.filename.rpartition("/")[2] == name), None)
            if member is None:
                problem = tr("{archive}: no {name} in it; is this the right archive?", archive=archive, name=name)
                raise InputError(problem)
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # others ask for memory at will
                raise InputError(
                    tr("{where}: compressed with an unsupported method; unpack it next to the archive", where=where)
                )
            with opened.open(member) as file:  # nothing is unpacked to disk, so no name can escape a folder
                return _read_unpacked(file, os.fstat(packed.fileno()).st_size, where), where
    except DAMAGED_ZIP as error:
        raise InputError(
            tr("{where}: damaged zip archive ({error}); get a fresh copy from its source", where=where, error=error)
        ) from None
    except OSError as error:
        raise InputError(tr("{where}: cannot be read: {strerror}", where=where, strerror=reason(error))) from None


def _read_unpacked(file: IO[bytes] | gzip.GzipFile, packed: int, where: str, max_lines: int | None = None) -> bytes:
    """Return the whole content, or `most` lines, without trusting the size stated by an archive of `packed` bytes."""
    unpacked, ends = bytearray(), 0
    while (max_lines is None or ends < max_lines) and (block := file.read(BLOCK)):
        unpacked += block
        ends += block.count(b"\n")
        if len(unpacked) > MAX_BYTES:
            raise _too_large_error(where)
        if len(unpacked) > max(UNCHECKED_BYTES, MAX_UNPACKING_RATIO * packed):
            problem = tr(
                "{where}: unpacks to more than {bomb} times its size; no text compresses that well",
                where=where,
                bomb=MAX_UNPACKING_RATIO,
            )
            raise InputError(problem)
    return bytes(unpacked) if max_lines is None else b"".join(islice(io.BytesIO(unpacked), max_lines))


def decode_text(raw: bytes, where: str) -> str:
    """Decode a file's bytes to text, without a byte-order mark."""
    for mark, advice in COMPRESSED.items():
        if raw.startswith(mark):
            raise InputError(f"{where}: {advice}")
    raw = raw.removeprefix(codecs.BOM_UTF8)
    zero = raw.find(b"\x00")
    if zero >= 0:
        problem = tr(
            "{where}: line {line}: a NUL byte, so this is not text; use UTF-8 text",
            where=where,
            line=_line_number(raw, zero),
        )
        raise InputError(problem)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        at = error.start
        within = at - raw.rfind(b"\n", 0, at)
        problem = tr(
            "{where}: line {line}: byte {within} is 0x{raw:02X}, which is not valid UTF-8; convert the "
            "file, e.g. iconv -f latin1 -t utf-8",
            where=where,
            line=_line_number(raw, at),
            within=within,
            raw=raw[at],
        )
        raise InputError(problem) from None
    if not text.strip():
        raise InputError(tr("{where}: this file is empty; it needs one sentence per line", where=where))
    return text


def split_lines(raw: bytes, where: str) -> NumberedLines:
    text = decode_text(raw, where)
    if "\r" in text and "\n" not in text:
        problem = tr("{where}: its lines end in carriage returns only; convert it, e.g. tr '\\r' '\\n'", where=where)
        raise InputError(problem)
    lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    found = NumberedLines(where, lines)
    for number, line in enumerate(lines, start=1):
        if len(line) > MAX_LINE_LENGTH:
            problem = tr(
                "{n:,} characters is too long for a sentence; the maximum is {longest:,}",
                n=len(line),
                longest=MAX_LINE_LENGTH,
            )
            raise found.error_at(number, problem)
    return found


def _line_number(raw: bytes, at: int) -> int:
    return raw.count(b"\n", 0, at) + 1


def _too_large_error(where: str) -> InputError:
    problem = tr("{where}: larger than {max_bytes:,} bytes of text; use part of it", where=where, max_bytes=MAX_BYTES)
    return InputError(problem)
