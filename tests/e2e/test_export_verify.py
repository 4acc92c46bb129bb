"""export and verify as a person meets them."""

import json
import shutil
from pathlib import Path

import pytest
import tokenizers

from engine.data.tokenizers import CharacterTokenizer
from engine.training.pretrained import load_pretrained
from tests.tui_transformer.trained import train
from tui_transformer.__main__ import main


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    train(root, "one")
    train(root, "two", "seed=2")
    return root


def call(runs: Path, *arguments: str) -> int:
    return main([*arguments, "--runs-dir", str(runs)])


def test_an_honest_run_is_confirmed_a_line_a_claim(runs, capsys) -> None:
    assert call(runs, "verify", "one", "--device", "cpu") == 0
    *claims, conclusion = capsys.readouterr().out.splitlines()
    assert all(line.startswith("✓ ") for line in claims) and len(claims) == 18
    assert conclusion == "one: no differences, 18 claims confirmed"


def test_what_differs_is_said_with_both_values_and_exit_code_1(runs, capsys, tmp_path) -> None:
    run = shutil.copytree(runs / "one", tmp_path / "one")
    summary = json.loads((run / "summary.json").read_text())
    true = summary["best"]["loss"]
    summary["best"]["loss"] = 0.5
    (run / "summary.json").write_text(json.dumps(summary))
    assert call(tmp_path, "verify", "one", "--device", "cpu", "--steps", "0") == 1
    out = capsys.readouterr().out
    assert f"✗ summary         loss of the best score: recorded 0.5, found {true}" in out
    assert "– steps           --steps 0: none were requested" in out
    assert "do not rely on this run" in out.splitlines()[-1] and "\x1b" not in out


@pytest.mark.parametrize(
    ("file", "damage", "says"),
    [
        ("config.toml", lambda text: text + "nonsense = 1\n", "✗ config          config.toml: "),
        ("tokenizer.json", lambda text: "{", "✗ tokenizer       tokenizer.json: "),
        ("events.jsonl", lambda text: "", "✗ events          "),
        ("metrics.jsonl", lambda text: text + "{\n", "metrics.jsonl: 1 damaged line"),
    ],
)
def test_what_is_expected_is_not_said_to_be_found(runs, capsys, tmp_path, file, damage, says) -> None:
    run = shutil.copytree(runs / "one", tmp_path / "one")
    (run / file).write_text(damage((run / file).read_text()))
    call(tmp_path, "verify", "one", "--device", "cpu", "--steps", "0")
    captured = capsys.readouterr()
    print(captured.out, captured.err)
    assert says in captured.out
    assert "found a " not in captured.out and "recorded a " not in captured.out


def test_json_is_a_line_a_claim_and_a_conclusion(runs, capsys) -> None:
    assert call(runs, "verify", "one", "--device", "cpu", "--json") == 0
    *claims, conclusion = map(json.loads, capsys.readouterr().out.splitlines())
    assert {claim["result"] for claim in claims} == {"confirmed"} and claims[0]["claim"] == "config"
    assert conclusion == {"kind": "conclusion", "run": "one", "confirmed": 18, "differs": 0, "unchecked": 0}


def test_two_runs_are_one_csv_on_stdout(runs, capsys) -> None:
    assert call(runs, "export", "one", "two", "--to", "csv") == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[0].startswith("run,kind,step,tokens,seconds,") and len(rows) == 1 + 2 * 8


def test_a_file_or_a_folder_takes_a_text(runs, tmp_path, capsys) -> None:
    assert call(runs, "export", "one", "--to", "json", "--out", str(tmp_path / "new" / "one.json")) == 0
    assert call(runs, "export", "one", "--to", "csv", "--out", str(tmp_path), "--json") == 0
    assert json.loads((tmp_path / "new" / "one.json").read_text())["runs"][0]["name"] == "one"
    assert json.loads(capsys.readouterr().out)["where"] == str(tmp_path / "metrics.csv")


def test_a_model_is_exported_and_says_where_it_is(runs, tmp_path, capsys) -> None:
    assert call(runs, "export", "one", "--to", "huggingface", "--out", str(tmp_path), "--checkpoint", "3") == 0
    said = capsys.readouterr()
    assert said.out.strip() == str(tmp_path / "one")
    card = (tmp_path / "one" / "README.md").read_text().split("---\n")[2].split("\n\n")
    for first in (said.err.splitlines()[0], card[1]):
        assert "load_pretrained" in first and "not" in first and "transformers.AutoModel" in first
    names = {path.name for path in (tmp_path / "one").iterdir()}
    assert names == {
        *("README.md", "config.json", "model.safetensors", "special_tokens_map.json"),
        *("tokenizer.json", "tui_transformer_tokenizer.json"),
    }
    ours = load_pretrained(tmp_path / "one")[1]
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "one" / "tokenizer.json"))
    assert isinstance(ours, CharacterTokenizer)
    text = "".join(ours.characters)
    assert theirs.encode(text).ids == ours.encode(text).tolist() and theirs.decode(theirs.encode(text).ids) == text
    assert json.loads((tmp_path / "one" / "config.json").read_text())["step"] == 3


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--to", "tensorbord"), "did you mean 'tensorboard'?"),
        (("--to", "csv", "--json"), "add --out, or leave out --json"),
        (("--to", "huggingface", "--checkpoint", "4", "--out", "x"), "has no checkpoint '4'"),
    ],
)
def test_bad_input_is_one_line(arguments, says, runs, capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(runs.absolute(), "export", "one", *arguments) == 2
    error = capsys.readouterr().err.strip()
    assert says in error and "\n" not in error
