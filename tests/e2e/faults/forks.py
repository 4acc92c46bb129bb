"""One process with `failing.c` before its C library: each scenario runs in a fork of it, with one write failing.

The processes that a study starts for its cells are forks as well, and time is not measured in another one: what they
write is counted together. Started by `rig.Rig`; reads requests on stdin, one JSON object a line, answers on stdout.
"""

import ctypes
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

from tests.fork_start import forking
from tests.waiting import PATIENCE
from tui_transformer.__main__ import main
from tui_transformer.cli.run import progress
from tui_transformer.cli.work import ablate
from tui_transformer.lab.reports import report
from tui_transformer.lab.work import runner
from tui_transformer.lab.work.plan import time_steps_and_plan

torch.set_num_threads(1)


def undrawn(what: str) -> None:
    """Pictures that say whose they are: real ones take a second each."""
    picture = f"<svg>{what}</svg>".encode()
    report.render = lambda *_: {"svg": picture, "png": picture}  # type: ignore[attr-defined]


def forked(folder: str, words: list[str], k: int, error: int, output: str) -> dict[str, int]:
    """Run a command line in a fork, the k-th write below the folder failing; its exit code and writes."""
    disk = ctypes.CDLL(None)
    disk.writes.restype = ctypes.c_long

    def prepare() -> None:
        undrawn(" ".join(words[:2]))
        disk.arm(os.fsencode(folder), ctypes.c_long(k), ctypes.c_long(error))

    with open(output, "wb") as file:  # noqa: PTH123
        process = subprocess.Popen(
            [sys.executable, "-m", "tui_transformer", *words], stdout=file, stderr=file, preexec_fn=prepare
        )
    try:
        code = process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        code = process.wait()
    writes = disk.writes()
    disk.arm(b"", ctypes.c_long(0), ctypes.c_long(0))
    return {"code": code, "writes": writes}


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
    progress.REFRESH = runner.POLL_INTERVAL = 0.02
    ablate.make_plan_in_subprocess = time_steps_and_plan
    warm_up()
    with forking():
        for line in sys.stdin:
            request = json.loads(line)
            Path(request["output"]).parent.mkdir(parents=True, exist_ok=True)
            print(json.dumps(forked(**request)), file=answers, flush=True)
