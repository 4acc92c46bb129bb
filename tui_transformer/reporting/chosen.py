"""What a report from the studio is of: the study that is pinned or under the cursor, or the runs that are selected."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tui_transformer.comparison.entry import Entry
from tui_transformer.comparison.folder import Look
from tui_transformer.comparison.standing import Standing
from tui_transformer.comparison.studies import StudyFile


@dataclass(frozen=True)
class Chosen:
    """What was chosen.

    Args:
        entries: runs; none where there is nothing to report.
        studies: the study that they are all of, by its name.
        pinned: the baseline; None for the study's own.
    """

    entries: tuple[Entry, ...] = ()
    studies: Mapping[str, StudyFile] = field(default_factory=dict)
    pinned: Path | None = None

    @property
    def name(self) -> str:
        """What it is called, in a question."""
        if self.studies:
            return f"the study {' and '.join(self.studies)}"
        return self.entries[0].name if len(self.entries) == 1 else f"{len(self.entries)} runs"


def of_runs(look: Look, selected: Sequence[Path], pinned: Path | None, at: Entry | None) -> Chosen:
    """Where runs are shown: those that are selected, the pinned one first; else the one under the cursor."""
    wanted = [*([pinned] if pinned is not None and selected else []), *selected]
    by_path = {entry.path: entry for entry in look.entries}
    entries = [by_path[path] for path in dict.fromkeys(wanted) if path in by_path]
    return Chosen(tuple(entries or ([at] if at is not None else [])), pinned=pinned if entries else None)


def of_variants(look: Look, shown: Sequence[Standing], pinned: Path | None, at: Standing | None) -> Chosen:
    """Where variants are shown: the whole study that is pinned, else of the one under the cursor.

    Variants that belong to no study are reported as they are shown.
    """
    pin = next((entry for entry in look.entries if entry.path == pinned), None)
    study = pin.study.name if pin is not None and pin.study is not None else at.group.study if at is not None else ""
    if study:
        entries = [entry for entry in reversed(look.entries) if entry.study is not None and entry.study.name == study]
        own = pinned if pin is not None and pin in entries else None
        return Chosen(tuple(entries), {study: look.studies.get(study, StudyFile(study))}, own)
    entries = [run for standing in shown if not standing.group.study for run in standing.runs]
    return Chosen(tuple(entries), pinned=pinned)
