import json
import os
import threading

import pytest

from engine.base.errors import InputError
from engine.config.schema import RunConfig
from engine.runs.files import read_json, read_lines, replace_non_finite
from engine.runs.names import check_name, free_name
from engine.runs.reader import RunReader, list_runs
from engine.runs.records import Status, Summary, TrainRecord, ValidationRecord
from engine.runs.writer import RunWriter


@pytest.fixture
def writer(tmp_path):
    made = RunWriter.create(tmp_path, "a", RunConfig(), {"command": "test"})
    yield made
    made.close("finished")


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".a", "a/b", "../a", "a\\b", "last", "a b", "a\n", "é", "a\x1b", "x" * 101]
)
def test_names_that_could_leave_the_folder_are_refused(tmp_path, name: str) -> None:
    with pytest.raises(InputError):
        check_name(name)
    with pytest.raises(InputError):
        RunWriter.create(tmp_path, name, RunConfig(), {})
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_taken_gets_a_number(tmp_path) -> None:
    assert free_name(tmp_path, "demo") == "demo"
    (tmp_path / "demo").mkdir()
    assert free_name(tmp_path, "demo") == "demo-2"
    assert check_name(free_name(tmp_path, "no-pe@demo")) == "no-pe-demo"
    assert check_name(free_name(tmp_path, "last")) and check_name(free_name(tmp_path, "…"))


def test_a_second_writer_is_told_who_owns_the_run(tmp_path, writer) -> None:
    with pytest.raises(InputError, match=f"written by process {os.getpid()}"):
        RunWriter(writer.path)
    with pytest.raises(InputError, match="already exists"):
        RunWriter.create(tmp_path, "a", RunConfig(), {})


def test_what_is_written_is_read(writer) -> None:
    writer.metrics(TrainRecord.create(kind="train", step=1, loss=2.0))
    writer.metrics(ValidationRecord.create(kind="validation", step=1, loss=float("nan")))
    reader = RunReader(writer.path)
    assert list(reader.raw_lines("metrics"))[1] == {"kind": "validation", "step": 1, "loss": None}
    assert reader.config == RunConfig()
    assert reader.liveness() == "alive" and reader.state == "starting"


def test_a_run_whose_process_is_gone_is_shown_as_lost(writer) -> None:
    writer.update_status(state="running")
    reader = RunReader(writer.path)
    status = json.loads((writer.path / "status.json").read_text())
    (writer.path / "status.json").write_text(json.dumps(status | {"process_started": 1.0}))
    assert reader.liveness() == "dead" and reader.state == "lost"
    (writer.path / "status.json").write_text(json.dumps(status | {"host": "elsewhere"}))
    assert reader.liveness() == "unknown" and reader.state == "running"


def test_a_run_of_another_host_is_lost_when_its_beat_stands_still(writer, monkeypatch) -> None:
    writer.update_status(state="running")
    path = writer.path / "status.json"
    status = json.loads(path.read_text()) | {"host": "elsewhere"}
    clock = [1000.0]
    monkeypatch.setattr("engine.runs.reader.time.monotonic", lambda: clock[0])
    reader = RunReader(writer.path)
    seen = []
    for beat, seconds in ((1, 0), (1, 59), (2, 1), (2, 59.9), (2, 0.1), (3, 5)):
        clock[0] += seconds
        path.write_text(json.dumps(status | {"beat": beat}))
        seen.append((reader.liveness(), reader.state))
    unknown, alive, dead = ("unknown", "running"), ("alive", "running"), ("dead", "lost")
    assert seen == [unknown, unknown, alive, alive, dead, alive]


def test_another_thread_may_let_go_of_a_run(writer) -> None:
    thread = threading.Thread(target=lambda: writer.close("finished"))
    thread.start()
    thread.join()
    RunWriter(writer.path).release_lock()


def test_runs_are_found_by_name_path_and_last(tmp_path, writer) -> None:
    second = RunWriter.create(tmp_path, "b", RunConfig(), {"created": "2999-01-01"})
    second.close("finished")
    assert [r.name for r in list_runs(tmp_path)] == ["a", "b"]
    assert RunReader.resolve("last", tmp_path).name == "b"
    assert RunReader.resolve("a", tmp_path).name == RunReader.resolve(str(writer.path), tmp_path).name == "a"
    for wrong in ("c", "", "../a/../zzz", "/"):
        with pytest.raises(InputError, match="no run named"):
            RunReader.resolve(wrong, tmp_path)


def test_a_run_that_one_stands_in_has_its_name(tmp_path, writer, monkeypatch) -> None:
    (writer.path / "checkpoints").mkdir(exist_ok=True)
    for place, said in ((writer.path, "."), (writer.path / "checkpoints", "..")):
        monkeypatch.chdir(place)
        assert RunReader.resolve(said, tmp_path / "none").name == writer.path.name


def test_an_empty_folder_says_how_to_make_a_run(tmp_path) -> None:
    with pytest.raises(InputError, match="run --preset demo"):
        RunReader.resolve("last", tmp_path / "none")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"x"', "[" * 100_000])
def test_damaged_files_read_as_nothing(writer, text: str) -> None:
    for name in ("status", "summary", "checks", "data"):
        (writer.path / f"{name}.json").write_text(text)
    reader = RunReader(writer.path)
    assert reader.status == Status() and reader.summary == Summary() and reader.verdicts == ()
    assert reader.liveness() == "dead"


@pytest.mark.parametrize("depth", [98, 400, 900, 5000])
def test_what_is_nested_deeper_than_anything_written_here_is_damage(tmp_path, depth: int) -> None:
    text = '{"a":' + "[" * depth + "]" * depth + "}"
    (tmp_path / "run.json").write_text(text)
    (tmp_path / "metrics.jsonl").write_text(f'{{"kind":"train"}}\n{text}\n')
    assert (read_json(tmp_path / "run.json") is None) is (depth > 98)
    assert len(list(read_lines(tmp_path / "metrics.jsonl"))) == (1 if depth > 98 else 2)
    assert read_json(tmp_path / "run.json") is None or replace_non_finite(read_json(tmp_path / "run.json"))


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ({"floor": None, "plausible": None}, "SUSPICIOUS"),
        ({"floor": {"nats_per_char": 0.36, "se": 0.001}}, "IMPLAUSIBLE"),
        ({"floor": None, "plausible": 1.2}, "IMPLAUSIBLE"),
        ({"best_reader": {"accuracy": 0.9, "expected": 0.9, "unordered": 0.7}}, "IMPLAUSIBLE"),
        (None, "IMPLAUSIBLE"),
    ],
)
def test_a_loss_that_was_called_implausible_without_a_bound_is_suspicious(tmp_path, data, shown: str) -> None:
    why = "the loss 0.6351 is below 0.96, less than any model is known to need"
    verdicts = [{"check": "plausible", "when": "evaluation", "step": 9, "verdict": "IMPLAUSIBLE", "why": why}]
    (tmp_path / "checks.json").write_text(json.dumps({"schema": 1, "verdicts": verdicts}))
    if data is not None:
        (tmp_path / "data.json").write_text(json.dumps({"schema": 1, "corpus": "mine.txt"} | data))
    assert RunReader(tmp_path).badges == {shown: why}
