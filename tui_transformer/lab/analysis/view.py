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
from tui_transformer.lab.analysis.answer import StudyConclusion, default_baseline, study_conclusions, why_no_conclusion
from tui_transformer.lab.analysis.colours import LETTERS
from tui_transformer.lab.analysis.columns import FIXED_COLUMNS, LAST, Column, columns
from tui_transformer.lab.analysis.entry import NO_RUN, RunEntry, majority_rows
from tui_transformer.lab.analysis.folder import RequestedStudy
from tui_transformer.lab.analysis.groups import Grouping
from tui_transformer.lab.analysis.query import FilterKeys, Query, best_first, parse_partial, sort, suggested_key
from tui_transformer.lab.analysis.verdict import VariantEvaluator, VariantResult

Key = tuple[str, str]  # a later version's setting may share a column's name
RUNS, VARIANTS = "runs", "variants"
_OF_VARIANTS = {"run": "variant", "seed": "n"}  # sort key of runs -> of variants
RunOrVariant = RunEntry | VariantResult
LONGEST_CELL = 120  # characters of a note that a table needs


@dataclass(frozen=True)
class ViewOptions:
    query: str = ""  # the filter as typed
    sort: str = ""  # the key of a column; "" for runs from the best, and variants as their study has them
    reverse: bool = False  # the other way round
    baseline: Path | None = None  # the pinned run
    selected: tuple[Path, ...] = ()  # the runs that are drawn
    only: bool = False  # leave out what is not selected
    all_settings: bool = False  # a column for every setting
    by: str = ""  # RUNS, VARIANTS, or "" for variants if all shown belong to one study


@dataclass(frozen=True)
class ViewRow:
    """A run or a variant and its cells, cleaned; `widths` in columns of the terminal, `verdict` one of the cells.

    `kinds`: the kind of verdict in each cell, "" in cells without one.
    """

    entry: RunOrVariant
    cells: tuple[str, ...]
    widths: tuple[int, ...]
    verdict: str = ""
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True)
class ViewTable:
    columns: tuple[Column, ...] = ()
    rows: tuple[ViewRow, ...] = ()
    widths: tuple[int, ...] = ()  # of each column's widest cell, title included
    total: int = 0  # runs in the folder, or variants
    by: str = RUNS  # RUNS or VARIANTS
    baseline: RunEntry | None = None
    sorted_by: Column | None = None
    mistake: str = ""  # what is wrong with the filter; only terms before that apply
    why_empty: str = ""  # why no run is shown; "" where some are

    @property
    def count(self) -> int:
        """How many runs or variants are shown, without the extra rows."""
        return sum(row.entry.state != NO_RUN for row in self.rows)

    @property
    def runs(self) -> list[RunEntry]:
        """The runs in its rows, and the extra rows beside them."""
        return [row.entry for row in self.rows if isinstance(row.entry, RunEntry)]

    @property
    def variants(self) -> list[VariantResult]:
        return [row.entry for row in self.rows if isinstance(row.entry, VariantResult)]


class View:
    """Arranges entries, and caches their cells."""

    def __init__(self) -> None:
        self._cells: dict[Path, _Cells] = {}
        self._variants: dict[Path, _Cells] = {}
        self._grouping, self._standings, self._answered = Grouping(), VariantEvaluator(), VariantEvaluator()
        self._baseline: RunEntry | None = None
        self._known: tuple[Sequence[RunEntry], FilterKeys] = ((), FilterKeys())

    def conclusions(
        self, entries: Sequence[RunEntry], studies: Mapping[str, RequestedStudy], pinned: Path | None, measure: str
    ) -> tuple[StudyConclusion, ...]:
        """Return what to show first, and in turn. Without a pinned run, runs of no study get a usual baseline."""
        groups = self._grouping.group(entries)
        return study_conclusions(self._answered.evaluate(groups, studies, pinned or default_baseline(groups)), measure)

    def why_no_conclusion(
        self, entries: Sequence[RunEntry], studies: Mapping[str, RequestedStudy], pinned: Path | None
    ) -> str:
        groups = self._grouping.group(entries)
        return why_no_conclusion(self._answered.evaluate(groups, studies, pinned or default_baseline(groups)))

    def arrange(
        self, entries: Sequence[RunEntry], options: ViewOptions, studies: Mapping[str, RequestedStudy] | None = None
    ) -> ViewTable:
        by_path = {entry.path: entry for entry in entries}
        baseline = by_path.get(options.baseline) if options.baseline is not None else None
        if self._known[0] is not entries:
            self._known = entries, FilterKeys(entries)
        known = self._known[1]
        query, mistake = parse_partial(options.query, known)
        key = "" if mistake else suggested_key(options.query, query, entries, known)
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
            nothing = query.why_no_match(among, baseline) if among else none
        return replace(shown, baseline=baseline, mistake=mistake, why_empty=nothing)

    def _of_runs(
        self,
        entries: Sequence[RunEntry],
        matching: Sequence[RunEntry],
        options: ViewOptions,
        baseline: RunEntry | None,
        differing_among: Sequence[RunEntry],
    ) -> ViewTable:
        order, ordered = LAST, best_first(matching)
        with suppress(InputError):  # a probe that no run still has
            if options.sort:
                order = self._known[1].column(options.sort)
                ordered = sort(matching, order, baseline, reverse=options.reverse)
            elif options.reverse:
                ordered = ordered[::-1]
        shown = [*ordered, *majority_rows(matching)]
        offered = columns(shown, baseline, differing_among=differing_among, all_settings=options.all_settings)
        if baseline is not self._baseline:
            self._baseline = baseline
            beside = [_key(column) for column in FIXED_COLUMNS.values() if column.uses_baseline]
            for kept in self._cells.values():
                kept.row = None
                for key in beside:
                    kept.made.pop(key, None)
        return replace(_table(self._cells, shown, offered, order, baseline), total=len(entries))

    def _of_variants(
        self,
        entries: Sequence[RunEntry],
        matching: Sequence[RunEntry],
        options: ViewOptions,
        studies: Mapping[str, RequestedStudy],
    ) -> ViewTable:
        """Return the variants with any matching run, each with all its seeds."""
        everything = self._standings.evaluate(self._grouping.group(entries), studies, options.baseline)
        paths = {entry.path for entry in matching}
        found = [standing for standing in everything if any(run.path in paths for run in standing.runs)]
        offered = group_columns.columns(found, all_settings=options.all_settings)
        order = next((column for column in offered if column.key == _OF_VARIANTS.get(options.sort, options.sort)), None)
        ordered = sort(found, order, None, reverse=options.reverse)
        return replace(_table(self._variants, ordered, offered, order, None), total=len(everything), by=VARIANTS)


@dataclass
class _Cells:
    """The cells of one run or variant, each made on first use, and the last row made from them."""

    entry: RunOrVariant
    made: dict[Key, tuple[str, int, str]] = field(default_factory=dict)
    keys: tuple[Key, ...] = ()
    row: ViewRow | None = None


def _table(
    cells: dict[Path, _Cells],
    shown: Sequence[RunOrVariant],
    offered: Sequence[Column],
    order: Column | None,
    baseline: RunEntry | None,
) -> ViewTable:
    """Return a row of these columns for each; the same object while nothing changes."""
    keys, rows = tuple(map(_key, offered)), []
    for entry in shown:
        kept = cells.get(entry.path)
        if kept is None or kept.entry is not entry:
            kept = cells[entry.path] = _Cells(entry)
        if kept.row is None or kept.keys != keys:
            for key, column in zip(keys, offered, strict=True):
                if key not in kept.made:
                    text = clean_line(column.screen_text(entry, baseline)[:LONGEST_CELL])
                    kind = column.kind(entry, baseline) if column.kind is not None else ""
                    kept.made[key] = text, cell_len(text), kind
            texts, widths, kinds = zip(*(kept.made[key] for key in keys), strict=True)
            verdict = next((text for text, column in zip(texts, offered, strict=True) if column.key == "verdict"), "")
            kept.keys, kept.row = keys, ViewRow(entry, texts, widths, verdict, kinds)
        rows.append(kept.row)
    titles = [cell_len(column.head) + (order is not None and column.key == order.key) for column in offered]
    widest = tuple(max(column) for column in zip(titles, *(row.widths for row in rows), strict=True))
    return ViewTable(tuple(offered), tuple(rows), widest, sorted_by=order)


def _key(column: Column) -> Key:
    return column.key, column.title + column.config_key


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

    def toggle(self, run: Path) -> bool:
        """Toggle drawing it; False if no letter is left."""
        if run in self._slots:
            del self._slots[run]
            return True
        if self.full:
            return False
        self._slots[run] = next(i for i in range(len(LETTERS)) if i not in self._slots.values())
        return True

    def toggle_baseline(self, run: Path) -> bool:
        """Toggle it as the baseline, drawing it; return whether it is the baseline now."""
        if self.baseline == run:
            self.baseline = None
            return False
        self.baseline = run
        if run not in self._slots and not self.full:
            self.toggle(run)
        return True

    def clear_runs(self) -> None:
        """Draw none; the baseline stays."""
        self._slots.clear()

    def drop_missing(self, present: set[Path]) -> bool:
        """Forget runs that are gone; return whether there were any."""
        gone = [run for run in self._slots if run not in present]
        for run in gone:
            del self._slots[run]
        if self.baseline is not None and self.baseline not in present:
            self.baseline = None
            return True
        return bool(gone)
