"""When each metrics record was written: the records count seconds of training, the events tell the clock's time."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from tui_transformer.lab.records.facts import number, text, whole

Record = dict[str, Any]
BEGINNINGS = ("started", "resumed")


def wall_times(metrics: Sequence[Record], events: Iterable[Record], created: str) -> list[float]:
    """Seconds since 1970 of each record, never falling.

    An attempt begins when its event says; from there on the seconds of training count. Evaluations and pauses within
    an attempt are not in those, so a time may be early by their length.

    Args:
        metrics: the records in their order.
        events: of the run.
        created: when it was made, ISO 8601, for a run without events.
    """
    begun = [(whole(e.get("step")), seconds_of(text(e.get("time")))) for e in events if e.get("event") in BEGINNINGS]
    begun = begun or [(0, seconds_of(created))]
    times, at, base, latest = [], 0, 0.0, 0.0
    trained = 0.0
    for record in metrics:
        step = whole(record.get("step"))
        while at + 1 < len(begun) and begun[at + 1][0] < step:
            at, base = at + 1, trained
        trained = number(record.get("seconds")) or trained
        latest = max(latest, begun[at][1] + trained - base)
        times.append(latest)
    return times


def seconds_of(time: str) -> float:
    """Seconds since 1970 of an ISO 8601 time; 0 where it is none."""
    try:
        return max(0.0, datetime.fromisoformat(time).timestamp())
    except (ValueError, OverflowError, OSError):
        return 0.0
