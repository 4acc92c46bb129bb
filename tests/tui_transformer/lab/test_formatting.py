"""Times in words, names of an exact width."""

from datetime import datetime

import pytest

from tui_transformer.lab.formatting import done_at, middle

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
    assert middle("biographies-characters-scratch", 20) == "biogra…cters-scratch"
