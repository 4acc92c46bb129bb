"""A shell's `> file` may be on a full disk as well."""

import subprocess
import sys
from pathlib import Path

import pytest

FULL = Path("/dev/full")

pytestmark = pytest.mark.skipif(not FULL.exists(), reason="needs a file that is always full")


def run(*words: str, answers: Path, commentary: int | Path) -> "subprocess.CompletedProcess[str]":
    with answers.open("w") as out:
        err = commentary.open("w") if isinstance(commentary, Path) else commentary
        command = [sys.executable, "-m", "tui_transformer", *words]
        return subprocess.run(command, stdout=out, stderr=err, text=True, check=False)


def test_an_answer_that_finds_no_room_is_one_line_and_exit_code_1() -> None:
    ended = run("presets", "list", answers=FULL, commentary=subprocess.PIPE)
    assert ended.returncode == 1
    assert ended.stderr == "tui-transformer: the output cannot be written: No space left on device\n"


def test_a_comment_that_finds_no_room_is_lost_and_nothing_else(tmp_path: Path) -> None:
    assert run("presets", "nope", answers=tmp_path / "said", commentary=FULL).returncode == 2
