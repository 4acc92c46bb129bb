import pytest

from engine.base.errors import InputError
from tui_transformer.lab.work import processes, run_actions
from tui_transformer.lab.work.run_actions import RunActions


class Process:
    pid = 1


def test_a_run_is_being_begun_from_when_it_is_made_until_its_process_has_it(tmp_path, tiny, monkeypatch) -> None:
    runs, seen = RunActions(tmp_path, None, "cpu"), []
    monkeypatch.setattr(processes, "spawn", lambda *words, **options: Process())
    monkeypatch.setattr(processes, "await_start", lambda *_: seen.append(runs.is_beginning(run)))
    run = runs.create(tiny(), "process", "tui-transformer run")
    assert runs.is_beginning(run) and not runs.is_beginning(tmp_path / "another")
    runs.start(run, "process")
    assert seen == [True] and not runs.is_beginning(run)
    runs.resume(run, "process")  # it still waits: whoever took it is gone
    assert seen == [True, True] and not runs.is_beginning(run)


@pytest.mark.parametrize("how", ["process", "thread"])
def test_a_run_that_could_not_be_begun_is_not_being_begun_and_leaves_nothing_behind(
    tmp_path, tiny, monkeypatch, how
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise InputError("no process could be started")

    runs = RunActions(tmp_path, None, "cpu")
    monkeypatch.setattr(processes, "spawn", fail)
    monkeypatch.setattr(run_actions.TrainingThread, "start", fail)
    run = runs.create(tiny(), how, "tui-transformer run")
    with pytest.raises(InputError):
        runs.start(run, how)
    assert not runs.is_beginning(run) and not run.exists()


def test_a_queued_run_waits_for_its_device(tmp_path, tiny) -> None:
    runs = RunActions(tmp_path, None, "cpu")
    assert not runs.is_beginning(runs.create(tiny(), "queue", "tui-transformer run"))
