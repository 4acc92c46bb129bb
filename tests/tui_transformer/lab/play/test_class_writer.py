"""Classification at the prompt, in `evaluate`, in Compare's details and in reports."""

import json
from pathlib import Path

import pytest
import torch

from engine.base.errors import InputError
from engine.runs.reader import RunReader
from engine.training.pretrained import load_pretrained, write_pretrained
from tests.engine.tasks.test_classification import config, trained
from tui_transformer.__main__ import main
from tui_transformer.lab.analysis.columns import columns
from tui_transformer.lab.analysis.detail import detail
from tui_transformer.lab.analysis.entry import majority_rows, read_entry
from tui_transformer.lab.formatting import confusion_lines
from tui_transformer.lab.play.writers import GREEDY, ModelWriter, WriterCache
from tui_transformer.lab.reports.report import write_report

TEXT = "Rovers beat Harriers by two points on Monday. Snow kept Zyzzyva at home."


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> RunReader:
    return trained(config(), tmp_path_factory.mktemp("runs"), "classes")


@pytest.fixture(scope="module")
def writer(run) -> ModelWriter:
    found = WriterCache("cpu").get(run.path, "last")
    assert found.config.task.name == "classification"
    return found


def test_a_text_gets_every_class_with_its_probability(run, writer) -> None:
    wholes = writer.answer_and_likeliest_others(TEXT, "", 10)
    assert {one.text for one in wholes} == set(run.data.classes)
    assert sum(one.probability for one in wholes) == pytest.approx(1.0)
    (piece,) = writer.stream(TEXT, GREEDY, alternatives=2)
    assert (piece.text, piece.probability) == (wholes[0].text, wholes[0].probability)
    assert [one.text for one in piece.alternatives] == [one.text for one in wholes[1:3]]
    assert writer.length_warning(TEXT, GREEDY) == "" and "first 48 tokens" in writer.length_warning(TEXT * 5, GREEDY)


def test_an_empty_text_and_a_question_of_surprise_are_refused(writer) -> None:
    with pytest.raises(InputError, match="empty text"):
        writer.answer_and_likeliest_others(" ", "", 1)
    with pytest.raises(InputError, match="surprise"):
        writer.surprise(TEXT)


def test_its_attention_can_be_looked_at(writer) -> None:
    seen = writer.attention(TEXT, "", 1, 1)
    assert seen.weights.shape == (len(seen.keys), len(seen.keys)) and seen.keys[0] == "Rovers"
    assert "⁇" in seen.keys  # a word that training does not have


def test_held_out_texts_are_shown_as_examples(writer, run) -> None:
    assert (
        all(row.reference in run.data.classes for row in writer.answer_held_out_examples())
        and len(writer.prompts()) == 3
    )


def test_the_commands_say_the_class_and_the_confusion(run, capsys) -> None:
    where = ["--runs-dir", str(run.path.parent)]
    assert main(["sample", "classes", "--prompt", TEXT, *where]) == 0
    said = capsys.readouterr().out
    assert "probability" in said and any(name in said for name in run.data.classes)
    assert main(["evaluate", "classes", *where]) == 0
    said = capsys.readouterr().out
    assert "macro F1" in said and "weather  markets  politics  result  upset" in said
    assert main(["evaluate", "classes", "--json", *where]) == 0
    record = json.loads(capsys.readouterr().out)
    best = run.summary.best
    assert record["accuracy"] == best.accuracy and record["confusion"] == [list(row) for row in best.confusion]


def test_a_confusion_table_is_aligned_and_says_how_much_of_each_class_is_right() -> None:
    assert list(confusion_lines(("one", "another"), ((1_000, 0), (1, 3)))) == [
        "           one  another  right",
        "one      1,000        0  100.0%",
        "another      1        3  75.0%",
    ]


def test_comparisons_show_the_confusion_and_the_baselines(run) -> None:
    entry = read_entry(run.path)
    lines = [line.text for block in detail(entry, None).values() for line in block]
    assert any("weather  markets" in line for line in lines) and any("naive Bayes" in line for line in lines)
    (always,) = majority_rows([entry])
    assert always.scores == {"accuracy": entry.majority.share}
    shown = {column.key: column.value(entry, None) for column in columns([entry, always], None)}
    assert shown["Δmajority"] == pytest.approx(entry.scores["accuracy"] - entry.majority.share)
    assert shown["macro_f1"] == entry.scores["macro_f1"]


@pytest.mark.parametrize(("language", "said"), [("en", "Class by class"), ("zh", "各类别的结果")])
def test_a_report_has_the_confusion_and_the_baselines(run, language: str, said: str, tmp_path: Path) -> None:
    file, _ = write_report([read_entry(run.path)], {}, kind="markdown", language=language, out=tmp_path / "report")
    text = file.read_text(encoding="utf-8")
    assert said in text and f"{run.data.bag_of_words:.1%}" in text.replace("\\", "")
    assert all(name in text for name in run.data.classes)


def test_an_export_names_its_classes_and_gives_the_same_logits(run, writer, tmp_path: Path) -> None:
    write_pretrained(run, "last", tmp_path / "model")
    made = json.loads((tmp_path / "model" / "config.json").read_text())
    assert list(made["id2label"].values()) == list(run.data.classes)
    model, _ = load_pretrained(tmp_path / "model")
    tokens = writer.pipeline.model_input(TEXT, "")[0][None]
    assert torch.equal(model(tokens), writer.model(tokens))
