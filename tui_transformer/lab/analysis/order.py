"""Sorting by any column, both ways: stable, numbers before texts, what is missing always last."""

from collections.abc import Sequence
from typing import TypeVar

from tui_transformer.lab.analysis.columns import Column, Value
from tui_transformer.lab.analysis.entry import Entry, Listed
from tui_transformer.lab.records.facts import number

R = TypeVar("R", bound=Listed)


def sort(
    entries: Sequence[R], column: Column | None, baseline: Entry | None, *, reverse: bool = False
) -> tuple[R, ...]:
    """The same runs or variants in another order; without a column, as they come."""
    if column is None:
        return tuple(reversed(entries)) if reverse else tuple(entries)
    valued = [(entry, column.value(entry, baseline)) for entry in entries]
    known = [pair for pair in valued if pair[1] is not None and pair[1] not in ("", ())]
    missing = [entry for entry, value in valued if value is None or value in ("", ())]
    known.sort(key=lambda pair: _key(pair[1]), reverse=reverse)
    return (*(entry for entry, _ in known), *missing)


def _key(value: Value) -> tuple[int, float, str]:
    size = number(value)
    if size is not None:
        return 0, size, ""
    return 1, 0.0, (" ".join(value) if isinstance(value, tuple) else str(value)).casefold()
