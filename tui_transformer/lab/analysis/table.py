"""A comparison as it is written down: heads and cells of text, the same for every format."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.clean import clean_line
from tui_transformer.lab.analysis import group_columns
from tui_transformer.lab.analysis.columns import FIXED, Column, Value, columns
from tui_transformer.lab.analysis.entry import Entry
from tui_transformer.lab.analysis.standing import Standing
from tui_transformer.lab.records.facts import number

ALWAYS = ("verdict", "corpus", "unit", "context", "stride")  # what a number means goes wherever the number goes


@dataclass(frozen=True)
class Table:
    """Rows of text under full names; everything is cleaned.

    Args:
        columns: what stands in each, from the left.
        heads: their names, with units.
        rows: a run each; "" where it has no value.
        values: the same cells as numbers and texts.
    """

    columns: tuple[Column, ...]
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    values: tuple[tuple[Value, ...], ...]


def table(entries: Sequence[Entry], baseline: Entry | None, *, all_settings: bool = False) -> Table:
    """Everything about these runs, with what their scores mean and what may be concluded.

    Args:
        entries: the runs, in their order.
        baseline: the one that differences are to.
        all_settings: every setting, not only those that differ.
    """
    found = columns(entries, baseline, all_settings=all_settings)
    shown = {column.key for column in found}
    found += [FIXED[key] for key in ALWAYS if key not in shown]
    units = {entry.protocol.unit for entry in entries}
    unit = f"nats per {clean_line(units.pop())}" if len(units) == 1 else "nats, per unit as given"
    heads = tuple(clean_line(f"{c.name} ({unit})" if _is_loss(c) else c.name) for c in found)
    rows = tuple(tuple(clean_line(c.written(e, baseline)) for c in found) for e in entries)
    values = tuple(tuple(_plain(c.value(e, baseline)) for c in found) for e in entries)
    return Table(tuple(found), heads, rows, values)


def group_table(standings: Sequence[Standing], *, data: bool = False, all_settings: bool = False) -> Table:
    """The same of variants over their seeds.

    Args:
        standings: the variants, in their order.
        data: every number in a column of its own, as a program wants it; else a mean with its interval in one.
        all_settings: every setting, not only those that differ.
    """
    found = (group_columns.data_columns if data else group_columns.columns)(standings, all_settings=all_settings)
    heads = tuple(clean_line(column.name) for column in found)
    rows = tuple(tuple(clean_line(c.written(s, None)) for c in found) for s in standings)
    values = tuple(
        tuple(
            _plain(c.value(s, None)) if data or _is_number(cell) else cell for c, cell in zip(found, row, strict=True)
        )
        for s, row in zip(standings, rows, strict=True)
    )
    return Table(tuple(found), heads, rows, values)


def _is_number(cell: str) -> bool:
    """Whether a cell is a number and nothing else."""
    try:
        return number(float(cell)) is not None
    except ValueError:
        return False


def _is_loss(column: Column) -> bool:
    return column.key in ("last", "best", "Δlast", "Δbest", "gap", "excess")


def _plain(value: Value) -> Value:
    return list(value) if isinstance(value, tuple) else value
