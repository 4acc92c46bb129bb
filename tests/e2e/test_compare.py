"""`compare` as a person meets it: one table, every format, and one line for each mistake."""

import csv
import io
import json
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tui_transformer.lab.analysis.variants import study, variant
from tests.waiting import PATIENCE
from tui_transformer.__main__ import main


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    study(root)
    return root


def compare(runs: Path, *arguments: str) -> int:
    return main(["compare", *arguments, "--runs-dir", str(runs)])


def test_all_runs_stand_in_aligned_columns(runs, capsys) -> None:
    assert compare(runs) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert len(lines) == 9 and lines[0].startswith("run ") and "n_heads" in lines[0]
    assert {line.index(word) for line, word in ((lines[0], "last"), (lines[-1], "0.9005"))} == {lines[0].index("last")}
    assert "loss in nats per character" in err and "\x1b" not in out + err


def test_the_first_run_named_is_the_baseline_unless_another_is(runs, capsys) -> None:
    assert compare(runs, "baseline", "no-pe", "enc-next") == 0
    out, err = capsys.readouterr()
    assert "+0.0476" in out and "one seed: inconclusive" in out and "LEAK: not comparable" in out
    assert "differences are relative to baseline" in err
    assert compare(runs, "baseline", "no-pe", "--baseline", "heads2") == 0
    assert "+0.0467" in capsys.readouterr().out


def test_filter_and_sort_work_as_in_the_studio(runs, capsys) -> None:
    assert compare(runs, "--filter", "state=finished -badge:LEAK", "--sort", "-loss", "--json") == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [run["run"] for run in found] == ["no-pe", "short", "heads2", "baseline", "wide"]
    assert found[0]["model.position"] == "none" and found[0]["checks"] == []


def test_a_filter_that_nothing_matches_says_which_term_and_prints_nothing(runs, capsys) -> None:
    assert compare(runs, "--filter", "badge:INERT") == 0
    out, err = capsys.readouterr()
    assert out == "" and "no run matches badge:INERT" in err


@pytest.mark.parametrize(
    ("option", "begins"),
    [("--csv", "run,"), ("--markdown", "| run |"), ("--latex", "% \\input"), ("--latex-document", "\\documentclass")],
)
def test_every_format_goes_to_stdout(runs, capsys, option, begins) -> None:
    assert compare(runs, option) == 0
    assert capsys.readouterr().out.startswith(begins)


@pytest.mark.parametrize("name", ["a.csv", "a.md", "a.tex", "a.json"])
def test_the_ending_of_a_file_says_the_format(runs, tmp_path, capsys, name) -> None:
    assert compare(runs, "--out", str(tmp_path / name)) == 0
    out, err = capsys.readouterr()
    assert out == "" and f"8 runs written to {tmp_path / name}" in err and "baseline" in (tmp_path / name).read_text()


def test_all_settings_are_there_on_demand(runs, capsys) -> None:
    assert compare(runs, "--csv", "--all-settings") == 0
    heads = next(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert "optimizer.weight_decay" in heads and "log.every" in heads


MISTAKES = {
    ("nobody",): "no run named 'nobody'",
    ("basline",): "did you mean 'baseline'?",
    ("--baseline", "nobody"): "no run named 'nobody'",
    ("--filter", "n_hed=2"): "unknown key 'n_hed'; did you mean 'n_heads'?",
    ("--sort", "los"): "unknown key 'los'; did you mean 'loss'?",
    ("--csv", "--json"): "one format at a time, not --json and --csv",
    ("--out", "x.doc"): "end the name in .json, .tex, .md or .csv",
    ("--out", "no/such/x.csv"): "cannot be written",
}


@pytest.mark.parametrize("arguments", MISTAKES, ids=lambda a: " ".join(a))
def test_a_mistake_is_one_line_and_exit_code_2(runs, capsys, arguments) -> None:
    assert compare(runs, *arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and MISTAKES[arguments] in err.splitlines()[-1] and "Traceback" not in err


def test_no_runs_say_how_to_make_one(tmp_path, capsys) -> None:
    assert compare(tmp_path) == 0
    assert "run --preset demo" in capsys.readouterr().err


def test_a_folder_that_is_a_file_is_bad_input(tmp_path, capsys) -> None:
    (tmp_path / "file").write_text("")
    assert compare(tmp_path / "file") == 2
    assert "is not a folder" in capsys.readouterr().err


def test_nothing_hostile_reaches_the_terminal(tmp_path, capsys) -> None:
    variant(tmp_path, "a\x1b]0;x\x07", note="\x1b[31m\x9b\u202e", preset="\x1b[2J")
    for option in ((), ("--csv",), ("--markdown",), ("--latex",), ("--json",)):
        assert compare(tmp_path, *option) == 0
        out, err = capsys.readouterr()
        assert not any(c in out + err for c in "\x1b\x07\x9b\u202e")


def test_on_a_terminal_the_columns_that_fit_are_shown(runs) -> None:
    import os

    master, slave = pty.openpty()
    command = [sys.executable, "-m", "tui_transformer", "compare", "baseline", "no-pe", "--runs-dir", str(runs)]
    environment = os.environ | {"COLUMNS": "80", "TERM": "xterm"}
    child = subprocess.Popen(command, stdout=slave, stderr=subprocess.PIPE, env=environment)
    _, err = child.communicate(timeout=PATIENCE)
    os.close(slave)
    lines = os.read(master, 65536).decode().splitlines()
    os.close(master)
    assert child.returncode == 0 and len(lines) == 3 and "no-pe" in lines[2] and b"more columns" in err
