"""What the Compare pane shows: the runs that the filter lets through, in order, as cells of text. Pure but for a cache.

Cells are made once for each run and kept until the run, the baseline or the columns change: a filter that is typed
costs no more than looking at five hundred runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.cells import cell_len

from engine.errors import InputError
from tui_transformer.clean import clean_line
from tui_transformer.comparison.columns import Column, columns
from tui_transformer.comparison.entry import Entry
from tui_transformer.comparison.order import sort
from tui_transformer.comparison.query import Known, Query, begun, unfinished

LONGEST_CELL = 120  # characters of a note that a table needs


@dataclass(frozen=True)
class Options:
    """How runs are shown.

    Args:
        query: the filter as typed.
        sort: the key of a column; "" leaves the newest first.
        reverse: the other way round.
        baseline: the pinned run.
        selected: the runs that are drawn.
        only: leave out what is not selected.
        all_settings: a column for every setting.
    """

    query: str = ""
    sort: str = ""
    reverse: bool = False
    baseline: Path | None = None
    selected: tuple[Path, ...] = ()
    only: bool = False
    all_settings: bool = False


@dataclass(frozen=True)
class Row:
    """A run and its cells, cleaned; `widths` in columns of the terminal."""

    entry: Entry
    cells: tuple[str, ...]
    widths: tuple[int, ...]


@dataclass(frozen=True)
class Shown:
    """What there is to show.

    Args:
        widths: of the widest cell of each column, its title among them.
        total: runs in the folder.
        mistake: what is wrong with the filter; only the terms before it hold.
        nothing: why no run is shown; "" where some are.
        terms: of the filter.
    """

    columns: tuple[Column, ...] = ()
    rows: tuple[Row, ...] = ()
    widths: tuple[int, ...] = ()
    total: int = 0
    baseline: Entry | None = None
    sorted_by: Column | None = None
    mistake: str = ""
    nothing: str = ""
    terms: int = 0


@dataclass
class View:
    """Arranges entries, and keeps the cells it made."""

    _cells: dict[Path, tuple[Entry, Row]] = field(default_factory=dict)
    _made_for: tuple[object, ...] = ()

    def arrange(self, entries: Sequence[Entry], options: Options) -> Shown:
        """What to show of these runs."""
        by_path = {entry.path: entry for entry in entries}
        baseline = by_path.get(options.baseline) if options.baseline is not None else None
        query, mistake = begun(options.query, entries)
        key = "" if mistake else unfinished(options.query, query, entries)
        if key:  # what is typed would hide every run until it is a term
            query, mistake = Query(query.terms[:-1]), f"{key} is a key: go on with = != < <= > >= or :"
        chosen = [by_path[path] for path in options.selected if path in by_path]
        among = chosen if options.only else entries
        found = query(among, baseline)
        order = _column(options.sort, Known(entries))
        shown = sort(found, order, baseline, reverse=options.reverse)
        offered = columns(shown, baseline, of=chosen if len(chosen) > 1 else (), all_settings=options.all_settings)
        rows = self._rows(shown, offered, baseline)
        arrow = order.key if order is not None else ""
        titles = [cell_len(column.title) + (column.key == arrow) for column in offered]
        widths = tuple(max(column) for column in zip(titles, *(row.widths for row in rows), strict=True))
        nothing = "" if rows else _why_nothing(query, among, options, baseline)
        return Shown(tuple(offered), rows, widths, len(entries), baseline, order, mistake, nothing, len(query.terms))

    def _rows(self, entries: Sequence[Entry], offered: list[Column], baseline: Entry | None) -> tuple[Row, ...]:
        made_for = (baseline, tuple((column.key, column.title) for column in offered))
        if not self._made_for or made_for[0] is not self._made_for[0] or made_for[1] != self._made_for[1]:
            self._made_for, self._cells = made_for, {}
        rows = []
        for entry in entries:
            kept = self._cells.get(entry.path)
            if kept is None or kept[0] is not entry:
                cells = tuple(clean_line(column.shown(entry, baseline))[:LONGEST_CELL] for column in offered)
                kept = entry, Row(entry, cells, tuple(map(cell_len, cells)))
                self._cells[entry.path] = kept
            rows.append(kept[1])
        return tuple(rows)


def _column(key: str, known: Known) -> Column | None:
    try:
        return known.column(key) if key else None
    except InputError:  # a probe that no run has any more
        return None


def _why_nothing(query: Query, among: Sequence[Entry], options: Options, baseline: Entry | None) -> str:
    if among:
        return query.why_none(among, baseline)
    return "no run is selected: i shows all" if options.only else "there is no run yet"
