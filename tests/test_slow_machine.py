"""A slow machine is slow, computes the same, and leaves nothing behind."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests import slow_machine
from tests.waiting import PATIENCE, wait_for

ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # other plugins take longer to start than these tests
TEST = """
import os

def test_files_are_what_they_are_on_any_disk(tmp_path):
    assert os.environ["LD_PRELOAD"].endswith("slow_files.so")
    (tmp_path / "a").write_text("one")
    with (tmp_path / "a").open("a+") as file:
        file.write("two")
        os.fsync(file.fileno())
    (tmp_path / "a").rename(tmp_path / "b")
    assert (tmp_path / "b").read_text() == "onetwo" and not (tmp_path / "a").exists()
    try:
        open(tmp_path / "a")
    except FileNotFoundError:
        pass
    else:
        raise AssertionError("it is there")
"""


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("cc"), reason="needs Linux and a C compiler")
def test_slow_files_behave_as_others_do(tmp_path) -> None:
    (tmp_path / "test_files.py").write_text(TEST)
    words = ("--slow-files", "--busy", "1", "--", "-c", os.devnull, "--rootdir", str(tmp_path), str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-m", "tests.slow_machine", *words],
        cwd=Path(slow_machine.__file__).parent.parent,
        env=os.environ | ALONE | {"SLOW_FILES": "10"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr


def test_a_busy_process_ends_with_the_tests() -> None:
    before = set(psutil.Process().children())
    with slow_machine.busy():
        [busy] = set(psutil.Process().children()) - before
        wait_for(lambda: busy.cpu_times().user > 0, "the process to compute")
    assert not busy.is_running()


def test_a_share_of_a_core_holds_for_all_and_ends_what_is_left() -> None:
    try:
        with slow_machine.group(0.5) as tasks:
            sleeper = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
            tasks.write_text(str(sleeper.pid))
            assert tasks.read_text().split() == [str(sleeper.pid)]
    except SystemExit as refused:
        pytest.skip(str(refused))
    assert sleeper.wait(PATIENCE) < 0 and not tasks.parent.exists()


def test_the_order_is_another_only_when_asked_for(tmp_path) -> None:
    pytest.importorskip("pytest_randomly")
    (tmp_path / "test_many.py").write_text("".join(f"def test_{n:02}():\n    pass\n\n" for n in range(30)))

    root = Path(slow_machine.__file__).parent.parent

    def order(*words: str) -> list[str]:
        asked = (*words, "--", "-c", root / "pyproject.toml", "--collect-only", tmp_path)
        command = [sys.executable, "-m", "tests.slow_machine", *asked]
        done = subprocess.run(
            command, cwd=root, env=os.environ | ALONE, capture_output=True, text=True, timeout=PATIENCE
        )
        return [line.rpartition("::")[2] for line in done.stdout.splitlines() if "::" in line]

    plain, shuffled = order(), order("--shuffle")
    assert len(plain) == 30 and plain == sorted(plain)
    assert shuffled != plain and sorted(shuffled) == plain  # the same order once in 30! times
