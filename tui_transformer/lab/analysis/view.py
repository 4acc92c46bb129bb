"""What the Compare pane shows: the runs that the filter lets through, in order, as cells of text. Pure but for a cache.

Cells are made once for each run and kept until the run, the baseline or the columns change: a filter that is typed
costs no more than looking at five hundred runs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.cells import cell_len

from engine.clean import clean_line
from engine.errors import InputError
from tui_transformer.lab.analysis import group_columns
from tui_transformer.lab.analysis.columns import Column, columns
from tui_transformer.lab.analysis.entry import NO_RUN, Entry, Listed, majority_rows
from tui_transformer.lab.analysis.folder import StudyFile
from tui_transformer.lab.analysis.groups import Grouping
from tui_transformer.lab.analysis.query import Known, Query, begun, sort, unfinished
from tui_transformer.lab.analysis.verdict import VariantResult, VariantResults
from tui_transformer.lab.charts.colours import LETTERS

Key = tuple[str, str]  # a setting of a later version may be called as a column is
RUNS, VARIANTS = "runs", "variants"
_OF_VARIANTS = {"run": "variant", "seed": "n"}  # what sorts runs -> what sorts variants
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
        by: RUNS, VARIANTS, or "" for variants where all that is shown belongs to one study.
    """

    query: str = ""
    sort: str = ""
    reverse: bool = False
    baseline: Path | None = None
    selected: tuple[Path, ...] = ()
    only: bool = False
    all_settings: bool = False
    by: str = ""


@dataclass(frozen=True)
class Row:
    """A run or a variant and its cells, cleaned; `widths` in columns of the terminal, `verdict` one of the cells."""

    entry: Listed
    cells: tuple[str, ...]
    widths: tuple[int, ...]
    verdict: str = ""


@dataclass(frozen=True)
class Shown:
    """What there is to show.

    Args:
        widths: of the widest cell of each column, its title among them.
        total: runs in the folder, or variants.
        by: RUNS or VARIANTS.
        mistake: what is wrong with the filter; only the terms before it hold.
        nothing: why no run is shown; "" where some are.
    """

    columns: tuple[Column, ...] = ()
    rows: tuple[Row, ...] = ()
    widths: tuple[int, ...] = ()
    total: int = 0
    by: str = RUNS
    baseline: Entry | None = None
    sorted_by: Column | None = None
    mistake: str = ""
    nothing: str = ""

    @property
    def count(self) -> int:
        """How many runs, or variants, are shown: without rows that are none."""
        return sum(row.entry.state != NO_RUN for row in self.rows)

    @property
    def runs(self) -> list[Entry]:
        """The runs of its rows, and rows beside them that are none."""
        return [row.entry for row in self.rows if isinstance(row.entry, Entry)]

    @property
    def variants(self) -> list[VariantResult]:
        return [row.entry for row in self.rows if isinstance(row.entry, VariantResult)]


class View:
    """Arranges entries, and keeps the cells it made."""

    def __init__(self) -> None:
        self._cells: dict[Path, _Cells] = {}
        self._variants: dict[Path, _Cells] = {}
        self._grouping, self._standings = Grouping(), VariantResults()
        self._baseline: Entry | None = None
        self._known: tuple[Sequence[Entry], Known] = ((), Known())

    def arrange(
        self, entries: Sequence[Entry], options: Options, studies: Mapping[str, StudyFile] | None = None
    ) -> Shown:
        """What to show of these runs, or of their variants.

        Args:
            entries: all runs of the folder.
            options: how.
            studies: the files of studies, by name.
        """
        by_path = {entry.path: entry for entry in entries}
        baseline = by_path.get(options.baseline) if options.baseline is not None else None
        known = self._names(entries)
        query, mistake = begun(options.query, known)
        key = "" if mistake else unfinished(options.query, query, entries, known)
        if key:  # what is typed would hide every run until it is a term
            query, mistake = Query(query.terms[:-1]), f"{key} is a key: go on with = != < <= > >= or :"
        chosen = [by_path[path] for path in options.selected if path in by_path]
        among = chosen if options.only else entries
        matching = query(among, baseline)
        if (options.by or _usual(matching)) == VARIANTS:
            made = self._of_variants(entries, matching, options, studies or {})
            nothing = "" if made.rows else _why_nothing(query, among, options, baseline)
            return replace(made, baseline=baseline, mistake=mistake, nothing=nothing)
        order = _column(options.sort, known)
        shown = [*sort(matching, order, baseline, reverse=options.reverse), *majority_rows(matching)]
        of = chosen if len(chosen) > 1 else ()
        offered = columns(shown, baseline, of=of, all_settings=options.all_settings)
        rows = self._rows(shown, offered, baseline)
        widths = _widths(offered, rows, order)
        nothing = "" if rows else _why_nothing(query, among, options, baseline)
        return Shown(tuple(offered), rows, widths, len(entries), RUNS, baseline, order, mistake, nothing)

    def _of_variants(
        self, entries: Sequence[Entry], matching: Sequence[Entry], options: Options, studies: Mapping[str, StudyFile]
    ) -> Shown:
        """Variants of which any run matches, each whole: a filter takes no seeds away."""
        everything = self._standings.of(self._grouping.of(entries), studies, options.baseline)
        paths = {entry.path for entry in matching}
        found = [standing for standing in everything if any(run.path in paths for run in standing.runs)]
        offered = group_columns.columns(found, all_settings=options.all_settings)
        order = next((column for column in offered if column.key == _OF_VARIANTS.get(options.sort, options.sort)), None)
        ordered = sort(found, order, None, reverse=options.reverse)
        keys = tuple((column.key, column.title + column.dotted) for column in offered)
        rows = tuple(_kept(self._variants, standing).row(keys, offered, None) for standing in ordered)
        widths = _widths(offered, rows, order)
        return Shown(tuple(offered), rows, widths, len(everything), VARIANTS, sorted_by=order)

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
        return tuple(_kept(self._cells, entry).row(keys, offered, baseline) for entry in entries)


class _Cells:
    """The cells of one run or variant, each made when it is first asked for."""

    def __init__(self, entry: Listed) -> None:
        self.entry = entry
        self._made: dict[Key, tuple[str, int]] = {}
        self._beside: set[Key] = set()
        self._row: tuple[tuple[Key, ...], Row] | None = None

    def row(self, keys: tuple[Key, ...], offered: Sequence[Column], baseline: Entry | None) -> Row:
        """All of these columns; the same object as long as nothing changes."""
        if self._row is None or self._row[0] != keys:
            pairs = zip(keys, offered, strict=True)
            cells = [self._made.get(key) or self._make(key, column, baseline) for key, column in pairs]
            said = next((text for (text, _), column in zip(cells, offered, strict=True) if column.key == "verdict"), "")
            row = Row(self.entry, tuple(text for text, _ in cells), tuple(width for _, width in cells), said)
            self._row = keys, row
        return self._row[1]

    def _make(self, key: Key, column: Column, baseline: Entry | None) -> tuple[str, int]:
        text = clean_line(column.shown(self.entry, baseline)[:LONGEST_CELL])
        if column.beside:
            self._beside.add(key)
        self._made[key] = text, cell_len(text)
        return self._made[key]

    def forget_baseline(self) -> None:
        for key in self._beside:
            del self._made[key]
        self._beside, self._row = set(), None


def _kept(cells: dict[Path, _Cells], entry: Listed) -> _Cells:
    kept = cells.get(entry.path)
    if kept is None or kept.entry is not entry:
        kept = cells[entry.path] = _Cells(entry)
    return kept


def _widths(offered: Sequence[Column], rows: Sequence[Row], order: Column | None) -> tuple[int, ...]:
    arrow = order.key if order is not None else ""
    titles = [cell_len(column.title) + (column.key == arrow) for column in offered]
    return tuple(max(column) for column in zip(titles, *(row.widths for row in rows), strict=True))


def _usual(matching: Sequence[Entry]) -> str:
    studies = {entry.study.name if entry.study is not None else "" for entry in matching}
    return VARIANTS if len(studies) == 1 and studies != {""} else RUNS


def _column(key: str, known: Known) -> Column | None:
    try:
        return known.column(key) if key else None
    except InputError:  # a probe that no run has any more
        return None


def _why_nothing(query: Query, among: Sequence[Entry], options: Options, baseline: Entry | None) -> str:
    if among:
        return query.why_none(among, baseline)
    return "no run is selected: i shows all" if options.only else "there is no run yet"


@dataclass
class Selection:
    """Runs by the number of their letter and colour.

    Args:
        baseline: the pinned run; it may be drawn or not.
    """

    baseline: Path | None = None
    _slots: dict[Path, int] = field(default_factory=dict)

    @property
    def runs(self) -> tuple[Path, ...]:
        """Those that are drawn, in the order of their letters."""
        return tuple(sorted(self._slots, key=self._slots.__getitem__))

    @property
    def full(self) -> bool:
        return len(self._slots) >= len(LETTERS)

    def slot(self, run: Path) -> int | None:
        return self._slots.get(run)

    def turn(self, run: Path) -> bool:
        """Draw it, or no longer; False where there is no letter left."""
        if run in self._slots:
            del self._slots[run]
            return True
        if self.full:
            return False
        self._slots[run] = next(i for i in range(len(LETTERS)) if i not in self._slots.values())
        return True

    def pin(self, run: Path) -> bool:
        """Make it the baseline and draw it, or take that back; whether it is the baseline now."""
        if self.baseline == run:
            self.baseline = None
            return False
        self.baseline = run
        if run not in self._slots and not self.full:
            self.turn(run)
        return True

    def clear(self) -> None:
        """Draw none; the baseline stays."""
        self._slots.clear()

    def keep(self, present: set[Path]) -> bool:
        """Forget runs that are gone; whether there were any."""
        gone = [run for run in self._slots if run not in present]
        for run in gone:
            del self._slots[run]
        if self.baseline is not None and self.baseline not in present:
            self.baseline = None
            return True
        return bool(gone)
