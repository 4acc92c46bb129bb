"""Times in words, names of an exact width."""

from datetime import datetime

import pytest

from engine.base.errors import InputError
from tui_transformer.lab.formatting import done_at, duration, elide_middle, parse_duration

HOUR, DAY = 3600, 86400


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (130, "done at 14:32"),
        (10 * HOUR, "done Thu 00:30"),
        (6 * DAY, "done Tue 14:30"),
        (8 * DAY, "done 3 Dec 14:30"),
        (1e18, ""),
    ],
)
def test_the_time_of_day_names_the_day_if_it_is_another(seconds, words) -> None:
    assert done_at(seconds, datetime(2026, 11, 25, 14, 30)) == words


def test_a_name_that_is_cut_keeps_its_end() -> None:
    assert elide_middle("biographies-characters-scratch", 20) == "biogra…cters-scratch"


@pytest.mark.parametrize("seconds", [1, 48, 725, 12000, 360000])
def test_a_duration_reads_as_it_is_written(seconds) -> None:
    assert parse_duration(duration(seconds)) == seconds


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("30m", 1800), ("3h50m", 13800), ("1d2h", 93600)])
def test_a_duration_may_name_its_units(text, seconds) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "0m", "m", "5x", "30m1h", "0:00", "1:2:3:4", "-1:00", "1:xx", "٣:00:"])
def test_what_is_no_time_is_refused_with_an_example(text) -> None:
    with pytest.raises(InputError, match="1h30m"):
        parse_duration(text)
