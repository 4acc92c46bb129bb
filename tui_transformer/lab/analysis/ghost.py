"""The ghost of a run: the best finished run that it can be compared with, whose curve is drawn behind its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.runs.records import ValidationRecord
from engine.runs.tail import MetricsHistory, Stamp, stamp
from tui_transformer.lab.analysis.entry import RunEntry, read_entry
from tui_transformer.lab.analysis.groups import comparable
from tui_transformer.lab.records.feed import FolderSnapshot

TRIED = 20  # finished runs, the best first
FILES = ("config.toml", "data.json", "summary.json", "checks.json")  # that say what can be compared
FEW = 50  # train records kept, which are not drawn


@dataclass(frozen=True)
class Ghost:
    name: str
    validation: Sequence[ValidationRecord]
    version: int  # changes whenever the evaluations do


class GhostFinder:
    def __init__(self) -> None:
        self._entries: dict[Path, tuple[tuple[Stamp, ...], RunEntry]] = {}
        self._history: tuple[Path, MetricsHistory] | None = None

    def find(self, snapshot: FolderSnapshot) -> Ghost | None:
        """The ghost of the chosen run; None if there is none. May wait for a disk."""
        row = snapshot.row(snapshot.chosen)
        if row is None or snapshot.view is None:
            return None
        finished = [other for other in snapshot.rows if other.state == "finished" and other.scored and other != row]
        finished.sort(key=lambda other: other.loss or 0.0)
        own = self._entry(row.path)
        best = next((other for other in finished[:TRIED] if comparable(self._entry(other.path), own)), None)
        if best is None:
            return None
        if self._history is None or self._history[0] != best.path:
            self._history = best.path, MetricsHistory(best.path, FEW)
        history = self._history[1]
        history.poll()
        return Ghost(best.name, history.metrics.validation, history.metrics.version)

    def _entry(self, run: Path) -> RunEntry:
        now = tuple(stamp(run / file) for file in FILES)
        if run not in self._entries or self._entries[run][0] != now:
            self._entries[run] = now, read_entry(run)
        return self._entries[run][1]
