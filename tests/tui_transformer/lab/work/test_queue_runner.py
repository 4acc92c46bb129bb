"""The queue: fair to the owners of its runs, whatever is in its folder.

One run that cannot be begun, one of a machine that is gone, one that its owner keeps to himself.
"""

import json
import os
import random
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.runs import claims
from engine.runs.claims import Claim
from engine.runs.process import identity
from engine.runs.reader import RunReader
from tests.claim_holders import claim_holders
from tests.tui_transformer.recorded import record
from tui_transformer.cli.work.queue import queue as queue_command
from tui_transformer.lab.work import device_queue, queue_runner
from tui_transformer.lab.work.device_queue import DeviceQueue, QueuedRun, choose_next, queue_file
from tui_transformer.lab.work.runner_lock import be_only_runner


class Done:
    pid = 1

    def wait(self, timeout: float | None = None) -> None:
        """Its run has ended."""


def change(path: Path, **values: Any) -> None:
    before = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(before | values), encoding="utf-8")


def waits(root: Path, name: str, data_dir: Any = None) -> Path:
    run = record(root, name, state="queued", step=0)
    change(run / "run.json", queue={"device": "cpu", "data_dir": data_dir})
    return run


@pytest.fixture
def begun(monkeypatch) -> list[tuple[str, Path | None]]:
    """What was begun; every run that is begun is finished at once."""
    found: list[tuple[str, Path | None]] = []

    def spawn(verb: str, run: Path, *, device: str, data_dir: Path | None, claim: Claim, for_owner: bool) -> Done:
        if data_dir is not None:
            data_dir.resolve(strict=False)
        queue_runner.RunWriter.adopt(run).close("finished", "")
        found.append((run.name, data_dir))
        return Done()

    monkeypatch.setattr(queue_runner, "spawn", spawn)
    return found


def test_a_run_that_cannot_be_begun_holds_nobody_up(tmp_path, begun) -> None:
    linked = waits(tmp_path, "a")
    (linked / "log.txt").unlink(missing_ok=True)
    (linked / "log.txt").symlink_to(tmp_path / "victim")
    waits(tmp_path, "b", "/x\x00y")
    waits(tmp_path, "c", 5)
    waits(tmp_path, "d")
    said: list[str] = []
    assert queue_runner.train_queued(tmp_path, "cpu", said.append) == 3
    assert begun == [("c", None), ("d", None)] and not (tmp_path / "victim").exists()
    assert [RunReader(tmp_path / name).state for name in "abcd"] == ["queued", "failed", "finished", "finished"]
    assert any(text.startswith("skipping a: ") and "is a link" in text for text in said)


def test_a_run_of_a_machine_that_is_gone_holds_the_queue_up_for_a_minute(tmp_path, begun, monkeypatch) -> None:
    foreign = record(tmp_path, "foreign", state="running")
    change(foreign / "status.json", host="gone", device="cpu", beat=10)
    waits(tmp_path, "next")
    clock = [1000.0]
    monkeypatch.setattr("engine.runs.reader.time.monotonic", lambda: clock[0])
    monkeypatch.setattr(queue_runner.time, "sleep", lambda seconds: clock.__setitem__(0, clock[0] + seconds))
    assert queue_runner.train_queued(tmp_path, "cpu", lambda _: None) == 1
    assert begun == [("next", None)] and 1060 <= clock[0] < 1063


# Fairness


def simulated(owners: int, lengths: list[list[float]], limit: float | None) -> list[tuple[float, str, float]]:
    """Return when each turn began, whose it was, and how long it was: all runs are queued at once."""
    clock, used, turns = 0.0, dict[str, float](), []
    left = {Path(f"{i}.{k}"): length for i in range(owners) for k, length in enumerate(lengths[i])}
    waiting = [QueuedRun(path, path.name.partition(".")[0], since=(0, path.name)) for path in left]
    while (entry := choose_next(waiting, used)) is not None:
        took = min(left[entry.path], limit or left[entry.path])
        turns.append((clock, entry.owner, took))
        clock, used[entry.owner] = clock + took, used.get(entry.owner, 0.0) + took
        left[entry.path] -= took
        waiting.remove(entry)
        if left[entry.path] > 0:
            waiting.append(replace(entry, since=(len(turns), "")))
    return turns


@pytest.mark.parametrize("limit", [None, 60.0])
@pytest.mark.parametrize("seed", range(5))
def test_thirty_owners_share_a_device_and_nobody_waits_longer_than_his_turn(seed, limit) -> None:
    """30 owners queue 5 runs each, of 10 to 30 minutes, for one device, without a limit and with turns of one minute.

    Let L be the longest turn. As long as every owner still has a run waiting, at the end of every turn:

    * no two owners have used the device for times that differ by more than L, so that each one's time is within L of
      the fair one, T / 30 after T seconds, which is the bound of deficit round robin;
    * with the limit, from the moment when T / 30 is 10 L on, each one's share is therefore within 10 % of 1 / 30;
    * nobody's first turn comes later than after one turn of each other owner, 29 L; and nobody waits longer than 58 L
      between two turns.
    """
    draw, owners = random.Random(seed), 30
    lengths = [[draw.uniform(600, 1800) for _ in range(5)] for _ in range(owners)]
    turns = simulated(owners, lengths, limit)
    longest = max(took for _, _, took in turns)
    assert longest <= (limit or 1800) and sum(took for *_, took in turns) == pytest.approx(sum(map(sum, lengths)))
    used, ended, checked = dict.fromkeys(map(str, range(owners)), 0.0), dict[str, float](), 0
    for began, owner, took in turns:
        assert began - ended.get(owner, 0.0) <= (owners - 1) * longest * (2 if owner in ended else 1) + 1e-6
        used[owner] += took
        ended[owner] = began + took
        if any(used[str(i)] > sum(lengths[i]) - 1e-6 - lengths[i][0] * (limit is None) for i in range(owners)):
            break  # somebody may have no run left that waits
        fair = (began + took) / owners
        assert max(used.values()) - min(used.values()) <= longest + 1e-6
        if limit is not None and fair >= 10 * longest:
            assert all(abs(time - fair) <= 0.1 * fair + 1e-6 for time in used.values())
            checked += 1
    assert len(ended) == owners and (limit is None or checked > 500)


class Clock:
    """Time that passes only while a run trains or the queue sleeps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, lengths: dict[str, float]) -> None:
        self.now, self.left, self.turns, self.stuck = 0.0, lengths, list[Training](), ""
        monkeypatch.setattr(queue_runner, "spawn", self.spawn)
        monkeypatch.setattr(device_queue, "owner_of", lambda run: run.name.partition("-")[0])
        monkeypatch.setattr(queue_runner.time, "sleep", lambda seconds: setattr(self, "now", self.now + seconds))
        monkeypatch.setattr(queue_runner.time, "monotonic", lambda: self.now)

    def spawn(
        self, verb: str, run: Path, *, device: str, data_dir: Path | None, claim: Claim, for_owner: bool
    ) -> "Training":
        assert claim.is_held and claim.name == run.name
        self.turns.append(Training(self, verb, run, device))
        return self.turns[-1]

    @property
    def told(self) -> list[tuple[str, str, float]]:
        return [(turn.verb, turn.run.name, turn.took) for turn in self.turns]


class Training:
    """Stands in for the process that trains a run."""

    def __init__(self, clock: Clock, verb: str, run: Path, device: str) -> None:
        self.clock, self.verb, self.run, self.took = clock, verb, run, 0.0
        self.before = device_queue._read_run(run).seconds
        change(run / "environment.json", attempts=[{"attempt": 1}])
        change(run / "status.json", device=device)

    def wait(self, timeout: float | None = None) -> None:
        clock, name = self.clock, self.run.name
        if RunReader(self.run).status.state == "interrupted":
            return
        took = min(clock.left[name], timeout or clock.left[name])
        if clock.stuck == name:  # it loads
            clock.now += took
            raise subprocess.TimeoutExpired("", took)
        clock.now, clock.left[name], self.took = clock.now + took, clock.left[name] - took, self.took + took
        seconds = self.before + self.took
        with (self.run / "metrics.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps({"kind": "train", "step": int(seconds), "seconds": seconds}) + "\n")
        state = "running" if clock.left[name] else "finished"
        change(self.run / "status.json", state=state, step=int(seconds), **identity().dump())
        if clock.left[name]:
            raise subprocess.TimeoutExpired("", timeout or 0.0)

    def terminate(self) -> None:
        """It saves a checkpoint."""
        change(self.run / "status.json", state="interrupted")


def bare(root: Path, name: str, steps: int = 1000) -> Path:
    """A queued run that has not begun."""
    run = waits(root, name)
    change(run / "status.json", steps=steps, device="", attempt=1)
    (run / "metrics.jsonl").write_text("", encoding="utf-8")
    return run


def test_the_owner_who_has_used_the_device_least_is_next_whatever_became_of_his_runs(tmp_path, monkeypatch) -> None:
    lengths = {"ana-1": 100.0, "ana-2": 100.0, "ana-3": 100.0, "ben-1": 30.0, "ben-2": 30.0, "ben-3": 30.0}
    for name in lengths:
        bare(tmp_path, name)
    failed = record(tmp_path, "cy-0", state="failed", step=40)
    change(failed / "status.json", device="cpu")
    bare(tmp_path, "cy-1")
    clock = Clock(monkeypatch, lengths | {"cy-1": 5.0})
    spent = device_queue._read_run(failed).seconds
    assert 0 < spent < 30
    assert queue_runner.train_queued(tmp_path, "cpu", lambda _: None) == 7
    assert [name for _, name, _ in clock.told] == ["ana-1", "ben-1", "cy-1", "ben-2", "ben-3", "ana-2", "ana-3"]


def test_a_run_whose_turn_is_over_goes_to_the_end_of_its_owners_line_and_is_resumed(tmp_path, monkeypatch) -> None:
    lengths = {"ana-1": 150.0, "ana-2": 40.0, "ben-1": 70.0}
    for name in lengths:
        bare(tmp_path, name)
    clock, said = Clock(monkeypatch, lengths), list[str]()
    assert queue_runner.train_queued(tmp_path, "cpu", said.append, turn_limit=60.0) == 3
    assert clock.told == [
        ("begin", "ana-1", 60.0),
        ("begin", "ben-1", 60.0),
        ("begin", "ana-2", 40.0),
        ("resume", "ben-1", 10.0),
        ("resume", "ana-1", 60.0),
        ("resume", "ana-1", 30.0),
    ]
    assert all(RunReader(tmp_path / name).state == "finished" for name in lengths)
    assert "ana-1: its turn of 1:00 is over; it resumes at its next one" in said
    assert DeviceQueue(tmp_path, "cpu").turn_limit == 60.0


def test_when_time_is_up_the_run_is_stopped_with_a_checkpoint_and_stays_queued(tmp_path, monkeypatch) -> None:
    for name in ("ana-1", "ana-2"):
        bare(tmp_path, name)
    clock, said = Clock(monkeypatch, {"ana-1": 50.0, "ana-2": 90.0}), list[str]()
    assert queue_runner.train_queued(tmp_path, "cpu", said.append, stay=True, time_is_up=lambda: clock.now >= 80.0) == 2
    assert RunReader(tmp_path / "ana-1").state == "finished" and RunReader(tmp_path / "ana-2").state == "queued"
    assert "ana-2: the queue ran out of time; the run resumes at its next turn" in said
    assert queue_runner.train_queued(tmp_path, "cpu", said.append) == 1
    assert [turn.verb for turn in clock.turns] == ["begin", "begin", "resume"]


def test_a_run_that_never_makes_a_step_leaves_the_queue_after_three_turns(tmp_path, monkeypatch) -> None:
    for name in ("ana-1", "ana-2"):
        bare(tmp_path, name)
    clock, said = Clock(monkeypatch, {"ana-1": 50.0, "ana-2": 90.0}), list[str]()
    clock.stuck = "ana-1"
    queue_runner.train_queued(tmp_path, "cpu", said.append, turn_limit=60.0)
    assert RunReader(tmp_path / "ana-2").state == "finished" and RunReader(tmp_path / "ana-1").state == "interrupted"
    assert "ana-1: it took no step in its last 3 turns" in said
    assert [turn.run.name for turn in clock.turns].count("ana-1") == 3


def test_who_waits_sees_his_place_and_when_his_turn_comes(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(device_queue, "owner_of", lambda run: run.name.partition("-")[0])
    for name in ("ana-1", "ana-2", "ben-1"):
        bare(tmp_path, name)
    waiting = DeviceQueue(tmp_path, "cpu")
    waiting.refresh()
    assert [(turn.run.path.name, turn.place, turn.wait) for turn in waiting.positions()] == [
        ("ana-1", 1, 0.0),
        ("ben-1", 2, None),  # no run has shown yet how long one takes
        ("ana-2", 3, None),
    ]
    done = record(tmp_path, "cy-0", state="finished", step=100)
    change(done / "status.json", device="cpu")
    waiting.refresh()
    each = device_queue._read_run(done).seconds_per_step * 1000
    found = [(turn.run.path.name, turn.wait) for turn in waiting.positions()]
    assert found == [("ana-1", 0.0), ("ben-1", pytest.approx(each)), ("ana-2", pytest.approx(2 * each))]
    change(tmp_path / ".queue-cpu.json", limit=each / 2)  # as its runner writes it
    limited = [(turn.run.path.name, turn.wait) for turn in waiting.positions()]
    assert limited == [("ana-1", 0.0), ("ben-1", pytest.approx(each / 2)), ("ana-2", pytest.approx(each))]


def test_the_command_lists_the_turns_of_a_queue(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(device_queue, "owner_of", lambda run: run.name.partition("-")[0])
    live = record(tmp_path, "cy-1", state="running", step=100)
    change(live / "status.json", device="cpu")
    for name in ("ana-1", "ana-2", "ben-1"):
        bare(tmp_path, name)
    queue_command(list_=True, device="cpu", runs_dir=tmp_path)
    head, *rows = (text.split() for text in capsys.readouterr().out.splitlines())
    assert head[:3] == ["place", "run", "owner"] and rows[0][:2] == ["cy-1", "cy"] and rows[0][-1] == "running"
    assert [row[:3] for row in rows[1:]] == [["1", "ana-1", "ana"], ["2", "ben-1", "ben"], ["3", "ana-2", "ana"]]
    queue_command(list_=True, json=True, device="cpu", runs_dir=tmp_path)
    said = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert [turn["place"] for turn in said] == [0, 1, 2, 3] and said[1]["wait_seconds"] > 0
    assert not list(tmp_path.glob(".queue*"))  # nothing was trained or written


def test_each_device_has_a_line_of_its_own(tmp_path, monkeypatch) -> None:
    for name, device in (("ana-1", "cuda:0"), ("ana-2", "cuda:1"), ("ben-1", "cuda:0")):
        change(bare(tmp_path, name) / "run.json", queue={"device": device})
    clock = Clock(monkeypatch, dict.fromkeys(("ana-1", "ana-2", "ben-1"), 30.0))
    assert queue_runner.train_queued(tmp_path, "cuda:1", lambda _: None) == 1
    assert queue_runner.train_queued(tmp_path, "cuda:0", lambda _: None) == 2
    assert [name for _, name, _ in clock.told] == ["ana-2", "ana-1", "ben-1"]  # what ana used of the other is apart
    waiting = DeviceQueue(tmp_path, "cuda:0")
    waiting.refresh()
    assert waiting.seconds_by_owner == {"ana": 30.0, "ben": 30.0}


def test_no_second_runner_is_started_beside_one_that_works(tmp_path, monkeypatch) -> None:
    run = bare(tmp_path, "ana-1")
    monkeypatch.setattr(queue_runner, "start_detached", lambda *_: pytest.fail("another was started"))
    with be_only_runner(queue_file(tmp_path, "cpu", "lock"), ""):
        queue_runner.ensure_runner(run, "cpu")


def test_a_run_that_another_process_has_claimed_is_left_to_it(tmp_path, monkeypatch) -> None:
    for name in ("ana-1", "ben-1"):
        bare(tmp_path, name)
    assert claims.claim(tmp_path, "ana-1") is not None
    clock, said = Clock(monkeypatch, {"ben-1": 5.0}), list[str]()
    assert queue_runner.train_queued(tmp_path, "cpu", said.append) == 1
    assert [name for _, name, _ in clock.told] == ["ben-1"] and RunReader(tmp_path / "ana-1").state == "queued"
    assert "ana-1: queued: another process has claimed it" in said
    assert claim_holders(tmp_path).keys() == {"ana-1"}  # what was trained was given back


# What a member keeps to himself


def test_a_run_that_may_not_be_read_or_written_is_passed_over_with_one_line(tmp_path, monkeypatch) -> None:
    elsewhere = bare(tmp_path / "elsewhere", "cy-1")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "cy-1").symlink_to(elsewhere)
    for name in ("ana-1", "ana-2", "ben-1"):
        bare(tmp_path / "runs", name)
    (tmp_path / "runs" / "dan-1").mkdir()  # nobody else may see what is in it
    allowed = os.access

    def access(path: Path, mode: int) -> bool:
        return str(path) not in (
            str(tmp_path / "runs" / "ana-1" / "metrics.jsonl"),
            str(tmp_path / "runs" / "ben-1"),
            str(tmp_path / "runs" / "dan-1"),
        ) and allowed(path, mode)

    monkeypatch.setattr(device_queue.os, "access", access)
    clock, said = Clock(monkeypatch, {"ana-2": 5.0}), list[str]()
    assert queue_runner.train_queued(tmp_path / "runs", "cpu", said.append) == 1
    assert [name for _, name, _ in clock.told] == ["ana-2"]
    assert sorted(said) == [
        "ana-2: finished",
        f"skipping ana-1: it belongs to ana, and {tmp_path}/runs/ana-1/metrics.jsonl cannot be written",
        f"skipping ben-1: {tmp_path}/runs/ben-1 cannot be read",
        f"skipping cy-1: {tmp_path}/runs/cy-1 is a link",
        f"skipping dan-1: {tmp_path}/runs/dan-1 cannot be read",
        "starting ana-2",
    ]
    assert RunReader(elsewhere).state == "queued"
