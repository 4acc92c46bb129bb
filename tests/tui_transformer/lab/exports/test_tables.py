import csv
import io
import json

from engine.runs.reader import RunReader
from engine.runs.records import Event, TrainRecord
from tests.tui_transformer.recorded import lines, record
from tui_transformer.lab.exports.formats import metrics_to_csv, to_json
from tui_transformer.lab.exports.recorded import ExportedRun, wall_times


def recorded(root, name="run", **options) -> ExportedRun:
    return ExportedRun(record(root, name, **options))


def test_csv_has_a_row_a_record_and_every_number_to_its_last_digit(tmp_path) -> None:
    runs = [recorded(tmp_path, "a"), recorded(tmp_path, "b", step=300)]
    rows = list(csv.DictReader(io.StringIO("".join(metrics_to_csv(runs)))))
    records = [(run.name, r) for run in runs for r in RunReader(run.path).raw_lines("metrics")]
    assert len(rows) == len(records)
    for row, (name, said) in zip(rows, records, strict=True):
        assert row["run"] == name and row["kind"] == said["kind"] and int(row["step"]) == said["step"]
        assert float(row["loss"]) == said["loss"]
        for probe, share in said.get("probes", {}).items():
            assert float(row[f"probes.{probe}"]) == share
        assert row["grad_norm"] == ("" if "grad_norm" not in said else repr(said["grad_norm"]))


def test_no_cell_is_a_formula(tmp_path) -> None:
    run = record(tmp_path, "run")
    text = lines([{"kind": "=1+1", "step": 1, "@loss": 1.0, "note": "+cmd|' /C calc'!A0"}])
    (run / "metrics.jsonl").write_text(text)
    (head, row) = csv.reader(io.StringIO("".join(metrics_to_csv([ExportedRun(run)]))))
    assert not [cell for cell in head + row if cell[:1] in ("=", "+", "-", "@")]


def test_json_is_one_document_of_all_that_the_runs_say(tmp_path) -> None:
    run = recorded(tmp_path, verdicts=[("leak", "LEAK", "sees it all")])
    (found,) = json.loads(to_json([run]))["runs"]
    assert found["metrics"] == list(run.raw_lines("metrics"))
    assert found["badges"] == {"LEAK": "sees it all"} and found["config"] == run.config.dump()
    assert len(found["samples"]) == 4 and found["events"][0]["event"] == "started"


def timed(metrics: list[dict], events: list[dict], created: str) -> list[float]:
    return wall_times(map(TrainRecord.read, metrics), map(Event.read, events), created)


def test_times_begin_anew_with_each_attempt_and_never_fall() -> None:
    metrics = [{"step": step, "seconds": 10.0 * step} for step in (1, 2, 3, 4)]
    events = [
        {"event": "started", "step": 0, "time": "2026-11-21T00:00:00+00:00"},
        {"event": "paused", "step": 1, "time": "2026-11-21T00:00:11+00:00"},
        {"event": "resumed", "step": 2, "time": "2026-11-21T01:00:00+00:00"},
    ]
    midnight = 1795219200.0
    expected = [midnight + seconds for seconds in (10, 20, 3610, 3620)]
    assert timed(metrics, events, "") == expected


def test_a_run_without_events_is_timed_from_when_it_was_made_and_damage_is_no_error() -> None:
    metrics = [{"step": 1, "seconds": 5.0}, {"step": 2, "seconds": None}, {"step": "x"}]
    assert timed(metrics, [], "1970-01-01T00:01:00+00:00") == [65.0, 65.0, 65.0]
    assert timed(metrics, [{"event": "started", "time": 3}], "no time") == [5.0, 5.0, 5.0]
