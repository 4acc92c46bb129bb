"""A study of many small cells whose workers are hit while they work, and what must be left of it in the end."""

import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from engine.runs.reader import RunReader
from engine.training.assemble import assemble
from tests.engine.training.test_resume import outcome
from tests.tui_transformer.lab.work.tiny import CHANGES, tiny_study
from tests.waiting import wait_for
from tui_transformer.lab.work.study import Study

LOOK = 0.1  # seconds between two looks: some ask a cluster
HITS = ("worker", "worker", "both", "both", "both", "run", "TERM")


def asked(cells: int, hits: int) -> tuple[int, int]:
    """How many cells and hits: those in WORKERS, e.g. 60,15, or these."""
    first, second = os.environ.get("WORKERS", f"{cells},{hits}").split(",")
    return int(first), int(second)


def large_study(cells: int) -> Study:
    more = {"checkpoint.every": 3, "evaluation.every": 15, "evaluation.sample_every": 15, "log.every": 2}
    return tiny_study(seeds=tuple(range(1, cells // 2 + 1)), changes={**CHANGES, **more})


def workers(runs: Path) -> list[psutil.Process]:
    """The processes on this machine that work on studies in a folder."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words = process.info["cmdline"] or []
        if "tui_transformer" in words and "work" in words and str(runs) in words:
            found += [process] if process.info["status"] != psutil.STATUS_ZOMBIE else []
    return found


def trains(worker: psutil.Process, runs: Path) -> bool:
    with suppress(psutil.Error):
        own = [one.pid for one in worker.children()]
        said = [RunReader(path).status for path in runs.glob("tiny.*.s*")]
        return any(one.pid in own and one.state == "running" and one.step > 3 for one in said)
    return False


def lives(worker: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE
    return False


def hit(worker: psutil.Process, runs: Path, chance: random.Random) -> str:
    """Kill a worker, its training process or both, or send it SIGTERM; return which, or nothing if it had ended. About
    half wait until it trains.
    """
    if chance.random() < 0.5:
        wait_for(lambda: not lives(worker) or trains(worker, runs), "a worker that trains, or its end")
    how = chance.choice(HITS)
    if not lives(worker):
        return ""
    with suppress(psutil.Error):
        trained = worker.children(recursive=True)
        for one in [*([worker] if how in ("worker", "both") else []), *(trained if how in ("both", "run") else [])]:
            with suppress(psutil.Error):
                one.kill()
        if how == "TERM":
            worker.terminate()
    return how


def finished(runs: Path) -> int:
    return sum(RunReader(path).status.state == "finished" for path in runs.glob("tiny.*.s*"))


def disturb(
    study: Study, runs: Path, accidents: Sequence[Callable[[], str]], tend: Callable[[], None], words: Callable[[], str]
) -> str:
    """Have one accident after another until all cells are finished; return the figures.

    Each says what it was, or nothing if it had no target. `tend` is called now and then, to start what is missing;
    `words` says what to read where nothing gets on any more.
    """
    cells, how, began, left = len(study.cells()), Counter[str](), time.monotonic(), list(accidents)

    def done() -> int:
        """How many cells are finished, once everything has been tended to and the accidents that are due were had."""
        time.sleep(LOOK)
        tend()
        so_far = finished(runs)
        while left and so_far >= cells * (len(accidents) - len(left)) / (len(accidents) + 1) and (said := left[0]()):
            how[said] += 1
            left.pop(0)
        return so_far

    for number in range(1, cells + 1):
        wait_for(lambda: done() >= number, f"the end of {number} of {cells} cells", words)  # noqa: B023
    assert not left
    attempts = Counter(RunReader(path).status.attempt for path in runs.glob("tiny.*.s*"))
    return f"{cells} cells, {dict(how)} in {time.monotonic() - began:.0f} s; attempts {dict(sorted(attempts.items()))}"


def equals_the_undisturbed(study: Study, runs: Path, alone: Path) -> None:
    """Check that no cell was lost, or trained to its end twice, and that each is what it would be alone."""
    for cell in study.cells():
        reader = RunReader(runs / cell.name)
        assert [one.event for one in reader.events()].count("finished") == 1, cell.name
        ready = assemble(cell.config, runs_dir=alone, name=cell.name, device="cpu")
        assert ready.trainer.run().state == "finished"
        assert outcome(reader.path) == outcome(ready.path), cell.name
        shutil.rmtree(ready.path)
