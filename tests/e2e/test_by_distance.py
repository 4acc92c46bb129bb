"""`compare --by-distance`: a probe by distance on stdout or as a picture, and one line for each mistake."""

from pathlib import Path

import pytest

from tests.tui_transformer.lab.analysis.seeds import attention
from tests.tui_transformer.lab.analysis.variants import variant
from tui_transformer.__main__ import main


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    attention(root)
    variant(root, "plain")
    return root


def compare(runs: Path, *arguments: str) -> int:
    return main(["compare", *arguments, "--runs-dir", str(runs)])


def test_a_study_is_a_chart_and_a_table_with_n_and_interval(runs, capsys) -> None:
    assert compare(runs, "attention", "--by-distance", "recall") == 0
    out, err = capsys.readouterr()
    assert "┊" in out and "┄┄" in out and "characters back" in out and "\x1b" not in out
    table = [line.split() for line in out.splitlines()[-4:]]
    assert [row[1:3] for row in table] == [["global", "3"], ["win16", "3"], ["sparse", "3"], ["linear", "1"]]
    assert "[" in "".join(table[0]) and "[" not in "".join(table[3])
    assert "b can look 30 tokens back" in err and "one seed, no interval: linear" in err


def test_single_runs_are_taken_as_they_are(runs, capsys) -> None:
    assert compare(runs, "attention.win16.s2", "--by-distance", "rhyme") == 0
    assert capsys.readouterr().out.splitlines()[-1].split()[:3] == ["a", "win16", "1"]


def test_a_picture_goes_into_a_file(runs, capsys, tmp_path) -> None:
    out = tmp_path / "recall.svg"
    assert compare(runs, "attention", "--by-distance", "recall", "--out", str(out)) == 0
    assert out.read_text().startswith("<svg ") and "10 runs written" in capsys.readouterr().err


MISTAKES = {
    "no such probe; did you mean 'recall'?": ("attention", "--by-distance", "recal"),
    "end the name in .svg": ("attention", "--by-distance", "recall", "--out", "recall.png"),
    "none of these runs has probe scores by distance": ("plain", "--by-distance", "recall"),
    "nowhere": ("nowhere", "--by-distance", "recall"),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes_are_one_line(runs, capsys, message) -> None:
    assert compare(runs, *MISTAKES[message]) == 2
    out, err = capsys.readouterr()
    assert message in err and len(err.splitlines()) == 1 and not out
