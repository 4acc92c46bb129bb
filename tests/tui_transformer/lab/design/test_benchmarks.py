"""Benchmarks: an answer of `check` as numbers, one line where there is none, and no process left behind."""

import asyncio
import json
import signal
import sys
from contextlib import suppress
from dataclasses import replace

import psutil
import pytest

from engine.base.errors import InputError
from tests.waiting import until, wait_for
from tui_transformer.lab.design.benchmarks import Benchmarks, run_check
from tui_transformer.lab.design.draft import Draft
from tui_transformer.lab.formatting import memory, rough_duration

ANSWER = [
    {"kind": "verdict", "check": "leak", "verdict": "ok", "why": "no later token is seen"},
    {"kind": "verdict", "check": "switch effect", "verdict": "inert", "why": "no effect"},
    {"kind": "cost", "device": "cpu", "seconds_per_step": 0.068, "seconds": 190.4, "memory_bytes": 61e6},
]
LINES = [json.dumps(record) for record in ANSWER]


def test_an_estimate_is_as_exact_as_it_can_be() -> None:
    spoken = [rough_duration(seconds) for seconds in (0.2, 48, 240, 4800, 12_000, 500_000)]
    assert spoken == ["1 s", "48 s", "4 min", "80 min", "3 h 20 min", "6 days"]


def printing(*lines: str, code: int = 0) -> list[str]:
    return [sys.executable, "-c", f"print({chr(10).join(lines)!r}); raise SystemExit({code})"]


async def test_an_answer_is_read() -> None:
    fit = await run_check(printing("not json", *LINES, "[]"))
    assert fit.description == "≈ 3 min on cpu (68 ms per step)"
    assert memory(fit.memory_bytes) == "61 MB" and [verdict.verdict for verdict in fit.verdicts] == ["ok", "inert"]
    with pytest.raises(InputError, match="returned no result"):
        await run_check(printing(*LINES[:2]))


async def test_what_fails_is_measured_too_and_what_says_nothing_is_one_line() -> None:
    assert (await run_check(printing(*LINES, code=1))).device == "cpu"
    with pytest.raises(InputError, match="returned no result"):
        await run_check(printing("", code=2))
    with pytest.raises(InputError, match="measurement failed"):
        await run_check(["/nowhere/python"])
    with pytest.raises(InputError, match="bad key"):
        await run_check([sys.executable, "-c", "import sys; sys.exit('tui-transformer: bad key')"])


async def test_who_no_longer_waits_leaves_no_process() -> None:
    before = set(psutil.Process().children())
    waiting = asyncio.create_task(run_check([sys.executable, "-c", "import time; time.sleep(3600)"]))
    started = await until(lambda: set(psutil.Process().children()) - before, "a process that measures")
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in started)


STUDIO = """
import asyncio, sys
from tui_transformer.lab.work.async_commands import run_process
asyncio.run(run_process([sys.executable, "-c", sys.argv[1]], survives_cancellation=sys.argv[2] == "survives"))
"""
MEASURING = """
import subprocess, sys, time
import tui_transformer.__main__ as program
program.languages.apply_language_option = lambda words: (
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"]), time.sleep(3600)
)
program.main([])
"""


@pytest.mark.parametrize("survives", [False, True])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP])
def test_what_measures_ends_with_who_started_it_however_that_ends(number: signal.Signals, survives: bool) -> None:
    words = [sys.executable, "-c", STUDIO, MEASURING, "survives" if survives else "ends"]
    studio = psutil.Popen(words, start_new_session=True)
    started: list[psutil.Process] = []
    try:
        started = wait_for(
            lambda: found if len(found := studio.children(recursive=True)) == 2 else None, "a process and its child"
        )
        studio.send_signal(number)
        studio.wait()
        gone = lambda: not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in started)
        if survives:
            assert not gone()
        else:
            wait_for(gone, "their end")
    finally:
        for one in (studio, *started):
            with suppress(psutil.NoSuchProcess):
                one.kill()


async def test_a_design_is_measured_once_and_more_steps_take_longer(monkeypatch) -> None:
    fits = Benchmarks("cpu", None)
    asked = []
    monkeypatch.setattr(Benchmarks, "command", lambda self, draft: asked.append(draft) or printing(*LINES))
    draft = Draft.from_preset("demo")
    assert fits.cached(draft) is None
    await fits.measure(draft)
    await fits.measure(draft)
    twice = fits.cached(draft.with_change("train.steps", 5600))
    assert len(asked) == 1 and twice is not None and twice.seconds == pytest.approx(0.068 * 5600)
    assert fits.cached(draft.with_change("model.n_layers", 1)) is None


def test_the_check_has_the_draft_s_own_arguments(tmp_path) -> None:
    command = Benchmarks("cpu", tmp_path).command(
        replace(Draft.from_preset("win16"), on="demo").with_change("model.window", 8)
    )
    words = ["check", "--preset", "win16", "--on", "demo", "--set", "model.window=8", "--json", "--progress"]
    assert command[3:] == [*words, "--device", "cpu", "--data-dir", str(tmp_path)]
