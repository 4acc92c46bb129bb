"""In Chinese, the help of every command and typical errors have no English sentence; with `--json` all is English."""

import json
import os
import re
import subprocess
import sys

import pytest

from tests.tui_transformer.cli.in_chinese import ERRORS, STATES
from tests.tui_transformer.loaded import loaded
from tui_transformer.__main__ import main

# What stays as it is: code, names, command lines, options, types; how arguments stand in a usage line.
PLAIN = re.compile(r"`[^`]*`|'[^']*'|tui-transformer|^ {4}tui.*$|(?<!\w)--?[a-z][\w-]*|<[^>]*>|^用法.*$", re.MULTILINE)
ENGLISH = re.compile(r"\b(?!JSON schema)[A-Za-z]{2,}[,;:]? [a-z]{2,}\b")
CHINESE = re.compile("[\u4e00-\u9fff]")


def english(text: str) -> list[str]:
    """Two English words in a row, wherever a person reads them."""
    return ENGLISH.findall(PLAIN.sub("", re.sub(r"^ {4}tui.*$", "", text, flags=re.MULTILINE)))


@pytest.fixture(scope="module")
def chinese() -> dict:
    command = [sys.executable, "-m", "tests.tui_transformer.cli.in_chinese"]
    done = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", check=True, env=os.environ | {"LANGUAGE": "zh"}
    )
    return json.loads(done.stdout)


def test_the_help_of_every_command_is_chinese(chinese) -> None:
    known = {name for name, one in loaded().commands.items() if not one.hidden}
    assert known <= chinese["helps"].keys() and len(chinese["helps"]) >= 33
    for command, text in chinese["helps"].items():
        assert CHINESE.search(text) and not english(text), (command, english(text))


@pytest.mark.parametrize("words", [(), ("run",), ("data",), ("data", "list"), ("export",)], ids=" ".join)
def test_the_language_may_change_after_the_commands_are_imported(capsys, words) -> None:
    said = {}
    for code in ("en", "zh", "en"):
        assert main([*words, "--help", "--language", code]) == 0
        assert said.setdefault(code, help_ := capsys.readouterr().out) == help_
    assert CHINESE.search(said["zh"]) and not english(said["zh"])
    assert not CHINESE.search(said["en"])


def test_no_line_of_help_is_wider_than_a_terminal(chinese) -> None:
    from rich.cells import cell_len

    lines = [line for text in chinese["helps"].values() for line in text.splitlines()]
    assert all(cell_len(line) <= 80 for line in lines if "tui-transformer" not in line)


@pytest.mark.parametrize("case", [*ERRORS, *STATES])
def test_a_mistake_is_explained_in_one_chinese_line(chinese, case) -> None:
    code, text = chinese["errors"][case]
    assert code == 2 and len(text.splitlines()) == 1 and text.startswith("tui-transformer: ")
    assert CHINESE.search(text) and not english(text), text


def test_what_is_shown_of_runs_is_chinese(chinese) -> None:
    for command, text in chinese["shown"].items():
        assert CHINESE.search(text) and not english(text), (command, text)


def test_programs_are_spoken_to_in_english() -> None:
    command = [sys.executable, "-m", "tui_transformer", "--language", "zh", "presets", "list", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True)
    assert not CHINESE.search(done.stdout) and '"description"' in done.stdout


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("保存检查点", []),
        ("`tui-transformer presets list` 列出预设", []),
        ("--set model.n_heads=2", []),
        ("没有 must be 1", ["must be"]),
        ("No such option: -x", ["No such"]),
    ],
)
def test_english_is_found(text, found) -> None:
    assert english(text) == found
