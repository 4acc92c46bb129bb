"""Runs that really were trained, each config once per test run: all workers share a folder of them, and get copies.

For tests whose claim is about what is done with a trained run. Tests of training itself call `train_run`. While a test
patches the engine, nothing is cached, so a cached run is always the unpatched program's.
"""

import hashlib
import json
import os
import shutil
import tempfile
import uuid
from pathlib import Path
from types import ModuleType
from typing import Any
from weakref import WeakSet

import pytest
from filelock import FileLock

from engine.config.schema import RunConfig
from engine.data.known import CORPORA
from engine.evaluation import checks
from engine.runs.control import Control
from engine.runs.files import json_line, read_json, read_lines, write_atomic, write_json
from engine.runs.writer import now
from engine.training import inspector
from engine.training.assemble import assemble
from tests import fork_start, run_checks

APP = ("tui_transformer", "textual")
FOLDER = "TUI_TRANSFORMER_TEST_RUNS"  # the folder that the workers share, set before they start


def cached_run(config: RunConfig, runs_dir: Path, name: str) -> Path:
    """Return the folder of a run that was trained on the CPU to its end: `name` in `runs_dir`.

    It is the test's own, to change as it likes, with an id and times of its own. Where the config is not all that
    matters, it is trained here and now.
    """
    if FOLDER not in os.environ or not only_config_matters(config) or patched():
        return train_run(config, runs_dir, name)
    kept = Path(os.environ[FOLDER])
    key = hashlib.sha256(config.model_dump_json().encode()).hexdigest()
    whole = kept / key
    if not whole.exists():
        kept.mkdir(parents=True, exist_ok=True)
        with FileLock(kept / f"{key}.lock"):  # released by the system if its process dies
            if not whole.exists():
                begun = Path(tempfile.mkdtemp(dir=kept))
                train_run(config, begun, key).rename(whole)
                shutil.rmtree(begun)
    return copied(whole, runs_dir / name)


def train_run(config: RunConfig, runs_dir: Path, name: str) -> Path:
    """Train a run here and now."""
    ready = assemble(config, runs_dir=runs_dir, name=name, device="cpu", control=Control())
    outcome = ready.trainer.run()
    assert outcome.state == "finished", outcome
    return ready.path


def only_config_matters(config: RunConfig) -> bool:
    """Whether a run of this config depends on nothing else: neither on files nor on other runs."""
    entry = CORPORA.get(config.data.corpus)
    named = (config.data.tokenizer_from, config.train.init_from)
    return entry is not None and not entry.needs_download and named == (None, None)


def patched() -> bool:
    """Whether anything is patched now that a run may use: anything but the app, and how processes start, since a run on
    the CPU starts none.
    """
    targets = [
        target for patch in PATCHES for target, name, _ in patch._setattr if not fork_start.replaces(target, name)
    ]
    checked = inspector.self_check in (run_checks.self_check, run_checks.cached_self_check)
    checked &= checks.BUDGET is run_checks.BUDGET
    homes = [one.__name__ if isinstance(one, ModuleType) else getattr(one, "__module__", "") for one in targets]
    return not checked or not all(home.partition(".")[0] in APP for home in homes)


def _tracked_init(patch: pytest.MonkeyPatch) -> None:
    _original_init(patch)
    PATCHES.add(patch)


PATCHES: WeakSet[pytest.MonkeyPatch] = WeakSet()  # every one that there is
_original_init = pytest.MonkeyPatch.__init__  # every MonkeyPatch is tracked, so that `patched` sees what is patched
pytest.MonkeyPatch.__init__ = _tracked_init  # type: ignore[method-assign]


def copied(run: Path, to: Path) -> Path:
    """Copy a run as if it had been trained there just now; only the name of its folder says what it is called."""
    shutil.copytree(run, to, symlinks=True)
    time = now()
    events = "".join(json_line(changed(event, time=time)) for event in read_lines(to / "events.jsonl"))
    write_atomic(to / "events.jsonl", events)
    write_json(to / "run.json", changed(read_json(to / "run.json"), id=str(uuid.uuid4()), created=time))
    return to


def changed(record: dict[str, Any], **values: str) -> dict[str, Any]:
    assert values.keys() <= record.keys(), json.dumps(record)
    return record | values
