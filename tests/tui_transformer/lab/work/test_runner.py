"""What a runner does with cells whose processes end in every way; the processes are played."""

import errno
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from engine.base.errors import MachineFault
from engine.runs import reader
from engine.runs.claims import claim
from engine.runs.files import read_json, write_json
from engine.runs.reader import RunReader
from tests.claim_holders import claim_holders
from tests.tui_transformer.lab.work.tiny import tiny_study
from tui_transformer.lab.work import runner
from tui_transformer.lab.work.cells import CellStatus, cell_folders
from tui_transformer.lab.work.processes import create_queued_run
from tui_transformer.lab.work.runner import Runner
from tui_transformer.lab.work.study import StudyCell
from tui_transformer.lab.work.study_files import stop_file

CELLS = tiny_study().cells()
FIRST = CELLS[0].name


class Played:
    """A process that has an effect on its run once, and has ended then."""

    def __init__(self, act: Callable[[], Any]) -> None:
        self.act, self.looks, self.terminated, self.code = act, 0, False, 0

    def poll(self) -> int | None:
        self.looks += 1
        if self.looks < 2:
            return None
        if self.looks == 2:
            self.code = self.act() or 0
        return self.code

    def terminate(self) -> None:
        self.terminated = True


def put(path: Path, state: str, *, step: int = 60, checkpoint: bool = True, reason: str = "") -> None:
    """A run as a process left it."""
    status = read_json(path / "status.json") | {"state": state, "step": step, "steps": 60, "reason": reason}
    write_json(path / "status.json", status | {"pid": 2**30})
    if checkpoint:
        (path / "checkpoints" / f"step-{step:08d}").mkdir(exist_ok=True)


class Stage:
    """Plays the processes, and is told what a runner tells."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, cells: Sequence[StudyCell] = CELLS) -> None:
        self.root, self.cells = root, cells
        self.script: dict[str, list[Callable[[Path], Any]]] = {}
        self.spawned: list[tuple[str, str, str]] = []
        self.told: list[str] = []
        self.most = 0
        self.processes: list[Played] = []
        monkeypatch.setattr(runner, "spawn", self.spawn)
        monkeypatch.setattr(runner, "POLL_INTERVAL", 0.001)

    def spawn(self, verb: str, run: Path, *, device: str, data_dir: Path | None, claim: Any) -> Played:
        self.spawned.append((verb, run.name, device))
        acts = self.script.get(run.name, [])
        act = acts.pop(0) if acts else lambda path: put(path, "finished")
        self.processes.append(Played(lambda: act(run)))
        return self.processes[-1]

    def on_begin(self, cell: CellStatus, verb: str) -> None:
        self.told.append(f"{cell.cell.name} {verb}")

    def on_end(self, cell: CellStatus) -> None:
        self.told.append(f"{cell.cell.name} {cell.state}")

    def on_takeover(self, cell: CellStatus) -> None:
        self.told.append(f"{cell.cell.name} taken")

    def on_poll(self, going: Any) -> None:
        self.most = max(self.most, len(going))

    def run(self, **orders: Any) -> dict[str, CellStatus]:
        self.runner = self.made(**orders)
        return {standing.cell.name: standing for standing in self.runner.run()}

    def made(self, **orders: Any) -> Runner:
        given = {"study": "tiny", "runs_dir": self.root, "data_dir": None, "devices": ("cpu",), "jobs": 2, **orders}
        return Runner(**given, cells=self.cells, paths=cell_folders("tiny", self.cells, self.root), listener=self)

    def verbs(self, name: str = FIRST) -> list[str]:
        return [verb for verb, run, _ in self.spawned if run == name]

    def there(self, state: str, **how: Any) -> Path:
        """The first cell's run, as an earlier runner left it."""
        place = {"name": "tiny", "variant": CELLS[0].variant, "seed": 1}
        path = create_queued_run(CELLS[0].config, runs_dir=self.root, name=FIRST, command="", study=place)
        put(path, state, **how)
        return path


@pytest.fixture
def stage(tmp_path, monkeypatch) -> Stage:
    return Stage(tmp_path, monkeypatch)


def test_another_process_can_stop_a_study_and_the_next_runner_is_not_stopped(stage) -> None:
    stage.script[FIRST] = [lambda path: (stop_file(stage.root, "tiny").touch(), put(path, "stopped"))]
    found = stage.run(jobs=1)
    assert found[FIRST].state == "stopped" and [run for _, run, _ in stage.spawned] == [FIRST]
    assert all(standing.state == "finished" for standing in stage.run(jobs=1).values())
    assert not stop_file(stage.root, "tiny").exists()


def test_cells_are_begun_seeds_first_so_many_at_a_time_and_spread_over_devices(stage) -> None:
    found = stage.run(jobs=2, devices=("cuda:0", "cuda:1"))
    assert [run for _, run, _ in stage.spawned] == [cell.name for cell in CELLS]
    assert stage.most == 2 and [device for *_, device in stage.spawned[:2]] == ["cuda:0", "cuda:1"]
    assert all(standing.state == "finished" for standing in found.values())
    assert sorted(stage.told) == sorted(f"{cell.name} {word}" for cell in CELLS for word in ("create", "finished"))
    assert RunReader(stage.root / FIRST).raw("run")["study"] == {"name": "tiny", "variant": "rope", "seed": 1}


# How an earlier runner left the first cell, and with what it is gone on.
LEFT: dict[str, tuple[dict[str, Any], list[str]]] = {
    "finished": ({"state": "finished"}, []),
    "queued": ({"state": "queued", "checkpoint": False, "step": 0}, ["begin"]),
    "stopped": ({"state": "stopped", "step": 10}, ["resume"]),
    "interrupted": ({"state": "interrupted", "step": 10}, ["resume"]),
    "lost": ({"state": "running", "step": 10}, ["resume"]),
    "lost before its first checkpoint": ({"state": "starting", "step": 0, "checkpoint": False}, ["begin"]),
    "failed": ({"state": "failed", "step": 10}, []),
}


@pytest.mark.parametrize("case", LEFT)
def test_a_cell_is_gone_on_with_from_where_it_was_left(stage, case: str) -> None:
    how, verbs = LEFT[case]
    stage.there(**how)
    before = RunReader(stage.root / FIRST).raw("run")["id"]
    found = stage.run()
    assert stage.verbs() == verbs
    assert found[FIRST].state == ("failed" if case == "failed" else "finished")
    made_anew = RunReader(stage.root / FIRST).raw("run")["id"] != before
    assert made_anew == (case == "lost before its first checkpoint")


@pytest.mark.parametrize(("checkpoint", "verb"), [(True, "resume"), (False, "begin")])
def test_what_failed_is_taken_up_where_that_is_asked_for(stage, checkpoint: bool, verb: str) -> None:
    stage.there("failed", step=10, checkpoint=checkpoint)
    assert stage.run(retry_failed=True)[FIRST].state == "finished" and stage.verbs() == [verb]


def test_a_cell_that_is_killed_goes_on_as_long_as_that_gets_it_further(stage) -> None:
    killed = [lambda path, step=step: put(path, "running", step=step) for step in (10, 20, 20)]
    stage.script[FIRST] = [*killed, lambda path: put(path, "finished")]
    assert stage.run()[FIRST].state == "lost"
    assert stage.verbs() == ["begin", "resume", "resume"]


def test_a_cell_that_a_person_stopped_stays_stopped_until_the_study_is_gone_on_with(stage) -> None:
    stage.script[FIRST] = [lambda path: put(path, "stopped", step=10)]
    assert stage.run()[FIRST].state == "stopped" and stage.verbs() == ["begin"]
    assert stage.run()[FIRST].state == "finished" and stage.verbs() == ["begin", "resume"]


def test_a_cell_whose_process_never_took_it_has_failed_with_its_last_words(stage) -> None:
    stage.script[FIRST] = [lambda path: (path / "log.txt").write_text("tui-transformer: no such device\n")]
    found = stage.run()
    assert (found[FIRST].state, found[FIRST].reason) == ("failed", "no such device")
    assert sum(standing.state == "finished" for standing in found.values()) == 3


def test_a_process_that_is_killed_before_it_takes_its_run_says_nothing_of_it(stage) -> None:
    stage.script[FIRST] = [lambda path: -signal.SIGKILL] * 2
    assert stage.run()[FIRST].state == "finished" and stage.verbs() == ["begin"] * 3


def test_it_is_not_begun_forever(stage) -> None:
    stage.script[FIRST] = [lambda path: -signal.SIGKILL] * 9
    assert stage.run()[FIRST].state == "failed" and stage.verbs() == ["begin"] * 4


def after_looks(stage: Stage, monkeypatch: pytest.MonkeyPatch, then: Callable[[], object]) -> None:
    """Something happens when the runner has looked at its cells a few times."""
    looks, looked = [0], stage.on_poll

    def look(going: Any) -> None:
        looked(going)
        looks[0] += 1
        if looks[0] == 5:
            then()

    monkeypatch.setattr(stage, "on_poll", look)


def lingering(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, verb: str, path: Path
) -> tuple[subprocess.Popen[bytes], Path]:
    """A process that looks as if it had a run, for a few looks of the runner; and the file that it writes as its last
    deed.
    """
    mark = path.parent.parent / "left"
    code = "import pathlib, sys; sys.stdin.read(); pathlib.Path(sys.argv[3]).touch()"
    process = subprocess.Popen([sys.executable, "-c", code, verb, str(path), str(mark)], stdin=subprocess.PIPE)
    after_looks(stage, monkeypatch, process.stdin.close)
    return process, mark


def test_a_process_that_has_not_said_yet_that_it_has_the_run_is_waited_for(stage, monkeypatch) -> None:
    path = stage.there("queued", step=0, checkpoint=False)
    process, mark = lingering(stage, monkeypatch, "begin", path)
    stage.run()
    assert mark.exists(), "it was not waited for"
    assert stage.verbs() == ["begin"]  # after it had gone without having taken it
    process.wait()


@pytest.mark.parametrize(("state", "verbs"), [("interrupted", ["resume"]), ("lost", ["resume"]), ("stopped", [])])
def test_what_another_runner_left_at_work_is_waited_for_and_taken_up_unless_a_person_stopped_it(
    stage, monkeypatch, state: str, verbs: list[str]
) -> None:
    path = stage.there("running" if state == "lost" else state, step=10)
    process, mark = lingering(stage, monkeypatch, "resume", path)
    found = stage.run()
    assert mark.exists() and stage.verbs() == verbs
    assert found[FIRST].state == ("finished" if verbs else "stopped")
    process.wait()


def test_asked_to_stop_it_ends_what_is_at_work_and_begins_no_other(stage, monkeypatch) -> None:
    made = stage.made()
    monkeypatch.setattr(stage, "on_poll", lambda going: made.stop())
    stage.script[FIRST] = [lambda path: put(path, "interrupted", step=10)]
    found = made.run()
    assert len(stage.spawned) == 2 and all(process.terminated for process in stage.processes)
    assert [standing.state for standing in found] == ["interrupted", "finished", "absent", "absent"]


def test_where_the_audience_leaves_the_cells_stop_with_a_checkpoint(stage, monkeypatch) -> None:
    def gone(going: Any) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(stage, "on_poll", gone)
    with pytest.raises(BrokenPipeError):
        stage.run()
    assert len(stage.spawned) == 2 and all(process.terminated for process in stage.processes)


def test_a_process_that_cannot_be_started_is_the_machines_fault(stage, monkeypatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "log.txt")

    monkeypatch.setattr(runner, "spawn", full)
    with pytest.raises(
        MachineFault, match=r"^run '.*': no process could be started: log\.txt: No space left on device$"
    ):
        stage.run()


def test_a_runs_folder_that_vanishes_is_not_made_anew(stage) -> None:
    stage.script[FIRST] = [lambda path: shutil.rmtree(stage.root)]
    with pytest.raises(MachineFault, match="disappeared"):
        stage.run(jobs=1)
    assert not stage.root.exists()


def test_another_folder_in_the_place_of_the_runs_folder_is_left_alone(stage) -> None:
    """A disk that was taken away leaves the empty folder that it was mounted on."""

    def taken_away(path: Path) -> None:
        shutil.rmtree(stage.root)
        stage.root.mkdir()

    (stage.root / "tiny.study.toml").touch()
    stage.script[FIRST] = [taken_away]
    with pytest.raises(MachineFault, match=r"tiny\.study\.toml disappeared"):
        stage.run(jobs=1)
    assert not list(stage.root.iterdir())


def test_a_run_that_vanishes_holds_up_no_other(stage) -> None:
    stage.script[FIRST] = [shutil.rmtree]
    found = stage.run(jobs=1)
    assert found.pop(FIRST).state == "absent" and {standing.state for standing in found.values()} == {"finished"}


# Several runners of one study.


def test_a_cell_that_another_worker_has_claimed_is_left_alone_and_its_result_counts(stage) -> None:
    theirs = claim(stage.root, FIRST)

    def other_worker(path: Path) -> None:
        put(path, "finished")
        place = {"name": "tiny", "variant": CELLS[0].variant, "seed": 1}
        put(create_queued_run(CELLS[0].config, runs_dir=stage.root, name=FIRST, command="", study=place), "finished")
        theirs.release()

    stage.script[CELLS[3].name] = [other_worker]  # while this one trains its last cell
    found = stage.run(jobs=1)
    assert [run for _, run, _ in stage.spawned] == [cell.name for cell in CELLS[1:]]
    assert all(standing.state == "finished" for standing in found.values()) and f"{FIRST} finished" in stage.told


def test_a_worker_leaves_what_is_in_the_hands_of_others_and_a_runner_waits_for_it(stage, monkeypatch) -> None:
    theirs = claim(stage.root, FIRST)
    assert stage.run(is_worker=True)[FIRST].state == "absent"
    assert sorted(run for _, run, _ in stage.spawned) == sorted(cell.name for cell in CELLS[1:])
    monkeypatch.setattr(runner, "RETRY_INTERVAL", 0.01)
    after_looks(stage, monkeypatch, theirs.release)
    assert stage.run()[FIRST].state == "finished" and stage.verbs() == ["begin"]


def test_claims_are_given_back_when_cells_end_or_cannot_begin(stage, monkeypatch) -> None:
    stage.script[FIRST] = [lambda path: put(path, "failed", step=10)]
    stage.run()
    assert claim_holders(stage.root) == {}

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(runner, "spawn", full)
    with pytest.raises(MachineFault):
        stage.run(retry_failed=True)
    assert claim_holders(stage.root) == {}


@pytest.mark.parametrize(("state", "verbs"), [("failed", []), ("stopped", []), ("interrupted", ["resume"])])
def test_what_another_worker_left_meanwhile_is_taken_up_unless_it_failed_or_a_person_stopped_it(
    stage, state: str, verbs: list[str]
) -> None:
    theirs = claim(stage.root, FIRST)

    def other_worker(path: Path) -> None:
        put(path, "finished")
        stage.there(state, step=10)
        theirs.release()

    stage.script[CELLS[1].name] = [other_worker]
    found = stage.run(jobs=1, is_worker=True, retry_failed=True)
    assert stage.verbs() == verbs and found[FIRST].state == ("finished" if verbs else state)


def test_a_cell_that_was_taken_over_is_the_other_workers(stage) -> None:
    def suspended(path: Path) -> None:
        """This host stood still for minutes, and another one has taken the cell over."""
        mine = next((stage.root / ".claims" / FIRST).iterdir())
        mine.write_text(mine.read_text().replace(socket.gethostname(), "elsewhere"))
        reader._LAST_BEATS[mine] = (mine.stat().st_mtime_ns, time.monotonic() - 1000, False)
        assert claim(stage.root, FIRST) is not None
        put(path, "running", step=10)

    stage.script[FIRST] = [suspended]
    found = stage.run(jobs=1, is_worker=True)
    assert stage.verbs() == ["begin"] and f"{FIRST} taken" in stage.told and f"{FIRST} lost" not in stage.told
    assert sum(standing.state == "finished" for standing in found.values()) == 3


def test_a_worker_waits_for_a_stop_to_be_lifted_and_lifts_none(stage) -> None:
    stop_file(stage.root, "tiny").touch()
    stage.run(is_worker=True)
    assert not stage.spawned and stop_file(stage.root, "tiny").exists()
