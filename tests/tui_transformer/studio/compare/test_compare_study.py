"""`compare STUDY` and `compare --by variant`: what they print and write, and one line for a mistake."""

import csv
import json

import pytest

from engine.base.errors import InputError
from tests.tui_transformer.lab.analysis.studies import attention, cell
from tests.tui_transformer.lab.analysis.variants import variant
from tui_transformer.__main__ import main
from tui_transformer.cli.show import compare as command


@pytest.fixture
def root(tmp_path):
    attention(tmp_path / "runs")
    return tmp_path / "runs"


def compare(root, *runs: str, **more) -> None:
    command.compare(list(runs), **more, runs_dir=root)


def test_a_study_is_compared_by_variant_under_its_name_and_by_its_file(root, capsys) -> None:
    compare(root, "att")
    named = capsys.readouterr().out
    assert "win16: worse by 0.05" in named and "expectations: " in named
    compare(root, str(root / "att.study.toml"))
    assert capsys.readouterr().out == named


def test_runs_are_grouped_or_listed_as_asked(root, capsys) -> None:
    variant(root, "one", "seed=1", "model.n_layers=7")
    variant(root, "two", "seed=2", "model.n_layers=7")
    compare(root, "one", "two", by="variant")
    assert "one: the baseline (2 seeds)" in capsys.readouterr().out
    compare(root, "att", by="run")
    assert "att.win16.s2" in capsys.readouterr().out


def test_a_filter_takes_variants_away_and_never_seeds(root, capsys) -> None:
    compare(root, "att", filter_="win16 seed=2", json=True)
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["variant"], row["n"]) for row in rows] == [("win16", 3)]
    compare(root, "att", json=True)
    whole = {row["variant"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}["win16"]
    assert rows[0]["Δlast p_adjusted"] == whole["Δlast p_adjusted"] != rows[0]["Δlast p"]  # hidden ones count


def test_variants_are_sorted_by_their_columns(root, capsys) -> None:
    compare(root, "att", sort_by="-last", json=True)
    names = [json.loads(line)["variant"] for line in capsys.readouterr().out.splitlines()]
    assert names == ["hot", "win16", "heads2", "global", "leaky"] or names[:2] == ["hot", "win16"]


def test_another_variant_can_be_the_baseline(root, capsys) -> None:
    compare(root, "att", baseline="heads2")
    assert "heads2: the baseline (3 seeds)" in capsys.readouterr().out


def test_a_file_has_a_row_for_each_variant(root, tmp_path, capsys) -> None:
    compare(root, "att", out=tmp_path / "study.csv")
    with (tmp_path / "study.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["variant"] for row in rows] == ["global", "win16", "heads2", "hot", "leaky"]
    assert float(rows[1]["validation loss − baseline's, paired by seed"]) == pytest.approx(0.0508, abs=1e-3)
    assert "5 variants written" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("runs", "more", "words"),
    [
        (["at"], {}, "no run named 'at'"),
        (["at"], {}, "studies: att"),
        (["att"], {"by": "varant"}, "did you mean 'variant'?"),
        (["att"], {"sort_by": "lst"}, "did you mean 'last'?"),
        (["att"], {"baseline": "gobal"}, "no run named 'gobal'"),
        (["gone.study.toml"], {}, "gone.study.toml: cannot read"),
    ],
)
def test_a_mistake_is_one_line(root, runs, more, words) -> None:
    with pytest.raises(InputError) as caught:
        compare(root, *runs, **more)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_a_study_without_a_run_says_so(tmp_path) -> None:
    (tmp_path / "s.study.toml").write_text('baseline = "a"\n')
    with pytest.raises(InputError, match="study 's' has no run"):
        compare(tmp_path, "s")


def test_the_command_line_takes_by(root, capsys) -> None:
    cell(root, "other", "x", 1)
    assert main(["compare", "--by", "variant", "--json", "--runs-dir", str(root)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 6
