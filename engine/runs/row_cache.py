"""Rows of finished runs, kept in the user's cache folder, so that a list of thousands reads only what changed.

A file per runs folder, kind of row and language. A line has a checksum, a hash of the run's name and its files' stamps,
the name, and the row. Damaged and outdated lines count as missing and are replaced. If two processes save at once, the
rows of one are lost, which costs only time.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import IO, Generic, TypeVar
from zlib import crc32

from pydantic import TypeAdapter

from engine.base.cache_folder import cache_folder, try_write_atomically
from engine.base.language import language_code
from engine.base.plain_files import open_regular_file
from engine.base.release import release_facts
from engine.runs.tail import Stamp

WORTH_SAVING = 20  # new rows; fewer are read again faster than the file is written
SETTLED = 2_000_000_000  # nanoseconds since a file changed: a later change in the same tick would leave its stamp alone
T = TypeVar("T")


class RowCache(Generic[T]):
    """Rows are frozen dataclasses with a `path`, which is not kept; `is_final` tells whether one may be."""

    def __init__(self, runs_dir: Path, kind: type[T], is_final: Callable[[T], bool]) -> None:
        self._runs_dir, self._kind, self._is_final = runs_dir, kind, is_final
        self._found: dict[bytes, bytes] | None = None  # what follows a line's checksum, by the name in it
        self._new: dict[bytes, tuple[bytes, T]] = {}  # with its hash, by name
        self._known = 0  # lines of the file

    def get(self, path: Path, stamps: tuple[Stamp, ...]) -> T | None:
        """Return the row of a run whose files are as they were; None if none is kept."""
        if self._found is None:
            self._found = self._load()
        line = self._found.get(name := json.dumps(path.name).encode())
        if line is None or not line.startswith(version := _version(path, stamps)):
            return None
        try:
            return self._read(line[len(version) + len(name) + 2 :], path)
        except ValueError:
            return None

    def add(self, path: Path, stamps: tuple[Stamp, ...], row: T) -> None:
        """Keep a final row that was read after its files had these stamps, at the next `save`."""
        newest = max((max(stamp[0], stamp[-1]) for stamp in stamps if stamp is not None), default=0)
        if self._is_final(row) and time.time_ns() - newest > SETTLED:
            self._new[json.dumps(path.name).encode()] = _version(path, stamps), row

    def save(self) -> None:
        """Write the file again, if enough is new; runs that are gone are left out. Failing costs only time."""
        self._found = {}  # its text is as large as the rows, and needed only for the first look
        if len(self._new) < max(WORTH_SAVING, self._known // 20):
            return
        lines = self._load()  # again: another process may have written it
        for name, (version, row) in self._new.items():
            try:
                text = self._adapter.dump_json(row, exclude_unset=True)
                # JSON cannot hold everything that TOML can.
                if self._read(text, self._runs_dir / json.loads(name)) == row:
                    lines[name] = b"\t".join((version, name, text))
            except ValueError:
                continue
        self._new = {}
        kept = [line for name, line in lines.items() if (self._runs_dir / json.loads(name)).exists()]
        self._known, head = len(kept), self._head
        whole = (b"%08x\t%b\n" % (crc32(line), line) for line in kept)

        def write(file: IO[bytes]) -> None:
            os.fchmod(file.fileno(), 0o600)  # what it repeats may be in folders that only their user may read
            file.writelines([head, *whole])

        try_write_atomically(self._file, write)

    def _read(self, text: bytes, path: Path) -> T:
        row = self._adapter.validate_json(text)
        object.__setattr__(row, "path", path)
        return row

    @cached_property
    def _adapter(self) -> TypeAdapter[T]:
        return TypeAdapter(self._kind)

    @cached_property
    def _head(self) -> bytes:
        """The first line: another version of this program may read a run differently."""
        return (json.dumps(release_facts()) + "\n").encode()

    @property
    def _file(self) -> Path:
        parts = [os.path.realpath(self._runs_dir), self._kind.__qualname__, language_code()]
        return cache_folder() / "rows" / hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def _load(self) -> dict[bytes, bytes]:
        found = {}
        try:
            with open_regular_file(self._file) as file:
                if file.readline(len(self._head)) == self._head:
                    for checked in file:
                        checksum, line = checked[:9], checked[9:-1]
                        if checksum == b"%08x\t" % crc32(line):
                            found[line.split(b"\t", 2)[1]] = line
        except (OSError, ValueError, IndexError):
            pass
        self._known = len(found)
        return found


def _version(path: Path, stamps: tuple[Stamp, ...]) -> bytes:
    return hashlib.sha256(repr((path.name, stamps)).encode("utf-8", "surrogatepass")).hexdigest().encode()
