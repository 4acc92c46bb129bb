"""The runs folder as immutable snapshots: a row per run, damaged ones too, and everything about the chosen one."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from engine.base.language import Message, tr
from engine.runs.files import read_json
from engine.runs.reader import LIVE_STATES, RunReader
from engine.runs.records import Run, TrainRecord, ValidationRecord
from engine.runs.row_cache import RowCache
from engine.runs.scan import RUN_FILE, RunsScan, run_stamps
from engine.runs.tail import MetricsHistory, Stamp, newest_records, stamp
from tui_transformer.lab.records.badges import acknowledged_badges, worst_first
from tui_transformer.lab.records.run_files import DAMAGED_FILES, READ_FILES, RunFiles
from tui_transformer.lab.records.run_view import RunFollower, RunRow, RunView
from tui_transformer.lab.records.study_row import RunTotals, SlurmWaiting, StudyRow, study_rows
from tui_transformer.lab.work.device_queue import DeviceQueue

FOLLOWED = 4  # runs whose curves are kept after another was chosen
STUDY_RECORDS = 50  # train records kept of a study's runs, whose evaluations alone are drawn
QUEUED, DAMAGED = Message("queued"), Message("damaged")


@dataclass(frozen=True)
class FolderSnapshot:
    rows: tuple[RunRow, ...] = ()  # running ones first, then the queue in order, then the newest first
    view: RunView | None = None  # the chosen run; None if none is chosen, it is gone, or the look was not full
    studies: tuple[StudyRow, ...] = ()  # which of the runs belong together; a chosen one has its evaluations
    problem: str = ""  # why the folder cannot be read; "" if it can, or does not exist yet
    changed: bool = True  # whether anything is new since the last look
    chosen: Path | None = None  # the requested run, or a study's file

    def row(self, run: Path | None) -> RunRow | None:
        return next((row for row in self.rows if row.path == run), None)

    def study(self, path: Path | None) -> StudyRow | None:
        return next((study for study in self.studies if study.path == path), None)


class Feed:
    """Watches a runs folder, which need not exist; `clock` gives monotonic seconds."""

    def __init__(self, runs_dir: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._scan = RunsScan(
            runs_dir,
            READ_FILES,
            lambda path: _row(RunReader(path)),
            moving=lambda row: row.live or row.state == "lost",
            broke=lambda row, before: row.state == DAMAGED or DAMAGED_FILES in {*row.badges} - {*before.badges},
            rows=_row_cache(runs_dir),
        )
        self._runs_dir = runs_dir
        self._followed: dict[Path, RunFollower] = {}
        self._totals, self._waits = RunTotals(), SlurmWaiting()
        self._queues: dict[str, DeviceQueue] = {}  # of the devices that a chosen run waits for
        self._histories: dict[Path, MetricsHistory] = {}  # of the chosen study's runs
        self._last = FolderSnapshot()

    def poll(self, chosen: Path | None = None, *, full: bool = True) -> FolderSnapshot:
        """Return the current state; if `full`, with the chosen run's curves, samples, log and the rest."""
        now = self._clock()
        waiting = {row.path for row in self._last.rows if row.state == QUEUED}
        self._scan.update(now, waiting if chosen is None or self._last.study(chosen) else {*waiting, chosen})
        known = self._scan.runs
        oldest = sorted(known, key=lambda row: (row.created, row.made, row.name))
        live = [row for row in reversed(oldest) if row.live]
        queue = [row for row in oldest if row.state == QUEUED]
        rows = (*live, *queue, *(row for row in reversed(oldest) if not row.live and row.state != QUEUED))
        view = self._view(chosen, rows, now) if full and chosen is not None else None
        last = self._last
        rows = last.rows if rows == last.rows else rows
        view = last.view if view is not None and view == last.view else view
        studies = study_rows(self._runs_dir, rows, self._totals, time.time())
        nodes = tuple(self._with_scores(one, now) if full and one.path == chosen else one for one in studies)
        nodes = last.studies if nodes == last.studies else nodes
        same = rows is last.rows and view is last.view and nodes is last.studies
        changed = not same or self._scan.problem != last.problem
        self._last = FolderSnapshot(rows, view, nodes, self._scan.problem, changed, chosen)
        return self._last

    def _with_scores(self, study: StudyRow, now: float) -> StudyRow:
        """The study with its evaluations, and what its workers wait for."""
        before, self._histories = self._histories, {}
        scores: dict[str, dict[int, tuple[ValidationRecord, ...]]] = {}
        for run in study.runs:
            history = before.get(run.path) or MetricsHistory(run.path, STUDY_RECORDS)
            self._histories[run.path] = history
            history.poll()
            if not run.study.stage:
                scores.setdefault(run.study.variant, {})[run.study.seed] = history.metrics.validation
        version = sum(len(records) for seeds in scores.values() for records in seeds.values())
        return replace(study, scores=scores, version=version, waits_for=self._waits.reason(study, now))

    def _view(self, chosen: Path, rows: tuple[RunRow, ...], now: float) -> RunView | None:
        row = next((row for row in rows if row.path == chosen), None)
        if row is None:
            return None
        for gone in self._followed.keys() - {row.path for row in rows}:
            del self._followed[gone]
        followed = self._followed.pop(chosen, None) or RunFollower(chosen)
        self._followed[chosen] = followed  # the newest last
        while len(self._followed) > FOLLOWED:
            del self._followed[next(iter(self._followed))]
        if row.state != QUEUED or not row.waits_for:
            return followed.view(now, row)
        queue = self._queues.setdefault(row.waits_for, DeviceQueue(self._runs_dir, row.waits_for))
        queue.refresh(now)
        positions = queue.positions()
        mine = next((one for one in positions if one.run.path == chosen), None)
        ahead = [*queue.training, *(one.run for one in positions[: mine.place - 1])] if mine is not None else []
        return followed.view(now, row, tuple(run.path.name for run in ahead), mine.wait if mine else None)


def rows_oldest_first(runs_dir: Path) -> tuple[bool, Iterator[RunRow]]:
    """Return whether any run in a folder started from another, and every run's row, each read when it is asked for."""
    kept, found = _row_cache(runs_dir), list[tuple[str, Stamp, Path, tuple[Stamp, ...], Run | RunRow]]()
    try:
        listed = [path for path in runs_dir.iterdir() if not path.name.startswith(".")]
    except OSError:
        listed = []
    for path in listed:
        stamps = run_stamps(path, (RUN_FILE, *READ_FILES))
        known: Run | RunRow | None = kept.get(path, stamps)
        if known is None and isinstance(facts := read_json(path / RUN_FILE), dict):
            known = Run.read(facts)
        if known is not None:
            found.append((known.created, stamp(path), path, stamps, known))

    def rows() -> Iterator[RunRow]:
        for _, _, path, stamps, known in sorted(found, key=lambda run: (run[0], (run[1] or (0,))[0], run[2])):
            row = known if isinstance(known, RunRow) else _row(RunReader(path))
            if row is not known:
                kept.add(path, stamps, row)
            yield row
        kept.save()

    return any(known.origin is not None for *_, known in found), rows()


def _row_cache(runs_dir: Path) -> RowCache[RunRow]:
    return RowCache(runs_dir, RunRow, lambda row: row.state == "finished" and DAMAGED_FILES not in row.badges)


def _row(reader: RunReader) -> RunRow:
    files = RunFiles(reader.path)
    status, born, badges = files.status, files.run_record, worst_first(files.badges)
    state = reader.state if status.state in LIVE_STATES else status.state or DAMAGED
    last = files.summary.last
    loss = None if last is None else last.loss
    scored = loss is not None
    if not scored and state in LIVE_STATES:
        records = newest_records(reader.path / "metrics.jsonl", TrainRecord, 1, 4096)
        loss = records[-1].loss if records else None
    return RunRow(
        path=reader.path,
        state=state,
        phase=status.phase,
        reason=tr(status.reason),
        step=status.step,
        steps=status.steps,
        loss=loss,
        scored=scored,
        badges=badges,
        seen=acknowledged_badges(badges, reader.notes) if badges else (),
        created=born.created,
        made=(stamp(reader.path / "run.json") or (0,))[0],
        host=status.host,
        device=status.device,
        ranks=status.ranks,
        slowest=status.slowest,
        behind=status.behind,
        waits_for=born.queue.device if born.queue is not None else "",
        attempt=status.attempt,
        control_id=status.control_id,
        checkpoint=status.checkpoint or "",
        study=born.study,
        recorded_reason=status.reason,
        perplexity=None if last is None else last.perplexity,
        preset=born.preset if "preset" in born.model_fields_set else "",
        origin=born.origin,
        checked=bool(files.verdicts) and scored,
        wall_seconds=_duration(reader.path) if state == "finished" and born.study.name else None,
    )


def _duration(run: Path) -> float | None:
    began, ended = stamp(run / "run.json"), stamp(run / "status.json")
    return (ended[0] - began[0]) / 1e9 if began is not None and ended is not None else None
