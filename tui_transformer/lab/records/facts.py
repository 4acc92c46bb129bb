"""Values from files that others wrote, each as what it should be or as nothing."""

from itertools import islice
from typing import Any

Record = dict[str, Any]
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
