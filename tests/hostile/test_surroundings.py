"""What surrounds a process: closed streams, odd variables, a folder that is gone. One line, no traceback."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.hostile.forked import said
from tests.tui_transformer.recorded import record
from tests.waiting import PATIENCE

COMMAND = f"{sys.executable} -m tui_transformer"


def shell(line: str, folder: Path, **more: str) -> "subprocess.CompletedProcess[str]":
    """A line of a shell, in which {} stands for this program."""
    environment = os.environ | more
    return subprocess.run(
        line.format(COMMAND), shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("{} runs >&-", 0),
        ("{} compare --csv >&- <&-", 0),
        ("{} note a >&- 2>&- <&-", 0),
        ("{} delete a <&-", 2),
        ("{} runs --runs-dir a/run.json >&- 2>&-", 2),
    ],
)
def test_a_stream_that_is_closed_leads_nowhere(tmp_path, line: str, code: int) -> None:
    record(tmp_path / "runs", "a")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "run.json").touch()
    found = shell(line, tmp_path)
    assert found.returncode == code and len((found.stdout + found.stderr).splitlines()) == (line.count("delete"))


def test_nothing_that_is_opened_takes_the_place_of_a_closed_stream(tmp_path) -> None:
    """Else what a C library writes to descriptor 2 would stand in a file of the run."""
    program = "from tui_transformer.__main__ import main; main(['presets', 'list']); print(open('x').fileno())"
    (tmp_path / "x").touch()
    for closed in ("2>&-", "<&-", "<&- 2>&-"):
        found = shell(f'{sys.executable} -c "{program}" {closed} | tail -1', tmp_path)
        assert int(found.stdout) > 2, closed


@pytest.mark.parametrize(
    "variables", [{"COLUMNS": "²"}, {"COLUMNS": "0"}, {"LINES": "٣"}, {"COLUMNS": "9" * 5000, "LINES": ""}]
)
def test_an_odd_size_of_the_terminal_is_not_believed(tmp_path, variables: Mapping[str, str]) -> None:
    record(tmp_path / "runs", "a")
    for words in (["compare"], ["runs"], ["doctor"]):
        found = said([*words, "--runs-dir", str(tmp_path / "runs")], terminal=True, environment=variables)
        assert found.code == 0 and (words[0] == "doctor" or "a" in found.text.split()), found.text[-800:]


def test_a_folder_that_has_gone_from_under_a_command_is_said(tmp_path) -> None:
    for words in ("sample x", "runs", "run --preset demo"):
        found = shell(f"mkdir -p gone && cd gone && rmdir ../gone && {{}} {words}", tmp_path)
        assert found.returncode == 1 and found.stderr == (
            "tui-transformer: cannot use the current folder: No such file or directory; cd to another one\n"
        )


@pytest.mark.parametrize("endpoint", ["https://[::1", "https://\x1b[31m\r\nHost: y", "https://[]", "https://x:y"])
def test_an_odd_endpoint_is_one_line(tmp_path, endpoint: str) -> None:
    words = ["data", "fetch", "iwslt2017-en-de", "--data-dir", str(tmp_path)]
    found = said(words, environment={"HF_ENDPOINT": endpoint})
    assert found.code in (1, 2) and b"\x1b" not in found.output and len(found.text.strip().splitlines()) == 1, (
        found.text
    )


@pytest.mark.parametrize("kind", ["file", "pipe", "loop", "device"])
def test_a_runs_folder_that_is_none_is_said(tmp_path, kind: str) -> None:
    place = tmp_path / "place"
    {
        "file": lambda: place.touch(),
        "pipe": lambda: os.mkfifo(place),
        "loop": lambda: place.symlink_to(place),
        "device": lambda: place.symlink_to("/dev/zero"),
    }[kind]()
    for words in (["runs"], ["compare"], ["run", "--preset", "demo"], ["doctor", "x"]):
        found = said([*words, "--runs-dir", str(place)])
        assert found.code == 2 and "is not a folder; name the folder that holds the runs" in found.text
