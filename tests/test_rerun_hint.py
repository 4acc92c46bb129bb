"""What is printed after a failure runs that test, and no other."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.catalogue import ROOT
from tests.waiting import PATIENCE

PROJECT = {
    "pytest.ini": "[pytest]\n",
    "conftest.py": "from tests.rerun_hint import pytest_terminal_summary\n",
    "room/test_some.py": r"""
import pytest

NAMES = ["plain", "two words", "it's", 'say "$HOME"', "a[b]::c", "back\\slash", "中文", "`x` && !y", "line\nbreak"]


@pytest.mark.parametrize("name", NAMES)
def test_a(name):
    assert not name


class TestB:
    def test_c(self):
        pass

    def test_d(self, missing):
        pass
""",
    "room/test_broken.py": "import no_such_module\n",
}


@pytest.fixture
def project(tmp_path) -> Path:
    for name, text in PROJECT.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def output_of(command: str, folder: Path) -> str:
    """What a shell prints for a command."""
    alone = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "encoding": "utf-8"}
    done = subprocess.run(
        command, shell=True, cwd=folder, env=os.environ | alone, timeout=PATIENCE, check=False, **streams
    )
    return done.stdout


def hints(printed: str) -> list[str]:
    return re.findall(r"^rerun: (.*)$", printed, re.MULTILINE)


@pytest.mark.parametrize(("folder", "options"), [(".", "-p xdist -n 2"), ("room", "")], ids=["at the root", "below"])
def test_each_failure_says_how_to_run_it_alone(project, folder, options) -> None:
    start = f"{shlex.quote(sys.executable)} -m pytest --continue-on-collection-errors {options}"
    found = hints(output_of(start, project / folder))
    assert len(found) == len(set(found)) == 11
    said = next(hint for hint in found if "say" in hint)
    again = output_of(said, project / folder)
    assert re.search(r"\b1 failed in ", again) and hints(again) == [said], again
    everything = " ".join(shlex.join(shlex.split(hint)[3:]) for hint in found)
    all_again = output_of(f"{start} {everything}", project / folder)
    assert set(hints(all_again)) == set(found) and " passed" not in all_again
