"""`make quick` finds the failing test, says what it left out, and ends what it started."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import psutil
import pytest

from tests import lint
from tests.lint import ROOT
from tests.quick import __main__ as quick
from tests.quick.changes import Change
from tests.quick.durations import known, remember
from tests.quick.references import Code, parse
from tests.quick.worker import PLAN, Plan, rank
from tests.waiting import wait_for

CODE = {
    "engine/__init__.py": "",
    "engine/step.py": "def advance(x):\n    return x + 1\n\ndef back(x):\n    return x - 1\n",
    "tests/conftest.py": "import pytest\n\n@pytest.fixture(scope='module')\ndef one():\n    yield 1\n",
    "tests/test_step.py": """
import pytest
from engine.step import advance

@pytest.mark.parametrize("x", [1, 2])
def test_advance(x, one):
    assert advance(x) == x + one

def test_long():
    assert advance(1) == "never run"

@pytest.mark.slow
def test_slow():
    assert advance(1) == "never run"
""",
    "tests/test_back.py": "from engine.step import back\n\ndef test_back(one):\n    assert back(1) == 0\n",
    "tests/test_other.py": "def test_other():\n    raise AssertionError('reached by nothing')\n",
    "pytest.ini": "[pytest]\nmarkers = slow\naddopts = -q -p no:cacheprovider\n",
}
AGES = 1e6  # seconds: a test takes as long, and as much time is there; no machine is that slow


@pytest.fixture
def changed(tmp_path: Path, monkeypatch, capsys) -> Callable[..., tuple[int, str]]:
    """Runs `make quick` on a small program; a file of it differs as is said."""
    for path, text in CODE.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    monkeypatch.setattr(quick, "ROOT", tmp_path)
    monkeypatch.setattr(quick, "CACHE", tmp_path / ".quick_cache")
    monkeypatch.setattr(lint, "CHECKS", {"lint": (sys.executable, "-c", "pass")})
    monkeypatch.setattr(quick, "cores", lambda: 1)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    remember(tmp_path / ".quick_cache", {"tests/test_step.py::test_long": 2 * AGES})

    def run(path: str, text: str) -> tuple[int, str]:
        (tmp_path / path).write_text(text, encoding="utf-8")
        change = Change(path, frozenset({2}))
        monkeypatch.setattr(quick, "changes", lambda root: ("main", [change]))
        return quick.main(["--seconds", str(AGES)]), capsys.readouterr().out

    return run


def test_tests_that_fail_are_told_and_those_without_time_named(changed, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(quick, "cores", lambda: 2)
    code, said = changed("engine/step.py", CODE["engine/step.py"].replace("x + 1", "x + 2"))
    assert code == 1, said
    assert "files that differ from main: 1; tests reached: 4, in 2 files" in said
    assert "FAILED tests/test_step.py::test_advance[1]" in said and "test_advance[2]\n" in said
    assert "assert 3 == (1 + 1)" in said and "lint: ok" in said
    assert "-m pytest 'tests/test_step.py::test_advance[1]'" in said
    assert "tests not run, out of time: 1, in 1 files\n  tests/test_step.py (1)\n" in said
    assert "tests run: 3; failures: 2" in said and "reached by nothing" not in said and "never run" not in said
    assert known(tmp_path / ".quick_cache").keys() == {
        *(f"tests/test_step.py::test_{name}" for name in ("advance[1]", "advance[2]", "long")),
        "tests/test_back.py::test_back",
    }


def test_nothing_fails_where_nothing_is_wrong(changed) -> None:
    code, said = changed("engine/step.py", CODE["engine/step.py"] + "\n")
    assert code == 0 and "tests run: 3; failures: 0" in said, said


def test_a_file_that_cannot_be_imported_is_a_failure(changed) -> None:
    code, said = changed("tests/test_back.py", "from engine.step import nowhere\n\ndef test_back():\n    pass\n")
    assert code == 1 and "FAILED tests/test_back.py" in said and "cannot import name 'nowhere'" in said, said


def test_a_check_that_fails_is_a_failure(changed, monkeypatch) -> None:
    fails = "import sys; print('on line 7'); sys.exit(1)"
    monkeypatch.setattr(lint, "CHECKS", {"types": (sys.executable, "-c", fails), "lint": (sys.executable, "-c", "")})
    code, said = changed("tests/test_back.py", CODE["tests/test_back.py"])
    assert code == 1 and "types: FAILED\non line 7" in said and "lint: ok" in said, said


def test_a_process_of_the_tests_that_dies_is_a_failure(changed) -> None:
    code, said = changed("tests/test_back.py", "import os\n\ndef test_back():\n    os._exit(70)\n")
    assert (
        code == 1 and "exited with 70" in said and "killed at the time limit: tests/test_back.py::test_back" in said
    ), said


def test_when_the_time_is_up_all_that_runs_is_ended(tmp_path, monkeypatch, capsys) -> None:
    """Also a process that a test put into a session of its own."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "pytest.ini").write_text(CODE["pytest.ini"])
    (tmp_path / "tests" / "test_hangs.py").write_text(
        "import subprocess, sys, time\n\n"
        "def test_hangs():\n"
        "    sleeper = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=-1, start_new_session=True)\n"
        "    open('pid', 'w').write(f'{sleeper.pid}\\n')\n"
        "    time.sleep(1e6)\n"
    )
    monkeypatch.setattr(quick, "ROOT", tmp_path)
    monkeypatch.setattr(quick, "cores", lambda: 1)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setattr(lint, "CHECKS", {})
    path = "tests/test_hangs.py"
    plan = Plan([(0, path)], {path: {"test_hangs": 0.0}}, {}, {path: 0.0}, 1e12)
    (tmp_path / "plan.json").write_text(json.dumps(asdict(plan)))
    run = quick.Run(tmp_path, plan)
    pid = tmp_path / "pid"
    wait_for(lambda: pid.exists() and pid.read_text().endswith("\n"), "the test that hangs", run.tail)
    run.follow(lint.Checks(), 0.0)
    run.stop()
    run.summary()
    assert not psutil.pid_exists(int(pid.read_text())) or psutil.Process(int(pid.read_text())).status() == "zombie"
    assert all(process.returncode is not None for process in run.processes)
    assert "killed at the time limit: tests/test_hangs.py::test_hangs" in capsys.readouterr().out
    assert os.environ.get(PLAN) != str(tmp_path)


def test_short_tests_and_first_cases_come_first() -> None:
    assert rank(1.0, 0.1) == rank(1.0, 0.0) < rank(1.0, 1.0) < rank(1.0, 60.0)
    assert rank(1.0, 0.1) < rank(2.0, 0.1) == rank(1.0, 1.0)
    assert rank(1.0, 0.1, 0) < rank(1.0, 0.1, 100)


def test_a_command_that_is_imported_by_its_name_is_imported() -> None:
    files = [ROOT / "tui_transformer" / "__main__.py", *(ROOT / "tui_transformer" / "cli").rglob("*.py")]
    code = Code(parse(file.relative_to(ROOT).as_posix(), file.read_bytes()) for file in files)
    assert "tui_transformer.__main__" in code.hops(["tui_transformer.cli.show.compare"])
