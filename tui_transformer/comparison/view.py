"""What the Compare pane shows: the runs that the filter lets through, in order, as cells of text. Pure but for a cache.

Cells are made once for each run and kept until the run, the baseline or the columns change: a filter that is typed
costs no more than looking at five hundred runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.cells import cell_len

from engine.errors import InputError
from tui_transformer.clean import clean_line
from tui_transformer.comparison.columns import Column, columns
from tui_transformer.comparison.entry import Entry
from tui_transformer.comparison.order import sort
from tui_transformer.comparison.query import Known, Query, begun, unfinished

Key = tuple[str, str]  # a setting of a later version may be called as a column is
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
    """

    columns: tuple[Column, ...] = ()
    rows: tuple[Row, ...] = ()
    widths: tuple[int, ...] = ()
    total: int = 0
    baseline: Entry | None = None
    sorted_by: Column | None = None
    mistake: str = ""
    nothing: str = ""


class View:
    """Arranges entries, and keeps the cells it made."""

    def __init__(self) -> None:
        self._cells: dict[Path, _Cells] = {}
        self._baseline: Entry | None = None
        self._known: tuple[Sequence[Entry], Known] = ((), Known())

    def arrange(self, entries: Sequence[Entry], options: Options) -> Shown:
        """What to show of these runs."""
        by_path = {entry.path: entry for entry in entries}
        baseline = by_path.get(options.baseline) if options.baseline is not None else None
        known = self._names(entries)
        query, mistake = begun(options.query, known)
        key = "" if mistake else unfinished(options.query, query, entries, known)
        if key:  # what is typed would hide every run until it is a term
            query, mistake = Query(query.terms[:-1]), f"{key} is a key: go on with = != < <= > >= or :"
        chosen = [by_path[path] for path in options.selected if path in by_path]
        among = chosen if options.only else entries
        order = _column(options.sort, known)
        shown = sort(query(among, baseline), order, baseline, reverse=options.reverse)
        of = chosen if len(chosen) > 1 else ()
        offered = columns(shown, baseline, of=of, all_settings=options.all_settings)
        rows = self._rows(shown, offered, baseline)
        arrow = order.key if order is not None else ""
        titles = [cell_len(column.title) + (column.key == arrow) for column in offered]
        widths = tuple(max(column) for column in zip(titles, *(row.widths for row in rows), strict=True))
        nothing = "" if rows else _why_nothing(query, among, options, baseline)
        return Shown(tuple(offered), rows, widths, len(entries), baseline, order, mistake, nothing)

    def _names(self, entries: Sequence[Entry]) -> Known:
        """Every key there is, gathered again only for other entries."""
        if self._known[0] is not entries:
            self._known = entries, Known(entries)
        return self._known[1]

    def _rows(self, entries: Sequence[Entry], offered: Sequence[Column], baseline: Entry | None) -> tuple[Row, ...]:
        keys = tuple((column.key, column.dotted) for column in offered)
        if baseline is not self._baseline:
            self._baseline = baseline
            for made in self._cells.values():
                made.forget_baseline()
        return tuple(self._of(entry).row(keys, offered, baseline) for entry in entries)

    def _of(self, entry: Entry) -> "_Cells":
        kept = self._cells.get(entry.path)
        if kept is None or kept.entry is not entry:
            kept = self._cells[entry.path] = _Cells(entry)
        return kept


class _Cells:
    """The cells of one run, each made when it is first asked for."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self._made: dict[Key, tuple[str, int]] = {}
        self._beside: set[Key] = set()
        self._row: tuple[tuple[Key, ...], Row] | None = None

    def row(self, keys: tuple[Key, ...], offered: Sequence[Column], baseline: Entry | None) -> Row:
        """All of these columns; the same object as long as nothing changes."""
        if self._row is None or self._row[0] != keys:
            pairs = zip(keys, offered, strict=True)
            cells = [self._made.get(key) or self._make(key, column, baseline) for key, column in pairs]
            row = Row(self.entry, tuple(text for text, _ in cells), tuple(width for _, width in cells))
            self._row = keys, row
        return self._row[1]

    def _make(self, key: Key, column: Column, baseline: Entry | None) -> tuple[str, int]:
        text = clean_line(column.shown(self.entry, baseline)[:LONGEST_CELL])
        if column.beside:
            self._beside.add(key)
        self._made[key] = text, cell_len(text)
        return self._made[key]

    def forget_baseline(self) -> None:
        """What was said beside it is no longer true."""
        for key in self._beside:
            del self._made[key]
        self._beside, self._row = set(), None


def _column(key: str, known: Known) -> Column | None:
    try:
        return known.column(key) if key else None
    except InputError:  # a probe that no run has any more
        return None


def _why_nothing(query: Query, among: Sequence[Entry], options: Options, baseline: Entry | None) -> str:
    if among:
        return query.why_none(among, baseline)
    return "no run is selected: i shows all" if options.only else "there is no run yet"
