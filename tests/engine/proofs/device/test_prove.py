"""Proofs run one by one, whatever any of them does, and the results are on disk after each."""

import json
import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import psutil
import pytest

from engine.base.errors import InputError
from engine.base.release import release_facts
from engine.proofs.device.proof import Context, Proof
from engine.proofs.device.prove import ProofRecord, _run_proof, run_proofs
from engine.proofs.device.worker import TimedOut, Worker, WorkerError, shorten_and_anonymize
from engine.runs.verdict import CheckResult
from tests.engine.proofs.device import planted
from tests.waiting import PATIENCE


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> tuple[list[tuple[Proof, CheckResult]], list[dict[str, Any]], dict[str, Any]]:
    """Every planted proof's result, the file after each, and the file at the end."""
    path = tmp_path_factory.mktemp("proof") / "proof.json"
    record, results, files = ProofRecord(path, {"threads": 1}), [], []
    for done in run_proofs(planted.EVERY, "cpu", record):
        results.append(done)
        files.append(json.loads(path.read_text()))
    return results, files, json.loads(path.read_text())


MEANT = [
    ("holds", "passed", "it holds"),
    ("breaks", "failed", "it does not hold"),
    ("raises", "failed", "RuntimeError: first line \x1b[31msecond line"),
    ("hangs", "failed", "the proof hung: no answer within 0 s"),
    ("leaves", "failed", "the process ended with exit code 3: last words"),
    ("crashes", "failed", "the process ended with signal 11 (SIGSEGV)"),
    ("says_nothing", "failed", "the proof returned NoneType instead of a result"),
    ("loses_its_device", "failed", "AcceleratorError: CUDA error: device-side assert triggered"),
    ("cannot_tell", "skipped", "no such device"),
    ("holds", "passed", "it holds"),
]


@pytest.mark.parametrize("at", range(len(MEANT)), ids=[f"{i}-{name}" for i, (name, _, _) in enumerate(MEANT)])
def test_a_proof_that_fails_in_any_way_is_one_line_and_the_others_still_run(found, at: int) -> None:
    name, status, why = MEANT[at]
    proof, result = found[0][at]
    assert (proof.name, result.status) == (name, status)
    assert result.why.startswith(why) and "\n" not in result.why and "developers" not in result.why


def test_the_file_is_whole_after_each_proof_and_complete_only_at_the_end(found) -> None:
    _, files, last = found
    assert [len(file["proofs"]) for file in files] == list(range(1, len(MEANT) + 1))
    assert not any(file["complete"] for file in files) and last["complete"] is True
    assert last["counts"] == {"passed": 2, "failed": 7, "skipped": 1}


def test_the_file_says_what_ran_where(found) -> None:
    last = found[2]
    assert last["schema"] == 1 and last["kind"] == "gpu-proof" and last["date"] and last["command"]
    assert last["project"]["version"] and len(last["project"]["sources_sha256"]) == 64
    assert {"device", "device_name", "torch", "cuda", "python", "os", "processor", "threads"} <= last["machine"].keys()
    assert last["settings"]["threads"] == 1
    assert last["proofs"][0]["figures"] == {"number": 1.5, "device": "cpu"} and last["proofs"][0]["seconds"] >= 0
    assert last["proofs"][1]["figures"] == {"number": None}  # JSON has no NaN


@pytest.fixture
def no_facts(monkeypatch) -> None:
    """Skip the facts about the machine: loading torch to collect them takes two seconds."""
    monkeypatch.setattr("engine.proofs.device.prove._machine_facts", lambda worker, device: {"device": device})


def test_the_time_left_is_known_before_each_proof(tmp_path, no_facts) -> None:
    told: list[tuple[int, str, float]] = []
    proofs = [planted.proof(planted.holds), planted.proof(planted.cannot_tell)]
    begins = lambda number, proof, left: told.append((number, proof.name, left))
    list(run_proofs(proofs, "cpu", ProofRecord(tmp_path / "proof.json", {}), begins=begins))
    assert [(number, name) for number, name, _ in told] == [(1, "holds"), (2, "cannot_tell")]
    assert told[0][2] == 2.0 and told[1][2] > 0


def test_proofs_that_run_out_of_time_are_skipped_not_failed(tmp_path, no_facts) -> None:
    record = ProofRecord(tmp_path / "proof.json", {})
    results = [result for _, result in run_proofs([planted.proof(planted.breaks)], "cpu", record, budget=0.0)]
    assert [(result.status, result.why) for result in results] == [
        ("skipped", "not started: the 0-minute limit was reached")
    ]
    with Worker(tmp_path / "log.txt") as worker:
        context = Context("cpu", tmp_path / "own")
        cut = _run_proof(worker, planted.proof(planted.hangs), context, 2.1, 600.0)
    assert (cut.status, cut.why) == ("skipped", "not finished within the 10-minute limit")


def test_stopping_early_leaves_no_process_and_keeps_the_file(tmp_path, no_facts) -> None:
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    results = run_proofs(planted.EVERY, "cpu", ProofRecord(tmp_path / "proof.json", {}))
    next(results)
    results.close()
    left = [process for process in psutil.Process().children(recursive=True) if process.pid not in before]
    assert not [process for process in left if "resource_tracker" not in " ".join(process.cmdline())]
    kept = json.loads((tmp_path / "proof.json").read_text())
    assert len(kept["proofs"]) == 1 and kept["complete"] is False


def test_a_file_that_cannot_be_written_is_reported_before_anything_runs(tmp_path) -> None:
    with pytest.raises(InputError, match="--out .*proof.json: cannot be written: No such file or directory"):
        ProofRecord(tmp_path / "nowhere" / "proof.json", {})


def test_a_worker_answers_again_after_one_that_hung(tmp_path) -> None:
    with Worker(tmp_path / "log.txt") as worker:
        with pytest.raises(TimedOut, match="no answer within 0 s"):
            worker.call(planted.hangs, None, limit=0.3)
        assert worker.call(int, "7", limit=60.0) == 7
        with pytest.raises(WorkerError, match="ValueError: invalid literal"):
            worker.call(int, "seven", limit=60.0)


ORPHAN = """
import sys
from pathlib import Path
from engine.proofs.device.worker import Worker
from tests.engine.proofs.device import planted

if __name__ == "__main__":
    worker = Worker(Path(sys.argv[1]))
    print(worker.call(planted.own_pid, limit=60.0), flush=True)
    worker.call(planted.hangs, None, limit=10**6)
"""


def test_a_call_that_hangs_does_not_outlive_a_killed_parent(tmp_path) -> None:
    script = tmp_path / "orphan.py"
    script.write_text(ORPHAN)
    variables = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")])}
    parent = subprocess.Popen([sys.executable, script, tmp_path / "log.txt"], stdout=subprocess.PIPE, env=variables)
    assert parent.stdout is not None
    worker = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.wait()
    parent.stdout.close()
    worker.wait(timeout=PATIENCE)


def test_a_checkout_that_is_not_installed_knows_its_version(monkeypatch) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    installed = release_facts()
    monkeypatch.setattr("engine.base.release.installed", missing)
    assert release_facts() == installed and installed["version"][0].isdigit()


def test_the_names_of_a_users_folders_are_left_out(monkeypatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: Path("/home/somebody"))
    assert shorten_and_anonymize("cannot open /home/somebody/x\n  twice") == "cannot open ~/x twice"
    assert len(shorten_and_anonymize("x" * 9999)) == 400
