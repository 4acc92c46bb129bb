"""`bench` at the smallest effort: its output's shape, never its numbers."""

import json

import pytest

from tui_transformer.__main__ import main

LEAST = ["--rounds", "1", "--seconds", "0.01", "--device", "cpu"]


def test_training_is_timed_beside_torchs_own_and_the_limit(capsys, tmp_path) -> None:
    page = tmp_path / "benchmarks.md"
    other = "## sampling, fp32, batch 1 (tokens/s)\n\nanother day\n\n| a table |\n"
    page.write_text(f"# Old\n\n{other}\n## training, fp32 (tokens/s)\n\nlast year\n\n## Notes\n\nWhat was tried.\n")
    command = ["bench", "--case", "training", "--size", "demo", "--against", "torch", "--precision", "fp32", "--json"]
    assert main([*command, *LEAST, "--write", str(page)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [s["name"] for s in result["speeds"]] == ["tui-transformer", "torch"] and result["limit"] > 0
    assert all(0 < s["low"] <= s["median"] <= s["high"] for s in result["speeds"])
    text = page.read_text()
    assert "| matrix products alone |" in text and text.endswith("\n## Notes\n\nWhat was tried.\n")
    assert other in text and "Old" not in text and "last year" not in text


@pytest.mark.slow
def test_all_that_is_not_training_is_timed_too(capsys) -> None:
    command = ["bench", "--case", "trainer,evaluation,sampling", "--size", "demo", "--precision", "fp32", "--json"]
    assert main([*command, *LEAST, "--against", "torch"]) == 0
    results = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found = [(r["case"], [s["name"] for s in r["speeds"]]) for r in results]
    assert found == [
        ("trainer", ["trainer", "bare loop"]),
        ("evaluation", ["tui-transformer", "torch"]),
        ("sampling", ["tui-transformer"]),
        ("sampling", ["tui-transformer"]),
    ]


@pytest.mark.parametrize(
    "wrong", [["--case", "training", "--against", "nano"], ["--case", "x"], ["--precision", "fp8"]]
)
def test_bench_mistakes_are_one_line(wrong: list[str], capsys) -> None:
    assert main(["bench", *wrong, *LEAST, "--size", "demo"]) == 2
    assert "must be" in [line for line in capsys.readouterr().err.splitlines() if "warming" not in line][-1]
