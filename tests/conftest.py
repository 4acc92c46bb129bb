"""Shared by all tests: one CPU thread each (there are more workers than cores), small configs, a small corpus."""

import gc
import logging
import os
import shutil
import signal
import tempfile

os.environ["OMP_NUM_THREADS"] = "1"
os.environ.setdefault("NO_COLOR", "1")
import engine  # noqa: F401 - before torch is loaded: it sets how threads wait

# Files in memory, where there is much: a run renames and removes hundreds, which takes a disk milliseconds each.
if "TMPDIR" not in os.environ and os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > 4 << 30:
    os.environ["TMPDIR"] = tempfile.tempdir = "/dev/shm"
# A folder of this test run, which its workers share; they start with these variables.
if SHARED := "" if "PYTEST_XDIST_WORKER" in os.environ else tempfile.mkdtemp(prefix="tui-transformer-tests-"):
    os.environ["TUI_TRANSFORMER_CACHE"] = f"{SHARED}/cache"
    os.environ["TUI_TRANSFORMER_TEST_RUNS"] = f"{SHARED}/runs"  # see `trained_runs`

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import torch

from engine.config.keys import parse_overrides
from engine.config.presets import merge
from engine.config.schema import RunConfig
from tests.fork_start import fork_start, fork_start_scripts, module_fork_start, real_start  # noqa: F401 - fixtures
from tests.rerun_hint import pytest_terminal_summary  # noqa: F401 - a hook
from tui_transformer import languages

torch.set_num_threads(1)
gc.disable()  # during collection, which makes no garbage
# No deadline: a test's first import takes as long as the machine is slow. The same inputs each time: a failure repeats.
hypothesis.settings.register_profile("tests", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("tests")
# Shells make background jobs ignore SIGINT (nohup: SIGHUP), and runs would inherit that.
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-screens", action="store_true", help="rewrite the stored screens")


def pytest_collection_finish() -> None:
    """Keep collected tests and imported modules out of garbage collection."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()


def pytest_unconfigure() -> None:
    """Remove the shared folder."""
    if SHARED:
        shutil.rmtree(SHARED, ignore_errors=True)


@pytest.fixture(autouse=True, scope="session")
def no_fsync() -> Iterator[None]:
    """Skip fsync: it matters only for power cuts, and a run calls it thirty times."""
    real, os.fsync = os.fsync, lambda handle: None
    yield
    os.fsync = real


@pytest.fixture(autouse=True)
def in_english() -> Iterator[None]:
    """What a test does with the language ends with it."""
    with pytest.MonkeyPatch.context() as patch:  # its own: `monkeypatch` would end after every other fixture
        patch.setenv("LANGUAGE", "en")
        yield
    languages.use("en")


@pytest.fixture(autouse=True)
def engine_log() -> Iterator[None]:
    """A command that runs in this process sends the engine's log to a file, only as long as its test lasts."""
    yield
    log = logging.getLogger("engine")
    for handler in log.handlers:
        handler.close()
    log.handlers, log.propagate, logging.raiseExceptions = [], True, True


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """For `-n auto`, half as many again as there are cores: many tests wait for a process or a screen."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores + cores // 2


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Of the tests under `one_in(n)` CI runs every n-th; the others are slow; a random order changes none of that."""
    seen: Counter[str] = Counter()
    for item in items:
        marker = item.get_closest_marker("one_in")
        if marker is None or item.get_closest_marker("slow"):
            continue
        where = item.location[0]
        if seen[where] % marker.args[0]:
            item.add_marker(pytest.mark.slow)
        seen[where] += 1
    return (yield)


TINY: dict[str, Any] = {
    "model": {"n_layers": 2, "d_model": 16, "n_heads": 2, "d_ff": 32, "context_length": 16, "dropout": 0.0},
    "data": {"corpus": "playlets", "corpus_size": 20_000},
    "train": {"steps": 6, "batch_size": 4, "threads": 1},
    "optimizer": {"lr": 1e-2, "warmup": 2},
    "evaluation": {"every": 3, "sample_every": 3, "sample_length": 12},
    "checkpoint": {"every": 3},
    "log": {"every": 1},
}

Tiny = Callable[..., RunConfig]


@pytest.fixture
def tiny() -> Tiny:
    """A config that trains in a second; keyword and dotted changes on top: tiny("model.position=rope")."""

    def build(*changes: str) -> RunConfig:
        tables = TINY
        for override in parse_overrides(changes):
            tables = merge(tables, override)
        return RunConfig.model_validate(tables)

    return build


@pytest.fixture(scope="module")
def cached_checks() -> Iterator[None]:
    """For a module: runs of one config check themselves once, see `run_checks`."""
    from tests import run_checks  # which loads the trainer

    with run_checks.cached_checks():
        yield


@pytest.fixture(scope="module")
def cached_corpora() -> Iterator[None]:
    """For a module: each generated corpus is made once, see `cached_corpora`."""
    from tests import cached_corpora

    with cached_corpora.cached():
        yield


@pytest.fixture
def minimal_leak_probe() -> Iterator[None]:
    """Runs probe for leaks at few places, see `run_checks`."""
    from tests import run_checks

    with run_checks.minimal_leak_probe():
        yield


@pytest.fixture(scope="module")
def module_minimal_leak_probe() -> Iterator[None]:
    """For a module and its fixtures: runs probe for leaks at few places, see `run_checks`."""
    from tests import run_checks

    with run_checks.minimal_leak_probe():
        yield


@pytest.fixture
def no_self_check() -> Iterator[None]:
    """Runs skip their self-check, see `run_checks`."""
    from tests import run_checks

    with run_checks.without_self_check():
        yield


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real corpora, where this machine has one."""
    folder = os.environ.get("TUI_TRANSFORMER_DATA")
    if not folder or not (Path(folder) / "tiny-shakespeare" / "input.txt").is_file():
        pytest.skip("real corpora are not here; name their folder in TUI_TRANSFORMER_DATA")
    return Path(folder)
