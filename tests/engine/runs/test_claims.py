"""Claims: one owner each, whoever races for them; a writer whose claim is another's writes nothing."""

import errno
import json
import multiprocessing
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from queue import Empty
from typing import Any

import pytest

from engine.base.errors import RunTakenOver
from engine.runs import claims, reader
from engine.runs.claims import CLAIM_VARIABLE, Claim, claim, liveness
from engine.runs.process import identity
from engine.runs.reader import RunReader
from engine.runs.records import Sample, Summary, TrainRecord
from engine.runs.verdict import Verdict
from engine.runs.writer import RunWriter
from engine.training import checkpoint
from engine.training.assemble import begin, resume
from tests.claim_holders import claim_holders
from tests.engine.training.test_resume import StopAt, outcome
from tests.trained_runs import cached_run
from tests.waiting import PATIENCE
from tui_transformer.lab.work.processes import create_queued_run

pytestmark = pytest.mark.usefixtures("cached_checks")

NOW = time.monotonic


def left(runs: Path, name: str, **owner: Any) -> Path:
    """A claim that another process left."""
    path = runs / ".claims" / name / "1"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**identity().dump(), "id": "theirs", **owner}) + "\n")
    return path


def watched_for(path: Path, seconds: float) -> None:
    """This process has watched a claim that stood still for so long."""
    reader._LAST_BEATS[path] = (path.stat().st_mtime_ns, NOW() - seconds, False)


def test_a_claim_is_its_holders_until_it_is_given_back(tmp_path) -> None:
    mine = claim(tmp_path, "a")
    assert mine is not None and mine.is_held and mine.number == 1 and mine.path == tmp_path / ".claims/a/1"
    assert claim(tmp_path, "a") is None and liveness(tmp_path, "a") == "alive"
    assert claim_holders(tmp_path)["a"].pid == os.getpid() and claim_holders(tmp_path)["a"].host == socket.gethostname()
    mine.release()
    assert not mine.is_held and claim_holders(tmp_path) == {} and liveness(tmp_path, "a") == "dead"
    again = claim(tmp_path, "a")
    assert again is not None and again.number == 2 and not mine.path.exists()


def test_claims_of_runs_with_similar_names_are_apart(tmp_path) -> None:
    made = [claim(tmp_path, name) for name in ("a", "a.1", "a.1.s1")]
    assert all(one is not None and one.is_held and one.number == 1 for one in made)
    assert sorted(claim_holders(tmp_path)) == ["a", "a.1", "a.1.s1"]


def test_a_holder_on_this_host_whose_process_is_gone_holds_nothing(tmp_path) -> None:
    left(tmp_path, "a", pid=2**22 + 1)
    assert liveness(tmp_path, "a") == "dead"
    left(tmp_path, "b", process_started=identity().process_started - 100)  # the number is another process's by now
    assert liveness(tmp_path, "b") == "dead"
    taken = claim(tmp_path, "a")
    assert taken is not None and taken.number == 2


def test_a_holder_elsewhere_is_gone_once_its_claim_stands_still_by_the_readers_clock(tmp_path) -> None:
    path = left(tmp_path, "a", host="elsewhere", pid=1)
    os.utime(path, (1, 1))  # its own clock says nothing
    assert liveness(tmp_path, "a") == "unknown" and claim(tmp_path, "a") is None
    watched_for(path, claims.HOLDER_LOST_AFTER - 1)
    assert liveness(tmp_path, "a") == "unknown"
    Claim(path, "theirs").beat()
    assert liveness(tmp_path, "a") == "alive" and claim(tmp_path, "a") is None
    watched_for(path, claims.HOLDER_LOST_AFTER)
    taken = claim(tmp_path, "a")
    assert taken is not None and taken.is_held and not Claim(path, "theirs").is_held
    assert claims.HOLDER_LOST_AFTER > 60 + claims.BEAT  # a network disk may show a beat a minute late


def test_the_same_name_of_a_host_after_another_boot_is_elsewhere(tmp_path) -> None:
    left(tmp_path, "a", boot="another")
    assert liveness(tmp_path, "a") == "unknown"


def test_a_claim_that_is_not_written_yet_or_damaged_is_nobodys_until_it_stands_still(tmp_path) -> None:
    for name, content in {"a": b"", "b": b'{"pid": 1', "c": b"\x00" * 100}.items():
        path = left(tmp_path, name)
        path.write_bytes(content)
        assert liveness(tmp_path, name) == "unknown" and claim(tmp_path, name) is None
        watched_for(path, claims.HOLDER_LOST_AFTER)
        assert liveness(tmp_path, name) == "dead"


def test_numbers_that_start_again_are_no_holders_of_before(tmp_path) -> None:
    mine = claim(tmp_path, "a")
    shutil.rmtree(tmp_path / ".claims")
    theirs = claim(tmp_path, "a")
    assert mine is not None and theirs is not None and mine.path == theirs.path and theirs.is_held and not mine.is_held
    mine.beat()
    mine.release()  # of what is another's by now: it leaves at its next look, and nothing is lost
    assert liveness(tmp_path, "a") == "dead"


@pytest.mark.parametrize("fails", ["open", "append_whole", "unlink"])
def test_where_a_claim_cannot_be_written_there_is_none(tmp_path, monkeypatch, fails: str) -> None:
    left(tmp_path, "a", pid=2**22 + 1)
    owner = {"open": os, "append_whole": claims, "unlink": Path}[fails]
    kept = getattr(owner, fails)

    def full(*given: Any, **how: Any) -> Any:
        reads, gives_up = fails == "open" and not given[1] & os.O_CREAT, fails == "unlink" and not how
        if reads or gives_up:
            return kept(*given, **how)
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(owner, fails, full)
        with pytest.raises(OSError, match="full"):
            claim(tmp_path, "a")
    assert [path.name for path in (tmp_path / ".claims/a").iterdir()] == ["1"]
    assert claim(tmp_path, "a") is not None


# Races.


class Faults:
    """A slow disk that fails now and then."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.real = {"open": os.open, "append": claims.append_whole, "unlink": Path.unlink}

    def __call__(self, name: str) -> Callable[..., Any]:
        def act(*given: Any, **how: Any) -> Any:
            self.stumble()
            found = self.real[name](*given, **how)
            if name == "append":
                self.stumble()
            return found

        return act

    def stumble(self) -> None:
        draw = self.chance.random()
        if draw < 0.05:
            time.sleep(self.chance.uniform(0, 0.002))
        elif draw > 0.98:
            raise OSError(errno.EIO, "broken")


def racer(host: str, runs: Path, names: int, start: Any, won: Any) -> None:
    """Claim every run as soon as the other one may, each tenth before it, and tell which were won.

    Each third run is claimed by a host that is gone, another third was given back.
    """
    socket.gethostname = lambda: host
    faults = Faults(sum(host.encode()))
    os.open, claims.append_whole, Path.unlink = faults("open"), faults("append"), faults("unlink")
    mine: list[tuple[int, Claim]] = []
    for number in range(names):
        if number % 3 == 1:
            watched_for(runs / ".claims" / f"run{number}" / "1", 1000)
        start.wait()
        first = {0: "one", 5: "two"}.get(number % 10)
        if first not in (None, host):
            start.wait()
        try:
            made = claim(runs, f"run{number}")
        except OSError:
            made = None
        if first == host:
            start.wait()
        if made is not None:
            mine.append((number, made))
    os.open = faults.real["open"]
    start.wait()
    won.put((host, [number for number, one in mine if one.is_held], len(mine)))


@pytest.mark.parametrize("names", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_two_hosts_race_for_runs_and_each_has_one_owner(names: int, tmp_path) -> None:
    for number in range(names):
        if number % 3 == 1:
            left(tmp_path, f"run{number}", host="gone")
        elif number % 3 == 2:
            with left(tmp_path, f"run{number}", host="gone").open("ab") as file:
                file.write(b"released\n")
    forks = multiprocessing.get_context("fork")
    start, won = forks.Barrier(2), forks.Queue()
    both = [forks.Process(target=racer, args=(host, tmp_path, names, start, won)) for host in ("one", "two")]
    for process in both:
        process.start()
    found = [won.get(timeout=PATIENCE + names / 10) for _ in both]
    for process in both:
        process.join()
    owned = [number for _, numbers, _ in found for number in numbers]
    assert len(owned) == len(set(owned)), "two owners"
    assert all(len(numbers) == made for _, numbers, made in found), "a winner lost what it had won"
    print(f"\n[claims] {names} races: {[(host, len(numbers)) for host, numbers, _ in found]}")
    unclaimed = set(range(names)) - set(owned)  # both failed to write
    assert len(unclaimed) < names / 10 and min(len(numbers) for _, numbers, _ in found) > names / 20
    for number in unclaimed:
        for path in (tmp_path / ".claims" / f"run{number}").glob("*"):
            watched_for(path, 1000)
        assert claim(tmp_path, f"run{number}") is not None


def test_of_many_that_take_over_one_wins(tmp_path) -> None:
    path = left(tmp_path, "a", host="gone")
    forks = multiprocessing.get_context("fork")
    start, tried, won = forks.Barrier(8), forks.Barrier(8), forks.Queue()

    def take() -> None:
        watched_for(path, 1000)
        start.wait()
        won.put(claim(tmp_path, "a") is not None)
        tried.wait()  # a process that ends leaves what it has won

    all_ = [forks.Process(target=take) for _ in range(8)]
    for process in all_:
        process.start()
    assert sum(won.get(timeout=PATIENCE) for _ in all_) == 1
    for process in all_:
        process.join()


def test_a_taker_that_was_held_up_while_others_came_and_went_withdraws(tmp_path, monkeypatch) -> None:
    """It finds 1 given back; meanwhile 2 and 3 come and go and 4 is taken; then it makes 2."""
    released(claim(tmp_path, "a"))
    real, theirs = os.open, list[Claim | None]()

    def held_up(path: Any, flags: int, *rest: int) -> int:
        if flags & os.O_CREAT:
            monkeypatch.undo()
            for _ in range(2):
                released(claim(tmp_path, "a"))
            theirs.append(claim(tmp_path, "a"))
        return real(path, flags, *rest)

    monkeypatch.setattr(os, "open", held_up)
    assert claim(tmp_path, "a") is None
    assert theirs[0] is not None and theirs[0].number == 4 and theirs[0].is_held
    assert [path.name for path in (tmp_path / ".claims/a").iterdir()] == ["4"]


def released(made: Claim | None) -> None:
    assert made is not None and made.is_held
    made.release()


def test_of_two_claims_that_an_earlier_version_left_the_higher_one_is_held(tmp_path) -> None:
    low = left(tmp_path, "a", pid=os.getpid())
    high = low.with_name("4")
    high.write_text(low.read_text().replace("theirs", "others"))
    assert not Claim(low, "theirs").is_held and Claim(high, "others").is_held
    assert claim(tmp_path, "a") is None


@dataclass(frozen=True)
class Turn:
    """What a process knows of a claim that it has made; seconds of the one clock that all processes read."""

    number: int
    began: float  # to claim it
    looks: tuple[tuple[float, float], ...]  # when it asked and was told that the claim is held
    gave_back: float


def taker(host: str, runs: Path, last: int, turns: Any) -> None:
    """Claim a run and give it back, again and again, now and then held up; each process is a host of its own."""
    socket.gethostname = lambda: host
    me, found, chance = identity(), list[Turn](), random.Random(host)

    def held_up(real: Callable[..., Any]) -> Callable[..., Any]:
        def act(*given: Any, **how: Any) -> Any:
            if chance.random() < 0.003:
                time.sleep(chance.uniform(0, 0.15))
            return real(*given, **how)

        return act

    os.open, os.listdir, Path.unlink = held_up(os.open), held_up(os.listdir), held_up(Path.unlink)
    claims.append_whole = held_up(claims.append_whole)
    claims.identity, claims.HOLDER_LOST_AFTER = lambda: me, 0.05  # type: ignore[assignment, misc]
    while max(claims._numbers(runs / ".claims/a"), default=0) < last:
        began, looks = NOW(), list[tuple[float, float]]()
        made = claim(runs, "a")
        if made is None:
            continue
        for _ in range(chance.choice((1, 1, 1, 5))):
            asked = NOW()
            if made.is_held:
                looks.append((asked, NOW()))
        found.append(Turn(made.number, began, tuple(looks), NOW()))
        made.release()
    turns.put(found)


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="nothing here can be stopped")
@pytest.mark.parametrize("races", [2_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_whoever_is_stopped_wherever_no_two_hold_a_run(races: int, tmp_path) -> None:
    """A claim that stands still for 0.05 s may be taken over; its holder, if it goes on, does not hold it again."""
    forks, chance, stops, taken_over = multiprocessing.get_context("fork"), random.Random(races), 0, 0
    (tmp_path / ".claims/a").mkdir(parents=True)
    queue, left_to_tell = forks.Queue(), 6
    processes = [forks.Process(target=taker, args=(f"host{n}", tmp_path, races, queue)) for n in range(left_to_tell)]
    for process in processes:
        process.start()
    found = list[Turn]()
    while left_to_tell:
        with suppress(Empty):
            found += queue.get(timeout=chance.uniform(0, 0.02))
            left_to_tell -= 1
        pid = chance.choice(processes).pid or 0  # it is there until it is joined
        os.kill(pid, signal.SIGSTOP)
        time.sleep(chance.uniform(0, 0.15))
        os.kill(pid, signal.SIGCONT)
        stops += 1
    for process in processes:
        process.join()
    found.sort(key=lambda turn: turn.number)
    held = [turn for turn in found if turn.looks]
    assert len(held) == len({turn.number for turn in held}) > races / 2
    for before, after in pairwise(held):
        assert before.looks[-1][0] <= after.looks[0][1], "one that was taken over holds it again"
        if before.gave_back > after.looks[0][1]:
            assert after.looks[0][1] - before.began >= 0.05, "one that did not stand still was taken over"
            taken_over += 1
    print(f"\n[claims] {len(held):,} held, {len(found) - len(held):,} lost, {stops:,} stops, {taken_over} taken over")
    assert taken_over or races < 10_000


# Writers.


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def queued(tiny, tmp_path, monkeypatch) -> tuple[Path, Claim]:
    """A queued run, and the claim under which this process was started to train it."""
    mine = claim(tmp_path, "run")
    assert mine is not None
    monkeypatch.setenv(CLAIM_VARIABLE, mine.variables[CLAIM_VARIABLE])
    return create_queued_run(tiny(), runs_dir=tmp_path, name="run", command=""), mine


def taken_over(mine: Claim) -> Claim:
    """Another host has seen it stand still, and claims the run."""
    mine.path.write_text(mine.path.read_text().replace(socket.gethostname(), "elsewhere"))
    watched_for(mine.path, 1000)
    theirs = claim(mine.path.parents[2], mine.name)
    assert theirs is not None
    return theirs


WRITES: dict[str, Callable[[RunWriter], object]] = {
    "metrics": lambda writer: writer.metrics(TrainRecord.create(kind="train", step=1, loss=1.0)),
    "event": lambda writer: writer.event("paused"),
    "sample": lambda writer: writer.sample(Sample.create(step=1, text="a")),
    "verdict": lambda writer: writer.verdict(Verdict("leak", "before", 0, "OK", None, "")),
    "status": lambda writer: writer.update_status(state="running", step=3),
    "summary": lambda writer: writer.write(Summary.create(step=1)),
    "text": lambda writer: writer.text("predictions.txt", "a"),
    "facts": lambda writer: writer.add_facts({"from": {}}),
    "config": lambda writer: writer.write_config(RunReader(writer.path).config),
    "rewind": lambda writer: writer.begin_attempt_from_checkpoint({"metrics": 0, "samples": 0}, 0),
    "begin again": lambda writer: writer.begin_again(),
    "close": lambda writer: writer.close("finished"),
}


@pytest.mark.parametrize("what", WRITES)
def test_a_writer_whose_run_was_taken_over_commits_nothing(queued, what: str) -> None:
    path, mine = queued
    writer = RunWriter.adopt(path)
    before = contents(path)
    taken_over(mine)
    try:
        with pytest.raises(RunTakenOver, match=r"was taken over by process \d+ on .*; this process stops writing"):
            WRITES[what](writer)
    finally:
        writer.release_lock()
    assert contents(path) == before


def test_a_process_whose_run_was_taken_over_before_it_began_leaves_it_alone(queued) -> None:
    path, mine = queued
    before = contents(path)
    taken_over(mine)
    with pytest.raises(RunTakenOver):
        begin(path, device="cpu")
    assert contents(path) == before
    process = subprocess.run(
        [sys.executable, "-m", "tui_transformer", "begin", str(path), "--device", "cpu"], capture_output=True, text=True
    )
    assert process.returncode == 3 and process.stderr.count("\n") == 1 and "was taken over" in process.stderr
    assert contents(path) == before


class TakeOverAt(StopAt):
    """Takes the run over at the n-th time that the trainer listens; tells it nothing."""

    def __init__(self, n: int, mine: Claim, path: Path) -> None:
        super().__init__(n)
        self.mine, self.path = mine, path
        self.theirs: Claim | None = None
        self.before: dict[str, bytes] = {}

    def enqueue_command(self, *_: Any, **__: Any) -> None:
        self.theirs, self.before = taken_over(self.mine), contents(self.path)


@pytest.mark.parametrize("n", [1, 4, 9, 15])
def test_a_run_taken_over_anywhere_becomes_the_run_it_would_have_been(queued, n: int, tmp_path, monkeypatch) -> None:
    path, mine = queued
    control = TakeOverAt(n, mine, path)
    ended = begin(path, device="cpu", control=control).trainer.run()
    assert ended.state == "lost" and "was taken over by" in ended.reason and control.theirs is not None
    assert contents(path) == control.before
    monkeypatch.setenv(CLAIM_VARIABLE, control.theirs.variables[CLAIM_VARIABLE])
    assert resume(path, device="cpu").trainer.run().state == "finished"
    monkeypatch.delenv(CLAIM_VARIABLE)
    assert outcome(path) == outcome(cached_run(RunReader(path).config, tmp_path, "alone"))


def test_a_checkpoint_that_was_being_written_is_not_put_in_its_place(queued, monkeypatch) -> None:
    path, mine = queued
    real, saved = checkpoint.sync_folder, list[str]()

    def sync(folder: Path) -> None:
        if folder.name == ".step-00000003.new":  # all is written
            saved.append(str(taken_over(mine)))
        real(folder)

    monkeypatch.setattr(checkpoint, "sync_folder", sync)
    assert begin(path, device="cpu").trainer.run().state == "lost" and saved
    assert [one.name for one in checkpoint.step_folders(path)] == ["step-00000000"]
    assert (path / "checkpoints" / "last").read_text() == "step-00000000\n"


def test_what_a_former_host_writes_late_goes_nowhere(queued, monkeypatch) -> None:
    path, mine = queued
    old = RunWriter.adopt(path)
    old.metrics(TrainRecord.create(kind="train", step=1, loss=1.0))
    theirs = taken_over(mine)
    monkeypatch.setenv(CLAIM_VARIABLE, theirs.variables[CLAIM_VARIABLE])
    old._lock.release()  # it is on another host
    writer = RunWriter(path)
    old._files["metrics"].write(b"late")
    assert (path / "metrics.jsonl").read_bytes().count(b"\n") == 1
    assert b"late" not in (path / "metrics.jsonl").read_bytes()
    old.release_lock()
    writer.release_lock()


def test_a_lock_that_another_host_left_on_a_network_disk_does_not_bar_the_holder_of_the_claim(queued) -> None:
    path, _ = queued
    old = RunWriter(path)
    (path / ".owner.json").write_text(json.dumps({"host": "elsewhere", "pid": 1}))
    RunWriter.adopt(path).close("failed", "for the test")
    assert RunReader(path).status.state == "failed"
    old.release_lock()


def test_a_claim_is_of_one_runs_folder(tiny, tmp_path, monkeypatch) -> None:
    mine = claim(tmp_path, "run")
    assert mine is not None
    monkeypatch.setenv(CLAIM_VARIABLE, mine.variables[CLAIM_VARIABLE])
    taken_over(mine)
    other = tmp_path / "other"
    RunWriter.create(other, "run", tiny(), {}).close("failed")
