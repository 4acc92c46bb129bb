"""Scan a runs folder repeatedly: list its runs, and reread each only if its files changed.

Called in a thread; never raises. Runs at rest are checked every `REST_INTERVAL` seconds, others each time.
"""

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from engine.base.errors import reason
from engine.base.language import tr
from engine.runs.row_cache import RowCache
from engine.runs.tail import Stamp, stamp

REST_INTERVAL = 2.0  # seconds between checks of runs that neither train nor wait
MAX_MISSES = 3  # checks in a row at which a run may seem damaged: it may be half-written
RUN_FILE = "run.json"
T = TypeVar("T")


@dataclass
class _RunEntry(Generic[T]):
    found: T
    stamps: tuple[Stamp, ...]
    misses: int = 0


class RunsScan(Generic[T]):
    def __init__(
        self,
        runs_dir: Path,  # need not exist
        files: Sequence[str],  # of a run, that `read` depends on
        read: Callable[[Path], T],
        moving: Callable[[T], bool],  # whether it may change without its files: its process may die
        broke: Callable[[T, T], bool],  # whether what was read is newly damaged
        rows: RowCache[T] | None = None,  # kept by earlier processes; only where a row depends on `files` alone
    ) -> None:
        self._runs_dir, self._files = runs_dir, (RUN_FILE, *files)
        self._rows: RowCache[T] = rows or RowCache(runs_dir, object, lambda _: False)  # type: ignore[arg-type]
        self._read, self._moving, self._broke = read, moving, broke
        self._kept: dict[Path, _RunEntry[T]] = {}
        self._root: Stamp = None
        self._swept: float | None = None
        self.problem = ""  # why the folder cannot be read
        self.unreadable: list[Path] = []  # folders in it that cannot be read, which may be runs

    @property
    def runs(self) -> list[T]:
        return [kept.found for kept in self._kept.values()]

    def update(self, now: float, always_check: Collection[Path] = ()) -> bool:
        """Reread runs that changed, those of `always_check` even at rest; return whether every run was checked."""
        root = stamp(self._runs_dir)
        sweep = self._swept is None or root != self._root or now - self._swept >= REST_INTERVAL
        sweep = sweep or any(path not in self._kept for path in always_check)
        known = list(self._kept)
        if sweep:
            self._root, self._swept = root, now
            self._add_and_drop_runs()
        for path in known:
            if (kept := self._kept.get(path)) is None:
                continue
            moving = kept.misses > 0 or self._moving(kept.found)
            if not (sweep or moving or path in always_check):
                continue
            stamps = run_stamps(path, self._files)
            if stamps[0] is None:  # deleted since the folder was listed
                del self._kept[path]
            elif moving or stamps != kept.stamps:
                found = self._read(path)
                kept.misses = kept.misses + 1 if self._broke(found, kept.found) else 0
                if not 0 < kept.misses < MAX_MISSES:
                    kept.misses, kept.stamps = 0, stamps
                    self._rows.add(path, stamps, found)
                    kept.found = kept.found if found == kept.found else found
        if sweep:
            self._rows.save()
        return sweep

    def _add_and_drop_runs(self) -> None:
        paths: set[Path] = set()
        self.problem = ""
        try:
            with os.scandir(self._runs_dir) as listed:
                paths = {self._runs_dir / entry.name for entry in listed if not entry.name.startswith(".")}
        except FileNotFoundError:
            pass
        except OSError as error:
            self.problem = tr("{runs_dir} cannot be read: {strerror}", runs_dir=self._runs_dir, strerror=reason(error))
        for path in self._kept.keys() - paths:
            del self._kept[path]
        for path in paths - self._kept.keys():
            stamps = run_stamps(path, self._files)
            if stamps[0] is None:
                continue
            found = self._rows.get(path, stamps)
            if found is None:
                found = self._read(path)
                self._rows.add(path, stamps, found)
            self._kept[path] = _RunEntry(found, stamps)
        unborn = paths - self._kept.keys()
        self.unreadable = sorted(p for p in unborn if p.is_dir() and not os.access(p, os.R_OK | os.X_OK))


def run_stamps(path: Path, files: Sequence[str]) -> tuple[Stamp, ...]:
    folder = f"{path}{os.sep}"
    return tuple([stamp(folder + name) for name in files])  # joining paths would take as long as all the rest
