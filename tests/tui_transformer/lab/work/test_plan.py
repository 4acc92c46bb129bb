from dataclasses import replace

import pytest

from engine.base.errors import InputError
from engine.config import presets
from engine.runs.files import write_json
from engine.runs.writer import RunWriter
from tests.tui_transformer.lab.work.tiny import VARIANTS, tiny_study
from tui_transformer.__main__ import main
from tui_transformer.cli.work.study_progress import StudyProgress
from tui_transformer.lab.work.arguments import StudyArgs, parse_seeds, resumed_study
from tui_transformer.lab.work.cells import ABSENT, TORN, CellStatus, cell_folders, cell_status
from tui_transformer.lab.work.plan import Plan, RunCost, disk_bytes, evaluation_cost_in_steps, jobs_and_threads
from tui_transformer.lab.work.runner_lock import be_only_runner, has_runner
from tui_transformer.lab.work.study import Variant
from tui_transformer.lab.work.study_files import study_lock

GIGABYTE = 10**9
CELLS = tiny_study().cells()
PRICES = {name: RunCost(seconds=seconds, disk=disk) for name, seconds, disk in (("rope", 10.0, 5), ("alibi", 20.0, 7))}
PLAN = Plan(devices=("cpu",), jobs=2, threads=1, prices=PRICES)


def standings(*states: str, steps: int = 100, step: int = 0) -> list[CellStatus]:
    return [
        CellStatus(cell, None, state, step=step, steps=steps, checkpoint=step > 0)
        for cell, state in zip(CELLS, states, strict=True)
    ]


SHARES = {
    "two cores, a small model": ({"cells": 12, "cores": 2, "threads_worth_using": 1}, (2, 1)),
    "sixteen cores, four cells, a small model": ({"cells": 4, "cores": 16, "threads_worth_using": 1}, (4, 1)),
    "sixteen cores, four cells, a large model": ({"cells": 4, "cores": 16, "threads_worth_using": 50}, (4, 4)),
    "memory for one": ({"cells": 4, "cores": 16, "threads_worth_using": 50, "memory_per_cell": 9 * GIGABYTE}, (1, 16)),
    "jobs as asked for": ({"cells": 4, "cores": 16, "threads_worth_using": 50, "jobs": 2}, (2, 8)),
    "no more jobs than cells": ({"cells": 2, "cores": 16, "threads_worth_using": 1, "jobs": 64}, (2, 1)),
    "threads as the study has them": ({"cells": 12, "cores": 16, "threads_worth_using": 1, "threads": 4}, (4, 4)),
}


@pytest.mark.parametrize("case", SHARES)
def test_a_cpu_is_shared_among_cells_before_threads(case: str) -> None:
    given, expected = SHARES[case]
    assert jobs_and_threads(**{"free_memory": 10 * GIGABYTE, "memory_per_cell": GIGABYTE, **given}) == expected


def test_more_cells_at_a_time_than_memory_holds_are_refused() -> None:
    with pytest.raises(InputError, match="--jobs 4: .* --jobs 2 fits"):
        jobs_and_threads(8, cores=8, free_memory=2 * GIGABYTE, memory_per_cell=GIGABYTE, threads_worth_using=1, jobs=4)


def test_time_is_that_of_the_longest_row_of_cells() -> None:
    assert PLAN.seconds_for(standings("absent", "absent", "absent", "absent")) == 40.0
    assert PLAN.seconds_for(standings("finished", "absent", "absent", "finished")) == 20.0
    assert PLAN.seconds_for(standings("finished", "lost", "finished", "finished", step=50)) == 10.0
    assert PLAN.seconds_for([]) == 0.0
    assert PLAN.disk_for(standings("finished", "absent", "absent", "absent")) == 19


def test_a_plan_survives_json() -> None:
    assert Plan.read(PLAN.dump()) == PLAN


def test_disk_counts_each_checkpoint_that_is_kept() -> None:
    config = presets.resolve(presets.find("demo"))
    few = disk_bytes(config, 10**6)
    more = config.model_copy(update={"checkpoint": config.checkpoint.model_copy(update={"keep_last": 4})})
    assert disk_bytes(more, 10**6) - few == 2 * 12 * 10**6
    assert few > 3 * 12 * 10**6


def test_evaluations_are_counted_in_training_steps() -> None:
    config = presets.resolve(presets.find("demo"))  # 12 evaluations; each token is read twice
    assert evaluation_cost_in_steps(config, 4096, 100_000) == pytest.approx(12 * 2 * 100_000 / 3 / 4096)


def test_the_time_left_follows_what_was_seen() -> None:
    now = [0.0]
    board = StudyProgress(PLAN, standings("absent", "absent", "absent", "absent"), lambda: now[0])
    assert board.seconds_left == 40.0
    now[0] = 60.0  # as slow again as planned: 30 s of work took two jobs 60 s
    board.update(standings("finished", "finished", "absent", "absent"))
    assert board.seconds_left == pytest.approx(20.0 * 60 * 2 / 30) and board.finished == 2 and board.share == 0.5


SEEDS = {"3": (1, 2, 3), "1": (1,), "1,5,9": (1, 5, 9), "42,": (42,), " 2, 1 ": (2, 1)}


@pytest.mark.parametrize("text", SEEDS)
def test_seeds_are_a_number_or_named(text: str) -> None:
    assert parse_seeds(text) == SEEDS[text]


@pytest.mark.parametrize("text", ["", "0", "x", "-1", "1.5", "1,,2", "9999", "²"])
def test_what_is_no_seed_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--seeds"):
        parse_seeds(text)


ASKED = {
    "nothing": (StudyArgs(), "--study NAME"),
    "both": (StudyArgs(study="heads", preset="demo"), "leave out --preset"),
    "no axis": (StudyArgs(preset="demo"), "say what to vary"),
    "an axis twice": (StudyArgs(preset="demo", vary=("model.n_heads=1,2", "model.n_heads=4,8")), "twice"),
    "no study": (StudyArgs(study="head"), "did you mean 'heads'"),
    "no preset": (StudyArgs(preset="dem", vary=("model.n_heads=1,2",)), "did you mean 'demo'"),
    "no overlay": (StudyArgs(preset="demo", on="baseline", vary=("model.n_heads=1,2",)), "is a base"),
}


@pytest.mark.parametrize("case", ASKED)
def test_a_command_line_that_asks_for_no_study_is_refused(tmp_path, case: str) -> None:
    asked, said = ASKED[case]
    with pytest.raises(InputError, match=said):
        asked.resolve(tmp_path)


def test_a_command_line_becomes_a_study(tmp_path) -> None:
    asked = StudyArgs(preset="win16", on="demo", vary=("model.n_heads=2,4",), seeds="2", overrides=("train.steps=9",))
    study = asked.resolve(tmp_path)
    assert (study.name, study.base, study.seeds, study.baseline) == (
        "win16-demo-n_heads",
        "win16@demo",
        (1, 2),
        "n_heads-4",
    )
    assert all(cell.config.train.steps == 9 and cell.config.model.attention == "window" for cell in study.cells())
    named = StudyArgs(study="attention", on="baseline", name="mine", corpus="playlets").resolve(tmp_path)
    assert (named.name, named.base, named.changes) == ("mine", "baseline", {"data.corpus": "playlets"})


def test_a_corpus_that_is_a_file_is_found_from_anywhere(tmp_path, monkeypatch) -> None:
    (tmp_path / "text.txt").write_text("a text")
    monkeypatch.chdir(tmp_path)
    found = StudyArgs(study="attention", corpus="text.txt").resolve(tmp_path)
    assert found.changes["data.corpus"] == str(tmp_path / "text.txt")


CHANGED = {
    "base": ({"base": "win16"}, "base is 'win16', was 'demo'"),
    "baseline": ({"baseline": "alibi"}, "baseline is 'alibi', was 'rope'"),
    "a seed": ({"seeds": (1, 3)}, "seed 2 is left out"),
    "a change": ({"changes": {**tiny_study().changes, "train.steps": 99}}, "train.steps is 99, was 60"),
    "a variant": ({"variants": (*VARIANTS, Variant("t5", "t5"))}, "variant 't5' is new"),
    "an overlay": ({"variants": (VARIANTS[0], replace(VARIANTS[1], preset="t5"))}, "preset is 't5', was 'alibi'"),
    "what is expected": (
        {"variants": (VARIANTS[0], replace(VARIANTS[1], expect={"loss": "worse"}))},
        "expect is {'loss': 'worse'}, was unset",
    ),
}


@pytest.mark.parametrize("case", CHANGED)
def test_a_changed_study_under_the_same_name_is_refused_and_says_what_differs(case: str) -> None:
    changes, said = CHANGED[case]
    with pytest.raises(InputError) as error:
        resumed_study(tiny_study(seeds_given=True, **changes), tiny_study())
    assert said in str(error.value) and "--name" in str(error.value)


def test_threads_that_the_plan_chose_are_kept_and_seeds_may_be_added() -> None:
    before = tiny_study(changes={**tiny_study().changes, "train.threads": 2})
    without = {key: value for key, value in before.changes.items() if key != "train.threads"}
    asked = tiny_study(changes=without, seeds=(1, 2, 3), description="other words", seeds_given=True)
    assert resumed_study(asked, before) == replace(before, seeds=(1, 2, 3))
    assert resumed_study(replace(asked, seeds_given=False), before) == before


def test_one_runner_at_a_time(tmp_path, capsys) -> None:
    lock = study_lock(tmp_path, "tiny")
    assert not has_runner(lock)
    with be_only_runner(lock, ""):
        assert has_runner(lock)
        words = ["ablate", "--study", "attention", "--name", "tiny", "--runs-dir", str(tmp_path)]
        assert main(words) == 2 and "is being run by another process" in capsys.readouterr().err
        with be_only_runner(study_lock(tmp_path, "other"), ""):
            pass
    assert not has_runner(lock)


def made(root, cell, **facts):
    writer = RunWriter.create(root, cell.name, cell.config, facts, state="queued")
    writer.release_lock()
    return writer.path


PLACE = {"name": "tiny", "variant": "rope", "seed": 1}


def test_a_renamed_run_is_still_its_cells(tmp_path) -> None:
    made(tmp_path, CELLS[0], study=PLACE).rename(tmp_path / "mine")
    found = cell_folders("tiny", CELLS, tmp_path)
    assert found[CELLS[0].name] == tmp_path / "mine" and found[CELLS[1].name] == tmp_path / CELLS[1].name


def test_somebody_elses_run_of_that_name_is_not_taken_for_a_cell(tmp_path) -> None:
    made(tmp_path, CELLS[0])
    with pytest.raises(InputError, match="does not belong to study 'tiny'"):
        cell_folders("tiny", CELLS, tmp_path)


def test_a_run_that_was_asked_for_something_else_is_not_taken_for_a_cell(tmp_path) -> None:
    made(tmp_path, tiny_study(changes={**tiny_study().changes, "optimizer.lr": 0.5}).cells()[0], study=PLACE)
    with pytest.raises(InputError, match=r"was trained with optimizer.lr = 0.5, but the study now asks for 0.01"):
        cell_folders("tiny", CELLS, tmp_path)


VERBS = {
    "queued": ("begin", "begin"),
    "finished": ("done", "done"),
    "failed": ("failed", "failed"),
    "paused": ("wait", "wait"),
    "stopped": ("anew", "resume"),
    "interrupted": ("anew", "resume"),
    "lost": ("anew", "resume"),
    ABSENT: ("create", "create"),
    TORN: ("anew", "anew"),
    "what a later version says": ("anew", "anew"),
}


@pytest.mark.parametrize("state", VERBS)
def test_each_state_has_its_way_to_go_on_with_and_without_a_checkpoint(state: str) -> None:
    found = [CellStatus(CELLS[0], None, state, checkpoint=there).verb for there in (False, True)]
    assert tuple(found) == VERBS[state]


@pytest.mark.parametrize("left", ["nothing", "run.json", "config.toml", "status"])
def test_a_run_directory_that_was_killed_half_made_is_made_anew(tmp_path, left: str) -> None:
    path = made(tmp_path, CELLS[0], study=PLACE)
    for file in {"run.json", "config.toml", "status.json"} - {left}:
        (path / file).unlink()
    if left == "status":
        write_json(path / "status.json", {"state": "queued"})
    assert cell_status(CELLS[0], path).state == TORN
    assert cell_status(CELLS[1], tmp_path / "nowhere").state == ABSENT


def test_a_run_that_a_worker_makes_meanwhile_is_taken_for_its_cell(tmp_path, monkeypatch) -> None:
    path = made(tmp_path, CELLS[0], study=PLACE)
    monkeypatch.setattr("tui_transformer.lab.work.cells.list_runs", lambda runs_dir: [])
    assert cell_folders("tiny", CELLS, tmp_path)[CELLS[0].name] == path
