"""The runs folder as immutable snapshots: a row per run, damaged ones too, and everything about the chosen one."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.runs.reader import LIVE_STATES, RunReader
from engine.runs.records import TrainRecord
from engine.runs.tail import newest_records, stamp
from tui_transformer.lab.records.badges import worst_first
from tui_transformer.lab.records.run_view import Followed, RunRow, RunView
from tui_transformer.lab.records.scan import RunsScan

FOLLOWED = 4  # runs whose curves are kept after another was chosen
WATCHED = ("status.json", "summary.json", "checks.json")
QUEUED, DAMAGED = "queued", "damaged"


@dataclass(frozen=True)
class Snapshot:
    rows: tuple[RunRow, ...] = ()  # running ones first, then the queue in order, then the newest first
    view: RunView | None = None  # the chosen run; None if none is chosen, it is gone, or the look was not full
    problem: str = ""  # why the folder cannot be read; "" if it can, or does not exist yet
    changed: bool = True  # whether anything is new since the last look
    chosen: Path | None = None  # the requested run

    def row(self, run: Path | None) -> RunRow | None:
        return next((row for row in self.rows if row.path == run), None)


class Feed:
    """Watches a runs folder, which need not exist; `clock` gives monotonic seconds."""

    def __init__(self, runs_dir: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._scan = RunsScan(
            runs_dir,
            WATCHED,
            lambda path: _row(RunReader(path)),
            moving=lambda row: row.live or row.state == "lost",
            broke=lambda row, before: row.state == DAMAGED,
        )
        self._followed: dict[Path, Followed] = {}
        self._last = Snapshot()

    def look(self, chosen: Path | None = None, *, full: bool = True) -> Snapshot:
        """Return the current state; if `full`, with the chosen run's curves, samples, log and the rest."""
        now = self._clock()
        waiting = {row.path for row in self._last.rows if row.state == QUEUED}
        self._scan.look(now, waiting if chosen is None else {*waiting, chosen})
        known = self._scan.found
        oldest = sorted(known, key=lambda row: (row.created, row.made, row.name))
        live = [row for row in reversed(oldest) if row.live]
        queue = [row for row in oldest if row.state == QUEUED]
        rows = (*live, *queue, *(row for row in reversed(oldest) if not row.live and row.state != QUEUED))
        view = self._view(chosen, rows, now) if full and chosen is not None else None
        last = self._last
        rows = last.rows if rows == last.rows else rows
        view = last.view if view is not None and view == last.view else view
        changed = rows is not last.rows or view is not last.view or self._scan.problem != last.problem
        self._last = Snapshot(rows, view, self._scan.problem, changed, chosen)
        return self._last

    def _view(self, chosen: Path, rows: tuple[RunRow, ...], now: float) -> RunView | None:
        row = next((row for row in rows if row.path == chosen), None)
        if row is None:
            return None
        for gone in self._followed.keys() - {row.path for row in rows}:
            del self._followed[gone]
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


def _row(reader: RunReader) -> RunRow:
    status, born = reader.status, reader.run
    state = reader.state if status.state in LIVE_STATES else status.state or DAMAGED
    last = reader.summary.last
    loss = None if last is None else last.loss
    scored = loss is not None
    if not scored and state in LIVE_STATES:
        records = newest_records(reader.path / "metrics.jsonl", TrainRecord, 1, 4096)
        loss = records[-1].loss if records else None
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
