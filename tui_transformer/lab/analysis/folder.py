"""A runs folder as entries and studies: each scan opens only files that changed. Called in a thread; never raises."""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import Field

from engine.config.toml import read
from engine.errors import InputError
from engine.runs.records import Count, Record, Text
from engine.runs.tail import Stamp, stamp
from tui_transformer.lab.analysis.entry import READ, Entry, read_entry

RESTING = 2.0  # seconds between two looks at runs that neither train nor wait
FORGIVEN = 3  # looks that a damaged run may last: somebody may be writing it
ENDING = ".study.toml"


class _Variant(Record):
    name: Text = ""
    expect: dict[Text, Literal["worse", "better", "same", "unknown"]] = Field({})
    why: Text = ""


class _Study(Record):
    name: Text = ""
    baseline: Text = ""
    primary: Text = ""
    variants: tuple[_Variant, ...] = ()
    seeds: tuple[Count, ...] = ()
    description: Text = ""


@dataclass(frozen=True)
class StudyFile:
    """A study as it was asked for. Files are others': nothing in one is trusted.

    Args:
        name: of the study; its runs have it.
        baseline: the variant that the others are held against; "" if the file does not say.
        primary: the primary measure; "" if the file does not say.
        variants: their names, in the file's order.
        seeds: that each is to be trained with.
        expect: variant -> what is scored ("loss", or a family of probes) -> worse, better, same or unknown.
        why: variant -> one sentence.
        description: one line.
        problem: why the file cannot be read; "" where it can.
    """

    name: str
    baseline: str = ""
    primary: str = ""
    variants: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    expect: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    why: Mapping[str, str] = field(default_factory=dict)
    description: str = ""
    problem: str = ""


def read_study_file(path: Path) -> StudyFile:
    """Read a study's file. Never raises: what is damaged is left out, and said in `problem`."""
    name = path.name.removesuffix(ENDING).removesuffix(".toml")
    try:
        said = _Study.read(read(path))
    except (InputError, RecursionError) as error:
        return StudyFile(name, problem=str(error))
    variants = {variant.name: variant for variant in said.variants if variant.name}
    return StudyFile(
        name=said.name or name,
        baseline=said.baseline,
        primary=said.primary,
        variants=tuple(variants),
        seeds=said.seeds,
        expect={name: variant.expect for name, variant in variants.items()},
        why={name: variant.why for name, variant in variants.items()},
        description=said.description,
    )


class StudyFolder:
    """The studies that were begun in a runs folder."""

    def __init__(self, runs_dir: Path) -> None:
        self._runs_dir = runs_dir
        self._kept: dict[Path, tuple[Stamp, StudyFile]] = {}
        self.files: Mapping[str, StudyFile] = {}

    def look(self) -> Mapping[str, StudyFile]:
        """Return every study by its name; the same object as before where nothing changed."""
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
    """Return every study that was begun in a runs folder, by its name."""
    return StudyFolder(runs_dir).look()


@dataclass(frozen=True)
class RunScan:
    """What there was.

    Args:
        entries: the newest first.
        problem: why the folder cannot be read; "" where it can, or is not there yet.
        studies: the files of studies that were begun, by name.
    """

    entries: tuple[Entry, ...] = ()
    problem: str = ""
    studies: Mapping[str, StudyFile] = field(default_factory=dict)


@dataclass
class _Kept:
    entry: Entry
    stamps: tuple[Stamp, ...]
    misses: int = 0

    @property
    def moving(self) -> bool:
        return self.entry.live or self.entry.state in ("queued", "lost", "interrupted") or self.misses > 0


class Folder:
    """Looks at a runs folder, again and again.

    Args:
        runs_dir: it need not exist.
        clock: seconds that only grow.
    """

    def __init__(self, runs_dir: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._runs_dir, self._clock = runs_dir, clock
        self._kept: dict[Path, _Kept] = {}
        self._root: Stamp = None
        self._swept: float | None = None
        self._studies = StudyFolder(runs_dir)
        self._last = RunScan(studies=self._studies.files)

    def look(self, fresh: Iterable[Path] = ()) -> RunScan:
        """Return what there is now; the same object as before where nothing changed.

        Args:
            fresh: runs to look at even if they rest.
        """
        now, root, problem, fresh = self._clock(), stamp(self._runs_dir), self._last.problem, set(fresh)
        sweep = self._swept is None or root != self._root or now - self._swept >= RESTING
        if sweep:
            self._root, self._swept = root, now
            problem = self._find()
            self._studies.look()
        for path, kept in list(self._kept.items()):
            if sweep or kept.moving or path in fresh:
                self._refresh(path, kept)
        entries = tuple(sorted((k.entry for k in self._kept.values()), key=lambda e: (e.created, e.name), reverse=True))
        unchanged = len(entries) == len(self._last.entries) and all(
            a is b for a, b in zip(entries, self._last.entries, strict=True)
        )
        if not unchanged or problem != self._last.problem or self._studies.files is not self._last.studies:
            self._last = RunScan(self._last.entries if unchanged else entries, problem, self._studies.files)
        return self._last

    def _find(self) -> str:
        """Learn which runs there are; gives back why that is not possible."""
        try:
            with os.scandir(self._runs_dir) as found:
                paths = {self._runs_dir / entry.name for entry in found if not entry.name.startswith(".")}
        except FileNotFoundError:
            paths = set()
        except OSError as error:
            self._kept.clear()
            return f"{self._runs_dir} cannot be read: {error.strerror or error}"
        for path in self._kept.keys() - paths:
            del self._kept[path]
        for path in paths - self._kept.keys():
            if stamp(path / READ[0]) is not None:
                stamps = _stamps(path)
                self._kept[path] = _Kept(read_entry(path), stamps)
        return ""

    def _refresh(self, path: Path, kept: _Kept) -> None:
        stamps = _stamps(path)
        if stamps == kept.stamps and not kept.moving:
            return
        if stamps[0] is None:  # deleted since the folder was listed
            del self._kept[path]
            return
        entry = read_entry(path)
        kept.misses = kept.misses + 1 if entry.problems and entry.problems != kept.entry.problems else 0
        if kept.misses and kept.misses < FORGIVEN:
            return
        kept.misses, kept.stamps = 0, stamps
        if entry != kept.entry:
            kept.entry = entry


def _stamps(path: Path) -> tuple[Stamp, ...]:
    return tuple(stamp(path / name) for name in READ)
