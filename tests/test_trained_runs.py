"""A kept run is trained once, and every copy is a run of its own."""

import shutil

import pytest

from engine.runs.reader import RunReader
from tests import trained_runs
from tests.trained_runs import FOLDER, cached_run, train_run

SHORT = ("train.steps=2", "evaluation.every=2", "evaluation.sample_every=2", "checkpoint.every=2")


@pytest.fixture(autouse=True)
def nothing_kept_yet(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER, str(tmp_path / "kept"))


def test_it_is_trained_once_and_equals_what_is_trained_here(tiny, tmp_path, monkeypatch):
    alone = RunReader(train_run(tiny(*SHORT), tmp_path, "alone"))
    first = RunReader(cached_run(tiny(*SHORT), tmp_path, "first"))
    monkeypatch.setattr(trained_runs, "patched", lambda: False)
    monkeypatch.setattr(trained_runs, "train_run", None)
    second = RunReader(cached_run(tiny(*SHORT), tmp_path / "elsewhere", "second"))
    assert first.summary.fingerprint == second.summary.fingerprint == alone.summary.fingerprint
    assert len({alone.run.id, first.run.id, second.run.id}) == 3
    assert second.name == "second" and second.state == "finished"
    assert {path.name for path in second.path.iterdir()} == {path.name for path in alone.path.iterdir()}


def test_another_config_is_another_run(tiny, tmp_path):
    one, other = (RunReader(cached_run(tiny(*SHORT, f"seed={n}"), tmp_path, f"seed{n}")) for n in (1, 2))
    assert one.summary.fingerprint != other.summary.fingerprint


def test_what_is_done_to_a_copy_is_done_to_no_other(tiny, tmp_path):
    spoiled = cached_run(tiny(*SHORT), tmp_path, "spoiled")
    for path in [path for path in spoiled.rglob("*") if path.is_file()]:
        with path.open("r+b") as file:
            file.write(b"spoiled")
    shutil.rmtree(spoiled / "checkpoints")
    assert RunReader(cached_run(tiny(*SHORT), tmp_path, "whole")).summary.fingerprint
    assert (tmp_path / "whole" / "checkpoints" / "step-00000002").is_dir()


def test_a_worker_that_died_training_keeps_no_other_from_it(tiny, tmp_path):
    first = cached_run(tiny(*SHORT), tmp_path, "first")
    kept = tmp_path / "kept"
    [lock] = kept.glob("*.lock")
    (kept / lock.stem).rename(kept / "tmp-of-the-dead")  # as it leaves it: the lock's file, and a folder of no name
    second = cached_run(tiny(*SHORT), tmp_path, "second")
    assert RunReader(first).summary.fingerprint == RunReader(second).summary.fingerprint


def test_what_is_trained_while_a_part_is_replaced_is_not_kept(tiny, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("engine.training.inspector.self_check", lambda *_: [])
        unchecked = RunReader(cached_run(tiny(*SHORT), tmp_path, "unchecked"))
        assert not (tmp_path / "kept").exists()
    monkeypatch.setattr("tui_transformer.languages.use", None)  # a run knows nothing of the app
    whole = RunReader(cached_run(tiny(*SHORT), tmp_path, "whole"))
    assert (tmp_path / "kept").exists() and len(whole.verdicts) > len(unchecked.verdicts)


def test_a_run_on_files_is_trained_anew(tiny, tmp_path):
    text = tmp_path / "text.txt"
    prints = set()
    for name, words in (("one", "to be or not to be "), ("two", "that is the question ")):
        text.write_text(words * 200)
        config = tiny(*SHORT, f'data.corpus="{text}"', "evaluation.probes=false")
        prints.add(RunReader(cached_run(config, tmp_path, name)).summary.fingerprint)
    assert len(prints) == 2
