import pytest

from engine.runs.records import Status, TrainRecord
from engine.runs.tail import Metrics
from tests.tui_transformer.recorded import train_record
from tui_transformer.cli.run.progress import RunProgress


def status(step: int, attempt: int = 1, phase: str = "training") -> Status:
    return Status(step=step, attempt=attempt, phase=phase)


def records(*steps: int) -> Metrics:
    return Metrics(tuple(TrainRecord.read(train_record(at, 2000)) for at in steps))


def test_a_run_that_is_watched_from_its_middle_has_a_time_left_at_once() -> None:
    snapshot = RunProgress("run", 2000)
    snapshot.update(status(500), records(*range(10, 510, 10)), 0.0)
    assert snapshot.eta == pytest.approx(1500 * 4096 / 41_200, rel=0.01)


def test_after_a_resume_the_time_left_is_that_of_the_new_attempt() -> None:
    snapshot = RunProgress("run", 2000)
    snapshot.update(status(400, 2, "loading"), records(*range(10, 610, 10)), 0.0)  # what will be cut back to step 400
    snapshot.update(status(400, 2), records(*range(10, 410, 10)), 60.0, reset=True, since=400)
    assert snapshot.time_left == "estimating the time left…"
    snapshot.update(status(450, 2), records(*range(410, 460, 10)), 65.0, since=400)
    assert snapshot.eta == pytest.approx(1550 * 4096 / 41_200, rel=0.01)
