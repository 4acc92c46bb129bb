"""What a report covers: the selection, else the study that is pinned or under the cursor, or what the user chooses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from engine.base.errors import comma_separated, join_and
from engine.base.language import tr, trn
from tui_transformer.lab.analysis.entry import RunEntry
from tui_transformer.lab.analysis.folder import FolderContents, RequestedStudy
from tui_transformer.lab.analysis.verdict import VariantResult

MOST_NAMED = 12  # most runs that a question names


@dataclass(frozen=True)
class ReportSelection:
    entries: tuple[RunEntry, ...] = ()  # empty if there is nothing to report
    studies: Mapping[str, RequestedStudy] = field(default_factory=dict)  # the name of the study they all belong to
    pinned: Path | None = None  # the baseline; None for the study's own

    @property
    def coverage_text(self) -> str:
        if self.studies:
            return tr("the study {studies}", studies=join_and(self.studies))
        return self.entries[0].name if len(self.entries) == 1 else trn("{n} run", "{n} runs", len(self.entries))

    @property
    def joined_run_names(self) -> str:
        names, more = [entry.name for entry in self.entries], len(self.entries) - MOST_NAMED
        return comma_separated(names[:MOST_NAMED] + ([tr("and {n} more", n=more)] if more > 0 else []))


def select_runs(
    look: FolderContents, selected: Sequence[Path], pinned: Path | None, under_cursor: RunEntry | None
) -> ReportSelection:
    """In the view by run: the selected ones, the pinned one first; else the one under the cursor."""
    wanted = [*([pinned] if pinned is not None and selected else []), *selected]
    by_path = {entry.path: entry for entry in look.entries}
    entries = [by_path[path] for path in dict.fromkeys(wanted) if path in by_path]
    if entries:
        return ReportSelection(tuple(entries), pinned=pinned)
    return ReportSelection((under_cursor,) if under_cursor is not None else ())


def select_variants(
    look: FolderContents,
    shown: Sequence[VariantResult],
    pinned: Path | None,
    under_cursor: VariantResult | None,
    selected: Sequence[Path] = (),
) -> ReportSelection:
    """In the view by variant: all runs of the selected variants, the baseline's first.

    Without a selection: the whole pinned study, else the one under the cursor; variants that belong to no
    study are then reported as shown. Selecting all variants of a study selects the study.
    """
    wanted = {*selected, pinned} if set(selected) - {pinned} else set()  # the pinned one alone is not a selection
    taken = [standing for standing in shown if any(run.path in wanted for run in standing.runs)]
    leads = {s for s in taken if (s.is_baseline if pinned is None else any(run.path == pinned for run in s.runs))}
    taken.sort(key=lambda standing: standing not in leads)
    runs = tuple(run for standing in taken for run in standing.runs)
    names = {run.study.name if run.study is not None else "" for run in runs}
    whole = {entry.path for entry in look.entries if entry.study is not None and {entry.study.name} == names}
    if runs and whole != {run.path for run in runs}:
        return _runs(runs, pinned)
    pin = next((entry for entry in (runs or look.entries) if entry.path == pinned), None)
    if runs:
        under_cursor = taken[0]
    study = (
        pin.study.name
        if pin is not None and pin.study is not None
        else under_cursor.group.study
        if under_cursor is not None
        else ""
    )
    if study:
        return _whole(look, study, pinned)
    entries = [run for standing in shown if not standing.group.study for run in standing.runs]
    return ReportSelection(tuple(entries), pinned=pinned)


def other_selections(
    look: FolderContents,
    chosen: ReportSelection,
    pinned: Path | None,
    under_cursor: Sequence[RunEntry],
    shown: Sequence[RunEntry],
) -> list[ReportSelection]:
    """What else a report can cover: what is under the cursor (`at`), its study, and all runs that are shown."""
    studies = dict.fromkeys(run.study.name for run in under_cursor if run.study is not None)
    offered = [_runs(under_cursor, pinned), *(_whole(look, name, pinned) for name in studies), _runs(shown, pinned)]
    filled = [one for one in (*reversed(offered), chosen) if one.entries]
    by_runs = {(frozenset(run.path for run in one.entries), *one.studies): one for one in filled}
    return [one for one in by_runs.values() if one is not chosen][::-1]


def _runs(runs: Sequence[RunEntry], pinned: Path | None) -> ReportSelection:
    return ReportSelection(tuple(runs), pinned=pinned if any(run.path == pinned for run in runs) else None)


def _whole(look: FolderContents, study: str, pinned: Path | None) -> ReportSelection:
    """All runs of a study; the pinned one is its baseline if it is one of them."""
    runs = [run for run in reversed(look.entries) if run.study is not None and run.study.name == study]
    return replace(_runs(runs, pinned), studies={study: look.studies.get(study, RequestedStudy(name=study))})
