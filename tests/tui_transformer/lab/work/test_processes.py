"""Runs in a thread, in a process of their own, and handed from one to the other."""

import errno
import os
import random
import signal
import subprocess
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.base.errors import InputError
from engine.runs.commands import RunCommand, send
from engine.runs.reader import LIVE_STATES, RunReader
from engine.training import checkpoint
from engine.training.assemble import assemble, resume
from tests.command import command as program
from tests.engine.training.test_crash import ENDLESS, Terminal, exit_code
from tests.engine.training.test_resume import StopAt, outcome
from tests.paused import assert_stays_paused
from tests.tui_transformer.host import HOSTED, NOISE, run_host
from tests.waiting import PATIENCE, wait_for
from tui_transformer.lab.work import device_queue, processes, queue_runner
from tui_transformer.lab.work.device_queue import queue_file
from tui_transformer.lab.work.processes import TrainingThread, await_start, create_queued_run, spawn
from tui_transformer.lab.work.runner_lock import be_only_runner

LONG = HOSTED.model_copy(update={"train": HOSTED.train.model_copy(update={"steps": 200})})
NO_CORPUS = HOSTED.data.model_copy(update={"corpus": "/nonexistent/text"})
pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a terminal and signals"),
    pytest.mark.one_in(3),
    pytest.mark.usefixtures("module_fork_start"),
]


def ended(run: Path) -> RunReader:
    """The run when it has come to an end."""
    reader = RunReader(run)
    wait_for(lambda: reader.state not in (*LIVE_STATES, "queued"), "the end of the run", lambda: reader.status)
    return reader


def is_in(run: Path, state: str) -> None:
    """Wait until a run is in a state."""
    wait_for(lambda: RunReader(run).state == state, state, lambda: RunReader(run).status)


def has_begun(run: Path) -> None:
    wait_for((run / "checkpoints" / "last").exists, "the first checkpoint", lambda: RunReader(run).status)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> dict:
    root = tmp_path_factory.mktemp("undisturbed")
    assemble(HOSTED, runs_dir=root, name="run", device="cpu").trainer.run()
    return outcome(root / "run")


def training(root: Path, config=HOSTED) -> TrainingThread:
    return TrainingThread("begin", create_queued_run(config, runs_dir=root, name="run", command=""), device="cpu")


def test_a_queued_run_trains_in_a_process_of_its_own(tmp_path, undisturbed) -> None:
    run = create_queued_run(HOSTED, runs_dir=tmp_path, name="run", command="")
    assert RunReader(run).state == "queued"
    process = spawn("begin", run, device="cpu")
    await_start(RunReader(run), process, 0)
    reader = ended(run)
    assert reader.state == "finished" and outcome(run) == undisturbed
    assert reader.status.launch == "process" and process.wait(PATIENCE) == 0
    assert "validation" in (run / "log.txt").read_text()
    with pytest.raises(InputError, match="did not start: run 'run' is not queued"):
        again = spawn("begin", run, device="cpu")
        await_start(RunReader(run), again, 1)


@pytest.mark.parametrize("dies", [False, True])
def test_a_slow_start_is_waited_for_while_its_process_lives(tmp_path, monkeypatch, dies: bool) -> None:
    """Here for over an hour, in looks: on a busy machine, several ranks take long."""
    (tmp_path / "log.txt").write_text("rank 1: no memory left\n")
    status = SimpleNamespace(attempt=1, pid=7, state="starting")
    looks = iter(range(100_000))

    def look(seconds: float) -> None:
        if next(looks, None) is None:
            status.state = "training"

    process = SimpleNamespace(pid=7, poll=lambda: 1 if dies and next(looks, 90_000) >= 90_000 else None)
    reader = SimpleNamespace(name="run", path=tmp_path, status=status)
    monkeypatch.setattr(processes, "time", SimpleNamespace(sleep=look))
    with pytest.raises(InputError, match="did not start: rank 1: no memory left") if dies else nullcontext():
        await_start(reader, process, 0)
    assert next(looks, None) is None or dies


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="groups no sessions")
def test_a_run_of_its_own_gives_way_to_other_sessions(tmp_path, monkeypatch) -> None:
    words = ["sleep", "60"]
    waiting = lambda log, *_, **__: subprocess.Popen(words, start_new_session=True)
    monkeypatch.setattr(processes, "NICENESS", 10)
    monkeypatch.setattr(processes, "start_detached", waiting)
    process = spawn("begin", tmp_path, device="cpu")
    try:
        assert os.getpriority(os.PRIO_PROCESS, process.pid) == processes.NICENESS
        assert Path(f"/proc/{process.pid}/autogroup").read_text().split()[1:] == ["nice", str(processes.NICENESS)]
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("step", [5, *(pytest.param(step, marks=pytest.mark.slow) for step in (0, 12))])
def test_a_run_that_is_handed_over_ends_as_if_it_had_not_been(tmp_path, undisturbed, step: int) -> None:
    here, run = training(tmp_path), RunReader(tmp_path / "run")
    here.start()
    has_begun(run.path)
    wait_for(lambda: run.status.step >= step, f"step {step}", lambda: run.status)
    process = here.hand_over()
    assert not here.alive
    reader = ended(tmp_path / "run")
    assert reader.state == "finished" and outcome(tmp_path / "run") == undisturbed
    if here.outcome is not None and here.outcome.state == "handing-over":
        assert reader.status.pid == process.pid and reader.status.attempt == 2
        assert [e["event"] for e in reader.raw_lines("events")].count("resumed") == 1
    process.wait(PATIENCE)


def test_a_paused_run_is_still_paused_when_it_has_been_handed_over(tmp_path, undisturbed) -> None:
    here = training(tmp_path)
    here.start()
    run = tmp_path / "run"
    has_begun(run)
    send(run, RunCommand.PAUSE)
    is_in(run, "paused")
    process = here.hand_over()
    await_start(RunReader(run), process, 1)
    is_in(run, "paused")
    assert_stays_paused(run)
    send(run, RunCommand.CONTINUE)
    assert ended(run).state == "finished" and outcome(run) == undisturbed
    process.wait(PATIENCE)


@pytest.mark.parametrize("broken", ["/nonexistent/python", "/bin/false"])
def test_where_no_process_can_take_it_the_run_is_interrupted_with_its_checkpoint(
    tmp_path, undisturbed, monkeypatch, broken: str
) -> None:
    monkeypatch.setattr(processes.sys, "executable", broken)
    here = training(tmp_path)
    here.start()
    has_begun(tmp_path / "run")
    process = here.hand_over()
    if process is not None:
        process.wait(PATIENCE)
    monkeypatch.undo()
    reader = RunReader(tmp_path / "run")
    if reader.state != "finished":  # it may have got to its end first
        assert reader.state == "interrupted"
        assert resume(reader.path, device="cpu").trainer.run().state == "finished"
    assert outcome(reader.path) == undisturbed


def test_a_process_trains_one_run_at_a_time(tmp_path) -> None:
    first, second = training(tmp_path / "a", ENDLESS), training(tmp_path / "b")
    first.start()
    with pytest.raises(InputError, match="already training a run"):
        second.start()
    has_begun(tmp_path / "a" / "run")  # stopped earlier, it would not have begun
    first.stop("enough")
    first.join(PATIENCE)
    assert first.outcome is not None and first.outcome.state == "stopped"
    second.start()
    second.join(PATIENCE)
    assert second.outcome is not None and second.outcome.state == "finished"


def test_what_cannot_be_prepared_is_an_error_and_no_dead_thread(tmp_path) -> None:
    here = training(tmp_path / "bad", HOSTED.model_copy(update={"data": NO_CORPUS}))
    here.start()
    here.join(PATIENCE)
    assert isinstance(here.error, InputError) and here.hand_over() is None
    after = training(tmp_path)
    after.start()
    after.join(PATIENCE)
    assert after.outcome is not None and after.outcome.state == "finished"


def hosted(root: Path, step: int) -> tuple[Terminal, int]:
    """The host app on a terminal of its own, training; a step has been taken."""
    terminal, run = Terminal(), RunReader(root / "run")
    pid = terminal.run(lambda: run_host(root))
    has_begun(run.path)
    wait_for(lambda: run.status.step >= step, f"step {step}", lambda: run.status)
    return terminal, pid


def leave_at_random(root: Path, trials: int, undisturbed: dict) -> None:
    draw, handed_over = random.Random(5), 0
    for how in ("HUP", "TERM", "quit"):
        for i in range(trials):
            folder = root / f"{how}-{i}"
            folder.mkdir()
            terminal, pid = hosted(folder, draw.randint(0, HOSTED.train.steps // 2))
            if how == "quit":
                os.write(terminal.master, b"q")
            else:
                os.kill(pid, getattr(signal, f"SIG{how}"))
            assert exit_code(pid) == 0, bytes(terminal.output[-2000:])
            terminal.close()
            assert NOISE.strip() not in terminal.output and NOISE in (folder / "app.log").read_bytes()
            reader = ended(folder / "run")
            assert reader.state == "finished" and outcome(folder / "run") == undisturbed
            handed_over += reader.status.attempt == 2
    assert handed_over >= 2 * trials


def kill_at_random(root: Path, trials: int, undisturbed: dict) -> None:
    draw = random.Random(6)
    for i in range(trials):
        folder = root / f"KILL-{i}"
        folder.mkdir()
        terminal, pid = hosted(folder, draw.randint(0, HOSTED.train.steps))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        reader = RunReader(folder / "run")
        assert reader.state in ("lost", "finished")
        if reader.state == "lost":
            assert resume(reader.path, device="cpu").trainer.run().state == "finished"
        assert outcome(reader.path) == undisturbed
        os.close(terminal.slave)
        os.close(terminal.master)


def test_an_app_that_is_left_hands_its_run_over(tmp_path, undisturbed) -> None:
    leave_at_random(tmp_path, 1, undisturbed)


def test_an_app_that_is_killed_loses_nothing(tmp_path, undisturbed) -> None:
    kill_at_random(tmp_path, 1, undisturbed)


@pytest.mark.slow
def test_an_app_that_is_left_thirty_times_each_hands_its_run_over(tmp_path, undisturbed) -> None:
    leave_at_random(tmp_path, 30, undisturbed)


@pytest.mark.slow
def test_an_app_that_is_killed_thirty_times_loses_nothing(tmp_path, undisturbed) -> None:
    kill_at_random(tmp_path, 30, undisturbed)


def test_detached_from_the_command_line(tmp_path) -> None:
    sets = [
        part
        for s in (
            "train.steps=6",
            "train.batch_size=4",
            "train.threads=1",
            "model.d_model=16",
            "model.n_heads=2",
            "model.context_length=32",
            "data.corpus_size=20000",
            "data.test_fraction=0.2",
            "evaluation.every=0",
        )
        for part in ("--set", s)
    ]
    words = ["run", "--preset", "demo", *sets, "--detach", "--json", "--runs-dir", str(tmp_path), "--device", "cpu"]
    done = program(*words)
    assert done.code == 0 and '"name": "demo"' in done.out, done.err
    assert ended(tmp_path / "demo").state == "finished"
    missing = program(*words, "--corpus", os.devnull)
    assert missing.code == 2 and len(missing.err.splitlines()) == 1 and not (tmp_path / "demo-2").exists()


@pytest.mark.slow
def test_a_queue_keeps_its_order_goes_on_after_a_failure_and_outlives_who_filled_it(tmp_path) -> None:
    bad = HOSTED.model_copy(update={"data": NO_CORPUS})
    for i, config in enumerate((HOSTED, HOSTED, bad, HOSTED, HOSTED)):
        run = queue_runner.add_to_device_queue(
            config, runs_dir=tmp_path, name=f"run-{i}", command="", device="cpu", data_dir=None
        )
        if i in (1, 4):  # an app that opens, queues some, and closes; then another
            queue_runner.ensure_runner(run, "cpu")
    states = [ended(tmp_path / f"run-{i}").state for i in range(5)]
    assert states == ["finished", "finished", "failed", "finished", "finished"]
    assert "nonexistent" in RunReader(tmp_path / "run-2").status.reason
    begun = [next(RunReader(tmp_path / f"run-{i}").raw_lines("events"))["time"] for i in range(5)]
    assert begun == sorted(begun)
    ends = [(tmp_path / f"run-{i}" / "status.json").stat().st_mtime for i in range(5)]
    starts = [(tmp_path / f"run-{i}" / "tokenizer.json").stat().st_mtime for i in (0, 1, 3, 4)]
    assert all(end <= start for end, start in zip((ends[0], ends[1], ends[3]), starts[1:], strict=True)), (
        "one at a time"
    )


@pytest.mark.slow
def test_three_owners_take_turns_and_a_run_in_several_turns_is_the_run_it_would_have_been(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(device_queue, "owner_of", lambda run: run.name[0])
    names = ["a-1", "a-2", "b-1", "b-2", "c-1", "c-2"]
    for name in names:
        queue_runner.add_to_device_queue(LONG, runs_dir=tmp_path, name=name, command="", device="cpu", data_dir=None)
    said: list[str] = []
    steps = lambda: sum(RunReader(tmp_path / name).status.step for name in names)
    seconds = SimpleNamespace(monotonic=steps, sleep=time.sleep)  # a step takes one
    monkeypatch.setattr(queue_runner, "time", seconds)
    assert queue_runner.train_queued(tmp_path, "cpu", said.append, turn_limit=60.0) == 6
    assert [ended(tmp_path / name).state for name in names] == ["finished"] * 6
    assert [text.split()[1][0] for text in said if text.startswith("starting")][:3] == ["a", "b", "c"]
    assert any("its turn of 1:00 is over" in text for text in said)
    assert len({RunReader(tmp_path / name).summary.fingerprint for name in names}) == 1


def test_a_queue_waits_for_a_run_that_is_on_its_device(tmp_path, monkeypatch) -> None:
    here = training(tmp_path, ENDLESS)
    here.start()
    has_begun(tmp_path / "run")
    queue_runner.add_to_device_queue(HOSTED, runs_dir=tmp_path, name="next", command="", device="cpu", data_dir=None)
    said, looks, look = list[str](), list[int](), device_queue.DeviceQueue.refresh

    def counted(self: device_queue.DeviceQueue) -> None:
        looks.append(1)
        look(self)

    monkeypatch.setattr(device_queue.DeviceQueue, "refresh", counted)
    monkeypatch.setattr(queue_runner, "POLL_INTERVAL", 0.02)
    runner = threading.Thread(target=queue_runner.train_queued, args=(tmp_path, "cpu", said.append))
    runner.start()
    wait_for(lambda: len(looks) >= 5, "the queue to look again and again")
    assert said == ["waiting for run, which is using cpu"] and RunReader(tmp_path / "next").state == "queued"
    here.stop("enough")
    runner.join(PATIENCE)
    assert not runner.is_alive() and RunReader(tmp_path / "next").state == "finished"


def test_two_runners_of_one_device_are_one(tmp_path) -> None:
    held = be_only_runner(queue_file(tmp_path, "cpu", "lock"), "")
    with held, pytest.raises(InputError, match="another process is already working"):
        queue_runner.train_queued(tmp_path, "cpu", print)
    assert queue_runner.train_queued(tmp_path, "cpu", print) == 0


def test_trainings_leave_no_thread_no_descriptor_and_no_handler_behind(tmp_path) -> None:
    def open_now() -> tuple[int, int, list]:
        handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
        return len(list(Path("/proc/self/fd").iterdir())), threading.active_count(), handlers

    found = []
    for i in range(4):
        here = training(tmp_path / str(i))
        here.start()
        here.stop("enough")
        here.join(PATIENCE)
        found.append(open_now())
    assert found[1] == found[2] == found[3]


def test_a_disk_that_is_full_at_a_hand_over_interrupts_the_run_at_its_last_checkpoint(tmp_path, monkeypatch) -> None:
    table = {"checkpoint": HOSTED.checkpoint.model_copy(update={"every": 0}), "train": ENDLESS.train}
    here, full, save = training(tmp_path, HOSTED.model_copy(update=table)), threading.Event(), checkpoint.save

    def no_room(*given):
        if full.is_set():
            raise OSError(errno.ENOSPC, "No space left on device")
        return save(*given)

    monkeypatch.setattr(checkpoint, "save", no_room)
    here.start()
    wait_for((tmp_path / "run" / "checkpoints" / "best").exists, "the first evaluation")
    full.set()
    is_in(tmp_path / "run", "paused")  # at its next evaluation, where it waits for room
    process = here.hand_over()
    assert here.outcome is not None and here.outcome.state == "interrupted" and "disk is full" in here.outcome.reason
    assert process is not None and process.wait(PATIENCE) == 2  # it was not handed over, so it lets it be
    reader = RunReader(tmp_path / "run")
    assert reader.state == "interrupted" and not checkpoint.newest_intact(reader.path)[1]
    monkeypatch.undo()
    assert resume(reader.path, device="cpu", control=StopAt(3)).trainer.run().state == "stopped"
