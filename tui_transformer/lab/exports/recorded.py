"""A run directory's contents, read once for export. Damaged files leave gaps and raise nothing."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property

from engine.base.clean import clean_line
from engine.config.keys import flatten
from engine.runs.files import flat_items
from engine.runs.reader import RunReader
from engine.runs.records import MAX_COUNT, MAX_NUMBER, Event, Sample, TrainRecord
from tui_transformer.lab.records.run_files import RunFiles

Line = Mapping[str, object]  # metrics.jsonl as written: an export keeps fields unknown to this version
NO_SCALARS = ("kind", "step", "profile")  # the profile, by place in the window, is a curve of its own
BEGINNINGS = ("started", "resumed")


class ExportedRun(RunReader):
    @property
    def badges(self) -> dict[str, str]:
        """What is wrong with its scores and its files."""
        return RunFiles(self.path).badges

    @cached_property
    def settings(self) -> Mapping[str, object]:
        """Every setting by its dotted key, lists as text."""
        values = flatten(self.config.dump())
        return {key: str(value) if isinstance(value, list | tuple) else value for key, value in values.items()}

    def read_metrics(self) -> Iterator[tuple[int, Line]]:
        lines = ((line.get("step"), line) for line in self.raw_lines("metrics"))
        return ((step, line) for step, line in lines if isinstance(step, int) and abs(step) <= MAX_COUNT)

    @cached_property
    def metrics_lines(self) -> list[tuple[int, Line]]:
        return list(self.read_metrics())

    @cached_property
    def texts(self) -> list[Sample]:
        return [sample for sample in self.samples() if "step" in sample.model_fields_set]

    @cached_property
    def times(self) -> list[float]:
        records = (TrainRecord.read(line) for _, line in self.metrics_lines)
        return wall_times(records, self.events(), self.run.created)

    @property
    def start(self) -> float:
        return self.times[0] if self.times else unix_time(self.run.created)


def scalars(line: Line) -> Iterator[tuple[str, float]]:
    """A metrics record's numbers, each named under `train/` or `validation/`."""
    kind = line.get("kind")
    scores = {key: value for key, value in line.items() if key not in NO_SCALARS}
    for name, value in flat_items(scores):
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MAX_NUMBER:
            place = name.replace(".", "/", 1)
            yield clean_line(f"{kind if isinstance(kind, str) and kind else 'other'}/{place}"), float(value)


def wall_times(metrics: Iterable[TrainRecord], events: Iterable[Event], created: str) -> list[float]:
    """Each record's Unix time, never decreasing: records count training seconds, events have clock times.

    An attempt begins at its event's time or, without one, when the run was created (ISO 8601); training seconds are
    added to that. They exclude evaluations and pauses, so a time may be early by the length of those.
    """
    begun: Sequence[tuple[int, float]] = [(e.step, unix_time(e.time)) for e in events if e.event in BEGINNINGS]
    begun = begun or [(0, unix_time(created))]
    times, attempt, before, trained, latest = [], 0, 0.0, 0.0, 0.0
    for record in metrics:
        while attempt + 1 < len(begun) and begun[attempt + 1][0] < record.step:
            attempt, before = attempt + 1, trained
        trained = record.seconds or trained
        latest = max(latest, begun[attempt][1] + trained - before)
        times.append(latest)
    return times


def unix_time(time: str) -> float:
    """Unix time of an ISO 8601 time; 0 if it is invalid."""
    try:
        return max(0.0, datetime.fromisoformat(time).timestamp())
    except (ValueError, OverflowError, OSError):
        return 0.0
