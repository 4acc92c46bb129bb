"""A run's process is known again whatever the clock says."""

import json
import os
import subprocess
import sys

import psutil
import pytest

from engine.config.schema import RunConfig
from engine.runs.process import BOOT_ID, identity, is_alive
from engine.runs.reader import RunReader
from engine.runs.records import Process
from engine.runs.writer import RunWriter

LINUX = pytest.mark.skipif(not BOOT_ID.exists(), reason="only where the system counts from its boot")


def set_clock(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Setting the clock moves the boot, as the system tells it, by as much."""
    from psutil import _pslinux

    boot = _pslinux.boot_time()
    monkeypatch.setattr(_pslinux, "boot_time", lambda: boot + seconds)


@LINUX
@pytest.mark.parametrize("seconds", [-86400.0, -2.0, 2.0, 86400.0])
def test_a_living_run_lives_on_when_the_clock_is_set(tmp_path, monkeypatch, seconds: float) -> None:
    writer = RunWriter.create(tmp_path, "a", RunConfig(), {})
    before = psutil.Process().create_time()
    set_clock(monkeypatch, seconds)
    assert abs(psutil.Process().create_time() - before - seconds) < 0.1
    assert RunReader(writer.path).state == "starting"
    writer.close("finished")


@LINUX
def test_the_same_id_and_age_after_another_boot_is_another_process() -> None:
    assert is_alive(identity()) and not is_alive(identity().model_copy(update={"boot": "another"}))


def test_a_process_that_began_at_another_time_is_another_one() -> None:
    mine = identity()
    assert is_alive(mine) and not is_alive(mine.model_copy(update={"process_started": mine.process_started + 2}))


def test_a_record_from_before_boots_were_told_still_holds() -> None:
    assert is_alive(Process(pid=os.getpid(), process_started=psutil.Process().create_time()))


def test_a_process_that_has_ended_is_not_alive() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    recorded = identity(process.pid)
    assert is_alive(recorded)
    process.communicate()
    assert not is_alive(recorded)


@pytest.mark.parametrize("damaged", ["{}", '{"pid": null}', '{"pid": 1e999}', '{"pid": 1, "boot": []}', '{"pid": -1}'])
def test_a_damaged_record_is_no_process(damaged: str) -> None:
    assert not is_alive(Process.read(json.loads(damaged)))
