"""A run that ended before its first checkpoint is started over, and becomes the run it would have been."""

import os
import random
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from engine.base.errors import InputError
from engine.runs.control import Control, StopRequested
from engine.runs.reader import RunReader
from engine.runs.records import Owner, Status
from engine.runs.writer import RunWriter
from engine.training import assemble as assembling
from engine.training import checkpoint, inspector
from engine.training.assemble import assemble, begin, resume
from engine.training.trainer import Trainer
from tests import run_checks
from tests.e2e.faults.slices import BRIEF
from tests.engine.training.test_crash import exit_code, forked, run_command, train
from tests.engine.training.test_resume import outcome
from tui_transformer.__main__ import main
from tui_transformer.lab.work.processes import create_queued_run

pytestmark = pytest.mark.usefixtures("cached_checks", "cached_corpora")


def checked_anew(patch: pytest.MonkeyPatch) -> None:
    """Runs make all their checks, whatever this process remembers."""
    patch.setattr(inspector, "run_leak_probe", run_checks.probed)
    patch.setattr(inspector, "self_check", run_checks.self_check)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What an undisturbed run leaves behind."""
    root = tmp_path_factory.mktemp("whole")
    assert exit_code(forked(lambda: train(root, "run", BRIEF))) == 0
    return outcome(root / "run")


def die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


Plant = Callable[[pytest.MonkeyPatch], None]
MOMENTS: dict[str, Plant] = {
    "its folder has just appeared": lambda patch: patch.setattr(RunWriter, "update_status", die),
    "its facts are being written": lambda patch: patch.setattr(RunWriter, "text", die),
    "it is ready": lambda patch: patch.setattr(Trainer, "begin", die),
    "its checks are being made": lambda patch: patch.setattr(inspector, "self_check", die),
    "its first checkpoint is being written": lambda patch: patch.setattr(checkpoint, "_sha256", die),
}


def killed(root: Path, plant: Plant, work: Callable[[], int]) -> None:
    def to_its_death() -> int:
        patch = pytest.MonkeyPatch()
        checked_anew(patch)
        plant(patch)
        return work()

    assert exit_code(forked(to_its_death)) == -signal.SIGKILL


@pytest.mark.parametrize("moment", MOMENTS)
def test_resume_starts_a_run_over_that_was_killed_before_its_first_checkpoint(tmp_path, whole, moment: str) -> None:
    killed(tmp_path, MOMENTS[moment], lambda: train(tmp_path, "run", BRIEF))
    reader = RunReader(tmp_path / "run")
    assert reader.state == "lost" and checkpoint.never_saved(reader) and reader.config.train.steps == BRIEF.train.steps
    assert resume(tmp_path / "run", device="cpu").trainer.run().state == "finished"
    assert outcome(tmp_path / "run") == whole
    events = [event["event"] for event in reader.raw_lines("events")]
    assert events.count("started") == events.count("begun again") == 1 and reader.status.attempt == 2


def test_a_queued_run_killed_before_its_first_checkpoint_is_started_over(tmp_path, whole) -> None:
    run = create_queued_run(BRIEF, runs_dir=tmp_path, name="run", command="")
    killed(tmp_path, MOMENTS["it is ready"], lambda: 0 if begin(run, device="cpu").trainer.run() else 1)
    assert RunReader(run).state == "lost"
    assert resume(run, device="cpu").trainer.run().state == "finished"
    assert outcome(run) == whole


def test_a_run_killed_before_its_folder_is_whole_leaves_its_name_free(tmp_path, whole) -> None:
    def plant(patch: pytest.MonkeyPatch) -> None:
        patch.setattr("engine.runs.writer.config_toml", die)

    killed(tmp_path, plant, lambda: train(tmp_path, "run", BRIEF))
    assert not (tmp_path / "run").exists() and RunReader(tmp_path / "run").status == Status()
    assert train(tmp_path, "run", BRIEF) == 0
    assert outcome(tmp_path / "run") == whole


def test_an_empty_folder_from_an_earlier_version_is_not_a_run(tmp_path) -> None:
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    (tmp_path / "run" / ".lock").touch()
    (tmp_path / "run" / "metrics.jsonl").touch()
    RunWriter.create(tmp_path, "run", BRIEF, {}).release_lock()
    assert RunReader(tmp_path / "run").config == BRIEF
    for content in ("checkpoints/step-1/x", "mine.txt"):
        other = tmp_path / content.replace("/", "-")
        (other / content).parent.mkdir(parents=True)
        (other / content).write_text("")
        with pytest.raises(InputError, match="already exists"):
            RunWriter.create(tmp_path, other.name, BRIEF, {})
        assert (other / content).exists()


@pytest.mark.parametrize("torn", ["", "[model\n"])
def test_a_torn_config_says_what_to_do_and_that_works(tmp_path, capsys, torn: str) -> None:
    RunWriter.create(tmp_path, "run", BRIEF, {}).release_lock()
    (tmp_path / "run" / "config.toml").unlink()
    if torn:
        (tmp_path / "run" / "config.toml").write_text(torn)
    assert main(["resume", "run", "--runs-dir", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    advice = f"delete run --runs-dir {tmp_path}"
    assert f"`tui-transformer {advice}` frees the name" in said and len(said.splitlines()) == 1
    status = tmp_path / "run" / "status.json"
    status.write_text(status.read_text().replace('"starting"', '"lost"'))
    assert main([*advice.split(), "--yes"]) == 0
    assert not (tmp_path / "run").exists()


def test_a_run_whose_checkpoints_were_removed_is_not_started_over(tmp_path) -> None:
    train(tmp_path, "run", BRIEF)
    run = tmp_path / "run"
    status = run / "status.json"
    status.write_text(status.read_text().replace('"finished"', '"stopped"'))
    shutil.rmtree(run / "checkpoints")
    with pytest.raises(InputError, match=r"no intact checkpoint .* run --config \S+/config.toml"):
        resume(run, device="cpu")


class StopsSoon(Control):
    """Is asked to stop at the n-th check in the middle of something."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.left = n

    def raise_if_stopped(self) -> None:
        self.left -= 1
        if self.left == 0:
            from engine.runs.commands import RunCommand

            self.enqueue_command(RunCommand.STOP, "test")
        super().raise_if_stopped()


def test_a_stop_takes_effect_in_the_middle_of_a_step_and_of_the_checks_before_it(tmp_path, whole, monkeypatch) -> None:
    ends = []
    for n in (1, 6, 9, 12, 60, 200, 270):
        control = StopsSoon(n)
        try:
            with monkeypatch.context() as patch:
                checked_anew(patch)
                ended = assemble(BRIEF, runs_dir=tmp_path, name="run", device="cpu", control=control).trainer.run()
        except StopRequested:
            assert not (tmp_path / "run").exists()
            ends.append("not ready")
            continue
        reader = RunReader(tmp_path / "run")
        assert ended.state == reader.state == "stopped", ended
        ends.append("never saved" if checkpoint.never_saved(reader) else "saved")
        assert resume(tmp_path / "run", device="cpu").trainer.run().state == "finished"
        assert outcome(tmp_path / "run") == whole, n
        shutil.rmtree(tmp_path / "run")
    assert set(ends) == {"not ready", "never saved", "saved"}


def test_the_second_of_two_resumes_names_the_living_owner(tmp_path) -> None:
    killed(tmp_path, MOMENTS["it is ready"], lambda: train(tmp_path, "run", BRIEF))
    run, (told, tell), (go, gone) = tmp_path / "run", os.pipe(), os.pipe()
    dead = RunReader(run).status.pid

    def first() -> int:
        def wait(*_: object, **__: object) -> None:
            os.write(tell, b"x")
            os.read(go, 1)
            raise InputError("enough")

        pytest.MonkeyPatch().setattr(assembling, "_build_parts", wait)
        with pytest.raises(InputError):
            resume(run, device="cpu")
        return 0

    pid = forked(first)
    os.read(told, 1)
    with pytest.raises(InputError, match=f"written by process {pid} on ") as refused:
        resume(run, device="cpu")
    assert str(dead) not in str(refused.value)
    (run / Owner.file).unlink()  # of a version that did not write it
    with pytest.raises(InputError, match="written by another process; stop that process first"):
        resume(run, device="cpu")
    os.write(gone, b"x")
    assert exit_code(pid) == 0


def at_call(number: int, then: Callable[[], None]) -> Callable[[], int]:
    """Do something before the n-th call of a function since now; return how many calls there have been."""
    calls = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")
        if calls == number:
            then()

    sys.setprofile(count)
    return lambda: calls


def calls_of(root: Path) -> int:
    """How many functions are called until a run's second checkpoint is being written."""
    told, tell = os.pipe()

    def work() -> int:
        checked_anew(pytest.MonkeyPatch())
        calls, save = at_call(-1, die), checkpoint.save

        def saved(*given: Any) -> Any:
            if given[3].step == 1:
                os.write(tell, str(calls()).encode())
                die()
            return save(*given)

        pytest.MonkeyPatch().setattr(checkpoint, "save", saved)
        return run_command(root, "counted", BRIEF)

    pid = forked(work)
    os.close(tell)
    assert exit_code(pid) == -signal.SIGKILL
    return int(os.read(told, 100))


def killed_early(root: Path, whole: dict[str, Any], kills: int) -> Counter[str]:
    """Kill runs at random moments before and soon after their first checkpoint, resume each, compare; return what the
    kills left.
    """
    draw, left, calls = random.Random(23), Counter[str](), calls_of(root)
    for i in range(kills):
        run, number = root / f"run-{i}", draw.randint(1, calls)

        def work(run: Path = run, number: int = number) -> int:
            checked_anew(pytest.MonkeyPatch())
            at_call(number, die)
            return run_command(root, run.name, BRIEF)

        assert exit_code(forked(work)) == -signal.SIGKILL
        reader = RunReader(run)
        if not run.exists():
            left["no folder"] += 1
            assert train(root, run.name, BRIEF) == 0
        else:
            assert reader.state == "lost", reader.status
            left["no checkpoint" if checkpoint.never_saved(reader) else "a checkpoint"] += 1
            ended = resume(run, device="cpu").trainer.run()
            assert ended.state == "finished", ended
        assert outcome(run) == whole, (i, left)
        shutil.rmtree(run)
    return left


def test_runs_killed_at_random_near_their_first_checkpoint_resume_bit_for_bit(tmp_path, whole) -> None:
    assert killed_early(tmp_path, whole, 4).total() == 4


@pytest.mark.slow
def test_two_hundred_runs_killed_near_their_first_checkpoint_resume_bit_for_bit(tmp_path, whole) -> None:
    left = killed_early(tmp_path, whole, 200)
    print(dict(left))
    assert left.total() == 200 and left["no checkpoint"] and left["a checkpoint"], left
