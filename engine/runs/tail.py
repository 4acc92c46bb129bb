"""Follow growing files: metrics.jsonl, read fast and in bounded memory, however long the run and even if truncated
meanwhile; the ends of other files; and a stamp that tells one version of a file from the next.

A resuming run truncates its metrics while others read them. So the file is read in blocks, never memory-mapped:
touching a mapped page that was cut off kills the process, past any `except`. Independent of charts.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, TypeVar

from engine.base.plain_files import open_regular_file
from engine.runs.files import MAX_LINE_BYTES, MOST_DAMAGE, parse_line, read_json
from engine.runs.records import Event, MetricRecord, Sample, TrainRecord, ValidationRecord, metric_record

MAX_TRAIN_RECORDS = 4000  # train records a reader needs: more than a terminal's columns
THIN_ABOVE_BYTES = 4 << 20  # new bytes beyond which they are thinned, not read whole
BLOCK = 1 << 18  # bytes read at once: a block stays in the processor's cache while it is searched
VALIDATION = b'"kind":"validation"'  # as `engine.runs.files.json_line` spells it
Stamp = tuple[int, int, int, int] | None
L = TypeVar("L", Event, Sample, TrainRecord)


def stamp(path: Path | str) -> Stamp:
    """Return a stamp that tells one version of a file from the next; None if it cannot be read."""
    try:
        found = os.stat(path)  # noqa: PTH116  (called thousands of times a second)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size, found.st_ctime_ns


def read_end(path: Path, most: int) -> bytes:
    """Return the last whole lines of a file, at most `most` bytes; b"" if it cannot be read."""
    try:
        with open_regular_file(path) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - most))
            data = file.read(most)
    except OSError:
        return b""
    if size > most:
        data = data[data.find(b"\n") + 1 :]
    return data


def newest_records(path: Path, kind: type[L], count: int, most: int) -> list[L]:
    """Return the last records of a JSON-lines file within its last `most` bytes, oldest first."""
    found = (parse_line(raw) for raw in read_end(path, most).splitlines(keepends=True)[-count - 1 :])
    return [kind.read(record) for record in found if record is not None][-count:]


def newest_lines(path: Path, count: int, most: int) -> tuple[str, ...]:
    """Return the last lines of a text within its last `most` bytes, oldest first."""
    data = read_end(path, most).decode("utf-8", "replace")
    return tuple(line.rstrip() for line in data.split("\n") if line.strip())[-count:]


@dataclass(frozen=True)
class Metrics:
    """Metrics as records by kind; only train records may be thinned."""

    train: tuple[TrainRecord, ...] = ()
    validation: tuple[ValidationRecord, ...] = ()
    version: int = 0  # of a `MetricsHistory`: changes whenever anything is added

    def __bool__(self) -> bool:
        return bool(self.train or self.validation)


class MetricsTail:
    """metrics.jsonl, read once and then as it grows. No method raises: unreadable data counts as not yet written."""

    def __init__(self, run: Path) -> None:
        self._path = run / "metrics.jsonl"
        self._status = run / "status.json"
        self._offset = 0  # bytes read so far, whole lines
        self._attempt: object = None
        self._seen: Stamp = None  # the stamp of status.json
        self._status_attempt: object = None  # the attempt it named

    def load(self, max_points: int = MAX_TRAIN_RECORDS) -> Metrics:
        """Return every validation record so far, and about `max_points` evenly spaced train records.

        Up to `max_points` lines are returned whole, and the first and last train record always.
        """
        self._offset = 0
        self._attempt = self._current_attempt()  # before the file: a resume in between is then seen by `poll`
        return self._read(max_points)

    def poll(self) -> tuple[bool, Metrics]:
        """Return (reset, new): the records since the last call; after a reset, `new` is everything again.

        If more than `THIN_ABOVE_BYTES` bytes came at once, `new` is thinned as by `load`.
        """
        try:
            size = self._path.stat().st_size
        except OSError:
            return False, Metrics()
        attempt = self._current_attempt()
        resumed = self._attempt is not None and attempt is not None and attempt != self._attempt
        if size < self._offset or resumed:
            return True, self.load()
        if self._attempt is None:
            self._attempt = attempt
        jump = size - self._offset
        if jump == 0:
            return False, Metrics()
        return False, self._read(MAX_TRAIN_RECORDS if jump > THIN_ABOVE_BYTES else THIN_ABOVE_BYTES)

    def _read(self, most: int) -> Metrics:
        train, validation = list[TrainRecord](), list[ValidationRecord]()
        try:
            with open_regular_file(self._path) as file:
                end = os.fstat(file.fileno()).st_size
                read = _all_records if _few(file, self._offset, end, most) else _strided_records
                for offset, records in read(file, self._offset, end, most):
                    self._offset = offset
                    for record in records:
                        if isinstance(record, TrainRecord):
                            train.append(record)
                        else:
                            validation.append(record)
        except OSError:
            pass  # not there yet, or no longer
        return Metrics(tuple(train), tuple(validation))

    def _current_attempt(self) -> object:
        """Return the attempt named by status.json, if any; reopened only if replaced."""
        seen = stamp(self._status)
        if seen is None:
            return None
        if seen != self._seen:
            status = read_json(self._status)
            self._status_attempt = status.get("attempt") if isinstance(status, dict) else None
            self._seen = seen if self._status_attempt is not None else None
        return self._status_attempt


class MetricsHistory:
    """A long run's metrics for charts, followed as they grow: thinned in bounded memory, with all validation records.

    The steps are cut into spans and the first train record of each is kept. Where these become more than `2 * most`,
    the spans double: of evenly spaced records, that keeps every second one, then every fourth, and the same share of
    later ones. What `MetricsTail.load` thinned is thus left as it is until newer records are as sparse.
    """

    def __init__(self, run: Path, most: int) -> None:
        self._tail, self._loaded, self._most = MetricsTail(run), False, max(1, most)
        self.metrics = Metrics()
        self.reset(self.metrics)

    def poll(self) -> tuple[bool, Metrics]:
        """Add what is new and return it as `MetricsTail.poll` does; everything on the first call."""
        reset, new = self._tail.poll() if self._loaded else (True, self._tail.load())
        self._loaded = True
        if reset or new:
            (self.reset if reset else self.add)(new)
        return reset, new

    def reset(self, new: Metrics) -> None:
        self._train, self._validation = list[TrainRecord](), list[ValidationRecord]()
        self.latest_train: TrainRecord | None = None  # the newest, kept or not
        self._steps: list[int] = []  # of the train records kept
        self._step = -1  # of the newest
        self._span = 1  # steps
        self.add(new)

    def add(self, new: Metrics) -> None:
        self._validation.extend(new.validation)
        for record in new.train:
            self.latest_train = record
            self._step = record.step if "step" in record.model_fields_set else self._step + 1
            if not self._steps or self._span_index(self._step) != self._span_index(self._steps[-1]):
                self._train.append(record)
                self._steps.append(self._step)
                if len(self._steps) > 2 * self._most:
                    self._decimate()
        self.metrics = Metrics(tuple(self._train), tuple(self._validation), self.metrics.version + 1)

    def _span_index(self, step: int) -> int:
        return abs(step - self._steps[0]) // self._span

    def _decimate(self) -> None:
        if self._span == 1:  # the smallest distance between records
            self._span = max(1, min(abs(b - a) for a, b in pairwise(self._steps)))
        while len(self._steps) > 2 * self._most:
            self._span *= 2
            places = [self._span_index(step) for step in self._steps]
            kept = [i for i, place in enumerate(places) if i == 0 or place != places[i - 1]]
            self._steps = [self._steps[i] for i in kept]
            self._train = [self._train[i] for i in kept]


def _whole_line_blocks(file: IO[bytes], start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, whole lines) from `start` to the line that holds `end`; a line over `MAX_LINE_BYTES` is b"".

    Stop after `MOST_DAMAGE` bytes of lines longer than a block, as no record is that long and a hole may never end, and
    where the file cannot be read.
    """
    damage = 0
    with suppress(OSError):
        file.seek(start)
        while start < end and damage <= MOST_DAMAGE:
            block = file.read(min(BLOCK, end - start))
            if not block.endswith(b"\n"):
                block += file.readline(MAX_LINE_BYTES)
                damage += len(block) if len(block) > 2 * BLOCK else 0
            whole = block.rfind(b"\n") + 1
            if whole:
                yield start, block[:whole]
            start += whole
            rest = len(block) - whole
            if rest == 0 and whole:
                continue
            if rest < MAX_LINE_BYTES:
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
    """Return whether there are at most `most` lines; reads no further."""
    if end - start <= most:  # bytes
        return True
    lines = 0
    for _, block in _whole_line_blocks(file, start, end):
        lines += block.count(b"\n")
        if lines > most:
            return False
    return True


def _all_records(file: IO[bytes], start: int, end: int, most: int) -> Iterator[tuple[int, list[MetricRecord]]]:
    for offset, block in _whole_line_blocks(file, start, end):
        yield offset + len(block), [record for _, record in _records(block, 0)]


def _strided_records(file: IO[bytes], start: int, end: int, most: int) -> Iterator[tuple[int, list[MetricRecord]]]:
    """Every validation record, and the first train record after every `gap` bytes; the last one as well."""
    gap = -(-(end - start) // max(1, most - 1))
    aim, taken, read = start, -1, start
    newest: tuple[int, object] = (-1, None)
    for offset, block in _whole_line_blocks(file, start, end):
        records: list[MetricRecord] = [*_validations(block)]
        while aim < offset + len(block):
            first = block.find(b"\n", aim - offset - 1) + 1 if aim > offset else 0  # not a line that began earlier
            found = next((one for one in _records(block, first) if isinstance(one[1], TrainRecord)), None)
            if found is None:
                break  # keep the aim: the next block's first train record meets it
            taken = offset + found[0]
            records.append(found[1])
            aim = start + ((taken - start) // gap + 1) * gap
        last = _last_train(block)
        if last is not None:
            newest = (offset + last[0], last[1])
        read = offset + len(block)
        yield read, records
    if newest[0] > taken:
        yield read, [TrainRecord.read(newest[1])]


def _records(block: bytes, at: int) -> Iterator[tuple[int, MetricRecord]]:
    """Yield (offset, record) of the lines from `at`, the start of a line."""
    while at < len(block):
        stop = block.find(b"\n", at) + 1
        record = _record(block[at:stop])
        if record is not None:
            yield at, record
        at = stop


def _record(line: bytes) -> MetricRecord | None:
    parsed = parse_line(line)
    return None if parsed is None else metric_record(parsed)


def _validations(block: bytes) -> Iterator[ValidationRecord]:
    at = block.find(VALIDATION)
    while at >= 0:
        stop = block.find(b"\n", at) + 1
        record = _record(block[block.rfind(b"\n", 0, at) + 1 : stop])
        if isinstance(record, ValidationRecord):
            yield record
        at = block.find(VALIDATION, stop)


def _last_train(block: bytes) -> tuple[int, object] | None:
    """Return (offset, parsed record) of the last train record; not validated, as most are never used."""
    stop = len(block)
    while stop:
        at = block.rfind(b"\n", 0, stop - 1) + 1
        parsed = parse_line(block[at:stop])
        if parsed is not None and parsed.get("kind") == "train":
            return at, parsed
        stop = at
    return None
