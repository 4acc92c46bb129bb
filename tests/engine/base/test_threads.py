"""Threads: how many this process may use, and how they wait."""

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from engine.base import threads


def system(root: Path, cgroup: str, files: dict[str, str]) -> None:
    """Lay out what a machine says of this process's control groups."""
    for name, text in {
        "proc/self/cgroup": cgroup,
        **{f"sys/fs/cgroup/{name}": text for name, text in files.items()},
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def eight(tmp_path, monkeypatch) -> Path:
    """A machine with eight cores, all of them this process's; its files are read below the folder returned."""
    monkeypatch.setattr(threads, "ROOT", tmp_path)
    monkeypatch.setattr(psutil, "cpu_count", lambda logical=True: 8)
    monkeypatch.setattr(threads, "physical_cores", threads.physical_cores.__wrapped__)  # asked anew
    monkeypatch.setattr(threads, "usable_cpus", lambda: list(range(8)))
    for name in threads.COUNT_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return tmp_path


V1 = "4:memory:/\n3:cpu,cpuacct:/a/b\n"
V1_FOLDER = "cpu,cpuacct"


@pytest.mark.parametrize(
    ("cgroup", "files", "cores"),
    [
        ("0::/\n", {}, 8),
        ("0::/\n", {"cpu.max": "max 100000\n"}, 8),
        ("0::/\n", {"cpu.max": "100000 100000\n"}, 1),
        ("0::/\n", {"cpu.max": "390000 100000\n"}, 3),
        ("0::/\n", {"cpu.max": "20000 100000\n"}, 1),
        ("0::/user/job\n", {"user/job/cpu.max": "400000 100000\n"}, 4),
        ("0::/user/job\n", {"user/job/cpu.max": "max 100000\n", "user/cpu.max": "200000 100000\n"}, 2),
        ("0::/host/path\n", {"cpu.max": "200000 100000\n"}, 2),  # a container that sees its host's path
        ("0::/\n", {"unified/cpu.max": "200000 100000\n"}, 2),
        (V1, {f"{V1_FOLDER}/a/b/cpu.cfs_quota_us": "-1\n", f"{V1_FOLDER}/a/b/cpu.cfs_period_us": "100000\n"}, 8),
        (V1, {f"{V1_FOLDER}/a/b/cpu.cfs_quota_us": "250000\n", f"{V1_FOLDER}/a/b/cpu.cfs_period_us": "100000\n"}, 2),
        (V1, {"cpu/a/cpu.cfs_quota_us": "50000\n", "cpu/a/cpu.cfs_period_us": "100000\n"}, 1),
        (V1, {f"{V1_FOLDER}/cpu.cfs_quota_us": "300000\n", f"{V1_FOLDER}/cpu.cfs_period_us": "100000\n"}, 3),
        ("0::/\n", {"cpu.max": "quota\n"}, 8),
        ("0::/\n", {"cpu.max": "100000 0\n"}, 8),
        ("nonsense\n", {}, 8),
        ("0::/../other\n", {}, 8),
        ("0::relative\n", {}, 8),
    ],
)
def test_a_quota_bounds_the_threads(eight, cgroup, files, cores) -> None:
    system(eight, cgroup, files)
    assert threads.usable_cores() == threads.default_count() == cores


def test_a_machine_without_these_files_has_its_cores(eight) -> None:
    assert threads.usable_cores() == 8


def test_affinity_bounds_the_threads(eight, monkeypatch) -> None:
    monkeypatch.setattr(threads, "usable_cpus", lambda: [3, 5])
    assert threads.usable_cores() == threads.default_count() == 2


@pytest.mark.parametrize(("given", "count"), [("3", 3), ("0", 1), ("many", 8), ("", 8)])
def test_a_users_own_number_wins(eight, monkeypatch, given, count) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    assert threads.default_count() == count


def test_a_number_given_to_mkl_alone_counts(eight, monkeypatch) -> None:
    monkeypatch.setenv("MKL_NUM_THREADS", "3")
    assert threads.default_count() == 3


def started(code: str, **variables: str) -> object:
    """What Python prints as JSON, in a process with none but these variables on threads."""
    clean = {
        name: text
        for name, text in os.environ.items()
        if name not in (*threads.COUNT_VARIABLES, *threads.WAIT_VARIABLES)
    }
    done = subprocess.run([sys.executable, "-c", code], env=clean | variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


POLICY = "import json, engine; from engine.base.threads import wait_policy; print(json.dumps(wait_policy()))"


@pytest.mark.parametrize(
    "given", [{"OMP_WAIT_POLICY": "active"}, {"GOMP_SPINCOUNT": "5"}, {"KMP_BLOCKTIME": "0"}, {}], ids=str
)
def test_how_threads_wait_is_chosen_unless_the_user_did(given) -> None:
    assert started(POLICY, **given) == (given or {"GOMP_SPINCOUNT": str(threads.SPIN_COUNT)})


def test_nothing_is_chosen_where_torch_was_loaded_before() -> None:
    code = "import sys, types; sys.modules['torch'] = types.ModuleType('torch'); " + POLICY
    assert started(code) == {}


COUNTED = (
    "import json, torch; from engine.model.devices import default_threads; "
    "print(json.dumps([torch.get_num_threads(), default_threads()]))"
)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity here")
def test_on_one_core_torch_has_one_thread() -> None:
    assert started(f"import os; os.sched_setaffinity(0, {{min(os.sched_getaffinity(0))}}); {COUNTED}") == [1, 1]


def test_with_a_quota_of_one_core_torch_has_one_thread(tmp_path) -> None:
    system(tmp_path, "0::/\n", {"cpu.max": "100000 100000\n"})
    below = f"from pathlib import Path; from engine.base import threads; threads.ROOT = Path({str(tmp_path)!r}); "
    assert started(below + COUNTED) == [1, 1]
    assert started(below + COUNTED, OMP_NUM_THREADS="2") == [2, 2], "the user's own number wins"
