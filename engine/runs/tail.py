"""Files that grow: metrics.jsonl, read fast, in bounded memory, however long the run is and whoever cuts it meanwhile;
the ends of the others; and what tells one version of a file from the next.

A run that resumes cuts its metrics back while others read them. So the file is read in blocks and never mapped into
memory: to touch a mapped page that was cut off kills the process, and no `except` sees it. Knows nothing of charts.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

from engine.plain_files import open_plain
from engine.runs.files import LONGEST, MOST_DAMAGE, parse_line, read_json

MOST = 4000  # train records that a reader wants at once: more than a terminal has columns
JUMP = 4 << 20  # bytes since the last look beyond which they are thinned, not read whole
BLOCK = 1 << 18  # bytes read at once: a block stays in the processor's cache while it is searched
FARTHEST = 1 << 62  # steps; a number beyond it is damage, and would double a span for ever
VALIDATION = b'"kind":"validation"'  # as `engine.runs.files.line` spells it
Stamp = tuple[int, int, int] | None


def stamp(path: Path) -> Stamp:
    """Return what tells one version of a file from the next; None where it cannot be read."""
    try:
        found = os.stat(path)  # noqa: PTH116  (called thousands of times a second)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


def end_of(path: Path, most: int) -> bytes:
    """Return the last whole lines of a file, at most `most` bytes; b"" where it cannot be read."""
    try:
        with open_plain(path) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - most))
            data = file.read(most)
    except OSError:
        return b""
    if size > most:
        data = data[data.find(b"\n") + 1 :]
    return data


def newest_records(path: Path, count: int, most: int) -> list[dict[str, Any]]:
    """Return the last records of a JSON-lines file within its last `most` bytes, oldest first."""
    found = (parse_line(raw) for raw in end_of(path, most).splitlines(keepends=True)[-count - 1 :])
    return [record for record in found if record is not None][-count:]


def newest_lines(path: Path, count: int, most: int) -> tuple[str, ...]:
    """Return the last lines of a text within its last `most` bytes, oldest first."""
    data = end_of(path, most).decode("utf-8", "replace")
    return tuple(line.rstrip() for line in data.split("\n") if line.strip())[-count:]


@dataclass
class Columns:
    """Metrics as records by kind; train records may be thinned, validation records never are."""

    train: list[dict[str, Any]] = field(default_factory=list)
    validation: list[dict[str, Any]] = field(default_factory=list)

    def add(self, record: dict[str, Any]) -> None:
        """Sort one record in."""
        if record.get("kind") == "validation":
            self.validation.append(record)
        elif record.get("kind") == "train":
            self.train.append(record)


class MetricsTail:
    """metrics.jsonl, read once and then as it grows. No method raises: what cannot be read is not there yet."""

    def __init__(self, run: Path) -> None:
        self._path = run / "metrics.jsonl"
        self._status = run / "status.json"
        self._offset = 0  # bytes read so far, whole lines
        self._attempt: Any = None
        self._seen: tuple[int, ...] = ()  # what tells one status.json from the next
        self._said: Any = None  # the attempt that it named

    def load(self, max_points: int = MOST) -> Columns:
        """Everything so far: every validation record, and about `max_points` train records at equal distances.

        A file of no more than `max_points` lines is given whole; the first and the last train record always are.
        """
        self._offset = 0
        self._attempt = self._current_attempt()  # before the file: a resume in between is then seen by `poll`
        return self._read(max_points)

    def poll(self) -> tuple[bool, Columns]:
        """(reset, new): what came since the last call; after a reset, `new` is everything again.

        Where more than `JUMP` bytes came at once, `new` is thinned as by `load`.
        """
        try:
            size = self._path.stat().st_size
        except OSError:
            return False, Columns()
        attempt = self._current_attempt()
        resumed = self._attempt is not None and attempt is not None and attempt != self._attempt
        if size < self._offset or resumed:
            return True, self.load()
        if self._attempt is None:
            self._attempt = attempt
        jump = size - self._offset
        if jump == 0:
            return False, Columns()
        return False, self._read(MOST if jump > JUMP else JUMP)

    def _read(self, most: int) -> Columns:
        """From the offset to the end, and the offset moved there."""
        columns = Columns()
        try:
            with open_plain(self._path) as file:
                end = os.fstat(file.fileno()).st_size
                read = _every if _few(file, self._offset, end, most) else _strided
                for offset in read(file, self._offset, end, most, columns):
                    self._offset = offset
        except OSError:
            pass  # what was read until then counts
        return columns

    def _current_attempt(self) -> Any:
        """The attempt that status.json names, None where it names none; opened only where it was replaced."""
        with suppress(OSError):
            stat = self._status.stat()
            seen = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
            if seen != self._seen:
                status = read_json(self._status)
                self._said = status.get("attempt") if isinstance(status, dict) else None
                self._seen = seen if self._said is not None else ()
            return self._said
        return None


class History:
    """What a chart holds of a long run: thinned as it grows, its memory bounded, every validation record kept.

    The steps are cut into spans and the first train record of each is kept. Where these become more than `2 * most`,
    the spans double: of records at equal distances that keeps every second one, then every fourth, and as many of those
    that come later. A past that `MetricsTail.load` thinned is so left alone until the present is as thin.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = max(1, most)
        self.reset(Columns())

    def reset(self, columns: Columns) -> None:
        """Forget everything, then `add`."""
        self.columns = Columns()
        self.latest_train: dict[str, Any] | None = None  # the newest, kept in `columns` or not
        self._steps: list[int] = []  # of the train records kept
        self._step = -1  # of the newest
        self._span = 1  # steps
        self.add(columns)

    def add(self, columns: Columns) -> None:
        """Take in what came, oldest first."""
        self.columns.validation.extend(columns.validation)
        for record in columns.train:
            self.latest_train = record
            step = record.get("step")
            self._step = step if isinstance(step, int) and abs(step) < FARTHEST else self._step + 1
            if not self._steps or self._place(self._step) != self._place(self._steps[-1]):
                self.columns.train.append(record)
                self._steps.append(self._step)
                if len(self._steps) > 2 * self._most:
                    self._thin()

    def _place(self, step: int) -> int:
        return abs(step - self._steps[0]) // self._span

    def _thin(self) -> None:
        if self._span == 1:  # as far apart as they come
            self._span = max(1, min(abs(b - a) for a, b in pairwise(self._steps)))
        while len(self._steps) > 2 * self._most:
            self._span *= 2
            places = [self._place(step) for step in self._steps]
            kept = [i for i, place in enumerate(places) if i == 0 or place != places[i - 1]]
            self._steps = [self._steps[i] for i in kept]
            self.columns.train = [self.columns.train[i] for i in kept]


def _blocks(file: IO[bytes], start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """(offset, whole lines) from `start` to the line that holds `end`; a line longer than `LONGEST` reads as b"".

    Stops after `MOST_DAMAGE` bytes of lines longer than a block: no record is that long, and a hole has no end.
    """
    file.seek(start)
    damage = 0
    while start < end and damage <= MOST_DAMAGE:
        block = file.read(min(BLOCK, end - start))
        if not block.endswith(b"\n"):
            block += file.readline(LONGEST)
            damage += len(block) if len(block) > 2 * BLOCK else 0
        whole = block.rfind(b"\n") + 1
        if whole:
            yield start, block[:whole]
        start += whole
        rest = len(block) - whole
        if rest == 0 and whole:
            continue
        if rest < LONGEST:
            return  # torn, or cut off while it was read
        piece = b""
        while not piece.endswith(b"\n"):
            piece = file.readline(BLOCK)
            if not piece or damage > MOST_DAMAGE:
                return
            rest += len(piece)
            damage += len(piece)
        start += rest
        yield start, b""


def _few(file: IO[bytes], start: int, end: int, most: int) -> bool:
    """Whether there are at most `most` lines; looks no further than that."""
    if end - start <= most:  # bytes
        return True
    lines = 0
    with suppress(OSError):
        for _, block in _blocks(file, start, end):
            lines += block.count(b"\n")
            if lines > most:
                return False
    return True


def _every(file: IO[bytes], start: int, end: int, most: int, columns: Columns) -> Iterator[int]:
    """Sort every record into `columns`; yields the offset reached, again and again."""
    for offset, block in _blocks(file, start, end):
        for _, record in _records(block, 0):
            columns.add(record)
        yield offset + len(block)


def _strided(file: IO[bytes], start: int, end: int, most: int, columns: Columns) -> Iterator[int]:
    """Every validation record, and the first train record after every `gap` bytes; the last one as well."""
    gap = -(-(end - start) // max(1, most - 1))
    aim, taken = start, -1
    newest: tuple[int, dict[str, Any]] = (-1, {})
    try:
        for offset, block in _blocks(file, start, end):
            columns.validation.extend(_validations(block))
            while aim < offset + len(block):
                found = _first_train(block, _line_from(block, aim - offset))
                if found is None:
                    break  # the aim stays: the next block's first train record meets it
                taken = offset + found[0]
                columns.train.append(found[1])
                aim = start + ((taken - start) // gap + 1) * gap
            last = _last_train(block)
            if last is not None:
                newest = (offset + last[0], last[1])
            yield offset + len(block)
    finally:  # after an error, the last one that could be read
        if newest[0] > taken:
            columns.train.append(newest[1])


def _records(block: bytes, at: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """(where, record) of the lines from `at`, which begins one."""
    while at < len(block):
        stop = block.find(b"\n", at) + 1
        record = parse_line(block[at:stop])
        if record is not None:
            yield at, record
        at = stop


def _validations(block: bytes) -> Iterator[dict[str, Any]]:
    at = block.find(VALIDATION)
    while at >= 0:
        stop = block.find(b"\n", at) + 1
        record = parse_line(block[block.rfind(b"\n", 0, at) + 1 : stop])
        if record is not None and record.get("kind") == "validation":
            yield record
        at = block.find(VALIDATION, stop)


def _line_from(block: bytes, at: int) -> int:
    """Where the first line begins that does not begin before `at`."""
    return block.find(b"\n", at - 1) + 1 if at > 0 else 0


def _first_train(block: bytes, at: int) -> tuple[int, dict[str, Any]] | None:
    return next((found for found in _records(block, at) if found[1].get("kind") == "train"), None)


def _last_train(block: bytes) -> tuple[int, dict[str, Any]] | None:
    stop = len(block)
    while stop:
        at = block.rfind(b"\n", 0, stop - 1) + 1
        record = parse_line(block[at:stop])
        if record is not None and record.get("kind") == "train":
            return at, record
        stop = at
    return None
