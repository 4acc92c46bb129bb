"""Much of everything: bounded memory and no crash. `pytest -m slow -s tests/e2e/test_endurance.py` prints the figures.

CI runs a slice of each. Memory is this process's resident set (MB), or the peak of a process of its own.
"""

import gc
import json
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.tui_transformer.conftest import all_panes_there, own_settings, patient  # noqa: F401 - fixtures
from tests.tui_transformer.recorded import grow, lines, record, train_record
from tests.tui_transformer.studio.on_screen import shown, until
from tests.tui_transformer.studio.playground.test_playground_pane import opened, type_line
from tests.tui_transformer.studio.train.test_train_pane import Open
from tests.tui_transformer.trained import train
from tests.waiting import PATIENCE
from tui_transformer.studio.app import Studio

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's account of memory")
KEPT = 64  # MB that a screen may need besides what it held when it was warm
PEAK = """
import sys
from pathlib import Path
from tui_transformer.__main__ import main
code = main(sys.argv[1:])
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print("peak", int(peak.split()[1]) // 1024, file=sys.stderr)  # getrusage would count the process that began this one
sys.exit(code)
"""


def slice_and_all(name: str, few: int, many: int) -> pytest.MarkDecorator:
    """A slice in CI, all of it with `-m slow`."""
    return pytest.mark.parametrize(name, [few, pytest.param(many, marks=pytest.mark.slow)])


def resident() -> float:
    """MB of this process."""
    gc.collect()
    return psutil.Process().memory_info().rss / 1e6


def peak(words: list[str], stdin: str | None = None) -> tuple[int, str, float]:
    """MB that a command line needed at most, what it printed, and how long it took; it has to succeed.

    Args:
        words: after `tui-transformer`.
        stdin: what it is given.
    """
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", PEAK, *words], input=stdin, capture_output=True, text=True, timeout=10 * PATIENCE
    )
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr[-2000:]
    return int(done.stderr.rsplit("peak ", 1)[1]), done.stdout, time.monotonic() - began


def say(words: str) -> None:
    """A figure, for who asks with -s."""
    print(f"\n[endurance] {words}", flush=True)


@slice_and_all("updates", 500, 100_000)
async def test_a_run_that_is_watched_live_for_long_takes_no_more_room(updates: int, tmp_path) -> None:
    run = record(tmp_path / "runs", "long", state="running", step=10, steps=10 * updates)
    looks, before = 0, 0.0
    async with Open(tmp_path / "runs", "long") as studio:
        began = time.monotonic()
        for done in range(50, updates + 1, 50):  # fifty records a look: a run of 25 steps a second, looked at twice
            grow(run, to=10 * done, steps=10 * updates)
            studio.pane.poll_now()
            await studio.until(lambda at=10 * done: studio.pane.snapshot.rows[0].step >= at)
            looks += 1
            if done == 500:
                before = resident()
        more = resident() - before
        seconds = time.monotonic() - began
        say(f"{updates:,} live records in {looks:,} looks: {before:.0f} MB and {more:+.0f}, {seconds:.0f} s")
        assert more < KEPT and f"{10 * updates:,}" in studio.text


@slice_and_all("runs", 100, 10_000)
async def test_a_folder_of_many_runs(runs: int, tmp_path) -> None:
    root = tmp_path / "runs"
    first = record(root, "run-00000", step=400)
    for i in range(1, runs):
        shutil.copytree(first, root / f"run-{i:05}")
    before, began = resident(), time.monotonic()
    async with Open(root, panes=("train", "compare")) as studio:
        await studio.until(lambda: f"Runs  {runs:,}" in studio.text)
        listed = time.monotonic() - began
        await studio.pilot.press("end", "home", "3")
        await studio.pilot.pause(1.0)
        await studio.pilot.press("2")
        await studio.until(lambda: f"Runs  {runs:,}" in studio.text)
        more = resident() - before
    needed, printed, seconds = peak(["runs", "--json", "--runs-dir", str(root)])
    assert len(printed.splitlines()) == runs
    say(f"{runs:,} runs: listed in {listed:.1f} s, studio {more:+.0f} MB; `runs` {needed} MB, {seconds:.1f} s")
    assert more < KEPT + 0.05 * runs and needed < 400 + 0.05 * runs


@slice_and_all("records", 50_000, 1_000_000)
def test_a_long_run_is_exported_in_bounded_memory(records: int, tmp_path) -> None:
    run = record(tmp_path / "runs", "long")
    with (run / "metrics.jsonl").open("w") as file:
        for at in range(0, records, 1_000):
            file.write(lines(train_record(step, records) for step in range(at, at + 1_000)))
    out = tmp_path / "metrics.csv"
    needed, _, seconds = peak(["export", "long", "--to", "csv", "--out", str(out), "--runs-dir", str(run.parent)])
    with out.open() as file:
        assert sum(1 for _ in file) == records + 1
    say(f"{records:,} records as CSV: {needed} MB, {seconds:.1f} s")
    assert needed < 100


@slice_and_all("size", 1_000_000, 1_000_000_000)
def test_a_large_text_is_trained_on_in_bounded_memory(size: int, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TUI_TRANSFORMER_CACHE", str(tmp_path / "cache"))
    line = "".join(random.Random(1).choice("abcdefghij klmnop\n") for _ in range(1_000_000))
    with (tmp_path / "large.txt").open("w") as file:
        for _ in range(size // len(line)):
            file.write(line)
    settings = {
        "data.validation_fraction": 1_000 / size,
        "train.steps": 2,
        "model.n_layers": 1,
        "train.batch_size": 2,
        "model.context_length": 64,
    }
    words = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    words += ["--corpus", str(tmp_path / "large.txt"), "--runs-dir", str(tmp_path / "runs"), "--device", "cpu"]
    needed, _, seconds = peak(["run", "--preset", "demo", *words, "--json"])
    # Twice the text while it is cut into splits, and its tokens, which are mapped from a file.
    say(f"a text of {size / 1e6:,.0f} MB: {needed} MB at most, {seconds:.0f} s")
    assert needed < 700 + 7 * size / 1e6


@slice_and_all("size", 20_000, 1_000_000)
def test_a_prompt_of_a_megabyte_is_answered(size: int, tmp_path) -> None:
    train(tmp_path / "runs", "tiny", "train.steps=2")
    prompt = "the gate and the moon " * (size // 22)
    needed, printed, seconds = peak(
        ["sample", "tiny", "--runs-dir", str(tmp_path / "runs"), "--length", "5", "--json", "--device", "cpu"],
        stdin=prompt + "\n",
    )
    assert printed and all(json.loads(row) for row in printed.splitlines())
    say(f"a prompt of {size:,} characters: {needed} MB, {seconds:.1f} s")
    assert needed < 1_000


@slice_and_all("times", 10, 1_000)
async def test_a_terminal_that_changes_its_size_all_the_time(times: int, tmp_path) -> None:
    root = tmp_path / "runs"
    for name in ("baseline", "win16", "no-pe"):
        record(root, name)
    sizes = random.Random(1)
    app = Studio(runs_dir=root, device="cpu")
    before = 0.0
    async with app.run_test(size=(120, 36)) as pilot:
        for i in range(times):
            if i % 10 == 0:
                await pilot.press(str(1 + i // 10 % 4))
            await pilot.resize_terminal(sizes.randint(1, 240), sizes.randint(1, 70))
            if i == min(9, times // 10):
                before = resident()
        await pilot.resize_terminal(120, 36)
        await pilot.press("2")
        await until(pilot, lambda: "Runs  3" in shown(app))
        more = resident() - before
    say(f"{times:,} sizes of the terminal: {before:.0f} MB and {more:+.0f}")
    assert more < KEPT


@slice_and_all("size", 20_000, 1_000_000)
async def test_a_megabyte_pasted_into_the_playground(size: int, tmp_path) -> None:
    runs = tmp_path / "runs"
    train(runs, "tiny", "train.steps=2")
    app = Studio(runs_dir=runs, device="cpu", panes=("playground",))
    async with app.run_test(size=(120, 36)) as pilot:
        found = await opened(pilot)
        before, began = resident(), time.monotonic()
        await type_line(pilot, ("the gate and the moon " * (size // 22)).strip())
        await until(pilot, lambda: not any(one.busy for one in found.columns_with_run), "the answer to be written")
        more = resident() - before
    say(f"{size:,} characters in the Playground: {more:+.0f} MB, {time.monotonic() - began:.1f} s")
    assert more < 500
