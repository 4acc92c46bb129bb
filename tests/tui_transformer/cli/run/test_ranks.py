"""Several ranks that are told to stop: how they are told, and how the processes that watch them end."""

import os
import signal
from types import SimpleNamespace
from typing import Any

import pytest

from engine.runs.reader import RunReader
from tests.tui_transformer.recorded import record
from tui_transformer.cli.run import progress, run


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_who_watches_the_ranks_ends_as_a_run_does_when_told_to_stop(monkeypatch, number: signal.Signals) -> None:
    """Torch's own command ends with a traceback and exit code 1."""
    from torch.distributed.elastic.multiprocessing.api import SignalException

    from engine.training import elastic

    def told(_: Any) -> None:
        raise SignalException("told to stop", sigval=number)

    monkeypatch.setattr(elastic.run, "run", told)
    monkeypatch.setattr(elastic.logging, "disable", lambda level: None)
    for name in ("OMP_NUM_THREADS", elastic.PARENT_VARIABLE):
        monkeypatch.setenv(name, "1")
    assert elastic.main(["--standalone", "--nproc-per-node", "2", "-m", "x"]) == 128 + number


def test_ranks_that_do_not_stop_are_all_ended_at_the_second_signal(tmp_path, monkeypatch) -> None:
    reader, told = RunReader(record(tmp_path, "run", state="interrupted")), list[str]()
    process = SimpleNamespace(poll=lambda: None, wait=lambda: None, terminate=lambda: told.append("all"))

    def follow(*_: Any, **__: Any) -> None:
        for _ in range(2):
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(run, "spawn_and_await_start", lambda *_, **__: process)
    monkeypatch.setattr(os, "kill", lambda pid, number: told.append("rank 0"))
    monkeypatch.setattr(progress, "follow", follow)
    code = run._train_ranks("begin", reader, device="cpu", as_json=True, data_dir=None, ranks=2)
    assert told == ["rank 0", "all"] and code == 143
