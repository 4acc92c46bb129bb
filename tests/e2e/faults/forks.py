"""One process with `failing.c` before its C library: each scenario runs in a fork of it, with one write failing.

The processes that a study starts for its cells are forks as well, and time is not measured in another one: what they
write is counted together. Started by `rig.Rig`; reads requests on stdin, one JSON object a line, answers on stdout.
"""

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import IO

import torch

from tui_transformer.__main__ import main
from tui_transformer.cli import ablate, progress
from tui_transformer.lab.launch import launch
from tui_transformer.lab.reports import report
from tui_transformer.lab.studies import runner
from tui_transformer.lab.studies.plan import plan_of

torch.set_num_threads(1)  # a fork has none of the other threads
USUAL = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LONGEST = 60.0  # seconds of a scenario; it hangs


def child(work: Callable[[], int], output: int) -> int:
    """A fork that does some work, its words going into a file; its process id."""
    if pid := os.fork():
        return pid
    code = 70
    try:
        os.dup2(output, 1)
        os.dup2(output, 2)
        code = work()
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


class Forked:
    """Stands for `subprocess.Popen` of this program: a fork of this process instead of a new one."""

    def __init__(self, command: Sequence[str], *, stdout: IO[bytes], **_: object) -> None:
        def work() -> int:
            for number in USUAL:
                signal.signal(number, signal.SIG_DFL if number != signal.SIGINT else signal.default_int_handler)
            return main(command[3:])

        self.returncode: int | None = None
        self.pid = child(work, stdout.fileno())

    def poll(self) -> int | None:
        """The exit code, None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def terminate(self) -> None:
        """Ask it to end."""
        os.kill(self.pid, signal.SIGTERM)


def undrawn(what: str) -> None:
    """Pictures that say whose they are: real ones take a second each."""
    picture = f"<svg>{what}</svg>".encode()
    report.rendered = lambda *_: {"svg": picture, "png": picture}  # type: ignore[attr-defined]


def forked(folder: str, words: list[str], k: int, error: int, output: str) -> dict[str, int]:
    """Runs a command line in a fork, the k-th write below the folder failing; its exit code and writes."""
    disk = ctypes.CDLL(None)
    disk.writes.restype = ctypes.c_long

    def work() -> int:
        launch.subprocess = SimpleNamespace(Popen=Forked, DEVNULL=subprocess.DEVNULL)  # type: ignore[attr-defined]
        ablate.measured = plan_of
        undrawn(" ".join(words[:2]))
        disk.arm(os.fsencode(folder), ctypes.c_long(k), ctypes.c_long(error))
        return main(words)

    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
    pid = child(work, file)
    os.close(file)
    deadline = time.monotonic() + LONGEST
    while (found := os.waitpid(pid, os.WNOHANG))[0] == 0:
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)
    writes = disk.writes()
    disk.arm(b"", ctypes.c_long(0), ctypes.c_long(0))
    return {"code": os.waitstatus_to_exitcode(found[1]), "writes": writes}


def warm_up() -> None:
    """Load, once for all forks, what a run, a report and an export load when they need it."""
    undrawn("a")
    with tempfile.TemporaryDirectory() as folder:
        where = ["--runs-dir", f"{folder}/runs"]
        tiny = ["model.n_layers=1", "model.d_model=16", "model.n_heads=2", "model.context_length=16"]
        tiny += ["train.steps=2", "train.batch_size=4", "train.threads=1", "data.corpus_size=10000"]
        sets = [word for setting in tiny for word in ("--set", setting)]
        commands = [["run", "--preset", "demo", "--name", "a", "--device", "cpu", *sets]]
        commands += [["report", "a", "--format", "html", "--out", f"{folder}/html"]]
        commands += [["export", "a", "--to", to, "--out", f"{folder}/{to}"] for to in ("tensorboard", "huggingface")]
        codes = [main([*words, *where]) for words in commands]
        assert not any(codes[:2]), codes  # tensorboard may not be here


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(1, 2)
    progress.REFRESH = runner.LOOK = 0.02
    launch.GIVES_WAY = 0  # nobody types here
    warm_up()
    for line in sys.stdin:
        request = json.loads(line)
        Path(request["output"]).parent.mkdir(parents=True, exist_ok=True)
        print(json.dumps(forked(**request)), file=answers, flush=True)
