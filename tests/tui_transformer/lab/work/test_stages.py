"""Studies in stages: what waits for what, what is skipped, what it costs, and all of it by one command."""

import json
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.base.errors import InputError
from engine.proofs.verify.claims import verify
from engine.runs.reader import RunReader
from engine.training.assemble import begin, resume
from tests.tui_transformer.lab.work.test_runner import Played, Stage, put
from tests.tui_transformer.lab.work.tiny import attempts, nothing_left, outcomes, started, tiny_study, words, written
from tests.waiting import PATIENCE, wait_for
from tui_transformer.__main__ import main
from tui_transformer.cli.work import ablate
from tui_transformer.cli.work.study_progress import StudyProgress
from tui_transformer.lab.records.run_states import status_text
from tui_transformer.lab.work import runner
from tui_transformer.lab.work.arguments import StudyArgs, resumed_study
from tui_transformer.lab.work.cells import ABSENT, SKIPPED, CellStatus, cell_folders, cell_statuses
from tui_transformer.lab.work.plan import Plan, RunCost, time_steps_and_plan
from tui_transformer.lab.work.study import Stage as StudyStage
from tui_transformer.lab.work.study import Study, Variant

STAGES = (
    StudyStage("pretrain", changes={"train.steps": 20, "data.corpus_seed": 7}),
    StudyStage("finetune", "pretrain", {"train.steps": 10, "data.corpus_seed": 1}),
)
VARIANTS = (Variant("both"), Variant("scratch", stages=("finetune",)))
CHANGES = {key: value for key, value in tiny_study().changes.items() if key not in ("train.steps", "evaluation.every")}
CHANGES |= {"evaluation.every": 10, "evaluation.sample_every": 0, "train.threads": 1}
FIRST, LAST, SCRATCH = "tiny.both.pretrain.s1", "tiny.both.s1", "tiny.scratch.s1"


def staged(**changes: Any) -> Study:
    given = {"variants": VARIANTS, "baseline": "both", "seeds": (1,), "changes": CHANGES, "stages": STAGES}
    return tiny_study(**{**given, **changes})


@pytest.fixture
def played(tmp_path, monkeypatch) -> Stage:
    """A runner whose processes are played: pretrain and finetune of `both`, and `scratch`, of one seed."""
    return Stage(tmp_path, monkeypatch, staged().cells())


def begun(played: Stage) -> list[tuple[str, str]]:
    return [(verb, name) for verb, name, _ in played.spawned]


def test_a_stage_waits_until_the_one_before_it_is_finished_and_others_go_first(played) -> None:
    found = played.run(jobs=2)
    assert begun(played) == [("begin", FIRST), ("begin", SCRATCH), ("begin", LAST)]
    assert {standing.state for standing in found.values()} == {"finished"}
    facts = RunReader(played.root / LAST).raw("run")
    assert facts["study"] == {"name": "tiny", "variant": "both", "seed": 1, "after": "pretrain"}
    assert RunReader(played.root / FIRST).raw("run")["study"]["stage"] == "pretrain"
    assert RunReader(played.root / LAST).config.train.init_from == f"{FIRST}@best"


def test_what_starts_from_a_stage_that_failed_is_skipped_and_says_so(played) -> None:
    played.script[FIRST] = [lambda path: put(path, "failed", step=3, reason="a gradient is not a number")]
    found = played.run()
    assert (found[FIRST].state, found[LAST].state, found[SCRATCH].state) == ("failed", SKIPPED, "finished")
    assert status_text(found[LAST]) == "skipped: its stage 'pretrain' failed"
    assert f"{LAST} {SKIPPED}" in played.told and not (played.root / LAST).exists()


@pytest.mark.parametrize(("retry", "state"), [(False, SKIPPED), (True, "finished")])
def test_a_failed_stage_that_is_retried_lets_the_next_one_go_on(played, retry: bool, state: str) -> None:
    played.script[FIRST] = [lambda path: put(path, "failed", step=3)]
    played.run()
    found = played.run(retry_failed=retry)
    assert found[LAST].state == state
    assert played.verbs(FIRST) == (["begin", "resume"] if retry else ["begin"])
    assert played.verbs(LAST) == (["begin"] if retry else [])


def test_a_stage_that_somebody_stopped_holds_up_what_starts_from_it_until_the_next_time(played) -> None:
    played.script[FIRST] = [lambda path: put(path, "stopped", step=3)]
    found = played.run()
    assert found[LAST].state == ABSENT and status_text(found[LAST]) == "not started: its stage 'pretrain' is stopped"
    assert played.run()[LAST].state == "finished"
    assert played.verbs(FIRST) == ["begin", "resume"]


def test_a_stage_that_was_killed_is_gone_on_with_before_the_next_one(played) -> None:
    played.script[FIRST] = [lambda path: put(path, "running", step=10)]
    assert played.run(jobs=1)[LAST].state == "finished"
    assert [name for _, name in begun(played)][:3] == [FIRST, FIRST, LAST] or played.verbs(FIRST) == ["begin", "resume"]


def test_a_later_stage_with_a_checkpoint_goes_on_though_the_stage_before_it_is_gone(played) -> None:
    played.script[LAST] = [lambda path: put(path, "interrupted", step=5)]
    played.run()
    shutil.rmtree(played.root / FIRST)
    played.script[FIRST] = [lambda path: put(path, "failed", step=1)]
    found = played.run()
    assert found[LAST].state == "finished" and played.verbs(LAST) == ["begin", "resume"]


def test_a_renamed_stage_is_still_what_the_next_one_starts_from(played) -> None:
    played.script[FIRST] = [lambda path: put(path, "stopped", step=3)]
    played.run()
    (played.root / FIRST).rename(played.root / "mine")
    played.script["mine"] = [lambda path: put(path, "finished")]
    assert played.run()[LAST].state == "finished"
    assert RunReader(played.root / LAST).config.train.init_from == "mine@best"
    assert cell_folders("tiny", played.cells, played.root)[FIRST] == played.root / "mine"


def test_in_a_chain_of_three_everything_after_a_failure_is_skipped(tmp_path, monkeypatch) -> None:
    stages = (*STAGES, StudyStage("polish", "finetune", {"optimizer.lr": 0.001}))
    played = Stage(
        tmp_path, monkeypatch, staged(stages=stages, variants=(Variant("both"), Variant("b", "heads1"))).cells()
    )
    played.script["tiny.both.pretrain.s1"] = [lambda path: put(path, "failed")]
    found = played.run()
    assert found["tiny.both.finetune.s1"].reason == "its stage 'pretrain' failed"
    assert found["tiny.both.s1"].reason == "its stage 'finetune' was skipped"
    assert found["tiny.b.s1"].state == "finished"


PRICES = {
    name: RunCost(seconds=seconds, disk=5) for name, seconds in (("both.pretrain", 10), ("both", 4), ("scratch", 6))
}


@pytest.mark.parametrize(("jobs", "seconds"), [(1, 20.0), (2, 14.0), (8, 14.0)])
def test_time_and_disk_count_every_stage_and_that_one_waits_for_the_other(tmp_path, jobs: int, seconds: float) -> None:
    cells = staged().cells()
    standings = cell_statuses(cells, cell_folders("tiny", cells, tmp_path))
    plan = Plan(devices=("cpu",), jobs=jobs, threads=1, prices=PRICES)
    assert plan.seconds_for(standings) == seconds and plan.disk_for(standings) == 15
    board = StudyProgress(plan, standings)
    assert board.total == 3 and board.seconds_left == seconds
    board.update([replace(standings[0], state="failed"), replace(standings[1], state=SKIPPED)])
    assert board.seconds_left == 6.0


CHANGED: dict[str, tuple[dict[str, Any], str]] = {
    "its settings": (
        {"stages": (replace(STAGES[0], changes={"train.steps": 9, "data.corpus_seed": 7}), STAGES[1])},
        "stage 'pretrain': train.steps is 9, was 20",
    ),
    "where from": ({"stages": (STAGES[0], replace(STAGES[1], starts_from="pretrain@last"))}, "from is 'pretrain@last'"),
    "none": (
        {"stages": (), "variants": (Variant("both"), Variant("scratch", "heads1"))},
        "the list of stages is unset",
    ),
    "a variant's": ({"variants": (Variant("both"), Variant("scratch"))}, "variant 'scratch': stages is unset"),
}


@pytest.mark.parametrize("case", CHANGED)
def test_other_stages_under_the_same_name_are_refused_and_say_what_differs(case: str) -> None:
    changes, said = CHANGED[case]
    with pytest.raises(InputError) as error:
        resumed_study(staged(**changes), staged())
    assert said in str(error.value)


def test_a_setting_that_every_stage_says_itself_cannot_be_set_for_all_of_them(tmp_path) -> None:
    file = str(written(tmp_path, staged()))
    with pytest.raises(
        InputError, match="--set train.steps: stages pretrain and finetune each set this key themselves"
    ):
        StudyArgs(study=file, overrides=("train.steps=3",)).resolve(tmp_path)
    assert StudyArgs(study=file, overrides=("optimizer.lr=0.1",)).resolve(tmp_path).changes["optimizer.lr"] == 0.1


def test_a_stage_that_cannot_take_the_weights_of_the_one_before_it_is_refused_before_anything_is_trained(
    tmp_path, capsys, here
) -> None:
    wrong = (STAGES[0], replace(STAGES[1], changes={"model.d_ff": 64}))
    runs = tmp_path / "runs"
    assert main([*words(written(tmp_path, staged(stages=wrong)), runs), "--dry-run"]) == 2
    said = capsys.readouterr().err
    assert "model.d_ff differs (32 there, 64 here)" in said and "is (32, 16), must be (64, 16)" in said
    assert said.count("\n") == 1 and not runs.exists()


@pytest.fixture
def here(monkeypatch) -> None:
    """What `ablate` leaves to processes is done in this one: it has loaded the engine already."""

    def spawn(verb: str, run: Path, *, device: str, data_dir: Path | None, claim: Any) -> Played:
        return Played((resume if verb == "resume" else begin)(run, device=device).trainer.run)

    monkeypatch.setattr(runner, "spawn", spawn)
    monkeypatch.setattr(ablate, "make_plan_in_subprocess", time_steps_and_plan)


def undone(path: Path) -> bool:
    return not path.exists() or RunReader(path).state != "finished"


def test_one_command_runs_all_stages_and_compares_the_last_ones(tmp_path, capsys, here) -> None:
    runs = tmp_path / "runs"
    assert main(words(written(tmp_path, staged()), runs)) == 0
    said = capsys.readouterr().out
    assert "2 variants × 1 seed (1), in stages pretrain ─▶ finetune = 3 runs" in said
    assert "both, pretrain" in said and "starts from fresh weights" in said
    assert "Runs of earlier stages (pretrain; 1 in all) are not in this table" in said
    assert "other split" not in said and "different split" not in said  # of the pretraining's text
    lineage = dict(verify(RunReader(runs / LAST), device="cpu"))["lineage"]
    assert lineage.status == "passed" and f"{FIRST} ─▶ {LAST}" in lineage.why
    assert main(["compare", "tiny", "--json", "--runs-dir", str(runs)]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["variant"], row["train.init_from"]) for row in rows] == [("both", "pretrain@best"), ("scratch", None)]


def killed_when(due: Callable[[], bool], root: Path) -> None:
    process = started(written(root, staged()), root)
    wait_for(lambda: due() or process.poll() is not None, "the moment")
    assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.communicate()


@pytest.mark.slow  # a study in processes, three times
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs signals")
def test_killed_between_and_in_its_stages_a_study_ends_as_if_undisturbed(tmp_path, fork_start) -> None:
    roots = [tmp_path / name for name in ("whole", "between", "within")]
    for root in roots:
        root.mkdir()
    moments = {"between": lambda root: not undone(root / FIRST), "within": lambda root: (root / LAST).exists()}
    with nothing_left(roots[0]):
        assert started(written(roots[0], staged()), roots[0]).wait(PATIENCE) == 0
    for root in roots[1:]:
        with nothing_left(root):
            killed_when(lambda: moments[root.name](root), root)  # noqa: B023
            before = attempts(root)
            for _ in range(3):
                process = started(written(root, staged()), root)
                said, _ = process.communicate(timeout=PATIENCE)
                if process.returncode == 0:
                    break
            assert process.returncode == 0, said
        assert before.items() <= attempts(root).items(), "a finished stage was repeated"
        assert outcomes(root) == outcomes(roots[0])


def test_where_nothing_failed_a_cell_without_stages_stands_as_it_did(tmp_path) -> None:
    cells = tiny_study().cells()
    standings = cell_statuses(cells, cell_folders("tiny", cells, tmp_path))
    assert [standing.state for standing in standings] == [ABSENT] * 4
    assert all(isinstance(standing, CellStatus) and not standing.reason for standing in standings)
