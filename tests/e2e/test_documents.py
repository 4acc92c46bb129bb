"""run and evaluate of documents and questions, in-process: what is said, what is written, what is refused."""

import json
from pathlib import Path

import pytest

from engine.runs.reader import RunReader
from tests.small_documents import corpus
from tui_transformer.__main__ import main

COMMON = """
[data]
corpus = "biographies"
tokenizer = "words"
[model]
d_model = 16
n_heads = 2
n_layers = 1
context_length = 32
[train]
steps = 4
batch_size = 4
threads = 1
[optimizer]
warmup = 2
[evaluation]
every = 4
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engine.data.catalogue.load_corpus", lambda kind, data, data_dir, version=2: corpus())
        for name, kind in (("qa", "question-answer"), ("spans", "span-corruption")):
            (root / f"{name}.toml").write_text(f'{COMMON}[objective]\nkind = "{kind}"\n')
            wanted = ["--config", str(root / f"{name}.toml"), "--name", name, "--device", "cpu"]
            assert main(["run", *wanted, "--runs-dir", str(root)]) == 0
        yield root


def asked(runs: Path, *arguments: str) -> int:
    return main(["evaluate", *arguments, "--runs-dir", str(runs), "--device", "cpu"])


def test_a_run_ends_with_its_exact_answers_beside_the_majority(runs, capsys) -> None:
    from tui_transformer.cli.run.summary import print_summary

    print_summary(RunReader(runs / "qa"), as_json=False)
    said = capsys.readouterr().out
    best = RunReader(runs / "qa").raw("summary")["best"]
    assert f"exact match {best['exact_match']:.1%} at step 4" in said
    assert "always answering “Rome” would score 50.0%" in said
    assert "held-out questions at step 4:" in said and "Where was Eve born?" in said
    print_summary(RunReader(runs / "spans"), as_json=False)
    said = capsys.readouterr().out
    assert "nats per token" in said and "recall " in said and "facts recalled exactly" in said
    assert "held-out documents at step 4:" in said and "evaluate spans" in said


def test_predictions_are_one_answer_a_line(runs, capsys, tmp_path) -> None:
    file = tmp_path / "answers.txt"
    assert asked(runs, "qa", "--predictions", str(file), "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert file.read_text() == (runs / "qa" / "predictions.txt").read_text()
    assert len(file.read_text().splitlines()) == record["questions"] == 2
    assert record["exact_match"] == RunReader(runs / "qa").raw("summary")["best"]["exact_match"]


def test_a_blind_split_is_answered_and_not_scored(runs, capsys, tmp_path) -> None:
    file = tmp_path / "answers.txt"
    assert asked(runs, "qa", "--split", "test", "--predictions", str(file)) == 0
    said = capsys.readouterr().out
    assert "1 question answered; the split has no reference answers, so there is no score" in said
    assert "exact match" not in said and len(file.read_text().splitlines()) == 1


def test_documents_are_scored_with_the_facts_that_are_recalled(runs, capsys) -> None:
    assert asked(runs, "spans", "--split", "train") == 0
    said = capsys.readouterr().out
    assert "nats per token, mask tokens included" in said and "of 6 facts exactly right" in said


REFUSED = {
    "predictions of a text": (["spans", "--predictions", "x.txt"], "does not answer questions"),
    "windows": (["qa", "--stride", "3"], "has no windows"),
    "a beam": (["qa", "--beam", "3"], "does not use beam search"),
    "no such split": (["spans", "--split", "test"], "has no test split; choose train or validation"),
    "nowhere to write": (["qa", "--predictions", "/no/such/folder/x.txt"], "--predictions /no/such/folder/x.txt"),
}


@pytest.mark.parametrize(("arguments", "says"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_is_one_line(runs, capsys, arguments: list[str], says: str) -> None:
    assert asked(runs, *arguments) == 2
    error = capsys.readouterr().err.strip()
    assert says in error.splitlines()[-1] and "Traceback" not in error


@pytest.mark.parametrize("name", ["qa", "spans"])
def test_such_a_run_can_be_verified(runs, capsys, name: str) -> None:
    assert main(["verify", name, "--runs-dir", str(runs), "--device", "cpu"]) == 0
    said = capsys.readouterr().out
    assert "✗" not in said and "scored again" in said
