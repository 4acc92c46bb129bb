"""When to stop: `--until`, and the end of the Slurm job that a worker runs in."""

import os
import re
import time
from contextlib import suppress
from datetime import datetime, timedelta

from engine.base.errors import InputError
from engine.base.language import Message
from tui_transformer.lab.formatting import parse_duration
from tui_transformer.lab.work.launchers import run_command

GRACE = 120.0  # seconds before the end of its time at which a worker stops; at most a tenth of its time
ASK = 300.0  # seconds between two questions to Slurm: a job's time limit can change
ANSWER = 10.0  # seconds to wait for its answer, which block the caller
CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?")


class Deadline:
    """The time that a worker has: by `--until`, and in a Slurm job until that ends."""

    def __init__(self, seconds: float | None) -> None:
        self._job = os.environ.get("SLURM_JOB_ID", "")
        self._graces: dict[str, float] = {}
        self._ends: dict[str, float] = {}
        self._ask_next = 0.0
        if seconds is not None:
            self._set("until", seconds)
        self.is_up = False

    def check(self) -> bool:
        """Return whether it is time to stop."""
        now = time.monotonic()
        if self._job and now >= self._ask_next:
            self._ask_next = now + ASK
            left = job_seconds_left(self._job)
            if left is None and "slurm" not in self._ends:
                with suppress(ValueError):  # not set by every version, and not changed with the time limit
                    left = float(os.environ.get("SLURM_JOB_END_TIME", "")) - time.time()
            if left is not None:
                self._set("slurm", left)
        self.is_up = self.is_up or now >= min(self._ends.values(), default=now + 1.0)
        return self.is_up

    def _set(self, limit: str, left: float) -> None:
        """Set when to stop for a limit, by the monotonic clock: earlier by a part of the time there was at first."""
        grace = self._graces.setdefault(limit, min(GRACE, left / 10))
        self._ends[limit] = time.monotonic() + left - grace


def seconds_until(text: str, now: datetime) -> float:
    """Return the seconds until a clock time, today or tomorrow, or for a duration; `InputError`: it is neither."""
    if (clock := CLOCK.fullmatch(text)) is not None:
        with suppress(ValueError):
            hour, minute, second = (int(part or 0) for part in clock.groups())
            at = now.replace(hour=hour, minute=minute, second=second, microsecond=0)
            return (at - now if at > now else at - now + timedelta(days=1)).total_seconds()
    elif ":" not in text:
        with suppress(InputError):
            return parse_duration(text)
    message = Message(
        "--until {text!r}: must be a clock time, e.g. 03:50, or a duration, e.g. 3h50m or 90s", text=text[:40]
    )
    raise InputError(message)


def job_seconds_left(job: str) -> float | None:
    """Return the seconds until a Slurm job ends, asked of `squeue`; None if it does not say."""
    with suppress(InputError, ValueError):
        ends = run_command("squeue", "-h", "-j", job, "-o", "%e", patience=ANSWER)
        return (datetime.fromisoformat(ends) - datetime.now()).total_seconds()
    return None
