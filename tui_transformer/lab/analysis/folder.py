"""A runs folder as entries and studies: a scan opens only changed files. Called in a thread; never raises."""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal

from pydantic import Field

from engine.base.errors import InputError
from engine.config.toml import read_toml
from engine.runs.records import Count, Record, Text
from engine.runs.row_cache import RowCache
from engine.runs.scan import RunsScan
from engine.runs.tail import Stamp, stamp
from tui_transformer.lab.analysis.entry import RunEntry, read_entry
from tui_transformer.lab.records.run_files import READ_FILES
from tui_transformer.lab.work.study_files import SUFFIX


class StudyVariant(Record):
    name: Text = ""
    # What is scored ("loss", or a family of probes) -> the outcome.
    expect: dict[Text, Literal["worse", "better", "same", "unknown"]] = Field({})
    why: Text = ""  # why it is expected, in one sentence


class RequestedStudy(Record):
    """A study as requested. Files may come from others: nothing in one is trusted."""

    name: Text = ""  # of the study; its runs carry it
    baseline: Text = ""  # the variant others are compared with; "" if the file does not say
    primary: Text = ""  # the primary measure; "" if the file does not say
    listed: tuple[StudyVariant, ...] = Field((), alias="variants")
    seeds: tuple[Count, ...] = ()  # seeds to train each variant with
    description: Text = ""  # one line
    problem: str = ""  # why the file cannot be read; "" where it can

    @cached_property
    def variants(self) -> Mapping[str, StudyVariant]:
        """By name, in the file's order."""
        return {variant.name: variant for variant in self.listed if variant.name}


def read_study_file(path: Path) -> RequestedStudy:
    """Read a study's file. Never raises: damaged parts are left out and named in `problem`."""
    found, problem = RequestedStudy(), ""
    try:
        found = RequestedStudy.read(read_toml(path))
    except (InputError, RecursionError) as error:
        problem = str(error)
    name = found.name or path.name.removesuffix(SUFFIX).removesuffix(".toml")
    return found.model_copy(update={"name": name, "problem": problem})


@lru_cache(4_096)
def _read_once(path: Path, version: Stamp) -> RequestedStudy:
    return read_study_file(path)


def study_files(runs_dir: Path) -> Mapping[str, RequestedStudy]:
    """Return every started study by name; only changed files are read again."""
    try:
        paths = sorted(path for path in runs_dir.glob(f"*{SUFFIX}") if not path.name.startswith("."))
    except OSError:
        paths = []
    return {study.name: study for study in (_read_once(path, stamp(path)) for path in paths)}


@dataclass(frozen=True)
class FolderContents:
    entries: tuple[RunEntry, ...] = ()  # the newest first
    problem: str = ""  # why the folder cannot be read; "" if it can, or does not exist yet
    studies: Mapping[str, RequestedStudy] = field(default_factory=dict)  # the files of started studies, by name


class RunsFolder:
    """Scans a runs folder, which need not exist, repeatedly."""

    def __init__(self, runs_dir: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._runs_dir, self._clock = runs_dir, clock
        self._scan = RunsScan(
            runs_dir,
            READ_FILES,
            lambda path: read_entry(path),
            moving=lambda entry: entry.live or entry.state in ("queued", "lost", "interrupted"),
            broke=lambda entry, before: bool(entry.problems) and entry.problems != before.problems,
            rows=RowCache(runs_dir, RunEntry, lambda entry: entry.state == "finished" and not entry.problems),
        )
        self._last = FolderContents()

    def scan(self, always_check: Collection[Path] = ()) -> FolderContents:
        """Return the current contents, the same object if nothing changed; `always_check` are checked even at rest."""
        last = self._last
        swept = self._scan.update(self._clock(), always_check)
        entries = tuple(sorted(self._scan.runs, key=lambda entry: (entry.created, entry.name), reverse=True))
        now = FolderContents(entries, self._scan.problem, study_files(self._runs_dir) if swept else last.studies)
        self._last = last if now == last else now
        return self._last
