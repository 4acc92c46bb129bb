"""A study that takes seconds, its command line, and what its runs leave behind."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from engine.config.keys import flatten
from engine.runs.reader import RunReader
from tests.conftest import TINY
from tests.engine.training.test_resume import outcome
from tui_transformer.lab.work.processes import training_processes
from tui_transformer.lab.work.study import Study, Variant

VARIANTS = (Variant("rope", changes={"model.position": "rope"}), Variant("alibi", preset="alibi"))
CHANGES = {**flatten(TINY), "train.steps": 60, "checkpoint.every": 5}
CHANGES |= {"evaluation.every": 20, "evaluation.sample_every": 20}


def tiny_study(**changes: Any) -> Study:
    """Two variants, two seeds."""
    given = {"base": "demo", "variants": VARIANTS, "baseline": "rope", "seeds": (1, 2), "changes": CHANGES}
    return Study("tiny", **{**given, **changes})


def written(folder: Path, study: Study | None = None) -> Path:
    """Its file."""
    path = folder / "asked.toml"
    path.write_text((study or tiny_study()).to_toml(), encoding="utf-8")
    return path


def words(file: Path, runs: Path, *more: str) -> list[str]:
    """The command line that runs it."""
    return ["ablate", "--study", str(file), "--runs-dir", str(runs), "--device", "cpu", "--jobs", "2", *more]


def started(file: Path, runs: Path, *more: str) -> "subprocess.Popen[str]":
    """The same as a process of its own, in a session of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "tui_transformer", *words(file, runs, *more)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )


def outcomes(runs: Path) -> dict[str, Any]:
    """What each run of the study left behind but its clocks."""
    return {path.name: outcome(path) for path in sorted(runs.glob("tiny.*.s*"))}


def attempts(runs: Path) -> dict[str, tuple[str, int]]:
    """Of each run that is finished: which it is, and how often it was taken up."""
    readers = [RunReader(path) for path in runs.glob("tiny.*.s*")]
    return {r.name: (r.raw("run")["id"], r.status.attempt) for r in readers if r.status.state == "finished"}


def at_work(runs: Path) -> dict[Path, int]:
    """Processes that train runs of the folder."""
    found = training_processes(runs / f"tiny.{v.name}.s{seed}" for v in VARIANTS for seed in (1, 2))
    return {path: process.pid for path, process in found.items()}


@contextmanager
def nothing_left(runs: Path) -> Iterator[None]:
    """No process outlives a test."""
    try:
        yield
    finally:
        for pid in at_work(runs).values():
            psutil.Process(pid).kill()
