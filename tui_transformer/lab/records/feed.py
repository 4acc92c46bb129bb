"""The runs folder as immutable snapshots: a row for each run, all there is of the chosen one. No Textual, no torch.

`Feed.look` is called in a thread, again and again, and opens only files that changed. It never raises: what is damaged
or cannot be read is shown as such. Runs at rest are looked at every `RESTING` seconds, live and queued ones each time.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from engine.runs.files import read_json
from engine.runs.reader import LIVE_STATES, RunReader
from engine.runs.records import Run, TrainRecord
from engine.runs.tail import Stamp, newest_records, stamp
from tui_transformer.lab.records.badges import worst_first
from tui_transformer.lab.records.run_view import Followed, RunRow, RunView

RESTING = 2.0  # seconds between two looks at runs that neither train nor wait
FOLLOWED = 4  # runs whose curves are kept after another was chosen
FORGIVEN = 3  # looks that a damaged status.json may last: somebody may be writing it
WATCHED = ("status.json", "summary.json", "checks.json")
QUEUED, DAMAGED = "queued", "damaged"


@dataclass(frozen=True)
class Snapshot:
    """One look.

    Args:
        rows: running ones first, then the queue in order, then the newest first.
        view: the chosen run, None where none is chosen, it is gone, or the look was not a full one.
        problem: why the folder cannot be read; "" where it can, or is not there yet.
        changed: whether anything is new since the look before.
        chosen: the run that was asked for.
    """

    rows: tuple[RunRow, ...] = ()
    view: RunView | None = None
    problem: str = ""
    changed: bool = True
    chosen: Path | None = None

    def row(self, run: Path | None) -> RunRow | None:
        return next((row for row in self.rows if row.path == run), None)


@dataclass
class _Kept:
    reader: RunReader
    born: Run
    row: RunRow | None = None
    stamps: tuple[Stamp, ...] = ()
    misses: int = 0


class Feed:
    """Looks at a runs folder.

    Args:
        runs_dir: it need not exist.
        clock: seconds that only grow.
    """

    def __init__(self, runs_dir: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._runs_dir, self._clock = runs_dir, clock
        self._kept: dict[str, _Kept] = {}
        self._root: Stamp = None
        self._swept: float | None = None
        self._problem = ""
        self._followed: dict[Path, Followed] = {}
        self._last = Snapshot()

    def look(self, chosen: Path | None = None, *, full: bool = True) -> Snapshot:
        """Return what there is now.

        Args:
            chosen: the run to read whole.
            full: with its curves, samples and log; otherwise only the rows.
        """
        now = self._clock()
        root = stamp(self._runs_dir)
        new = chosen is not None and chosen.name not in self._kept
        sweep = self._swept is None or root != self._root or new or now - self._swept >= RESTING
        if sweep:
            self._root, self._swept = root, now
            self._find()
        for name, kept in list(self._kept.items()):
            row = kept.row
            if sweep or row is None or row.live or row.state in (QUEUED, "lost") or row.path == chosen:
                self._refresh(name, kept)
        known = [kept.row for kept in self._kept.values() if kept.row is not None]
        oldest = sorted(known, key=lambda row: (row.created, row.made, row.name))
        live = [row for row in reversed(oldest) if row.live]
        queue = [row for row in oldest if row.state == QUEUED]
        rows = (*live, *queue, *(row for row in reversed(oldest) if not row.live and row.state != QUEUED))
        view = self._view(chosen, rows, now) if full and chosen is not None else None
        last = self._last
        rows = last.rows if rows == last.rows else rows
        view = last.view if view is not None and view == last.view else view
        changed = rows is not last.rows or view is not last.view or self._problem != last.problem
        self._last = Snapshot(rows, view, self._problem, changed, chosen)
        return self._last

    def _find(self) -> None:
        names: set[str] = set()
        self._problem = ""
        try:
            with os.scandir(self._runs_dir) as entries:
                for entry in entries:
                    with suppress(OSError):  # of an entry, not of the folder
                        if not entry.name.startswith(".") and entry.is_dir():
                            names.add(entry.name)
        except FileNotFoundError:
            pass
        except OSError as error:
            self._problem = f"{self._runs_dir} cannot be read: {error.strerror or error}"
        for name in self._kept.keys() - names:
            del self._kept[name]
        for name in names - self._kept.keys():
            path = self._runs_dir / name
            if stamp(path / "run.json") is not None:
                self._kept[name] = _Kept(RunReader(path), Run.read(read_json(path / "run.json")))
        for path in [path for path in self._followed if path.name not in self._kept]:
            del self._followed[path]

    def _refresh(self, name: str, kept: _Kept) -> None:
        folder = kept.reader.path
        stamps = tuple(stamp(folder / file) for file in WATCHED)
        live = kept.row is not None and (kept.row.live or kept.row.state == "lost")
        if stamps == kept.stamps and not live:
            return
        if stamp(folder / "run.json") is None:  # deleted since the folder was listed
            del self._kept[name]
            return
        row = _row(kept.reader, kept.born)
        kept.misses = kept.misses + 1 if row.state == DAMAGED else 0
        if kept.misses and kept.row is not None and kept.misses < FORGIVEN:
            return
        kept.row, kept.stamps = row, stamps

    def _view(self, chosen: Path, rows: tuple[RunRow, ...], now: float) -> RunView | None:
        row = next((row for row in rows if row.path == chosen), None)
        if row is None:
            return None
        followed = self._followed.pop(chosen, None) or Followed(chosen)
        self._followed[chosen] = followed  # the newest last
        while len(self._followed) > FOLLOWED:
            del self._followed[next(iter(self._followed))]
        before: list[str] = []  # the runs that a queued one waits for, the nearest to its turn first
        if row.state == QUEUED and row.waits_for:
            before += [other.name for other in rows if other.live and other.device == row.waits_for]
            queue = [other for other in rows[: rows.index(row)] if other.state == QUEUED]
            before += [other.name for other in queue if other.waits_for == row.waits_for]
        return followed.view(now, row, tuple(before))


def _row(reader: RunReader, born: Run) -> RunRow:
    status = reader.status
    state = reader.state if status.state in LIVE_STATES else status.state or DAMAGED
    last = reader.summary.last
    loss = None if last is None else last.loss
    scored = loss is not None
    if not scored and state in LIVE_STATES:
        records = newest_records(reader.path / "metrics.jsonl", 1, 4096)
        loss = TrainRecord.read(records[-1]).loss if records else None
    return RunRow(
        path=reader.path,
        state=state,
        phase=status.phase,
        reason=status.reason,
        step=status.step,
        steps=status.steps,
        loss=loss,
        scored=scored,
        badges=worst_first(reader.badges),
        created=born.created,
        made=(stamp(reader.path / "run.json") or (0,))[0],
        device=status.device,
        waits_for=born.queue.device if born.queue is not None else "",
        attempt=status.attempt,
        control_id=status.control_id,
        checkpoint=status.checkpoint or "",
    )
