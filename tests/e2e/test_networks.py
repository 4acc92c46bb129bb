"""Encoders and encoder-decoders from the command line: train, list, sample, evaluate, and wear their badges."""

import json
from pathlib import Path

import pytest

from engine.config import presets
from tui_transformer.__main__ import main

TINY = [
    *("train.steps=6", "train.batch_size=4", "train.threads=1", "model.d_model=16", "model.n_heads=2"),
    *("model.n_layers=1", "model.d_ff=16", "model.context_length=32", "evaluation.every=6", "optimizer.warmup=2"),
    *("evaluation.sample_length=20", "evaluation.sample_prompt=", "data.corpus=playlets", "data.corpus_size=20000"),
]
KINDS = {
    "masked": "encoder-mlm",
    "copied": "copy",
    "continued": "report-seq2seq-char-honest",
    "leaking": "report-encoder",
}


def tiny(preset: str, name: str, root: Path, *more: str) -> int:
    own = list(TINY)
    if "source_length" in presets.resolve(presets.find(preset)).dump()["model"]:
        own.append("model.source_length=32")
    if preset.startswith("report"):
        own.append("model.vocab_size=70")
    overrides = [part for setting in (*own, *more) for part in ("--set", setting)]
    return main(
        ["run", "--preset", preset, *overrides, "--name", name, "--device", "cpu", "--runs-dir", str(root), "--json"]
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    for name, preset in KINDS.items():
        assert tiny(preset, name, root) == 0
    return root


def sampled(capsys, runs: Path, name: str, prompt: str, *more: str) -> dict:
    capsys.readouterr()
    assert main(["sample", name, "--prompt", prompt, *more, "--runs-dir", str(runs), "--device", "cpu", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_an_encoder_fills_gaps_and_leaves_the_rest(runs, capsys) -> None:
    answer = sampled(capsys, runs, "masked", "enter H_ro & _ear")["text"]
    assert len(answer) == 17 and answer[:7] == "enter H" and answer[8:13] == "ro & " and answer[14:] == "ear"


def test_without_a_gap_it_asks_for_one(runs, capsys) -> None:
    assert main(["sample", "masked", "--prompt", "enter", "--runs-dir", str(runs), "--device", "cpu"]) == 2
    error = capsys.readouterr().err
    assert "fills gaps" in error and "Traceback" not in error


def test_an_encoder_decoder_answers_with_as_much_as_its_source(runs, capsys) -> None:
    assert len(sampled(capsys, runs, "copied", "enter Hero")["text"]) == 10
    assert len(sampled(capsys, runs, "continued", "enter Hero", "--length", "15")["text"]) == 15


def test_a_source_of_another_length_is_warned_of(runs, capsys) -> None:
    assert main(["sample", "copied", "--prompt", "enter", "--runs-dir", str(runs), "--device", "cpu"]) == 0
    assert "trained on sources of 32 characters" in capsys.readouterr().err


def test_a_leaking_encoder_still_writes_but_every_reader_says_leak(runs, capsys) -> None:
    assert len(sampled(capsys, runs, "leaking", "enter", "--length", "50")["text"]) == 50
    where = ["--runs-dir", str(runs), "--device", "cpu"]
    for command in (["sample", "leaking", "--prompt", "e"], ["evaluate", "leaking"]):
        assert main([*command, *where]) == 0
        assert "LEAK: run 'leaking'" in capsys.readouterr().err
    assert main(["doctor", "leaking", "--runs-dir", str(runs)]) == 1
    assert "LEAK" in capsys.readouterr().out
    assert main(["watch", "leaking", "--runs-dir", str(runs)]) == 0
    assert "LEAK" in capsys.readouterr().out
    assert main(["evaluate", "leaking", *where, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["badges"] == ["LEAK"]


def test_the_list_of_runs_shows_state_score_and_badges(runs, capsys) -> None:
    assert main(["runs", "--runs-dir", str(runs)]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert lines["leaking"].endswith("LEAK") and lines["copied"].endswith("✓") and "finished" in lines["masked"]
    assert main(["runs", "--runs-dir", str(runs), "--json"]) == 0
    facts = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {f["run"]: f["badges"] for f in facts}["leaking"] == ["LEAK"]


def test_an_empty_folder_of_runs_is_no_error(tmp_path, capsys) -> None:
    assert main(["runs", "--runs-dir", str(tmp_path / "none")]) == 0
    assert "no run" in capsys.readouterr().err


def test_a_leak_is_refused_unless_it_is_allowed(tmp_path, capsys) -> None:
    assert tiny("report-encoder", "run", tmp_path, "train.allow_leak=false") == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "allow_leak=true" in error and not (tmp_path / "run").exists()


def test_scores_of_every_kind_repeat_the_trainers_own(runs, capsys) -> None:
    for name in KINDS:
        last = json.loads((runs / name / "summary.json").read_text())["last"]
        assert main(["evaluate", name, "--runs-dir", str(runs), "--device", "cpu", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["loss"] == pytest.approx(last["loss"], abs=1e-6) and found["profile"] == pytest.approx(
            last["profile"]
        )


def test_check_tries_the_other_networks_too(capsys) -> None:
    for preset in ("encoder-mlm", "copy", "report-seq2seq-char-honest"):
        small = [part for setting in TINY for part in ("--set", setting)]
        extra = ["--set", "model.vocab_size=70", "--set", "model.source_length=32"] if "report" in preset else []
        assert main(["check", "--preset", preset, *small, *extra, "--device", "cpu"]) == 0, capsys.readouterr()
        assert "sees the order of tokens" in capsys.readouterr().out


@pytest.mark.parametrize(
    "setting",
    ["optimizer.decay_over=0 tokens", "train.batch_tokens=1000000000", "optimizer.warmup=9999999999999 epochs"],
)
def test_what_only_the_corpus_shows_to_be_impossible_is_one_line(setting: str, tmp_path, capsys) -> None:
    assert tiny("baseline", "run", tmp_path, setting) == 2
    error = capsys.readouterr().err
    assert "with this corpus" in error and "Traceback" not in error and not any(tmp_path.iterdir())
