"""The runs folder as entries: each look opens only files that changed. Called in a thread; never raises."""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engine.runs.tail import Stamp, stamp
from tui_transformer.lab.analysis.entry import READ, Entry, read_entry
from tui_transformer.lab.analysis.studies import StudyFile, StudyFolder

RESTING = 2.0  # seconds between two looks at runs that neither train nor wait
FORGIVEN = 3  # looks that a damaged run may last: somebody may be writing it


@dataclass(frozen=True)
class Look:
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
        self._last = Look(studies=self._studies.files)

    def look(self, fresh: Iterable[Path] = ()) -> Look:
        """What there is now; the same object as before where nothing changed.

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
            self._last = Look(self._last.entries if unchanged else entries, problem, self._studies.files)
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
            if stamp(path / "run.json") is not None:
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
