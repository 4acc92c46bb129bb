"""Studies end to end, their cells in processes: stopped, killed, failed, and gone on with."""

import json
import os
import random
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from engine.base.errors import InputError
from engine.config.schema import RunConfig
from engine.runs.reader import LIVE_STATES, RunReader
from engine.training.trial import StepCost
from tests.tui_transformer.lab.work.tiny import (
    VARIANTS,
    at_work,
    attempts,
    nothing_left,
    outcomes,
    started,
    tiny_study,
    words,
    written,
)
from tests.waiting import PATIENCE, wait_for
from tui_transformer.__main__ import main
from tui_transformer.cli.work import ablate
from tui_transformer.lab.analysis.statistics import detectable_difference
from tui_transformer.lab.work.arguments import StudyArgs
from tui_transformer.lab.work.plan import Plan, RunCost, time_steps_and_plan
from tui_transformer.lab.work.runner_lock import has_runner
from tui_transformer.lab.work.study import read_study
from tui_transformer.lab.work.study_files import study_lock

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs signals"),
    pytest.mark.usefixtures("module_fork_start"),
]

NAMES = ["tiny.alibi.s1", "tiny.alibi.s2", "tiny.rope.s1", "tiny.rope.s2"]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> tuple[Path, dict[str, Any]]:
    """The study's runs when nobody disturbs it: where, and what they leave behind."""
    root = tmp_path_factory.mktemp("undisturbed")
    with nothing_left(root):
        process = started(written(root), root)
        said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said
    return root, outcomes(root)


def steps(runs: Path) -> int:
    """How many its cells have taken, all together."""
    return sum(RunReader(path).status.step for path in runs.glob("tiny.*.s*"))


def test_a_study_trains_each_variant_with_each_seed_and_its_runs_say_so(undisturbed) -> None:
    root, found = undisturbed
    assert list(found) == NAMES and not has_runner(study_lock(root, "tiny")) and not at_work(root)
    for variant in ("rope", "alibi"):
        for seed in (1, 2):
            reader = RunReader(root / f"tiny.{variant}.s{seed}")
            assert reader.state == "finished" and reader.status.attempt == 1
            assert reader.raw("run")["study"] == {"name": "tiny", "variant": variant, "seed": seed}
            assert reader.config.model.position == variant and reader.config.seed == seed
    kept = read_study(root / "tiny.study.toml")
    assert kept == tiny_study() and kept.changes["train.threads"] == 1


def test_a_study_that_is_done_is_not_repeated(undisturbed, capsys) -> None:
    root, found = undisturbed
    before = attempts(root)
    assert main(["ablate", "--study", str(root / "tiny.study.toml"), "--runs-dir", str(root), "--device", "cpu"]) == 0
    said = capsys.readouterr().out
    assert "4 of them finished" in said and "compare tiny" in said
    assert attempts(root) == before and outcomes(root) == found


def test_a_dry_run_tells_runs_time_disk_and_what_differs_and_writes_nothing(tmp_path, capsys) -> None:
    runs = tmp_path / "runs"
    assert main([*words(written(tmp_path), runs), "--dry-run", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert (plan["runs"], plan["to_run"], plan["jobs"], plan["threads"]) == (4, 4, 2, 1)
    assert plan["seconds"] > 0 and plan["disk_bytes"] > 0 and not runs.exists()
    assert plan["primary"] == "loss"
    assert plan["changes"] == {"rope": {}, "alibi": {"model.position": ["rope", "alibi"]}}
    assert main([*words(written(tmp_path), runs), "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "primary measure: loss" in said
    assert "2 variants × 2 seeds (1, 2) = 4 runs" in said and 'model.position = "alibi"' in said and "of disk" in said


def test_what_a_plan_has_timed_is_not_timed_again(tmp_path, capsys, monkeypatch) -> None:
    timed = []

    def step_cost(config: RunConfig, *_: object) -> StepCost:
        timed.append(config.model.position)
        return StepCost(0.5, None, 64.0)

    monkeypatch.setattr(ablate, "make_plan_in_subprocess", time_steps_and_plan)
    monkeypatch.setattr("engine.training.trial.step_cost", step_cost)
    asked, file = [*words(written(tmp_path), tmp_path / "runs"), "--dry-run", "--json"], tmp_path / "plan.json"
    assert main(asked) == 0 and timed == ["rope", "alibi"]
    first = capsys.readouterr().out
    file.write_text(first)
    assert main([*asked, "--plan", str(file)]) == 0 and timed == ["rope", "alibi"]
    assert json.loads(capsys.readouterr().out) == json.loads(first)
    for other in ('{"threads": 7', '{"devices": ["cuda:0"]', ""):  # timed otherwise; torn
        file.write_text(other and f"{other}, {first[1:]}".replace('"threads": 1', '"jobs": 2'))
        timed.clear()
        assert main([*asked, "--plan", str(file)]) == 0 and timed == ["rope", "alibi"]


def test_the_plan_is_printed_before_steps_are_timed_and_variants_alike_are_timed_once(
    tmp_path, capsys, monkeypatch
) -> None:
    timed, printed = [], []

    def step_cost(config: RunConfig, *_: object) -> StepCost:
        printed.append(capsys.readouterr().out)
        timed.append(config.model.n_heads)
        return StepCost(0.5 * len(timed), None, 64.0)

    monkeypatch.setattr(ablate, "make_plan_in_subprocess", time_steps_and_plan)
    monkeypatch.setattr("engine.training.trial.step_cost", step_cost)
    line = ["ablate", "--preset", "demo", "--set", "data.corpus_size=20000", "--vary", "model.n_heads=1,2", "--vary"]
    line += ["optimizer.lr=0.01,0.02,0.03", "--vary", "model.init_std=0.02,0.03", "--runs-dir", str(tmp_path / "runs")]
    assert main([*line, "--dry-run", "--seeds", "2"]) == 0 and sorted(timed) == [1, 2]
    plan, cost = printed[0], capsys.readouterr().out
    assert "12 variants × 2 seeds" in plan and plan.count("optimizer.lr = ") == 8 and "PER RUN" not in plan
    assert cost.count("≈ ") == 3 and "12 variants" not in cost and "24 to run" in cost
    assert main([*line, "--dry-run", "--seeds", "2", "--json"]) == 0
    (record,) = map(json.loads, capsys.readouterr().out.splitlines())
    prices = record["prices"]
    assert len(prices) == 12 and len({price["seconds"] for price in prices.values()}) == 2 and "timed" not in record
    assert min(price["seconds"] for price in prices.values()) > 0


def test_thousands_of_variants_may_have_a_seed_each_though_not_the_usual_five(tmp_path) -> None:
    axis = f"optimizer.lr={','.join(f'{i}e-6' for i in range(1, 4001))}"
    study = StudyArgs(preset="demo", vary=(axis,), seeds="1").resolve(tmp_path)
    assert (len(study.variants), study.seeds, study.seeds_given) == (4000, (1,), True)
    with pytest.raises(InputError, match="20,000 runs"):
        StudyArgs(preset="demo", vary=(axis,)).resolve(tmp_path)


@pytest.mark.parametrize(
    ("seconds", "asked", "planned"), [(1.0, "", 5), (500.0, "", 3), (500.0, "4", 4), (1.0, "3", 3)]
)
def test_five_seeds_are_planned_unless_they_take_over_an_hour_or_others_are_asked_for(
    tmp_path, capsys, monkeypatch, seconds: float, asked: str, planned: int
) -> None:
    prices = {name: RunCost(seconds=seconds, parameters=7) for name in ("rope", "alibi")}
    plan = Plan(devices=("cpu",), jobs=1, threads=1, prices=prices)
    monkeypatch.setattr(ablate, "make_plan_in_subprocess", lambda *_, **__: plan)
    text = tiny_study().to_toml().replace("seeds = [\n    1,\n    2,\n]\n", "")
    file, runs = tmp_path / "asked.toml", tmp_path / "runs"
    file.write_text(text)
    line = [*words(file, runs), "--dry-run", *(["--seeds", asked] if asked else [])]
    assert "seeds" not in text and main(line) == 0
    said = capsys.readouterr()
    assert f"2 variants × {planned} seeds" in said.out
    power = f"80 % power to detect a difference of {detectable_difference(planned, 2):.1f} sd."
    assert f"With {planned} seeds, this study has {power}" in said.out
    assert ("5 seeds would take over an hour; --seeds 5 trains" in said.err) == (planned == 3 and not asked)
    assert main([*line, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (len(told["seeds"]), told["runs"]) == (planned, 2 * planned)
    assert told["detectable_sd"] == detectable_difference(planned, 2) and told["power"] in said.out
    runs.mkdir()
    (runs / "tiny.study.toml").write_text(tiny_study().to_toml())  # started: it keeps its seeds
    assert main([*words(file, runs), "--dry-run"]) == 0 and "2 variants × 2 seeds" in capsys.readouterr().out


def test_another_study_under_the_name_is_refused_with_what_differs(undisturbed, capsys, tmp_path) -> None:
    root, _ = undisturbed
    other = written(tmp_path, replace(tiny_study(), base="win16@demo"))
    assert main(words(other, root)) == 2
    assert "was started with different settings: base is 'win16@demo', was 'demo'" in capsys.readouterr().err
    other = written(tmp_path, replace(tiny_study(), primary="accuracy"))  # chosen after the scores were seen
    assert main(words(other, root)) == 2
    assert "was started with different settings: primary is" in capsys.readouterr().err


def test_a_corpus_that_is_not_there_ends_it_before_anything_is_made(tmp_path, capsys) -> None:
    runs = tmp_path / "runs"
    assert main([*words(written(tmp_path), runs), "--corpus", "nowhere.txt"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "nowhere.txt" in said and "Traceback" not in said
    assert [path.name for path in runs.iterdir()] == [".tiny.study.lock"]


BAD = {
    "--study atention": "did you mean 'attention'?",
    "--study heads --preset demo": "leave out --preset and --vary",
    "--study heads --on dem": "no preset named 'dem'; did you mean 'demo'?",
    "--study heads --seeds 1,1": "seed 1 is listed twice",
    "--study heads --seeds none": "--seeds 'none'",
    "--study heads --set model.n_head=2": "did you mean 'model.n_heads'?",
    "--study heads --set seed=2": "is set by `seeds`",
    "--study heads --name ../heads": "run name '../heads'",
    "--study nowhere.toml": "cannot read",
    "--study heads --device tpu": "must be auto, cpu, cuda",
    "--study heads --retry-failed --skip-failed": "cannot be combined",
    "--preset demo": "say what to vary",
    "--preset demo --vary model.n_heads=1,3": "variant 'n_heads-3': model.n_heads and model.d_model: d_model 64",
    "--preset demo --vary model.n_heads=1,x": "variant 'n_heads-x': model.n_heads = 'x'",
    "--preset demo --vary model.n_heads=1,1": "two variants are called 'n_heads-1'",
    "--preset demo --vary log.every=1,2": "have the same config",
    "--preset demo --on baseline --vary model.n_heads=1,2": "it cannot be applied to 'baseline'",
}


@pytest.mark.parametrize("line", BAD)
def test_bad_input_is_one_line_that_says_what_would_be_right(tmp_path, capsys, line: str) -> None:
    runs = tmp_path / "runs"
    assert main(["ablate", *line.split(), "--runs-dir", str(runs)]) == 2
    said = capsys.readouterr().err
    assert BAD[line] in said and said.count("\n") == 1
    assert not list(runs.glob("[!.]*"))


def test_the_shipped_studies_are_listed(capsys) -> None:
    assert main(["ablate", "--list"]) == 0
    assert "report-decoder-heads" in capsys.readouterr().out
    assert main(["ablate", "--list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0])["variants"] == ["global", "win16", "sparse", "linear"]


@pytest.mark.slow
def test_ctrl_c_leaves_checkpoints_and_the_same_command_goes_on(undisturbed, tmp_path) -> None:
    file = written(tmp_path)
    with nothing_left(tmp_path):
        process = started(file, tmp_path)
        wait_for(lambda: steps(tmp_path), "a first step")
        second = started(file, tmp_path)
        said, _ = second.communicate(timeout=PATIENCE)
        assert second.returncode == 2 and "is being run by another process" in said and said.count("\n") == 1
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 130 and "to continue, run the same command again" in said
        assert not at_work(tmp_path)
        states = {RunReader(path).state for path in tmp_path.glob("tiny.*.s*")}
        assert states <= {"interrupted", "finished", "queued"} and "interrupted" in states
        before = attempts(tmp_path)
        process = started(tmp_path / "tiny.study.toml", tmp_path)
        said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said
    assert outcomes(tmp_path) == undisturbed[1]
    assert before.items() <= attempts(tmp_path).items()


@pytest.mark.slow
def test_what_failed_is_said_skipped_or_retried_and_holds_up_nothing(tmp_path, capsys) -> None:
    file = tmp_path / "broken.toml"
    text = tmp_path / "text.txt"
    text.write_text("All work and no play. " * 400)
    broken = {"rope": {}, "alibi": {"data.corpus": str(text)}}
    variants = tuple(replace(v, changes={**v.changes, **broken[v.name]}) for v in VARIANTS)
    quick = {**tiny_study().changes, "train.steps": 5, "train.threads": 1}
    del quick["data.corpus_size"]
    file.write_text(tiny_study(seeds=(1,), variants=variants, changes=quick).to_toml())
    runs = tmp_path / "runs"
    with nothing_left(runs):
        process = started(file, runs)
        wait_for((runs / "tiny.study.toml").exists, "the plan")
        text.write_text("too short")  # it is planned, and gone when its cell looks for it
        said, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 1 and "run 'tiny.alibi.s1': failed" in said and "--retry-failed" in said, said
        assert [RunReader(runs / name).state for name in ("tiny.rope.s1", "tiny.alibi.s1")] == ["finished", "failed"]
        text.write_text("All work and no play. " * 400)
        assert main([*words(file, runs), "--skip-failed"]) == 0
        assert RunReader(runs / "tiny.alibi.s1").state == "failed"
        assert main(words(file, runs)) == 1
        assert main([*words(file, runs), "--retry-failed"]) == 0
    assert RunReader(runs / "tiny.alibi.s1").state == "finished"
    assert RunReader(runs / "tiny.rope.s1").status.attempt == 1


@pytest.mark.slow  # processes one after the other
def test_detached_it_outlives_whoever_began_it_and_waits_for_what_a_killed_runner_left(undisturbed, tmp_path) -> None:
    file = written(tmp_path)
    with nothing_left(tmp_path):
        process = started(file, tmp_path, "--detach", "--json")
        said, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, said
        runner = psutil.Process(json.loads(said.splitlines()[-1])["pid"])
        wait_for(lambda: steps(tmp_path), "a first step")
        runner.kill()
        alive = at_work(tmp_path)
        assert alive
        process = started(file, tmp_path)
        trained_by = dict[Path, set[int]]()

        def ended() -> bool:
            for path, pid in at_work(tmp_path).items():
                if path in alive and RunReader(path).state in LIVE_STATES:
                    trained_by.setdefault(path, set()).add(pid)
            return process.poll() is not None

        wait_for(ended, "the end of the study")
        assert process.returncode == 0, process.stdout.read()
    assert outcomes(tmp_path) == undisturbed[1]
    assert all(pids == {alive[path]} for path, pids in trained_by.items())
    assert all(attempt == 1 for _, attempt in attempts(tmp_path).values())


def kill_and_go_on(root: Path, share: float, chance: random.Random, expected: dict[str, Any]) -> None:
    """Kill a study's runner, and perhaps its cells, after a share of all steps; go on until it is done; compare."""
    file, all_steps = written(root), sum(cell.config.train.steps for cell in tiny_study().cells())
    with nothing_left(root):
        process = started(file, root)
        wait_for(lambda: steps(root) >= share * all_steps or process.poll() is not None, "a share of the steps")
        process.kill()
        process.communicate()
        for pid in at_work(root).values():
            if chance.random() < 0.7:
                psutil.Process(pid).kill()
        before = attempts(root)
        for _ in range(4):
            process = started(file, root)
            said, _ = process.communicate(timeout=PATIENCE)
            if process.returncode == 0:
                break
        assert process.returncode == 0, said
        assert before.items() <= attempts(root).items(), "a finished cell was repeated"
    assert outcomes(root) == expected


@pytest.mark.parametrize("share", [0.45, pytest.param(0.8, marks=pytest.mark.slow)])
def test_killed_and_gone_on_with_a_study_ends_as_if_undisturbed(undisturbed, tmp_path, share: float) -> None:
    kill_and_go_on(tmp_path, share, random.Random(str(share)), undisturbed[1])


@pytest.mark.slow
@pytest.mark.parametrize("number", range(10))
def test_killed_at_ten_random_points_a_study_ends_as_if_undisturbed(undisturbed, tmp_path, number: int) -> None:
    chance = random.Random(number)
    kill_and_go_on(tmp_path, chance.uniform(0.0, 1.0), chance, undisturbed[1])
