"""kill -9, signals, damage, many owners at once. Children are forked after the imports: that keeps it to minutes."""

import fcntl
import os
import pty
import random
import shutil
import signal
import struct
import sys
import termios
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.base.errors import InputError
from engine.config import presets
from engine.config.schema import RunConfig
from engine.runs.control import Control
from engine.runs.reader import RunReader
from engine.training import checkpoint
from engine.training.assemble import assemble, resume
from tests import waiting
from tests.engine.training.test_resume import StopAt, miniature, outcome

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.usefixtures("cached_checks", "cached_corpora", "module_minimal_leak_probe"),
]

# Checkpoint-heavy: a checkpoint a step, an evaluation every fifth.
BUSY = miniature(
    "demo",
    *("train.steps=16", "checkpoint.every=1", "evaluation.every=5", "evaluation.sample_every=0"),
    "data.corpus_size=10000",
)

# The other tasks and tokens, with two micro-batches a step; each evaluation writes translations.
BUSY_ROWS = ("train.accumulation=2", "train.batch_tokens=160", "evaluation.translations=4", "data.corpus_size=400")
OTHERS = {
    "pairs": ("phrasebook", *BUSY_ROWS),
    "two target languages": ("phrasebook-2", *BUSY_ROWS),
    "summaries": ("headlines", *BUSY_ROWS),
    "summaries by a decoder": ("headlines-decoder", *BUSY_ROWS),
    "classes": ("bulletins", *BUSY_ROWS[:-1]),
    "words": ("demo", "data.tokenizer=words", "data.words_size=50"),
    "byte pairs": ("demo", "data.tokenizer=bpe", "data.bpe_size=300"),
}
QUICK = ("pairs", "summaries by a decoder", "words")
ENDLESS = BUSY.model_copy(update={"train": BUSY.train.model_copy(update={"steps": 10**6})})


def forked(work: Callable[[], int]) -> int:
    """Run `work` in a child with its output thrown away; gives back the child's pid."""
    pid = os.fork()
    if pid:
        return pid
    code = 99
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        sys.stdin, sys.stdout, sys.stderr = (
            os.fdopen(d, mode, closefd=False) for d, mode in ((0, "r"), (1, "w"), (2, "w"))
        )
        code = work()
    except SystemExit as leaving:
        code = int(leaving.code or 0)
    except BaseException:
        Path(os.environ.get("CRASH_LOG", os.devnull)).write_text(traceback.format_exc())
    finally:
        os._exit(code)


def exit_code(pid: int) -> int:
    """Wait for a child's end."""

    def ended() -> list[int]:
        found, status = os.waitpid(pid, os.WNOHANG)
        return [status] if found else []

    [status] = waiting.wait_for(ended, f"the end of process {pid}")
    return os.waitstatus_to_exitcode(status)


def wait_for(path: Path) -> None:
    waiting.wait_for(path.exists, str(path))


def train(root: Path, name: str, config: RunConfig) -> int:
    assemble(config, runs_dir=root, name=name, device="cpu").trainer.run()
    return 0


def train_to_be_killed(root: Path, name: str, config: RunConfig) -> int:
    """Train, but never come to the end: however late the kill comes, it comes to a run."""
    trainer = assemble(config, runs_dir=root, name=name, device="cpu").trainer
    trainer.writer.close = lambda *_: time.sleep(waiting.PATIENCE)  # type: ignore[method-assign]
    trainer.run()
    return 0


@pytest.fixture
def endless_is_checked(tmp_path) -> None:
    """What the endless run checks of itself, its forks find again."""
    trainer = assemble(ENDLESS, runs_dir=tmp_path / "checked", name="run", device="cpu").trainer
    trainer.inspector.check_before_training(lambda: None)
    trainer.writer.release_lock()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> tuple[dict, float]:
    """What the busy run leaves behind, and how long a step of it takes."""
    return left_alone(tmp_path_factory.mktemp("undisturbed"), BUSY)


def left_alone(root: Path, config: RunConfig) -> tuple[dict, float]:
    started = time.monotonic()
    train(root, "run", config)  # here: each child has the corpus and the kernels ready
    return outcome(root / "run"), (time.monotonic() - started) / config.train.steps


def kill_and_resume(root: Path, name: str, step: int, after: float, expected: dict, config: RunConfig) -> None:
    """Kill a run some time after it has saved a step, resume it, compare."""
    run = root / name
    pid = forked(lambda: train_to_be_killed(root, name, config))
    last = run / "checkpoints" / "last"
    waiting.wait_for(lambda: last.exists() and int(last.read_text()[5:]) >= step, f"the checkpoint of step {step}")
    time.sleep(after)
    os.kill(pid, signal.SIGKILL)
    assert exit_code(pid) == -signal.SIGKILL
    assert RunReader(run).state == "lost"
    result = resume(run, device="cpu").trainer.run()
    assert result.state == "finished", result
    found = outcome(run)
    steps = [r["step"] for r in found["metrics"] if r["kind"] == "train"]
    assert steps == list(range(1, config.train.steps + 1)), "doubled or missing metrics lines"
    assert found == expected


def kill_at_random(root: Path, undisturbed: tuple[dict, float], trials: int, config: RunConfig = BUSY) -> None:
    expected, seconds = undisturbed
    draw = random.Random(7)
    for i in range(trials):
        step, after = draw.randint(0, config.train.steps), draw.uniform(0.0, 2.0 * seconds)
        kill_and_resume(root, f"run-{i}", step, after, expected, config)


def test_a_run_killed_at_random_resumes_bit_for_bit(tmp_path, undisturbed) -> None:
    kill_at_random(tmp_path, undisturbed, 6)


def kill_other(case: str, root: Path, trials: int) -> None:
    """Kill runs of a task at random moments."""
    preset, *changes = OTHERS[case]
    if preset == "demo":
        text, draw = root / "text.txt", random.Random(1)
        text.write_text("".join(f"{draw.choice(('the', 'a'))} {draw.randrange(60)} .\n" for _ in range(2_000)))
        changes.append(f"data.corpus={text}")
    each = ("train.steps=8", "checkpoint.every=1", "evaluation.every=5", "evaluation.sample_every=0")
    config = miniature(preset, *changes, *each)
    (root / "alone").mkdir()
    kill_at_random(root, left_alone(root / "alone", config), trials, config)


@pytest.mark.parametrize("case", QUICK)
def test_other_tasks_killed_at_random_resume_bit_for_bit(case, tmp_path) -> None:
    kill_other(case, tmp_path, 2)


@pytest.mark.slow
@pytest.mark.parametrize("case", OTHERS)
def test_other_tasks_killed_at_random_resume_bit_for_bit_again_and_again(case, tmp_path) -> None:
    kill_other(case, tmp_path, 200 if case == "pairs" else 40)  # the trainer's part of it is the same


@pytest.mark.slow
def test_a_run_killed_at_random_resumes_bit_for_bit_a_thousand_times(tmp_path, undisturbed) -> None:
    kill_at_random(tmp_path, undisturbed, 1000)


SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


def run_command(root: Path, name: str, config: RunConfig = ENDLESS, *, as_json: bool = True) -> int:
    from tui_transformer.cli.run.run import train as train_and_show

    def prepare(control: Control):
        return assemble(config, runs_dir=root, name=name, device="cpu", control=control)

    return train_and_show(prepare, as_json=as_json, data_dir=None)


class Terminal:
    """A pseudo-terminal of 80 columns and what was written to it."""

    def __init__(self) -> None:
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.output = bytearray()
        self.modes = termios.tcgetattr(self.slave)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                return
            if not data:
                return
            self.output += data

    def run(self, work: Callable[[], int]) -> int:
        """A child whose terminal this is; gives back its pid."""

        def on_terminal() -> int:
            os.login_tty(os.dup(self.slave))
            sys.stdin, sys.stdout, sys.stderr = (
                os.fdopen(d, m, closefd=False) for d, m in ((0, "r"), (1, "w"), (2, "w"))
            )
            for name in ("NO_COLOR", "CI"):
                os.environ.pop(name, None)
            os.environ["TERM"] = "xterm-256color"
            try:
                return work()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()

        return forked(on_terminal)

    def close(self) -> None:
        """Claim that the modes and the cursor are as they were, then let it go."""
        assert termios.tcgetattr(self.slave) == self.modes
        waiting.wait_for(
            lambda: self.output.rfind(b"\x1b[?25h") >= self.output.rfind(b"\x1b[?25l"), "the cursor, which was hidden"
        )
        assert b"Traceback" not in self.output
        os.close(self.slave)
        os.close(self.master)


def signal_at_random(root: Path, trials: int, config: RunConfig, seconds: float, resumed: int) -> None:
    """Signal runs on a terminal of their own at random moments, from their first status on.

    Args:
        root: where the runs land.
        trials: of each signal.
        config: what to train.
        seconds: the latest moment, counted from one of the files that appear one after the other.
        resumed: one of so many is gone on with; all are looked at for intact checkpoints.
    """
    draw = random.Random(11)
    for number, code in SIGNALS.items():
        for i in range(trials):
            name = f"{number.name}-{i}"
            terminal = Terminal()
            pid = terminal.run(lambda name=name: run_command(root, name, config, as_json=False))
            wait_for(root / name / draw.choice(("status.json", "checkpoints/last", "summary.json")))
            time.sleep(draw.uniform(0.0, seconds))
            os.kill(pid, number)
            assert exit_code(pid) == code, (name, bytes(terminal.output[-2000:]))
            terminal.close()
            if not (root / name).exists():  # it was not ready yet, and nothing is left of it
                continue
            status = RunReader(root / name).status
            assert status.state == "interrupted" and status.reason == number.name
            if status.checkpoint is not None:  # else the first one was not written yet: it is begun again
                folder, wrong = checkpoint.newest_intact(root / name)
                assert not wrong and folder.name == status.checkpoint == f"step-{status.step:08d}"
            if i % resumed == 0:
                assert resume(root / name, device="cpu", control=StopAt(1)).trainer.run().state == "stopped"
            shutil.rmtree(root / name)


@pytest.mark.usefixtures("endless_is_checked")
def test_signals_end_a_run_resumable_with_their_exit_code_and_the_terminal_as_it_was(tmp_path) -> None:
    signal_at_random(tmp_path, 2, ENDLESS, seconds=0.2, resumed=1)


@pytest.mark.slow
def test_signals_end_a_run_resumable_a_hundred_times_each(tmp_path) -> None:
    signal_at_random(tmp_path, 100, ENDLESS, seconds=0.2, resumed=1)


@pytest.mark.slow
def test_signals_end_the_demo_resumable_a_hundred_times_each(tmp_path) -> None:
    signal_at_random(tmp_path, 100, presets.resolve(presets.find("demo")), seconds=3.0, resumed=10)


def test_usr1_saves_and_goes_on(tmp_path) -> None:
    pid = forked(lambda: run_command(tmp_path, "run"))
    events = tmp_path / "run" / "events.jsonl"
    waiting.wait_for(lambda: events.exists() and "started" in events.read_text(), "a run that has started")
    os.kill(pid, signal.SIGUSR1)
    waiting.wait_for(lambda: '"event":"checkpoint"' in events.read_text(), "its checkpoint")
    os.kill(pid, signal.SIGTERM)
    assert exit_code(pid) == 143


def test_an_ignored_hang_up_stays_ignored(tmp_path) -> None:
    def work() -> int:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
        return run_command(tmp_path, "run")

    pid = forked(work)
    last = tmp_path / "run" / "checkpoints" / "last"
    wait_for(last)
    os.kill(pid, signal.SIGHUP)
    later = int(last.read_text()[5:]) + 3
    saved, reader = lambda: int(last.read_text()[5:]), RunReader(tmp_path / "run")
    waiting.wait_for(lambda: saved() >= later or reader.state == "interrupted", "a run that goes on after the signal")
    assert saved() >= later
    os.kill(pid, signal.SIGTERM)
    assert exit_code(pid) == 143


def test_eight_owners_at_once_are_one_owner_and_seven_refusals(tmp_path) -> None:
    ready = assemble(BUSY, runs_dir=tmp_path, name="run", device="cpu", control=StopAt(20))
    ready.trainer.run()
    refused = tmp_path / "refused"
    refused.mkdir()

    def own() -> int:
        try:
            again = resume(ready.path, device="cpu")
        except InputError as error:
            (refused / str(os.getpid())).touch()
            return 2 if "being written by process" in str(error) else 98
        waiting.wait_for(lambda: len(list(refused.iterdir())) == 7, "the others, while it is held")
        return 0 if again.trainer.run().state == "finished" else 97

    codes = sorted(exit_code(pid) for pid in [forked(own) for _ in range(8)])
    assert codes == [0, 2, 2, 2, 2, 2, 2, 2]
    assert RunReader(ready.path).status.state == "finished"


def test_eight_runs_of_one_name_are_one_run(tmp_path) -> None:
    def create() -> int:
        try:
            return train(tmp_path, "run", BUSY)
        except InputError:
            return 2

    codes = sorted(exit_code(pid) for pid in [forked(create) for _ in range(8)])
    assert codes == [0, 2, 2, 2, 2, 2, 2, 2]


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    """A run with two checkpoints."""
    root = tmp_path_factory.mktemp("saved")
    ready = assemble(BUSY, runs_dir=root, name="run", device="cpu", control=StopAt(20))
    ready.trainer.run()
    return ready.path


def damage_and_look(run: Path, file: Path, damaged: bytes) -> None:
    original = file.read_bytes()
    file.write_bytes(damaged)
    try:
        folder, wrong = checkpoint.newest_intact(run)
        assert folder != file.parent and len(wrong) == 1, file
    finally:
        file.write_bytes(original)


def flip_and_cut(run: Path, flips: int, every: int) -> None:
    newest = checkpoint.step_folders(run)[-1]
    files = sorted(newest.iterdir())
    assert len(files) == 5
    draw = random.Random(3)
    for _ in range(flips):
        file = draw.choice(files)
        raw = bytearray(file.read_bytes())
        raw[draw.randrange(len(raw))] ^= 1 << draw.randrange(8)
        damage_and_look(run, file, bytes(raw))
    for file in files:
        raw = file.read_bytes()
        for length in range(0, len(raw), every):
            damage_and_look(run, file, raw[:length])
        file.unlink()
        assert checkpoint.newest_intact(run)[0] != newest
        file.write_bytes(raw)


def test_flipped_bits_and_cut_files_are_found_and_the_one_before_is_used(saved) -> None:
    flip_and_cut(saved, 150, 1999)


@pytest.mark.slow
def test_ten_thousand_flipped_bits_and_every_cut_are_found(saved) -> None:
    flip_and_cut(saved, 10_000, 1)


def test_a_power_cut_at_any_moment_of_a_save_loses_nothing(tmp_path, monkeypatch) -> None:
    """Every prefix of a save's writes, with all that was not yet synced dropped, or renamed before its content was."""
    ready = assemble(BUSY, runs_dir=tmp_path, name="run", device="cpu", control=StopAt(12))
    run, log = ready.path, []
    ready.trainer.run()
    before = checkpoint.newest_intact(run)[0].name
    again = resume(run, device="cpu", control=StopAt(10**6))
    real_file, real_folder, real_rename = checkpoint.sync_file, checkpoint.sync_folder, Path.rename

    def sync_file(path: Path) -> None:
        real_file(path)
        log.append(("content", path, path.read_bytes()))

    def sync_folder(path: Path) -> None:
        real_folder(path)
        log.append(("names", path, None))

    def rename(self: Path, target: Path) -> Path:
        log.append(("rename", self, Path(target)))
        return real_rename(self, target)

    monkeypatch.setattr(checkpoint, "sync_file", sync_file)
    monkeypatch.setattr(checkpoint, "sync_folder", sync_folder)
    monkeypatch.setattr(Path, "rename", rename)
    trainer = again.trainer
    trainer._step()
    trainer._save()
    monkeypatch.undo()
    new = checkpoint.newest_intact(run)[0].name
    assert new != before and [kind for kind, _, _ in log].count("rename") == 1
    for end in range(len(log) + 1):
        for eager in (False, True):  # whether a rename reaches the disk before its folder is synced
            replayed = replay(log[:end], run / "checkpoints", before, tmp_path / f"disk-{end}-{eager}", eager=eager)
            found = checkpoint.newest_intact(replayed)[0].name
            assert found == (new if end == len(log) else found) and found in (before, new)
    trainer.writer.release_lock()


def replay(log: list, parent: Path, before: str, disk: Path, *, eager: bool) -> Path:
    """The checkpoints folder as a power cut leaves it after these operations."""
    folder = disk / "checkpoints"
    folder.mkdir(parents=True)
    shutil.copytree(parent / before, folder / before)
    pending: list[tuple[str, str]] = []
    for kind, path, more in log:
        relative = path.relative_to(parent)
        if kind == "content":
            (folder / relative).parent.mkdir(exist_ok=True)
            (folder / relative).write_bytes(more)
        elif kind == "rename":
            pending.append((relative.name, more.name))
            if eager:
                (folder / relative.name).rename(folder / more.name)
        elif path == parent and not eager:
            for old, new in pending:
                (folder / old).rename(folder / new)
            pending.clear()
    return disk
