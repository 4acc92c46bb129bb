"""Values from files that others wrote, each as what it should be or as nothing."""

from itertools import islice
from typing import Any

from engine.runs.records import LARGEST, MEASURED, MOST_PROBES

Record = dict[str, Any]


def number(value: Any) -> float | None:
    """A number that something may have measured (finite, and no larger than `MEASURED`), or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= MEASURED else None


def whole(value: Any) -> int:
    """A count, 0 where it is none."""
    found = number(value)
    return int(found) if found is not None and abs(found) <= LARGEST else 0


def table(value: Any) -> Record:
    """A JSON object, {} where it is none."""
    return value if isinstance(value, dict) else {}


def first_probes(value: Any) -> Record:
    """The first probes in a table."""
    return dict(islice(table(value).items(), MOST_PROBES))
