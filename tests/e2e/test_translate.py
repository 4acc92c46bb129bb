"""translate and evaluate of a run on sentence pairs, in-process: one sentence, a file, a pipe, a prompt."""

import io
import json
import sys
from pathlib import Path

import pytest

from engine.runs.reader import RunReader
from tui_transformer.__main__ import main
from tui_transformer.cli.run.translate import TranslationSession
from tui_transformer.lab.play.prompt import TRANSLATING, CommandPrompt

pytestmark = pytest.mark.usefixtures("module_minimal_leak_probe", "cached_corpora")
SETTINGS = [
    *("train.steps=6", "train.batch_tokens=200", "train.threads=1", "model.d_model=16", "model.n_heads=2"),
    *("model.n_layers=1", "evaluation.every=6", "evaluation.translations=8", "data.corpus_size=2000"),
    *("data.bpe_size=300", "optimizer.warmup=2"),
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    overrides = [part for setting in SETTINGS for part in ("--set", setting)]
    command = ["run", "--preset", "phrasebook", *overrides, "--name", "pb", "--device", "cpu", "--runs-dir", str(root)]
    assert main([*command, "--json"]) == 0
    return root


def translated(capsys, runs: Path, *arguments: str) -> str:
    assert main(["translate", "pb", *arguments, "--runs-dir", str(runs), "--device", "cpu"]) == 0
    return capsys.readouterr().out


def refused(capsys, runs: Path, *arguments: str) -> str:
    assert main(["translate", "pb", *arguments, "--runs-dir", str(runs), "--device", "cpu"]) == 2
    error = capsys.readouterr().err.strip()
    assert "\n" not in error
    return error


def test_a_sentence_a_line_of_a_file_and_a_line_of_a_pipe_are_translated_alike(
    runs, capsys, tmp_path, monkeypatch
) -> None:
    one = translated(capsys, runs, "--text", "I see the dog.")
    (tmp_path / "in.txt").write_text("I see the dog.\nI see the dog.\n")
    assert translated(capsys, runs, "--input", str(tmp_path / "in.txt")) == 2 * one
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"I see the dog.\r\nI see the dog.")))
    assert translated(capsys, runs) == 2 * one


def test_json_has_every_translation_with_its_score(runs, capsys) -> None:
    found = json.loads(translated(capsys, runs, "--text", "I see.", "--nbest", "3", "--json"))
    scores = [one["score"] for one in found["translations"]]
    assert len(scores) == 3 == found["beam"] and scores == sorted(scores, reverse=True)


def test_an_empty_line_is_a_line(runs, capsys, tmp_path) -> None:
    (tmp_path / "in.txt").write_text("I see.\n\nI see.\n")
    lines = translated(capsys, runs, "--input", str(tmp_path / "in.txt")).splitlines()
    assert len(lines) == 3 and lines[0] == lines[2]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--text", "a", "--beam", "0"), "from 1 to 100"),
        (("--text", "a", "--beam", "2", "--nbest", "3"), "nbest 3: more than a beam of 2"),
        (("--text", "a", "--alpha", "-1"), "from 0 to 10"),
        (("--text", "a", "--input", "b"), "cannot be used together"),
        (("--input", "/nowhere/at/all"), "cannot be read"),
        (("--text", "a", "--checkpoint", "7"), "no checkpoint"),
    ],
)
def test_bad_input_is_one_line(runs, capsys, arguments, words) -> None:
    assert words in refused(capsys, runs, *arguments)


def test_a_line_that_is_no_utf8_is_named(runs, capsys, tmp_path) -> None:
    (tmp_path / "in.txt").write_bytes(b"I see.\n\xff\n")
    assert "byte 7 (line 2) is not UTF-8" in refused(capsys, runs, "--input", str(tmp_path / "in.txt"))
    (tmp_path / "in.txt").write_bytes("Größe, Übung, schön, prüfen.\n".encode("cp1252") * 3)
    said = refused(capsys, runs, "--input", str(tmp_path / "in.txt"))
    assert said.rstrip().endswith("it seems to be cp1252: set --encoding cp1252")
    said = refused(capsys, runs, "--input", str(tmp_path / "in.txt"), "--encoding", "cp1251")
    assert "--encoding cp1251: must be" in said and "did you mean 'cp1252'" in said


def test_sample_says_where_translations_are(runs, capsys) -> None:
    assert main(["sample", "pb", "--prompt", "a", "--runs-dir", str(runs), "--device", "cpu"]) == 2
    assert "tui-transformer translate pb" in capsys.readouterr().err


def test_the_prompt_shows_examples_n_best_and_where_it_looked(runs, capsys) -> None:
    work = TranslationSession(runs, "cpu", "best", False)
    work.use_run("pb")
    actions = {"align": work.align, "examples": work.examples}
    said: list[str] = []
    prompt = CommandPrompt(
        work.settings, work.answer, actions, TRANSLATING, show_reply=said.append, show_error=said.append
    )
    prompt.handle_line("examples")
    assert "How are you?" in (shown := capsys.readouterr().out) and "a training sentence" in shown
    prompt.handle_line("/align")
    assert "nothing has been translated" in said[-1]
    prompt.handle_line("/beam 3")
    prompt.handle_line("/nbest 2")
    prompt.handle_line("I see the dog.")
    assert len(capsys.readouterr().out.splitlines()) == 2
    prompt.handle_line("/align")
    assert "dog" in capsys.readouterr().out or not work.translate(["I see the dog."])[0][0].text
    prompt.handle_line("/temperature 1")
    assert "unknown command /temperature" in said[-1]
    prompt.handle_line("quit")
    assert prompt.done


def test_evaluate_gives_the_trainers_own_scores(runs, capsys) -> None:
    last = [r for r in RunReader(runs / "pb").raw_lines("metrics") if r["kind"] == "validation"][-1]
    command = ["evaluate", "pb", "--checkpoint", "last", "--runs-dir", str(runs), "--device", "cpu"]
    assert main([*command, "--sentences", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["loss"] == pytest.approx(last["loss"], abs=1e-6)
    assert found["sentences"] == RunReader(runs / "pb").raw("data")["splits"]["validation"]["pairs"]
    assert len(found["rows"]) == 4 and found["bleu_signature"] == last["bleu_signature"]
    assert main([*command, "--stride", "4"]) == 2
    assert "no windows" in capsys.readouterr().err
    assert main([*command, "--split", "unseen_pairs", "--sentences", "1"]) == 0
    assert "BLEU" in capsys.readouterr().out


@pytest.fixture(scope="module")
def two(tmp_path_factory) -> Path:
    """A run that translates to two languages."""
    root = tmp_path_factory.mktemp("two")
    overrides = [part for setting in SETTINGS for part in ("--set", setting)]
    command = ["run", "--preset", "phrasebook-2", *overrides, "--name", "pb", "--device", "cpu"]
    assert main([*command, "--runs-dir", str(root)]) == 0
    return root


def test_each_direction_is_scored_and_shown(two, capsys) -> None:
    reader = RunReader(two / "pb")
    last = [r for r in reader.raw_lines("metrics") if r["kind"] == "validation"][-1]
    assert set(last["bleu_to"]) == {"de", "nl"} and last["probe_places"]["to_de"] == 4
    assert last["bleu"] == pytest.approx(sum(last["bleu_to"].values()) / 2)
    assert {"to_de", "to_nl", "unseen_pairs"} <= set(last["probes"]) and reader.data.languages == ("en", "de", "nl")
    command = ["evaluate", "pb", "--runs-dir", str(two), "--device", "cpu", "--sentences", "1", "--beam", "1"]
    assert main(command) == 0
    assert "to nl" in capsys.readouterr().out
    assert main([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])["to"]
    assert sum(one["sentences"] for one in found.values()) == reader.raw("data")["splits"]["validation"]["pairs"]


def test_the_language_is_chosen_by_option_by_command_or_in_the_text(two, capsys) -> None:
    german, dutch = (translated(capsys, two, "--text", "I see the dog.", "--to", one) for one in ("de", "nl"))
    assert translated(capsys, two, "--text", "I see the dog.") == german
    assert translated(capsys, two, "--text", "<nl> I see the dog.") == dutch
    assert "does not translate into 'fr'; choose de or nl" in refused(capsys, two, "--text", "a", "--to", "fr")
    work = TranslationSession(two, "cpu", "best", False)
    work.use_run("pb")
    prompt = CommandPrompt(
        work.settings, work.answer, {"to": work.set_target}, TRANSLATING, show_error=lambda said: None
    )
    assert work.title.endswith("en → de, nl")
    for line in ("/to nl", "/to fr", "I see the dog."):
        prompt.handle_line(line)
    assert work.writers[0].translator.target_language == "nl"
    work.use_checkpoint("last")
    assert work.writers[0].translator.target_language == "nl"


def test_a_run_of_one_language_has_no_choice(runs, capsys) -> None:
    assert "into only one language" in refused(capsys, runs, "--text", "a", "--to", "de")


def test_your_own_sentences_say_which_language_each_is_for(two, capsys, tmp_path) -> None:
    (tmp_path / "a.en").write_text("<nl> I see.\n<de> I see.\n")
    (tmp_path / "a.xx").write_text("Ik zie.\nIch sehe.\n")
    files = ["--source", str(tmp_path / "a.en"), "--reference", str(tmp_path / "a.xx")]
    command = ["evaluate", "pb", *files, "--runs-dir", str(two), "--device", "cpu"]
    assert main([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert set(found["to"]) == {"de", "nl"} and found["rows"][0]["source"] == "<nl> I see."
    (tmp_path / "a.en").write_text("<nl> I see.\nI see.\n")
    assert main(command) == 2
    assert "line 2: must start with the tag of the language" in capsys.readouterr().err
