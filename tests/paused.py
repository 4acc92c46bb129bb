"""A run that is paused takes no step, however long that lasts."""

from pathlib import Path

from engine.runs.reader import RunReader
from tests.waiting import wait_for


def assert_stays_paused(run: Path) -> None:
    """Wait until a paused run has shown three times more that it is alive, and check that it has taken no step."""
    before = RunReader(run).status
    wait_for(lambda: RunReader(run).status.beat >= before.beat + 3, "signs of life", lambda: RunReader(run).status)
    now = RunReader(run).status
    assert (before.state, now.state, now.step) == ("paused", "paused", before.step)
