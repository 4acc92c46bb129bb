"""A run on a full disk pauses, says what it needs, hears `stop`, and goes on when there is room."""

import errno
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.runs.commands import RunCommand
from engine.runs.control import Control, Outcome
from engine.runs.reader import RunReader
from engine.runs.records import TrainRecord
from engine.runs.writer import RunWriter
from engine.training import checkpoint
from engine.training.assemble import assemble, resume
from tests.engine.training.test_resume import miniature, outcome
from tests.trained_runs import cached_run
from tests.waiting import PATIENCE, wait_for

SMALL = miniature("demo", "train.steps=12", "checkpoint.every=4", "checkpoint.keep_last=1", "data.corpus_size=10000")


pytestmark = pytest.mark.usefixtures("cached_checks")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 2 MB, where this machine lets us mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if shutil.which("mount") is None or os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("this machine does not mount")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def waits(run: Path) -> bool:
    return RunReader(run).status.phase == "waiting-for-space"


def fill(disk: Path) -> Path:
    """Take all the room there is but what checks.json and a replaced status.json need."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError as error:
            assert error.errno == errno.ENOSPC
        file.truncate(max(0, file.tell() - 5 * 4096))
    return ballast


def in_thread(control: Control, root: Path) -> tuple[threading.Thread, list[Outcome], Path]:
    ready = assemble(SMALL, runs_dir=root, name="run", device="cpu", control=control)
    results: list[Outcome] = []
    thread = threading.Thread(target=lambda: results.append(ready.trainer.run()), daemon=True)
    return thread, results, ready.path


def test_a_full_disk_pauses_the_run_until_there_is_room(disk, tmp_path) -> None:
    whole = cached_run(SMALL, tmp_path, "whole")
    thread, results, run = in_thread(Control(), disk)
    ballast = fill(disk)
    thread.start()
    wait_for(lambda: waits(run), "a run that waits for room")
    status = RunReader(run).status
    assert status.state == "paused" and "is full" in status.reason and "MB" in status.reason
    beat = status.beat
    wait_for(lambda: RunReader(run).status.beat > beat + 3, "its beat to go on")
    assert thread.is_alive()
    ballast.unlink()
    thread.join(PATIENCE)
    assert results[0].state == "finished"
    assert outcome(run) == outcome(whole)


@pytest.mark.parametrize(("number", "state"), [(15, "interrupted"), (None, "stopped")], ids=["signal", "stop"])
def test_a_run_on_a_full_disk_can_be_stopped_and_resumed_later(disk, tmp_path, number, state: str) -> None:
    whole = cached_run(SMALL, tmp_path, "whole")
    control = Control()
    thread, results, run = in_thread(control, disk)
    filled = []
    real = checkpoint.save

    def save(*args) -> str:
        if len(list(run.glob("checkpoints/step-*"))) == 1 and not filled:
            filled.append(fill(disk))
        return real(*args)

    checkpoint.save = save
    try:
        thread.start()
        wait_for(lambda: waits(run), "a run that waits for room")
        control.enqueue_command(RunCommand.STOP, "enough", received_signal=number)
        thread.join(PATIENCE)
    finally:
        checkpoint.save = real
    assert results[0].state == state and results[0].step == 0
    assert "the disk is full: step 0 is the last one saved" in results[0].reason
    folder, wrong = checkpoint.newest_intact(run)
    assert folder.name == "step-00000000" and not wrong
    filled[0].unlink()
    assert resume(run, device="cpu").trainer.run().state == "finished"
    assert outcome(run) == outcome(whole)


def test_a_line_that_did_not_fit_is_taken_back_and_written_whole(tmp_path) -> None:
    """The kernel lets a part of a line through, then says that the disk is full."""
    writer = RunWriter.create(tmp_path, "run", SMALL, {})
    real = writer._files["metrics"]

    class Full:
        tries = 0

        def __getattr__(self, name: str):
            return getattr(real, name)

        def write(self, data: bytes) -> int:
            self.tries += 1
            if self.tries == 1:
                return real.write(data[:5])
            if self.tries == 2:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real.write(data)

    there: list[bytes] = []
    writer.wait_for_room = lambda: there.append((tmp_path / "run" / "metrics.jsonl").read_bytes())
    writer._files["metrics"] = Full()
    writer.metrics(TrainRecord.create(kind="train", step=1))
    assert (tmp_path / "run" / "metrics.jsonl").read_text() == '{"kind":"train","step":1}\n'
    assert there == [b""]
    assert [event.event for event in RunReader(tmp_path / "run").events()] == ["paused", "continued"]
    writer.release_lock()
