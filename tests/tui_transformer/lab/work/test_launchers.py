"""`ablate --via` and `doctor --via` on a cluster that is made up: what is started, shown, refused and said."""

import json
import os
import shlex
import signal
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from engine.runs.reader import RunReader
from tests.tui_transformer.lab.work.fake_cluster import fake_cluster, write_program
from tests.tui_transformer.lab.work.tiny import at_work, nothing_left, tiny_study, written
from tests.waiting import PATIENCE, wait_for
from tui_transformer.__main__ import main
from tui_transformer.lab.work import launchers
from tui_transformer.lab.work.cells import CellStatus
from tui_transformer.lab.work.plan import Plan, RunCost
from tui_transformer.lab.work.study import read_started_study

ROOT = Path(__file__).parents[4]
pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs a shell")


@pytest.fixture
def cluster(tmp_path, monkeypatch) -> Path:
    """A made-up cluster; returns the runs folder, whose name needs quoting."""
    programs, python = fake_cluster(tmp_path)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr(launchers, "PATIENCE", PATIENCE)
    price = {kind: RunCost(steps=60, seconds=1.0) for kind in ("rope", "alibi")}
    monkeypatch.setattr(
        "tui_transformer.cli.work.ablate.make_plan_in_subprocess",
        lambda *_: Plan(devices=("cpu",), jobs=2, threads=9, prices=price),
    )
    (tmp_path / "the work").mkdir()
    monkeypatch.chdir(tmp_path / "the work")
    return tmp_path / "my runs 100%"


def ablate(runs: Path, via: str, *more: str, **changes) -> int:
    file = written(runs.parent)
    return main(["ablate", "--study", str(file), "--runs-dir", str(runs), "--via", via, *more])


def logs(runs: Path, pattern: str, count: int) -> list[str]:
    """What so many workers say."""
    found = lambda: [text for path in sorted(runs.glob(pattern)) if (text := path.read_text())]
    wait_for(lambda: len(found()) >= count, f"the words of {count} workers", found)
    return found()


def line_of(runs: Path, *more: str) -> str:
    words = ["-m", "tui_transformer", "--language", "en", "work", "tiny", "--device", "auto", "--runs-dir", str(runs)]
    return f"{runs.parent / 'the work'}: {' '.join([*words, *more])}\n"


def test_an_array_is_submitted_with_everything_as_shown_and_each_task_is_a_worker(cluster, capsys) -> None:
    assert ablate(cluster, "slurm", "--workers", "3", "--slurm", "--partition=gpu --comment='two words'") == 0
    shown = capsys.readouterr().out
    submitted = (cluster.parent / "submitted").read_text().splitlines()
    assert shlex.join(["sbatch", *submitted]) in shown
    for word in ("--array=0-2%3", "--requeue", "--open-mode=append", "--signal=B:TERM@120", "--partition=gpu"):
        assert word in submitted
    assert "--comment=two words" in submitted
    script = cluster / ".tiny.slurm.sh"
    assert script.read_text() in shown and submitted[-1] == str(script)
    assert logs(cluster, ".tiny.slurm-7_?.log", 3) == [line_of(cluster)] * 3
    for word in ("Slurm array 7: RUNNING", "squeue -j 7", "scancel 7", "tui-transformer runs --runs-dir"):
        assert word in shown
    assert read_started_study(cluster, "tiny") is not None


def test_a_dry_run_shows_the_same_and_leaves_nothing(cluster, capsys) -> None:
    assert ablate(cluster, "slurm", "--workers", "3", "--dry-run") == 0
    shown = capsys.readouterr().out
    assert "--array=0-2%3" in shown and "exec" in shown and "work tiny" in shown
    assert not cluster.exists() and not (cluster.parent / "submitted").exists()


def test_the_same_command_again_submits_more_workers(cluster, capsys) -> None:
    for count in (1, 2):
        assert ablate(cluster, "slurm") == 0
        assert len(logs(cluster, ".tiny.slurm-7_0.log", 1)[0].splitlines()) <= count
    wait_for(lambda: logs(cluster, ".tiny.slurm-7_0.log", 1) == [line_of(cluster) * 2], "the words of both")


def test_options_in_the_settings_come_before_those_that_are_typed(cluster, own_settings) -> None:
    own_settings.write_text('[slurm]\noptions = ["--partition=cpu", "--account=me"]\n')
    assert ablate(cluster, "slurm", "--slurm", "--partition=gpu") == 0
    submitted = (cluster.parent / "submitted").read_text().splitlines()
    assert submitted.index("--partition=cpu") < submitted.index("--account=me") < submitted.index("--partition=gpu")


@pytest.mark.parametrize("settings", ["[slurm]\noptions = 5\n", "slurm = [\n"])
def test_damaged_settings_submit_nothing(cluster, own_settings, settings, capsys) -> None:
    own_settings.write_text(settings)
    assert ablate(cluster, "slurm") == 2
    assert str(own_settings) in capsys.readouterr().err and not (cluster.parent / "submitted").exists()


REFUSED = "Batch job submission failed: "


@pytest.mark.parametrize(
    ("says", "words"),
    [
        (f"{REFUSED}Invalid job array specification", ["Invalid job array specification", "1,001", "fewer --workers"]),
        (f"{REFUSED}Invalid account or account/partition combination", ["Invalid account", "--slurm", "[slurm]"]),
        ("invalid partition specified: gpu", ["invalid partition specified: gpu", "--slurm"]),
    ],
)
def test_what_sbatch_refuses_is_said_in_its_words_with_what_would_be_right(cluster, monkeypatch, capsys, says, words):
    monkeypatch.setenv("FAKE_SBATCH", f'echo "sbatch: error: {says}" >&2; exit 1')
    assert ablate(cluster, "slurm", "--workers", "1001") == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1 and all(word in said[0] for word in words), said


@pytest.mark.parametrize("words", [["ablate", "--via"], ["doctor", "--via"]])
def test_a_machine_without_slurm_is_said_to_be_one(cluster, monkeypatch, capsys, words) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    done = ablate(cluster, "slurm") if words[0] == "ablate" else main(["doctor", "--via", "slurm"])
    assert done == 2 and "sbatch is not on PATH" in capsys.readouterr().err


@pytest.mark.parametrize(
    "squeue", ["exit 1", "exit 0", "echo 'squeue: error: Unable to contact the controller' >&2; exit 1"]
)
def test_a_squeue_that_is_silent_or_fails_means_unknown_and_never_finished(
    cluster, monkeypatch, capsys, squeue
) -> None:
    monkeypatch.setenv("FAKE_SQUEUE", squeue)
    assert ablate(cluster, "slurm") == 0
    said = capsys.readouterr().out
    assert "Slurm array 7: UNKNOWN (" in said and "COMPLETED" not in said


def test_a_squeue_that_hangs_means_unknown(cluster, monkeypatch) -> None:
    monkeypatch.setenv("FAKE_SQUEUE", "exec sleep 3000")
    monkeypatch.setattr(launchers, "PATIENCE", 0.2)
    state, why = launchers.job_state_and_reason("7")
    assert state == launchers.UNKNOWN and "did not answer" in why


@pytest.mark.parametrize(
    ("lines", "state"),
    [
        ("COMPLETED|None\nPENDING|Priority", ("PENDING", "Priority")),
        ("COMPLETED|None\nFAILED|NonZeroExitCode", ("COMPLETED", "")),
        ("NODE_FAIL|None\nRUNNING|None", ("RUNNING", "")),
    ],
)
def test_an_array_lives_while_one_of_its_tasks_does(cluster, monkeypatch, lines, state) -> None:
    monkeypatch.setenv("FAKE_SQUEUE", f"printf '{lines}\\n'; exit")
    assert launchers.job_state_and_reason("7") == state


def test_each_host_gets_a_worker_that_is_told_how_to_stop(cluster, capsys) -> None:
    assert ablate(cluster, "ssh", "--hosts", "one,two") == 0
    assert logs(cluster, ".tiny.ssh-?.log", 2) == [line_of(cluster)] * 2
    shown = capsys.readouterr().out
    assert "ssh one kill " in shown and "ssh two kill " in shown


def test_a_host_that_cannot_be_reached_leaves_the_others_at_work(cluster, capsys) -> None:
    assert ablate(cluster, "ssh", "--hosts", "nowhere,two") == 1
    assert logs(cluster, ".tiny.ssh-1.log", 1) == [line_of(cluster)]
    assert "nowhere: ssh: Could not resolve hostname nowhere" in capsys.readouterr().err
    assert ablate(cluster, "ssh", "--hosts", "nowhere") == 2


def test_a_host_without_the_runs_folder_says_so(cluster, monkeypatch, capsys) -> None:
    write_program(
        cluster.parent / "bin" / "ls", "echo \"ls: cannot access '$3': No such file or directory\" >&2; exit 2"
    )
    assert ablate(cluster, "ssh", "--hosts", "one") == 2
    assert "No such file or directory" in capsys.readouterr().err


class Lost(Exception):
    pass


def fake_ray(asked: dict, results: list) -> ModuleType:
    """A Ray that runs each task at once."""
    ray = ModuleType("ray")

    def remote(**options):
        asked["options"] = options
        return lambda work: SimpleNamespace(
            remote=lambda *words: asked.setdefault("tasks", []).append((work, words)) or len(asked["tasks"])
        )

    def get(task):
        work, words = asked["tasks"][task - 1]
        if results and (result := results.pop(0)):
            raise result
        return work(*words)

    ray.init = lambda address, **options: asked.update(address=address)
    ray.remote, ray.get, ray.shutdown = remote, get, lambda: asked.update(shut=True)
    ray.cancel = lambda task: asked.setdefault("cancelled", []).append(task)
    ray.wait = lambda tasks, **options: (tasks[:1], tasks[1:])
    ray.exceptions = SimpleNamespace(RayError=Lost)
    return ray


@pytest.mark.parametrize(
    ("more", "address", "gpus"),
    [([], "local", 0), (["--address", "10.0.0.1:6379", "--device", "cuda"], "10.0.0.1:6379", 1)],
)
def test_ray_starts_the_same_workers_as_tasks_that_are_not_tried_again(
    cluster, monkeypatch, more, address, gpus
) -> None:
    asked: dict = {}
    monkeypatch.setitem(sys.modules, "ray", fake_ray(asked, []))
    assert ablate(cluster, "ray", "--workers", "2", *more) == 0
    assert asked["address"] == address and asked["options"] == {"max_retries": 0, "num_gpus": gpus} and asked["shut"]
    line = line_of(cluster).replace("auto", "cuda") if gpus else line_of(cluster)
    assert logs(cluster, ".tiny.ray-?.log", 2) == [line] * 2


def test_a_ray_worker_that_is_lost_or_fails_is_named_and_the_others_go_on(cluster, monkeypatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, "ray", fake_ray({}, [Lost("the node died"), None]))
    monkeypatch.setenv("FAKE_WORKER", "3")
    assert ablate(cluster, "ray", "--workers", "2") == 1
    said = capsys.readouterr().err
    assert "the node died" in said and "exit code 3" in said


def test_ctrl_c_cancels_the_ray_workers(cluster, monkeypatch) -> None:
    asked: dict = {}
    monkeypatch.setitem(sys.modules, "ray", fake_ray(asked, [KeyboardInterrupt()]))
    assert ablate(cluster, "ray", "--workers", "3") == 130
    assert asked["cancelled"] == [2, 3] and asked["shut"]


def test_without_ray_one_line_says_what_to_install(cluster, monkeypatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert ablate(cluster, "ray") == 2
    assert "pip install ray" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--via", "slrum"], "did you mean 'slurm'"),
        (["--via", "ssh"], "--hosts node1,node2"),
        (["--via", "ssh", "--hosts", "a", "--workers", "2"], "--workers: only works with --via slurm or ray"),
        (["--via", "slurm", "--jobs", "2"], "--jobs: only works with --via local"),
        (["--via", "slurm", "--detach"], "--detach: only works with --via local"),
        (["--slurm", "--time=5"], "--slurm: only works with --via slurm"),
        (["--via", "slurm", "--slurm", "--comment='a"], "No closing quotation"),
    ],
    ids=" ".join,
)
def test_options_that_do_not_go_together_are_refused(cluster, capsys, words, says) -> None:
    assert main(["ablate", "--study", str(written(cluster.parent)), "--runs-dir", str(cluster), *words]) == 2
    assert says in capsys.readouterr().err and not cluster.exists()


def test_workers_train_with_one_thread_unless_the_study_says_otherwise(cluster) -> None:
    file = written(cluster.parent)
    file.write_text("\n".join(line for line in file.read_text().splitlines() if "threads" not in line))
    words = ["ablate", "--study", str(file), "--runs-dir", str(cluster), "--via", "slurm"]
    assert main([*words, "--name", "a"]) == 0 and main([*words, "--name", "b", "--set", "train.threads=4"]) == 0
    assert [read_started_study(cluster, name).changes["train.threads"] for name in "ab"] == [1, 4]


def test_only_what_failed_is_left_and_starts_no_worker_unless_it_is_retried(cluster, monkeypatch, capsys) -> None:
    monkeypatch.setattr(
        "tui_transformer.lab.work.cells.cell_status", lambda cell, path, reader=None: CellStatus(cell, path, "failed")
    )
    assert ablate(cluster, "slurm") == 1
    assert "4 runs failed; --retry-failed" in capsys.readouterr().err and not (cluster.parent / "submitted").exists()
    assert ablate(cluster, "slurm", "--retry-failed") == 0
    assert logs(cluster, ".tiny.slurm-7_0.log", 1) == [line_of(cluster, "--retry-failed")]


def doctor(runs: Path, capsys, *more: str) -> tuple[int, dict]:
    code = main(["doctor", "--via", "slurm", "--json", "--runs-dir", str(runs), *more])
    return code, {
        record["what"]: record for line in capsys.readouterr().out.splitlines() for record in [json.loads(line)]
    }


def test_doctor_reports_what_a_node_has(cluster, capsys) -> None:
    (cluster.parent / "data").mkdir()
    code, found = doctor(cluster, capsys, "--data-dir", str(cluster.parent / "data"))
    assert code == 0 and all(
        found[what]["ok"] for what in ("Python", "program", "runs folder", "data folder", "squeue")
    )
    assert found["node"]["found"] == "n0" and "2030-01-01" in found["squeue"]["found"] and "torch" in found
    assert not list(cluster.iterdir())


def test_doctor_says_what_a_node_lacks(cluster, monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "executable", str(cluster.parent / "no-python"))
    monkeypatch.setenv("FAKE_SQUEUE", 'case "$*" in *%e) exit 1 ;; esac')
    code, found = doctor(cluster, capsys)
    assert code == 1 and not any(found[what]["ok"] for what in ("Python", "program", "squeue"))
    assert "No such file" in found["Python"]["found"] and "No such file" in found["program"]["found"]


@pytest.mark.parametrize("squeue", ["exit 1", "echo 'FAILED|RaisedSignal:53'; exit"])
def test_doctor_ends_when_a_job_leaves_no_report(cluster, monkeypatch, capsys, squeue) -> None:
    monkeypatch.setenv("FAKE_SBATCH", "echo 7; exit")
    monkeypatch.setenv("FAKE_SQUEUE", squeue)
    monkeypatch.setattr("tui_transformer.cli.show.node.LATE", 0.1)
    monkeypatch.setattr("tui_transformer.cli.show.node.POLL_INTERVAL", 0.1)
    code, found = doctor(cluster, capsys)
    assert code == 1 and "wrote nothing to" in found["runs folder"]["found"]
    assert ("UNKNOWN" if squeue == "exit 1" else "FAILED") in found["runs folder"]["found"]


def test_a_time_signal_that_comes_early_leaves_a_checkpoint_and_the_next_worker_goes_on(
    tmp_path, monkeypatch, fork_start
) -> None:
    programs, _ = fake_cluster(tmp_path)
    python = write_program(
        tmp_path / "warm", f'exec {sys.executable} -m tests.fork_start "$@"'
    )  # what workers start is fork_start
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    runs = tmp_path / "runs"
    file = written(tmp_path, tiny_study(seeds=(1,)))
    words = ["ablate", "--study", str(file), "--runs-dir", str(runs), "--device", "cpu", "--via", "slurm"]
    with nothing_left(runs):
        assert main(words) == 0
        saved = lambda: [len(list(run.glob("checkpoints/step-*"))) for run in runs.glob("tiny.*")]
        wait_for(lambda: any(count > 1 for count in saved()), "a checkpoint", saved)
        pids = tmp_path / "pids"
        os.kill(int(pids.read_text()), signal.SIGTERM)  # as `--signal=B:TERM@120` does, to the script's process alone
        log = runs / ".tiny.slurm-7_0.log"
        wait_for(lambda: "SIGTERM: this worker stopped" in log.read_text(), "the worker's end", log.read_text)
        states = {path.name: RunReader(path).state for path in runs.glob("tiny.*.s1")}
        assert "interrupted" in states.values() and not set(states.values()) - {"interrupted", "finished"}
        assert not at_work(runs)
        assert main(words) == 0
        wait_for(lambda: "finished: 2 of 2 runs are done" in log.read_text(), "the study's end", log.read_text)
    assert all(RunReader(path).state == "finished" for path in runs.glob("tiny.*.s1"))
