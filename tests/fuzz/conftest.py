"""What the doors are tried with, made once: recorded runs, a study, runs that were trained, settings of its own."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.base.errors import InputError
from engine.config import presets
from tests.trained_runs import cached_run
from tests.tui_transformer.answering import answering
from tests.tui_transformer.lab.analysis.studies import FILE, cell
from tests.tui_transformer.recorded import record
from tests.tui_transformer.trained import train
from tui_transformer import languages

SHORT = {"step": 600, "steps": 600, "every": 60}


@pytest.fixture(scope="session")
def prepared(tmp_path_factory) -> Iterator[Path]:
    """A folder; the current one, and without a corpus, a process or a training that a command could reach."""
    folder = tmp_path_factory.mktemp("fuzz")
    for part in ("runs", "one", "trained", "study", "empty", "here"):
        (folder / part).mkdir()
    recorded(folder / "runs")
    record(folder / "one", "alone", **SHORT)
    for name, seed in (("global", 1), ("global", 2), ("win16", 1), ("win16", 2)):
        window = ("model.attention=window", "model.window=16") if name == "win16" else ()
        cell(folder / "study", "att", name, seed, *window, loss=0.01 * len(window), **SHORT)
    (folder / "study" / "att.study.toml").write_text(FILE, encoding="utf-8")
    train(folder / "trained", "text", "checkpoint.keep_last=1")
    answering(folder / "trained", "asked")
    phrases = presets.resolve(presets.find("phrasebook")).miniature()
    few = phrases.model_copy(update={"data": phrases.data.model_copy(update={"corpus_size": 400})})  # 15 are scored
    cached_run(few, folder / "trained", "pairs")
    (folder / "verified").mkdir()
    shutil.copytree(folder / "trained" / "text", folder / "verified" / "text")
    shutil.copytree(folder / "trained" / "text", folder / "runs" / "text")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(languages.SETTINGS_VARIABLE, str(folder / "settings.toml"))
        patch.setenv("TUI_TRANSFORMER_DATA", str(folder / "empty"))
        patch.chdir(folder / "here")
        yield folder


def recorded(root: Path) -> None:
    """Runs in several states."""
    record(root, "baseline", **SHORT)
    record(root, "no-pe", verdicts=[("leak", "LEAK", "the loss at 12 of 256 places sees a later token")], **SHORT)
    record(root, "sine", state="lost", **SHORT)
    record(root, "alibi", state="queued", step=0, queue="cpu")


@pytest.fixture
def nothing_starts(monkeypatch) -> None:
    """Commands stop where they would start to work: what is tried is the way there."""

    def stop(*_: object, **__: object) -> None:
        raise InputError("would start now")

    for name in (
        *("engine.training.assemble.assemble", "engine.tasks.task.make_task", "engine.data.download.fetch"),
        *("subprocess.Popen.__init__", "tui_transformer.cli.app._open"),
        *("engine.proofs.bench.cases.BenchmarkSpec", "typer.completion.install"),  # which writes into the home folder
    ):
        monkeypatch.setattr(name, stop)
    monkeypatch.setattr("sys.stdin", open(os.devnull))  # noqa: SIM115, PTH123
