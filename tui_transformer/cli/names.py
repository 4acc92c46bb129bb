"""Resolve names on the command line: a run, or a study with all its runs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engine.base.errors import InputError, join_or
from engine.base.language import Message
from engine.runs.reader import RunReader
from tui_transformer.lab.analysis.entry import RunEntry, read_entry
from tui_transformer.lab.analysis.folder import RequestedStudy, RunsFolder, read_study_file, study_files
from tui_transformer.lab.work.study_files import SUFFIX


@dataclass(frozen=True)
class ResolvedNames:
    entries: tuple[RunEntry, ...] = ()  # each run once, in the order of the names
    studies: dict[str, RequestedStudy] = field(default_factory=dict)  # by name


def resolve_names(names: Sequence[str], runs_dir: Path) -> ResolvedNames:
    """Resolve these names; where a run and a study share one, the run wins."""
    entries: dict[Path, RunEntry] = {}
    studies: dict[str, RequestedStudy] = {}
    for name in dict.fromkeys(names):
        if name.endswith(".toml"):
            path = Path(name)
            file = read_study_file(path)
            if file.problem:
                raise InputError(file.problem)
            found = _runs_of(file.name, path.parent) or _runs_of(file.name, runs_dir)
            if not found:
                raise InputError(
                    Message(
                        "{name}: no runs of this study beside the file or in {runs_dir}", name=name, runs_dir=runs_dir
                    )
                )
            studies[file.name] = file
        else:
            found = _run_or_study(name, runs_dir, studies)
        entries |= {run.path: run for run in found}
    return ResolvedNames(tuple(entries.values()), studies)


def _run_or_study(name: str, runs_dir: Path, studies: dict[str, RequestedStudy]) -> list[RunEntry]:
    try:
        return [read_entry(RunReader.resolve(name, runs_dir).path)]
    except InputError as error:
        found, known = _runs_of(name, runs_dir), study_files(runs_dir)
        if not found and (runs_dir / f"{name}{SUFFIX}").is_file():
            raise InputError(
                Message("study '{name}' has no runs in {runs_dir} yet", name=name, runs_dir=runs_dir)
            ) from None
        if not found:  # the error lists the existing runs
            raise InputError(
                Message("{error}; studies: {known}", error=error, known=join_or(known)) if known else str(error)
            ) from None
        studies[name] = known.get(name, RequestedStudy(name=name))
        return found


def _runs_of(study: str, runs_dir: Path) -> list[RunEntry]:
    """Oldest first."""
    entries = reversed(RunsFolder(runs_dir).scan().entries)
    return [entry for entry in entries if entry.study is not None and entry.study.name == study]
