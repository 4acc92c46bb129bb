"""Values from files that others wrote, each as what it should be or as nothing; and the ends of files that grow."""

import os
from itertools import islice
from pathlib import Path
from typing import Any

from engine.plain_files import open_plain
from engine.runs.files import parse_line

Record = dict[str, Any]
Stamp = tuple[int, int, int] | None
LARGEST = 10**15  # of a count, and of what a chart draws
MOST_PROBES = 64  # of a run; more mean damage, and each one gets a column, chart and verdict
MEASURED = 1e100  # of what is taken for a number: the squares of larger ones overflow


def number(value: Any) -> float | None:
    """A number that something may have measured (finite, and no larger than `MEASURED`), or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= MEASURED else None


def whole(value: Any) -> int:
    """A count, 0 where it is none."""
    found = number(value)
    return int(found) if found is not None and abs(found) <= LARGEST else 0


def text(value: Any) -> str:
    """A text, "" where it is none. Not cleaned: that is for whoever shows it."""
    return value if isinstance(value, str) else ""


def table(value: Any) -> Record:
    """A JSON object, {} where it is none."""
    return value if isinstance(value, dict) else {}


def rows(value: Any) -> list[Record]:
    """The objects of a JSON array."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def first_probes(value: Any) -> Record:
    """The first probes in a table."""
    return dict(islice(table(value).items(), MOST_PROBES))


def stamp(path: Path) -> Stamp:
    """What tells one version of a file from the next; None where it cannot be read."""
    try:
        found = os.stat(path)  # noqa: PTH116  (called thousands of times a second)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


def end_of(path: Path, most: int) -> bytes:
    """The last whole lines of a file, at most `most` bytes; b"" where it cannot be read."""
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


def newest_records(path: Path, count: int, most: int) -> list[Record]:
    """The last records of a JSON-lines file within its last `most` bytes, oldest first."""
    found = (parse_line(raw) for raw in end_of(path, most).splitlines(keepends=True)[-count - 1 :])
    return [record for record in found if record is not None][-count:]


def newest_lines(path: Path, count: int, most: int) -> tuple[str, ...]:
    """The last lines of a text within its last `most` bytes, oldest first."""
    data = end_of(path, most).decode("utf-8", "replace")
    return tuple(line.rstrip() for line in data.split("\n") if line.strip())[-count:]
