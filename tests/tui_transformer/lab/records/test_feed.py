"""The runs folder as snapshots: what is seen, in which order, what is read again, and what damage does."""

import json
import os
import shutil
from pathlib import Path

import pytest

from engine.runs import scan
from engine.runs.reader import LIVE_STATES
from engine.runs.records import TrainRecord
from engine.runs.scan import REST_INTERVAL
from engine.runs.tail import newest_lines, read_end
from tests.tui_transformer.recorded import TEXT, everything, grow, lines, put_status, record, train_record
from tui_transformer.lab.records import feed as feeds
from tui_transformer.lab.records import run_view
from tui_transformer.lab.records.feed import Feed
from tui_transformer.lab.records.pace import MAX_INTERVAL, MIN_INTERVAL, Pace, PollInterval


class Clock:
    """Time that stands until it is told to go on."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "runs"


def test_a_folder_that_is_not_there_yet_has_no_runs(root) -> None:
    feed = Feed(root, Clock())
    first = feed.poll()
    assert first.rows == () and first.view is None and first.problem == ""
    assert not feed.poll().changed


def test_live_runs_come_first_then_the_queue_in_order_then_the_newest(root) -> None:
    everything(root)
    names = [row.name for row in Feed(root).poll().rows]
    assert names == [
        *("fresh", "win16", "t5-bias"),
        *("alibi", "seed2"),
        *("sine", "rope-base-500", "xl-long-context-512", "heads2", "no-pe", "baseline"),
    ]


def test_rows_say_state_progress_loss_and_what_is_wrong(root) -> None:
    everything(root)
    rows = {row.name: row for row in Feed(root).poll().rows}
    assert rows["rope-base-500"].state == "lost" and rows["rope-base-500"].last_checkpoint_step == 840
    assert rows["no-pe"].badges == ("LEAK",)
    assert rows["win16"].share == pytest.approx(0.62) and rows["win16"].live
    assert rows["alibi"].waits_for == "cpu" and rows["alibi"].loss is None
    assert rows["heads2"].reason.startswith("the loss is not finite")


def test_a_live_run_without_an_evaluation_shows_its_train_loss(root) -> None:
    record(root, "young", state="running", step=50)
    row = Feed(root).poll().rows[0]
    assert row.loss == pytest.approx(train_record(50, 2000)["loss"]) and not row.scored
    record(root, "older", state="running", step=400)
    assert {row.name: row.scored for row in Feed(root).poll().rows} == {"young": False, "older": True}


def test_the_view_has_everything_of_the_chosen_run(root) -> None:
    run = record(root, "baseline")
    view = Feed(root).poll(run).view
    assert view is not None
    assert (view.corpus, view.unit, view.parameters) == ("playlets@1", "character", 108_288)
    assert len(view.train) == 200 and len(view.validation) == 10 and view.newest.step == 2000
    assert [floor.known_nats_per_char for floor in view.floors] == [
        pytest.approx(0.3573)
    ] and view.best.loss <= view.last.loss
    assert view.samples[0].step == 2000 and view.samples[0].text == TEXT
    assert view.findings[0].is_ok and view.probes[0].chance == pytest.approx(0.083)
    assert view.events[0].event == "started" and "begins" in view.log[-1]


def test_nothing_new_gives_the_same_objects(root) -> None:
    run = record(root, "baseline")
    feed = Feed(root, Clock())
    first, second = feed.poll(run), feed.poll(run)
    assert first.changed and not second.changed
    assert second.rows is first.rows and second.view is first.view


def test_new_metrics_are_a_new_version(root) -> None:
    run = record(root, "win16", state="running", step=100)
    feed = Feed(root, Clock())
    before = feed.poll(run).view
    grow(run, to=200)
    after = feed.poll(run)
    assert after.changed and after.view.version > before.version
    assert after.view.newest.step == 200 and after.rows[0].step == 200


def test_a_resume_that_cuts_the_metrics_is_seen(root) -> None:
    run = record(root, "win16", state="running", step=500)
    feed = Feed(root, Clock())
    assert feed.poll(run).view.newest.step == 500
    (run / "metrics.jsonl").write_text(lines(train_record(at, 2000) for at in range(10, 210, 10)))
    put_status(run, attempt=2, step=200)
    assert feed.poll(run).view.newest.step == 200


def test_runs_at_rest_are_looked_at_now_and_then_only(root, monkeypatch) -> None:
    for i in range(20):
        record(root, f"run-{i}", step=0)
    clock = Clock()
    feed = Feed(root, clock)
    feed.poll()
    seen = []
    real = scan.stamp
    monkeypatch.setattr(scan, "stamp", lambda path: seen.append(path) or real(path))
    feed.poll()
    assert len(seen) == 1  # the folder itself
    clock.now += REST_INTERVAL
    feed.poll()
    assert len(seen) > 20


def test_files_that_did_not_change_are_not_opened_again(root, monkeypatch) -> None:
    for i in range(20):
        record(root, f"run-{i}")
    clock = Clock()
    feed = Feed(root, clock)
    feed.poll(root / "run-3")
    monkeypatch.setattr(run_view, "read_json", lambda path: pytest.fail(f"{path} was read"))
    monkeypatch.setattr(feeds, "_row", lambda *_: pytest.fail("a row was read"))
    clock.now += REST_INTERVAL
    assert not feed.poll(root / "run-3").changed


def test_a_run_made_elsewhere_appears_and_one_that_goes_vanishes(root) -> None:
    record(root, "old")
    feed = Feed(root, Clock())
    feed.poll()
    new = record(root, "new", created="2026-11-22T00:00:00+00:00")
    assert [row.name for row in feed.poll(new).rows] == ["new", "old"]
    shutil.rmtree(new)
    gone = feed.poll(new)
    assert [row.name for row in gone.rows] == ["old"] and gone.view is None


def test_only_the_rows_are_read_unless_asked_for_more(root) -> None:
    run = record(root, "baseline")
    assert Feed(root).poll(run, full=False).view is None


def test_a_queued_run_knows_what_is_before_it(root) -> None:
    everything(root)
    view = Feed(root).poll(root / "seed2").view
    assert view.runs_ahead == ("fresh", "win16", "t5-bias", "alibi")


@pytest.mark.parametrize("file", ["data.json", "summary.json", "checks.json", "model.json", "config.toml"])
@pytest.mark.parametrize("damage", [b'{"schema": 1, "lo', b"\xff\xfe\x00", b"[[[", b""])
def test_a_damaged_file_is_named_and_hides_nothing_else(root, file, damage) -> None:
    run = record(root, "baseline")
    (run / file).write_bytes(damage)
    view = Feed(root).poll(run).view
    assert view is not None and len(view.train) == 200
    if not (file == "config.toml" and damage == b""):
        assert file in view.problems


def test_a_damaged_status_is_forgiven_for_a_moment(root) -> None:
    run = record(root, "win16", state="running", step=100)
    feed = Feed(root, Clock())
    feed.poll(run)
    (run / "status.json").write_text('{"state": "runn')
    states = [feed.poll(run).rows[0].state for _ in range(4)]
    assert states[0] == "running" and states[-1] == "damaged"


@pytest.mark.parametrize("file", ["data.json", "model.json", "config.toml"])
def test_a_run_at_rest_is_marked_once_it_stays_damaged_and_no_longer_once_it_is_whole(root, file) -> None:
    run, clock = record(root, "baseline"), Clock()
    feed = Feed(root, clock)
    feed.poll(run)
    whole = (run / file).read_bytes()
    (run / file).write_bytes(b"[[[")
    marks = []
    for _ in range(4):
        clock.now += REST_INTERVAL
        marks.append(feed.poll(run).rows[0].badges)
    assert marks[0] == () and marks[-1] == ("DAMAGED",)
    (run / file).write_bytes(whole)
    clock.now += REST_INTERVAL
    assert feed.poll(run).rows[0].badges == ()


def spoil(run: Path, poison: object) -> None:
    """Every value of every file becomes this one."""
    keys = ("step", "steps", "phase", "reason", "attempt", "device", "control_id", "checkpoint", "pid")
    put_status(run, state="running", process_started=poison, beat=poison, **dict.fromkeys(keys, poison))
    for name in ("data", "summary", "checks", "model", "environment", "run"):
        data = json.loads((run / f"{name}.json").read_text())
        (run / f"{name}.json").write_text(json.dumps(dict.fromkeys(data, poison)))
    summary = {part: {"loss": poison, "step": poison, "probes": {"x": poison}} for part in ("best", "last")}
    if isinstance(poison, float | int):
        (run / "summary.json").write_text(json.dumps(summary))
    fields = dict.fromkeys(train_record(1, 2), poison)
    records = [json.dumps(fields | {"kind": kind}) + "\n" for kind in ("train", "validation") * 6]
    (run / "metrics.jsonl").write_text("".join(records))
    for stream in ("samples", "events"):
        (run / f"{stream}.jsonl").write_text(json.dumps({"step": poison, "text": poison, "prompt": poison}) + "\n")


POISON = [None, True, -1, 1e-320, 1e308, 10**400, 1e400, "x" * 3, [1, [2]], {"a": {}}, "\x1b[31m\x07\ud800"]


@pytest.mark.parametrize("poison", POISON, ids=lambda value: repr(value)[:12])
def test_values_of_any_type_are_survived(root, poison) -> None:
    run = record(root, "baseline")
    spoil(run, poison)
    snapshot = Feed(root).poll(run)
    assert snapshot.view is not None and snapshot.rows[0].state in (*LIVE_STATES, "lost")


@pytest.mark.skipif(os.getuid() == 0, reason="root reads everything")
def test_a_folder_that_cannot_be_read_says_so(root) -> None:
    record(root, "baseline")
    root.chmod(0)
    try:
        assert "cannot be read" in Feed(root).poll().problem
    finally:
        root.chmod(0o755)


def test_a_file_instead_of_the_folder_says_so(tmp_path) -> None:
    (tmp_path / "runs").write_text("")
    assert "cannot be read" in Feed(tmp_path / "runs").poll().problem


def test_only_the_end_of_a_long_log_is_read(tmp_path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("".join(f"line {i}\n" for i in range(100_000)))
    assert len(read_end(log, 1 << 16)) <= 1 << 16
    found = newest_lines(log, 200, 1 << 16)
    assert len(found) == 200 and found[-1] == "line 99999"


def test_numbers_are_numbers_or_nothing() -> None:
    for value, known in ((1, 1.0), (True, None), (float("nan"), None), (10**400, None), ("3", None)):
        assert TrainRecord.read({"loss": value}).value("loss") == known
        assert TrainRecord.read({"of a later version": value}).value("of a later version") == known
    assert TrainRecord.read({"step": "3"}).step == 0 and TrainRecord.read({"step": 10**300}).step == 0


def paced(*steps: int) -> Pace:
    """After train records at these steps, 0.1 s a step."""
    pace = Pace()
    pace.add_records([TrainRecord.read(train_record(at, 2000)) for at in steps], reset=True)
    return pace


def test_a_time_left_needs_five_records() -> None:
    pace = paced(*range(10, 50, 10))
    assert pace.seconds_left(2000, 40) is None
    pace.add_records([TrainRecord.read(train_record(50, 2000))], reset=False)
    assert pace.seconds_left(2000, 50) == pytest.approx(1950 * 4096 / 41_200, rel=0.01)


def test_watching_finds_the_time_that_records_leave_out() -> None:
    pace = paced(*range(10, 110, 10))
    for i in range(21):
        pace.observe(step=100 + i, moving=True, attempt=1, clock=float(i))  # but a second a step with evaluations
    assert pace.seconds_left(2000, 120) == pytest.approx(1880.0)


def test_a_pause_does_not_count() -> None:
    pace = paced(*range(10, 110, 10))
    pace.observe(step=100, moving=True, attempt=1, clock=0.0)
    pace.observe(step=100, moving=False, attempt=1, clock=1.0)
    pace.observe(step=100, moving=True, attempt=1, clock=1000.0)
    pace.observe(step=110, moving=True, attempt=1, clock=1001.0)
    assert pace.seconds_left(2000, 110) < 300


def test_what_was_watched_before_a_resume_does_not_count() -> None:
    pace = paced(*range(10, 110, 10))
    for i in range(21):
        pace.observe(step=100 + i, moving=True, attempt=1, clock=float(i))  # a slow machine
    pace.observe(step=120, moving=False, attempt=2, clock=30.0)  # loading, on a faster one
    for i in range(3):
        pace.observe(step=120 + 10 * i, moving=True, attempt=2, clock=31.0 + i)
    assert pace.seconds_left(2000, 140) == pytest.approx(1860 * 4096 / 41_200, rel=0.01)


def test_records_before_a_resume_do_not_count() -> None:
    pace = paced(*range(10, 110, 10))
    assert pace.seconds_left(2000, 100, attempt_start_step=100) is None
    second = [train_record(at, 2000) for at in range(110, 160, 10)]  # a hundred times slower
    second = [record | {"seconds": (record["step"] - 100) * 10.0} for record in second]
    pace.add_records([*map(TrainRecord.read, second)], reset=False)
    assert pace.seconds_left(2000, 150, attempt_start_step=100) == pytest.approx(1850 * 10.0)


def test_after_a_resume_the_time_left_is_that_of_the_new_attempt(root) -> None:
    run = record(root, "again", state="running", step=500, attempt=2)
    slow = [train_record(at, 2000) for at in range(10, 400, 10)]
    fast = [train_record(at, 2000) | {"seconds": 100.0 + at / 1000} for at in range(410, 510, 10)]
    (run / "metrics.jsonl").write_text(lines([*slow, *fast]))
    with (run / "events.jsonl").open("a") as events:
        events.write(lines([{"time": "", "attempt": 2, "step": 400, "event": "resumed", "text": "on cuda"}]))
    view = Feed(root).poll(run).view
    assert view is not None and view.eta == pytest.approx(1500 / 1000, rel=0.01)


def test_looks_are_quick_while_things_change_and_rare_while_not() -> None:
    interval = PollInterval()
    assert interval.next(changed=True, cost=0.005) == MIN_INTERVAL
    waits = [interval.next(changed=False, cost=0.0) for _ in range(12)]
    assert waits[0] == MIN_INTERVAL and waits == sorted(waits) and waits[-1] == MAX_INTERVAL
    assert interval.next(changed=True, cost=0.005) == MIN_INTERVAL


def test_costly_drawing_makes_looks_rarer() -> None:
    assert PollInterval().next(changed=True, cost=0.2) >= 1.0
