"""What a run directory says, read once for a format to write down. Damaged files leave gaps and raise nothing."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from engine.clean import clean_line
from engine.config.keys import flatten
from engine.runs.flat import flat
from engine.runs.reader import RunReader
from engine.runs.records import LARGEST, MEASURED, Event, Sample, TrainRecord

Line = dict[str, Any]  # of metrics.jsonl as it was written: an export keeps what this version does not know
NO_SCORES = ("kind", "step")
PROFILE = "profile"  # by place in the window: a curve of its own, not a scalar
BEGINNINGS = ("started", "resumed")


class ExportedRun(RunReader):
    """A run to export: what its reader says, and what several formats need of it, read once."""

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Every setting by its dotted key; those that are lists as text."""
        values = flatten(self.config.dump())
        return {key: str(value) if isinstance(value, list | tuple) else value for key, value in values.items()}

    @cached_property
    def lines(self) -> list[Line]:
        """All metrics records at a step."""
        lines = self.raw_lines("metrics")
        return [line for line in lines if isinstance(step := line.get("step"), int) and abs(step) <= LARGEST]

    @cached_property
    def texts(self) -> list[Sample]:
        """All samples at a step."""
        return [sample for sample in self.samples() if "step" in sample.model_fields_set]

    @cached_property
    def times(self) -> list[float]:
        """When each of `lines` was written, in seconds since 1970."""
        return wall_times(map(TrainRecord.read, self.lines), self.events(), self.run.created)

    @property
    def start(self) -> float:
        return self.times[0] if self.times else seconds_of(self.run.created)


def scalars(line: Line) -> Iterator[tuple[str, float]]:
    """The numbers of a metrics record, each with its name under `train/` or `validation/`."""
    kind = line.get("kind")
    scores = {key: value for key, value in line.items() if key not in (*NO_SCORES, PROFILE)}
    for name, value in flat(scores):
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MEASURED:
            place = name.replace(".", "/", 1)
            yield clean_line(f"{kind if isinstance(kind, str) and kind else 'other'}/{place}"), float(value)


def wall_times(metrics: Iterable[TrainRecord], events: Iterable[Event], created: str) -> list[float]:
    """Seconds since 1970 of each record, never falling: records count seconds of training, events tell the clock's.

    An attempt begins when its event says; from there on the seconds of training count. Evaluations and pauses within
    an attempt are not in those, so a time may be early by their length.

    Args:
        metrics: of any kind, in their order; only steps and seconds are read.
        created: when the run was made, ISO 8601, for one without events.
    """
    begun: Sequence[tuple[int, float]] = [(e.step, seconds_of(e.time)) for e in events if e.event in BEGINNINGS]
    begun = begun or [(0, seconds_of(created))]
    times, attempt, before, trained, latest = [], 0, 0.0, 0.0, 0.0
    for record in metrics:
        while attempt + 1 < len(begun) and begun[attempt + 1][0] < record.step:
            attempt, before = attempt + 1, trained
        trained = record.seconds or trained
        latest = max(latest, begun[attempt][1] + trained - before)
        times.append(latest)
    return times


def seconds_of(time: str) -> float:
    """Seconds since 1970 of an ISO 8601 time; 0 where it is none."""
    try:
        return max(0.0, datetime.fromisoformat(time).timestamp())
    except (ValueError, OverflowError, OSError):
        return 0.0
