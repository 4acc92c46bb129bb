"""What every view says about a run's progress and scores."""

from datetime import UTC, datetime

from engine.runs.records import Floor, TrainRecord, ValidationRecord
from tui_transformer.lab.records.run_lines import average_lines, losses_text, run_time_left_text

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def test_the_time_left_is_said_once_it_is_known_with_the_time_of_day_where_that_is_wanted() -> None:
    assert run_time_left_text(5, 10, None) == "estimating the time left…"
    assert run_time_left_text(5, 10, 130.0) == "2:10 left"
    assert run_time_left_text(5, 10, 130.0, NOON) == "2:10 left, done at 12:02"
    assert run_time_left_text(10, 10, 0.0, NOON) == "finishing"


def test_losses_say_what_may_be_compared_with_them() -> None:
    assert losses_text(None, None, None) == "no loss yet"
    train, validation = TrainRecord(loss=1.5), ValidationRecord(loss=None, exact_match=0.25)
    floor = Floor(nats_per_char=0.3688, context=256, stride=128)
    said = "loss train 1.500 · validation not a number · reachable floor 0.369 · exact match 25.0%"
    assert losses_text(train, validation, floor) == said


def test_averaged_weights_are_compared_with_the_best_checkpoint() -> None:
    averages, equal = (("ema", 1.2), ("mean", 1.3)), ("ema", "1.2000, equal to best")
    assert [*average_lines(averages, None)] == [("ema", "1.2000"), ("mean", "1.3000")]
    assert [*average_lines(averages, 1.2)] == [equal, ("mean", "1.3000, 0.1000 higher than best")]
    assert [*average_lines(averages[:1], 1.25)] == [("ema", "1.2000, 0.0500 lower than best")]
