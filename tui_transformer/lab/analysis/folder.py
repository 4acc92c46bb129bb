"""A runs folder as entries and studies: a scan opens only changed files. Called in a thread; never raises."""

import operator
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import Field

from engine.config.toml import read
from engine.errors import InputError
from engine.runs.records import Count, Record, Text
from engine.runs.tail import Stamp, stamp
from tui_transformer.lab.analysis.entry import READ, Entry, read_entry
from tui_transformer.lab.records.scan import RunsScan

ENDING = ".study.toml"


class StudyVariant(Record):
    name: Text = ""
    # What is scored ("loss", or a family of probes) -> the outcome.
    expect: dict[Text, Literal["worse", "better", "same", "unknown"]] = Field({})
    why: Text = ""  # why it is expected, in one sentence


class _Study(Record):
    name: Text = ""
    baseline: Text = ""
    primary: Text = ""
    variants: tuple[StudyVariant, ...] = ()
    seeds: tuple[Count, ...] = ()
    description: Text = ""


@dataclass(frozen=True)
class StudyFile:
    """A study as requested. Files may come from others: nothing in one is trusted."""

    name: str  # of the study; its runs have it
    baseline: str = ""  # the variant others are compared with; "" if the file does not say
    primary: str = ""  # the primary measure; "" if the file does not say
    variants: Mapping[str, StudyVariant] = field(default_factory=dict)  # by name, in the file's order
    seeds: tuple[int, ...] = ()  # seeds to train each with
    description: str = ""  # one line
    problem: str = ""  # why the file cannot be read; "" where it can


def read_study_file(path: Path) -> StudyFile:
    """Read a study's file. Never raises: damaged parts are left out and named in `problem`."""
    name = path.name.removesuffix(ENDING).removesuffix(".toml")
    try:
        said = _Study.read(read(path))
    except (InputError, RecursionError) as error:
        return StudyFile(name, problem=str(error))
    variants = {variant.name: variant for variant in said.variants if variant.name}
    return StudyFile(said.name or name, said.baseline, said.primary, variants, said.seeds, said.description)


class StudyFolder:
    def __init__(self, runs_dir: Path) -> None:
        self._runs_dir = runs_dir
        self._kept: dict[Path, tuple[Stamp, StudyFile]] = {}
        self.files: Mapping[str, StudyFile] = {}

    def look(self) -> Mapping[str, StudyFile]:
        """Return every study by name; the same object as before if nothing changed."""
        try:
            paths = sorted(path for path in self._runs_dir.glob(f"*{ENDING}") if not path.name.startswith("."))
        except OSError:
            paths = []
        before, self._kept = self._kept, {}
        for path in paths:
            now, known = stamp(path), before.get(path)
            self._kept[path] = known if known is not None and known[0] == now else (now, read_study_file(path))
        if before != self._kept:
            self.files = {study.name: study for _, study in self._kept.values()}
        return self.files


def study_files(runs_dir: Path) -> Mapping[str, StudyFile]:
    return StudyFolder(runs_dir).look()


@dataclass(frozen=True)
class RunScan:
    entries: tuple[Entry, ...] = ()  # the newest first
    problem: str = ""  # why the folder cannot be read; "" if it can, or does not exist yet
    studies: Mapping[str, StudyFile] = field(default_factory=dict)  # the files of started studies, by name


class Folder:
    """Scans a runs folder, which need not exist, repeatedly."""

    def __init__(self, runs_dir: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._studies = clock, StudyFolder(runs_dir)
        self._scan = RunsScan(
            runs_dir,
            READ,
            lambda path: read_entry(path),
            moving=lambda entry: entry.live or entry.state in ("queued", "lost", "interrupted"),
            broke=lambda entry, before: bool(entry.problems) and entry.problems != before.problems,
        )
        self._last = RunScan(studies=self._studies.files)

    def look(self, fresh: Collection[Path] = ()) -> RunScan:
        """Return the current contents, the same object if nothing changed; `fresh` are read even at rest."""
        if self._scan.look(self._clock(), fresh):
            self._studies.look()
        last, problem, studies = self._last, self._scan.problem, self._studies.files
        entries = tuple(sorted(self._scan.found, key=lambda entry: (entry.created, entry.name), reverse=True))
        if len(entries) == len(last.entries) and all(map(operator.is_, entries, last.entries)):
            entries = last.entries
        if entries is not last.entries or problem != last.problem or studies is not last.studies:
            self._last = RunScan(entries, problem, studies)
        return self._last
