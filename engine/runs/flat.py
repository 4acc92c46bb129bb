"""A record with objects and lists in it, as a row: one value a name."""

from collections.abc import Iterator, Mapping
from typing import Any


def flat(data: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values of nested objects and lists, each with its dotted name."""
    items = data.items() if isinstance(data, Mapping) else enumerate(data)
    for key, value in items:
        name = f"{prefix}{key}"
        if isinstance(value, Mapping | list):
            yield from flat(value, f"{name}.")
        else:
            yield name, value
