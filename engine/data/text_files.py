"""Text files: opened, unpacked, decoded, and cut into lines, each in one way for every kind of corpus. No torch here.

How a file is read is versioned (`Reading`), since a run that is resumed must get the text that it started with.
"""

import bz2
import codecs
import gzip
import lzma
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path, PurePath
from typing import IO, Any, get_args

from engine.base.errors import InputError, did_you_mean, reason
from engine.base.language import Message, tr
from engine.base.plain_files import open_regular_file
from engine.config.sections import DataConfig

ENCODINGS: tuple[str, ...] = get_args(DataConfig.model_fields["encoding"].annotation)
FIRST, LATEST = 1, 2  # versions of `Reading`; runs that recorded none have the first
BLOCK = 1 << 20  # bytes, and about the characters of a piece
LONGEST_LINE = 1 << 28  # characters of a line or a cell; more is damage
MAX_UNPACKING_RATIO = 200  # largest unpacking ratio of a packed file; text has 3 to 10
UNCHECKED_BYTES = 64 << 20  # unpacked bytes allowed at any ratio
UNPACKERS: Mapping[bytes, Callable[[IO[bytes]], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}
PACKED_SUFFIXES = (".gz", ".bz2", ".xz")
OTHER_ARCHIVES = {b"PK\x03\x04": "zip", b"\x28\xb5\x2f\xfd": "Zstandard", b"7z\xbc\xaf\x27\x1c": "7z", b"Rar!": "rar"}
DAMAGED = (gzip.BadGzipFile, lzma.LZMAError, zlib.error, EOFError)
# A mark, the encoding that it stands for, and what Python calls the encoding when the mark is to be left out.
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8", "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "utf-16"),
)
OFFERED = ("gb18030", "big5", "shift_jis", "cp1252")
CODECS = {"shift_jis": "cp932"}  # what is called Shift-JIS is nearly always Microsoft's
CHANCE = 20  # characters beyond ASCII that bytes in another encoding may form by chance
LEAST_CHARACTERS, LEAST_ZEROS = 4, 4  # fewer say nothing about an encoding
SAMPLE_BYTES = 1 << 16  # of a file whose encoding is to be recognized


@dataclass
class Findings:
    """What the user should know about how files were read."""

    encodings: dict[str, str] = field(default_factory=dict)  # of files that are not UTF-8, by name
    crlf: int = 0  # CR LF that were read as LF
    left_out: int = 0  # rows without text
    remarks: dict[str, None] = field(default_factory=dict)  # others, in English, each once

    @property
    def notes(self) -> tuple[str, ...]:
        """In English, as they are recorded."""
        notes: list[str] = [
            Message("read as {encoding}: {file}", file=f, encoding=e) for f, e in self.encodings.items()
        ]
        notes += self.remarks
        if self.crlf:
            notes.append(Message("CR LF was read as LF {n:,} times; data.line_ends = keep prevents it", n=self.crlf))
        if self.left_out:
            notes.append(Message("rows left out because they have no text: {n:,}", n=self.left_out))
        return tuple(notes)


@dataclass(frozen=True)
class Reading:
    """How files are read: the version of the rules, and the user's settings."""

    version: int = LATEST
    encoding: str = "auto"  # "auto": UTF-8, unless a byte-order mark says otherwise
    keeps_cr: bool = False  # whether CR LF stays as it is
    option: str = "data.encoding = "  # where the user sets the encoding
    findings: Findings = field(default_factory=Findings, compare=False)  # in the files read this way

    @classmethod
    def of(cls, data: DataConfig, version: int = LATEST) -> "Reading":
        return cls(version, data.encoding, data.line_ends == "keep")

    def add_note(self, text: str) -> None:
        """Add something that the user should know, in English."""
        self.findings.remarks[text] = None


# --- bytes


def read_blocks(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file in blocks, unpacked if it is gzip, bzip2 or xz. `InputError`: it cannot be read, is
    damaged, is another kind of archive, or unpacks to far more than text would.
    """
    where = str(path)[:200]
    try:
        if path.is_dir():
            raise InputError(Message("{where}: this is a folder; a text file is needed", where=where))
        with open_regular_file(path) as packed:
            start = packed.read(8)
            packed.seek(0)
            for magic, kind in OTHER_ARCHIVES.items():
                if start.startswith(magic):
                    raise InputError(Message("{where}: packed as {kind}; unpack it first", where=where, kind=kind))
            suffix = path.suffix.lower()
            unpacker = next((one for magic, one in UNPACKERS.items() if start.startswith(magic)), None)
            if unpacker is None and suffix in PACKED_SUFFIXES:
                raise InputError(
                    Message("{where}: is not packed, although its name ends in {suffix}", where=where, suffix=suffix)
                )
            if unpacker is None:
                yield from iter(lambda: packed.read(BLOCK), b"")
                return
            with unpacker(packed) as file:
                yield from limit_unpacking(file, os.fstat(packed.fileno()).st_size, where)
    except DAMAGED as error:
        problem = Message(
            "{where}: a damaged archive ({error}); get a fresh copy from its source", where=where, error=error
        )
        raise InputError(problem) from None
    except FileNotFoundError:
        try:
            hint = did_you_mean(path.name, sorted(p.name for p in path.parent.iterdir())[:1000])
        except OSError:
            hint = tr("; the folder {parent} does not exist either", parent=str(path.parent)[:120])
        raise InputError(Message("{where}: no such file{hint}", where=where, hint=hint)) from None
    except (OSError, ValueError) as error:
        raise InputError(Message("{where}: cannot be read: {why}", where=where, why=reason(error))) from None


def limit_unpacking(file: IO[bytes] | gzip.GzipFile, packed: int, where: str) -> Iterator[bytes]:
    """Yield what an archive of `packed` bytes unpacks to, without trusting the size that it states."""
    unpacked = 0
    while block := file.read(BLOCK):
        unpacked += len(block)
        require_plausible_size(unpacked, packed, where)
        yield block


def require_plausible_size(unpacked: int, packed: int, where: str) -> None:
    if unpacked > max(UNCHECKED_BYTES, MAX_UNPACKING_RATIO * packed):
        said = Message(
            "{where}: unpacks to more than {n} times its size; no text does", where=where, n=MAX_UNPACKING_RATIO
        )
        raise InputError(said)


def without_packing(path: PurePath) -> PurePath:
    """Return a path without the suffix of a packed file."""
    return path.with_suffix("") if path.suffix.lower() in PACKED_SUFFIXES else path


# --- characters


def read_pieces(path: Path, reading: Reading | None = None) -> Iterator[str]:
    """Yield the characters of a text file in pieces. Raises as `read_blocks` and `decode`."""
    return decode(read_blocks(path), path, reading)


def decode(blocks: Iterable[bytes], path: PurePath, reading: Reading | None = None) -> Iterator[str]:
    """Yield the characters of a text file, which comes in blocks, without a byte-order mark, and with CR LF as LF
    unless the reading keeps it. `InputError`: bytes that are no text in its encoding, with their place.
    """
    where, reading, blocks = str(path)[:200], reading or Reading(), iter(blocks)
    first = next(blocks, b"")
    encoding, codec = _encoding(first, where, reading)
    if encoding != "utf-8":
        reading.findings.encodings[path.name] = encoding
    decoder = codecs.getincrementaldecoder(codec)()
    normalizes = reading.version > FIRST and not reading.keeps_cr
    byte, line, held, multibyte = 0, 1, "", 0
    wrong: InputError | None = None
    for raw in chain((first,), blocks, (b"",)):
        pending = len(decoder.getstate()[0])
        try:
            text, size = decoder.decode(raw, final=not raw), len(raw)
        except UnicodeDecodeError as error:
            text, size = error.object[: error.start].decode(codec, "replace"), error.start - pending
            if multibyte + _count_beyond_ascii(text) > CHANCE:
                hint = tr(", although the text before it is; a file must have one encoding")
            else:
                hint = _encoding_hint(raw, reading, tr("; convert the file to UTF-8"))
            wrong = InputError(
                Message(
                    "{where}: byte {byte:,} (line {line:,}) is not {encoding}{hint}",
                    where=where,
                    byte=byte + size,
                    line=line + text.count("\n"),
                    encoding=encoding.upper(),
                    hint=hint,
                )
            )
        if "\0" in text:
            text = text[: text.index("\0")]
            hint = _encoding_hint(raw, reading, tr(", so this is not text"))
            at = line + text.count("\n")
            wrong = InputError(Message("{where}: line {line:,} has a NUL byte{hint}", where=where, line=at, hint=hint))
        byte, line, multibyte = byte + size, line + text.count("\n"), multibyte + _count_beyond_ascii(text)
        if normalizes:
            text, held = held + text, ""
            if raw and text.endswith("\r"):
                text, held = text[:-1], "\r"
            if "\r\n" in text:
                reading.findings.crlf += text.count("\r\n")
                text = text.replace("\r\n", "\n")
        if text:
            yield text
        if wrong is not None:
            raise wrong


def _count_beyond_ascii(text: str) -> int:
    return 0 if text.isascii() else len(text) - len(text.encode("ascii", "ignore"))


def _encoding(first: bytes, where: str, reading: Reading) -> tuple[str, str]:
    """Return the encoding of a file that begins with some bytes, and Python's name for it."""
    asked, given = reading.encoding, reading.option + reading.encoding
    for mark, encoding, codec in BYTE_ORDER_MARKS:
        if first.startswith(mark):
            if asked in ("auto", encoding):
                return encoding, codec
            said = Message(
                "{where}: its byte-order mark says {found}; leave out {given}", where=where, found=encoding, given=given
            )
            raise InputError(said)
    if asked == "auto":
        return "utf-8", "utf-8"
    if not first.isascii() and not asked.startswith("utf-16") and _decodes(first, "utf-8"):
        raise InputError(Message("{where}: is UTF-8 text; leave out {given}", where=where, given=given))
    return asked, CODECS.get(asked, asked)


def _decodes(raw: bytes, codec: str) -> bool:
    """Return whether the beginning of a file is valid in an encoding."""
    try:
        return "\0" not in codecs.getincrementaldecoder(codec)().decode(raw)
    except UnicodeDecodeError:
        return False


def recognize_encoding(raw: bytes) -> str:
    """Return the encoding that a file is most probably in, by its beginning; "" if none of those offered, among which
    is no encoding in which any bytes would be text.
    """
    from charset_normalizer import from_bytes  # loads tables, and is rarely needed

    raw = raw[:SAMPLE_BYTES]
    if b"\0" in raw:  # nearly any bytes are valid UTF-16, but rarely with spaces or line feeds in it
        texts = {codec: raw.decode(codec, "replace") for codec in ("utf-16-le", "utf-16-be")}
        counts = {codec: text.count(" ") + text.count("\n") for codec, text in texts.items()}
        codec = max(counts, key=counts.__getitem__)
        return codec if counts[codec] and raw.count(0) >= LEAST_ZEROS and _decodes(raw, codec) else ""
    raw = raw[: raw.rfind(b"\n") + 1] or raw
    fitting = {CODECS.get(encoding, encoding): encoding for encoding in OFFERED}
    fitting = {codec: one for codec, one in fitting.items() if _decodes(raw, codec) and _is_plausible(raw, codec)}
    best = from_bytes(raw, cp_isolation=[*fitting]).best() if fitting else None
    return "" if best is None else fitting.get(best.encoding, "")


def _is_plausible(raw: bytes, codec: str) -> bool:
    """Return whether characters beyond ASCII stand together in an East Asian encoding, and among letters in another."""
    text = codecs.getincrementaldecoder(codec)().decode(raw)
    beside = [text[max(0, i - 1) : i] + text[i + 1 : i + 2] for i, character in enumerate(text) if character > "\x7f"]
    if codec == "cp1252":
        return 2 * sum(any("a" <= one.lower() <= "z" for one in near) for near in beside) > len(beside)
    return len(beside) >= LEAST_CHARACTERS and 2 * sum(not near.isascii() for near in beside) > len(beside)


def _encoding_hint(raw: bytes, reading: Reading, otherwise: str) -> str:
    """Return which encoding some bytes seem to be in, and how to set it."""
    found = recognize_encoding(raw) if reading.encoding == "auto" else ""
    option = reading.option
    return tr("; it seems to be {found}: set {option}{found}", found=found, option=option) if found else otherwise


# --- lines


def cut_lines(pieces: Iterable[str], where: str, most: int = LONGEST_LINE) -> Iterator[str]:
    """Yield the lines of a text without their line feeds, of which the last need not have one. Nothing else ends a
    line: `str.splitlines` also splits at U+2028, U+0085 and others that occur within sentences.
    """
    return chain.from_iterable(cut_batches(pieces, where, most))


def cut_batches(pieces: Iterable[str], where: str, most: int) -> Iterator[list[str]]:
    """Yield the lines that each piece of a text completes."""
    held: list[str] = []
    length = number = 0
    for piece in pieces:
        first, *others = piece.split("\n")
        held.append(first)
        length += len(first)
        if others:
            lines = ["".join(held), *others[:-1]]
            held, length = others[-1:], len(others[-1])
            wrong = next((i for i, line in enumerate(lines, start=1) if len(line) > most), None)
            if wrong is not None:
                raise too_long_error(where, number + wrong, most)
            number += len(lines)
            yield lines
        if length > most:
            raise too_long_error(where, number + 1, most)
    if length:
        line = "".join(held)
        if not number and "\r" in line[:-1]:
            said = Message(
                "{where}: its lines end in carriage returns only; convert it, e.g. tr '\\r' '\\n'", where=where
            )
            raise InputError(said)
        yield [line]


def too_long_error(where: str, number: int, most: int) -> InputError:
    return row_error(where, number, tr("longer than {most:,} characters", most=most))


def row_error(where: str, number: int, wrong: str) -> InputError:
    rows = where.lower().endswith(".parquet")
    said = tr("{where}: row {number:,}: {wrong}") if rows else tr("{where}: line {number:,}: {wrong}")
    return InputError(said.format(where=where, number=number, wrong=wrong))
