"""A disk that fails at the k-th write, whatever library writes."""

import errno
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.waiting import PATIENCE

SOURCE = Path(__file__).with_name("failing.c")
PLAN = 8192  # bytes; no less than `struct plan` has
FULL, BROKEN = errno.ENOSPC, errno.EIO


@dataclass(frozen=True)
class Ended:
    """How a command line ended."""

    code: int
    said: str
    writes: int


class Rig:
    """Runs command lines, each in a fork of one warm process, on a disk that fails.

    Args:
        folder: for the library and what the commands print.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        library = folder / "failing.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True)
        plan = folder / "plan"
        plan.write_bytes(bytes(PLAN))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.faults.forks"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"LD_PRELOAD": str(library), "FAILING": str(plan)},
        )

    def run(self, words: list[str], below: Path, k: int = 0, error: int = FULL) -> Ended:
        """A command line whose k-th write below a folder fails; k = 0: none does.

        Args:
            words: after `tui-transformer`.
            below: the disk.
            k: which write, counted from 1 over all processes; -k: that one and all that come after it.
            error: the errno.
        """
        assert self._process.stdin and self._process.stdout
        output = self.folder / "said.txt"
        request = {"folder": str(below), "words": words, "k": k, "error": error}
        print(json.dumps({**request, "output": str(output)}), file=self._process.stdin, flush=True)
        answer = json.loads(self._process.stdout.readline())
        return Ended(answer["code"], output.read_text(errors="replace"), answer["writes"])

    def close(self) -> None:
        """The process ends when nobody asks any more."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(PATIENCE)


def possible() -> bool:
    """There is a C compiler, and a loader that takes a library before its own."""
    return sys.platform == "linux" and shutil.which("cc") is not None
