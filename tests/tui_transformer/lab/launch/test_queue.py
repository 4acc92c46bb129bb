"""The queue beside what others left in its folder: one run that cannot be begun, one of a machine that is gone."""

import json
from pathlib import Path
from typing import Any

import pytest

from engine.runs.reader import RunReader
from tests.tui_transformer.recorded import record
from tui_transformer.lab.launch import queue


class Done:
    pid = 1

    def wait(self) -> None:
        """Its run has ended."""


def change(path: Path, **values: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | values), encoding="utf-8")


def waits(root: Path, name: str, data_dir: Any = None) -> Path:
    run = record(root, name, state="queued", step=0)
    change(run / "run.json", queue={"device": "cpu", "data_dir": data_dir})
    return run


@pytest.fixture
def begun(monkeypatch) -> list[tuple[str, Path | None]]:
    """What was begun; every run that is begun is finished at once."""
    found: list[tuple[str, Path | None]] = []

    def spawn(verb: str, run: Path, *, device: str, data_dir: Path | None) -> Done:
        if data_dir is not None:
            data_dir.resolve(strict=False)
        queue.RunWriter.adopt(run).close("finished", "")
        found.append((run.name, data_dir))
        return Done()

    monkeypatch.setattr(queue, "spawn", spawn)
    return found


def test_a_run_that_cannot_be_begun_holds_nobody_up(tmp_path, begun) -> None:
    linked = waits(tmp_path, "a")
    (linked / "log.txt").unlink(missing_ok=True)
    (linked / "log.txt").symlink_to(tmp_path / "victim")
    waits(tmp_path, "b", "/x\x00y")
    waits(tmp_path, "c", 5)
    waits(tmp_path, "d")
    said: list[str] = []
    assert queue.work(tmp_path, "cpu", said.append) == 3
    assert begun == [("c", None), ("d", None)] and not (tmp_path / "victim").exists()
    assert [RunReader(tmp_path / name).state for name in "abcd"] == ["queued", "failed", "finished", "finished"]
    assert any(line.startswith("a: queued: ") and "is a link" in line for line in said)


def test_a_run_of_a_machine_that_is_gone_holds_the_queue_up_for_a_minute(tmp_path, begun, monkeypatch) -> None:
    foreign = record(tmp_path, "foreign", state="running")
    change(foreign / "status.json", host="gone", device="cpu", beat=10)
    waits(tmp_path, "next")
    clock = [1000.0]
    monkeypatch.setattr("engine.runs.reader.time.monotonic", lambda: clock[0])
    monkeypatch.setattr(queue.time, "sleep", lambda seconds: clock.__setitem__(0, clock[0] + seconds))
    assert queue.work(tmp_path, "cpu", lambda _: None) == 1
    assert begun == [("next", None)] and 1060 <= clock[0] < 1063
