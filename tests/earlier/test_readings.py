"""Runs on files that are read in another way since: they go on with the text that they started with."""

import json
from pathlib import Path

import pytest

from engine.data.catalogue import load_corpus
from engine.data.text_files import FIRST, LATEST
from engine.runs.reader import RunReader
from engine.tasks.task import task_class
from tests.earlier.asking import ask
from tests.earlier.commands import CPU
from tests.earlier.kept import EXPECTED, READINGS, resumed, same_end, same_machine, take_out
from tests.earlier.readings import RUNS

ENDS = json.loads((EXPECTED / "readings.json").read_text(encoding="utf-8"))
SOME = ("crlf", "first-null")  # in CI; the others are slow


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize(
    "names",
    [pytest.param(SOME, id="some"), pytest.param(tuple(RUNS.keys() - set(SOME)), marks=pytest.mark.slow, id="others")],
)
def test_a_run_that_recorded_no_reading_is_resumed_bit_for_bit_and_verified(
    names: tuple[str, ...], tmp_path: Path, cache: Path
) -> None:
    kept = take_out(tmp_path, READINGS)
    for run, end in resumed(sorted(names), kept, cache).items():
        assert same_end(end, ENDS[run], exact=same_machine()), f"{run}: {end}\ninstead of {ENDS[run]}"
        assert "reading" not in json.loads((kept / "runs" / run / "data.json").read_text())
    answers = ask([("verify", run, "--runs-dir", "runs", *CPU) for run in sorted(names)], kept, cache)
    assert [answer.code for answer in answers] == [0] * len(names), answers


@pytest.mark.parametrize("name", RUNS)
def test_the_same_file_gives_another_text_by_the_latest_rules(name: str, tmp_path: Path) -> None:
    """So that the other test is about something."""
    reader = RunReader(take_out(tmp_path, READINGS) / "runs" / name)
    made = task_class(reader.config).corpus_class
    first, latest = (load_corpus(made, reader.config.data, None, version) for version in (FIRST, LATEST))
    assert first.sha256 == reader.data.sha256 and reader.data.reading == FIRST
    assert (latest.sha256 == first.sha256) == (name == "labels")
