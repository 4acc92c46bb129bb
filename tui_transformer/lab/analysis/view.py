"""What the Compare pane shows: the filtered runs, in order, as text cells. Pure but for a cache.

A run's cells are made once and kept until the run, the baseline or the columns change: typing a filter costs no more
than matching five hundred runs.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.cells import cell_len

from engine.base.clean import clean_line
from engine.base.errors import InputError
from engine.base.language import tr
from tui_transformer.lab.analysis import group_columns
from tui_transformer.lab.analysis.answer import Answer, answers, usual_baseline, why_none
from tui_transformer.lab.analysis.colours import LETTERS
from tui_transformer.lab.analysis.columns import FIXED, LAST, Column, columns
from tui_transformer.lab.analysis.entry import NO_RUN, Entry, majority_rows
from tui_transformer.lab.analysis.folder import StudyFile
from tui_transformer.lab.analysis.groups import Grouping
from tui_transformer.lab.analysis.query import Known, Query, begun, best_first, sort, unfinished
from tui_transformer.lab.analysis.verdict import VariantResult, VariantResults

Key = tuple[str, str]  # a later version's setting may share a column's name
RUNS, VARIANTS = "runs", "variants"
_OF_VARIANTS = {"run": "variant", "seed": "n"}  # sort key of runs -> of variants
Listed = Entry | VariantResult
LONGEST_CELL = 120  # characters of a note that a table needs


@dataclass(frozen=True)
class Options:
    query: str = ""  # the filter as typed
    sort: str = ""  # the key of a column; "" for runs from the best, and variants as their study has them
    reverse: bool = False  # the other way round
    baseline: Path | None = None  # the pinned run
    selected: tuple[Path, ...] = ()  # the runs that are drawn
    only: bool = False  # leave out what is not selected
    all_settings: bool = False  # a column for every setting
    by: str = ""  # RUNS, VARIANTS, or "" for variants if all shown belong to one study


@dataclass(frozen=True)
class Row:
    """A run or a variant and its cells, cleaned; `widths` in columns of the terminal, `verdict` one of the cells.

    `kinds`: of each cell with a verdict, "" for others.
    """

    entry: Listed
    cells: tuple[str, ...]
    widths: tuple[int, ...]
    verdict: str = ""
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Shown:
    columns: tuple[Column, ...] = ()
    rows: tuple[Row, ...] = ()
    widths: tuple[int, ...] = ()  # of each column's widest cell, title included
    total: int = 0  # runs in the folder, or variants
    by: str = RUNS  # RUNS or VARIANTS
    baseline: Entry | None = None
    sorted_by: Column | None = None
    mistake: str = ""  # what is wrong with the filter; only terms before that apply
    nothing: str = ""  # why no run is shown; "" where some are

    @property
    def count(self) -> int:
        """How many runs or variants are shown, without the extra rows."""
        return sum(row.entry.state != NO_RUN for row in self.rows)

    @property
    def runs(self) -> list[Entry]:
        """The runs in its rows, and the extra rows beside them."""
        return [row.entry for row in self.rows if isinstance(row.entry, Entry)]

    @property
    def variants(self) -> list[VariantResult]:
        return [row.entry for row in self.rows if isinstance(row.entry, VariantResult)]


class View:
    """Arranges entries, and caches their cells."""

    def __init__(self) -> None:
        self._cells: dict[Path, _Cells] = {}
        self._variants: dict[Path, _Cells] = {}
        self._grouping, self._standings, self._answered = Grouping(), VariantResults(), VariantResults()
        self._baseline: Entry | None = None
        self._known: tuple[Sequence[Entry], Known] = ((), Known())

    def answers(
        self, entries: Sequence[Entry], studies: Mapping[str, StudyFile], pinned: Path | None, measure: str
    ) -> tuple[Answer, ...]:
        """Return what to show first, and in turn. Without a pinned run, runs of no study get a usual baseline."""
        groups = self._grouping.of(entries)
        return answers(self._answered.of(groups, studies, pinned or usual_baseline(groups)), measure)

    def why_no_answer(self, entries: Sequence[Entry], studies: Mapping[str, StudyFile], pinned: Path | None) -> str:
        groups = self._grouping.of(entries)
        return why_none(self._answered.of(groups, studies, pinned or usual_baseline(groups)))

    def arrange(
        self, entries: Sequence[Entry], options: Options, studies: Mapping[str, StudyFile] | None = None
    ) -> Shown:
        by_path = {entry.path: entry for entry in entries}
        baseline = by_path.get(options.baseline) if options.baseline is not None else None
        if self._known[0] is not entries:
            self._known = entries, Known(entries)
        known = self._known[1]
        query, mistake = begun(options.query, known)
        key = "" if mistake else unfinished(options.query, query, entries, known)
        if key:  # a half-typed term would hide every run
            query, mistake = Query(query.terms[:-1]), tr("{key} needs an operator: = != < <= > >= or :", key=key)
        chosen = [by_path[path] for path in options.selected if path in by_path]
        among = chosen if options.only else entries
        matching = query(among, baseline)
        studies_of = {entry.study.name if entry.study is not None else "" for entry in matching}
        usual = VARIANTS if len(studies_of) == 1 and studies_of != {""} else RUNS
        if (options.by or usual) == VARIANTS:
            shown = self._of_variants(entries, matching, options, studies or {})
        else:
            shown = self._of_runs(entries, matching, options, baseline, chosen if len(chosen) > 1 else ())
        nothing = ""
        if not shown.rows:
            none = tr("no runs selected; press I to show all") if options.only else tr("no runs yet")
            nothing = query.why_none(among, baseline) if among else none
        return replace(shown, baseline=baseline, mistake=mistake, nothing=nothing)

    def _of_runs(
        self,
        entries: Sequence[Entry],
        matching: Sequence[Entry],
        options: Options,
        baseline: Entry | None,
        of: Sequence[Entry],
    ) -> Shown:
        order, ordered = LAST, best_first(matching)
        with suppress(InputError):  # a probe that no run still has
            if options.sort:
                order = self._known[1].column(options.sort)
                ordered = sort(matching, order, baseline, reverse=options.reverse)
            elif options.reverse:
                ordered = ordered[::-1]
        shown = [*ordered, *majority_rows(matching)]
        offered = columns(shown, baseline, of=of, all_settings=options.all_settings)
        if baseline is not self._baseline:
            self._baseline = baseline
            beside = [_key(column) for column in FIXED.values() if column.beside]
            for kept in self._cells.values():
                kept.row = None
                for key in beside:
                    kept.made.pop(key, None)
        return replace(_table(self._cells, shown, offered, order, baseline), total=len(entries))

    def _of_variants(
        self, entries: Sequence[Entry], matching: Sequence[Entry], options: Options, studies: Mapping[str, StudyFile]
    ) -> Shown:
        """Return the variants with any matching run, each with all its seeds."""
        everything = self._standings.of(self._grouping.of(entries), studies, options.baseline)
        paths = {entry.path for entry in matching}
        found = [standing for standing in everything if any(run.path in paths for run in standing.runs)]
        offered = group_columns.columns(found, all_settings=options.all_settings)
        order = next((column for column in offered if column.key == _OF_VARIANTS.get(options.sort, options.sort)), None)
        ordered = sort(found, order, None, reverse=options.reverse)
        return replace(_table(self._variants, ordered, offered, order, None), total=len(everything), by=VARIANTS)


@dataclass
class _Cells:
    """The cells of one run or variant, each made on first use, and the last row made from them."""

    entry: Listed
    made: dict[Key, tuple[str, int, str]] = field(default_factory=dict)
    keys: tuple[Key, ...] = ()
    row: Row | None = None


def _table(
    cells: dict[Path, _Cells],
    shown: Sequence[Listed],
    offered: Sequence[Column],
    order: Column | None,
    baseline: Entry | None,
) -> Shown:
    """Return a row of these columns for each; the same object while nothing changes."""
    keys, rows = tuple(map(_key, offered)), []
    for entry in shown:
        kept = cells.get(entry.path)
        if kept is None or kept.entry is not entry:
            kept = cells[entry.path] = _Cells(entry)
        if kept.row is None or kept.keys != keys:
            for key, column in zip(keys, offered, strict=True):
                if key not in kept.made:
                    text = clean_line(column.shown(entry, baseline)[:LONGEST_CELL])
                    kind = column.kind(entry, baseline) if column.kind is not None else ""
                    kept.made[key] = text, cell_len(text), kind
            texts, widths, kinds = zip(*(kept.made[key] for key in keys), strict=True)
            verdict = next((text for text, column in zip(texts, offered, strict=True) if column.key == "verdict"), "")
            kept.keys, kept.row = keys, Row(entry, texts, widths, verdict, kinds)
        rows.append(kept.row)
    titles = [cell_len(column.head) + (order is not None and column.key == order.key) for column in offered]
    widest = tuple(max(column) for column in zip(titles, *(row.widths for row in rows), strict=True))
    return Shown(tuple(offered), tuple(rows), widest, sorted_by=order)


def _key(column: Column) -> Key:
    return column.key, column.title + column.dotted


@dataclass
class Selection:
    """Runs by the number of their letter and colour."""

    baseline: Path | None = None  # the pinned run; it may be drawn or not
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
        """Toggle drawing it; False if no letter is left."""
        if run in self._slots:
            del self._slots[run]
            return True
        if self.full:
            return False
        self._slots[run] = next(i for i in range(len(LETTERS)) if i not in self._slots.values())
        return True

    def pin(self, run: Path) -> bool:
        """Toggle it as the baseline, drawing it; return whether it is the baseline now."""
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
        """Forget runs that are gone; return whether there were any."""
        gone = [run for run in self._slots if run not in present]
        for run in gone:
            del self._slots[run]
        if self.baseline is not None and self.baseline not in present:
            self.baseline = None
            return True
        return bool(gone)
