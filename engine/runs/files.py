"""Atomic writes, and reads that tolerate a torn last line."""

import contextlib
import json
import math
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any

from engine.base.language import tr, with_messages
from engine.base.plain_files import open_regular_file, read_regular_file

SCHEMA = 1
MAX_LINE_BYTES = 8 << 20  # bytes; no record is longer, a longer line is damage
MAX_DEPTH = 100  # nested tables; deeper ones are damage, and would exhaust a reader's stack
MAX_JSON_BYTES = 32 << 20  # bytes of a JSON file; a longer one is damaged
MOST_VALUES = 2_000_000  # values in a JSON text; more mean damage, and would take gigabytes as objects
MOST_DAMAGE = 16 << 20  # bytes of damaged lines after which reading stops: a sparse file's hole can be endless

_BEYOND = re.compile(rb"(?<![.\d])\d{20}")
_DIGITS_AS_ZERO = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER = b"0" * 20


def replace_non_finite(value: Any) -> Any:
    """Replace NaN and infinity, which JSON lacks, by None at any depth."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: replace_non_finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [replace_non_finite(item) for item in value]
    return value


def json_line(record: Mapping[str, Any]) -> str:
    """Return a record as a line of a file, with its messages."""
    found = replace_non_finite(with_messages(record))
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"


def append_whole(file: IO[bytes], data: bytes) -> None:
    """Append to an unbuffered file, all or nothing: a partial write on a full disk is undone."""
    start = file.seek(0, os.SEEK_END)
    written = 0
    try:
        while written < len(data):
            written += file.write(data[written:])
    except OSError:
        file.truncate(start)
        raise


def write_atomic(path: Path, text: str) -> None:
    """Replace a file atomically: a reader sees the old text or the new. An `OSError` names the file."""
    with atomic_file(path) as file:
        file.write(text.encode("utf-8", "surrogatepass"))


def write_user_file(path: Path, text: str | Iterable[str]) -> None:
    """Write a text, or its parts, to a file named by the user: a link's target is replaced, a pipe or device is written
    to. `ValueError`: a zero byte in its name.
    """
    as_it_is = path.exists() and not path.is_file() and not path.is_dir()
    with path.open("wb") if as_it_is else atomic_file(path.resolve()) as file:
        file.writelines(part.encode("utf-8", "surrogatepass") for part in ([text] if isinstance(text, str) else text))


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file to fill, which atomically replaces another once complete; errors as in `write_atomic`."""
    staged = path.with_name(f".{path.name}.new")
    try:
        with staged.open("wb") as file:
            yield file
        staged.replace(path)
    except OSError as error:  # a write's full-disk error lacks the file's name
        with contextlib.suppress(OSError):
            staged.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from error


@contextlib.contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield a folder to fill, which takes its place, missing or empty until then, once complete; on failure nothing is
    left. An `OSError` names the file by its intended place.
    """
    staged = path.with_name(f".{path.name}.{os.getpid()}.new")
    shutil.rmtree(staged, ignore_errors=True)
    try:
        staged.mkdir(parents=True)
        yield staged
        with contextlib.suppress(FileNotFoundError):
            path.rmdir()
        staged.rename(path)
    except OSError as error:
        meant = str(error.filename or path).replace(str(staged), str(path))
        raise OSError(error.errno, error.strerror, meant) from error
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write a record, with its messages, as a JSON file."""
    found = replace_non_finite(with_messages(data))
    write_atomic(path, json.dumps(found, ensure_ascii=False, indent=1, allow_nan=False) + "\n")


def read_json(path: Path, most: int = MAX_JSON_BYTES) -> Any:
    """Return a JSON file's data; None if it is missing, damaged or too large."""
    try:
        raw = read_regular_file(path, most)
        return _parsed(raw, raw.decode("utf-8", "replace"))
    except (OSError, ValueError, RecursionError):
        return None


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a JSON-lines file, skipping torn or damaged lines."""
    try:
        with open_regular_file(path) as file:
            yield from (record for record in parsed_lines(file) if record is not None)
    except OSError:
        return


def parsed_lines(file: IO[bytes]) -> Iterator[dict[str, Any] | None]:
    """Yield each line's record from an open file, None for a torn or damaged line; stops after too much damage."""
    damage = 0
    for raw in iter(partial(file.readline, MAX_LINE_BYTES), b""):
        record = parse_line(raw)
        yield record
        damage += len(raw) if record is None else 0
        if damage > MOST_DAMAGE:
            return


def parse_line(raw: bytes) -> dict[str, Any] | None:
    """Return one record; None if the line is torn (no line end) or not an object."""
    if not raw.endswith(b"\n") or not raw[:64].lstrip().startswith(b"{"):  # do not parse a file hole
        return None
    try:
        record = _parsed(raw, raw)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _parsed(raw: bytes, text: str | bytes) -> Any:
    """Parse JSON with bounded integers: those of 20 or more digits become floats, perhaps infinite. `ValueError`: not
    JSON, or deeper or with more values than anything written here.
    """
    if raw.count(b",") > MOST_VALUES:
        raise ValueError(tr("too many values"))
    # The first test is ten times faster.
    beyond = _LONG_NUMBER in raw.translate(_DIGITS_AS_ZERO) and _BEYOND.search(raw)
    found = json.loads(text, parse_int=_int_or_float) if beyond else json.loads(text)
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH:
        level = [found]
        for _ in range(MAX_DEPTH):
            tables = (one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list))
            level = [inner for table in tables for inner in table if isinstance(inner, dict | list)]
        if level:
            raise ValueError(tr("nested too deeply"))
    return found


def _int_or_float(digits: str) -> int | float:
    return int(digits) if len(digits.lstrip("-")) < 20 else float(digits)


def sync_folder(path: Path) -> None:
    """Make a rename in this folder durable, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def sync_file(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def flat_items(data: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of nested objects and lists, each with its dotted name."""
    items = data.items() if isinstance(data, Mapping) else enumerate(data)
    for key, value in items:
        name = f"{prefix}{key}"
        if isinstance(value, Mapping | list):
            yield from flat_items(value, f"{name}.")
        else:
            yield name, value
