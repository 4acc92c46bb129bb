"""`evaluate` on files of your own: exact scores, of the whole and of each document or sentence."""

import csv
import json
import math
from pathlib import Path

import pytest
import torch

from engine.data.catalogue import load_corpus
from engine.data.corpora import TextCorpus
from engine.data.labelled.corpus import LabelledCorpus
from engine.data.parallel.pairs import ParallelCorpus
from engine.evaluation.translation import score_translations
from engine.runs.reader import RunReader
from engine.training.checkpoint import load_network
from tests.small_pairs import pairs
from tui_transformer.__main__ import main

DOCS = Path(__file__).parents[2] / "docs"
PAIRS = pairs(80)
SMALL = [
    *("train.steps=8", "train.batch_size=4", "train.threads=1", "model.d_model=16", "model.n_heads=2"),
    *("model.context_length=32", "evaluation.every=8", "evaluation.sample_length=10", "optimizer.warmup=2"),
]

LETTERS = ("data.tokenizer=characters", "model.context_length=80", "evaluation.translations=4")


def trained(runs: Path, name: str, preset: str, *settings: str) -> None:
    overrides = [part for setting in (*SMALL, *settings) for part in ("--set", setting)]
    assert (
        main(["run", "--preset", preset, *overrides, "--name", name, "--device", "cpu", "--runs-dir", str(runs)]) == 0
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    trained(root, "text", "demo", "data.corpus_size=20000")
    pages = "".join(page.read_text() for page in sorted(DOCS.glob("how-to/*.md")))
    (root / "docs.txt").write_text(pages.replace("<|endoftext|>", "the mark").replace("<unk>", "a word"))
    of_docs = (f"data.corpus={root / 'docs.txt'}", "data.tokenizer=words", "data.words_size=2000")
    trained(root, "words", "shakespeare-cpu", *of_docs)
    trained(root, "masked", "encoder-mlm", "data.corpus_size=20000")
    (root / "pairs.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in PAIRS), encoding="utf-8")
    trained(root, "pairs", "phrasebook", f"data.corpus={root / 'pairs.tsv'}", *LETTERS)
    trained(root, "classes", "bulletins", "data.corpus_size=400", "evaluation.every=4")
    return root


def evaluated(capsys, runs: Path, *arguments: str) -> dict:
    capsys.readouterr()
    assert main(["evaluate", *arguments, "--runs-dir", str(runs), "--device", "cpu", "--json"]) == 0
    return json.loads(capsys.readouterr().out.splitlines()[-1])


@pytest.mark.parametrize("run", ["text", "words", "masked"])
def test_the_runs_own_validation_text_gets_its_own_score(runs, capsys, tmp_path, run: str) -> None:
    text = load_corpus(TextCorpus, RunReader(runs / run).config.data).splits["validation"].text
    (tmp_path / "own.txt").write_text(text, newline="")
    found = evaluated(capsys, runs, run, "--text", str(tmp_path / "own.txt"))
    expected = evaluated(capsys, runs, run)
    assert {key: found[key] for key in ("loss", "accuracy", "context", "stride", "step")} == {
        key: expected[key] for key in ("loss", "accuracy", "context", "stride", "step")
    }
    for measure in ("bits_per_character", "bits_per_byte", "word_perplexity", "unknown"):
        assert found.get(measure) == expected.get(measure)
    assert found["text"] == str(tmp_path / "own.txt") and "split" not in found


def test_without_its_training_text_a_word_model_has_no_bits_per_byte(runs, capsys, tmp_path) -> None:
    (tmp_path / "own.txt").write_text("A zebra and a gnu are compared with a run.\n" * 9)
    found = evaluated(capsys, runs, "words", "--text", str(tmp_path / "own.txt"))
    text = (runs / "docs.txt").read_text()
    try:
        (runs / "docs.txt").write_text(text.replace("a", "b"))  # not what it was trained on
        now = evaluated(capsys, runs, "words", "--text", str(tmp_path / "own.txt"))
        assert main(["evaluate", "words", "--text", str(tmp_path / "own.txt"), "--runs-dir", str(runs)]) == 0
    finally:
        (runs / "docs.txt").write_text(text)
    lost = {"bits_per_character", "bits_per_byte", "word_perplexity", "overlap"}
    assert {*found} - {*now} == lost and found["unknown"] > 0.1
    assert "the run's training text, which is not here" in capsys.readouterr().out


def test_each_document_is_scored_by_itself_and_their_sum_is_the_whole(runs, capsys, tmp_path) -> None:
    """Checked against a sum with one window per token: nothing is averaged twice, and no window sees two documents."""
    reader = RunReader(runs / "text")
    text = load_corpus(TextCorpus, reader.config.data).splits["validation"].text
    documents = [text[:300], text[300:331], "x"[:0], text[400:1000]]
    path = tmp_path / "own.jsonl"
    path.write_text("".join(json.dumps({"id": 1, "story": document}) + "\n" for document in documents))
    found = evaluated(capsys, runs, "text", "--text", f"{path}:story", "--stride", "1")
    model, tokenizer, _ = load_network(reader)
    model.eval()
    total, count = 0.0, 0
    for row, document in zip(found["rows"], [one for one in documents if one], strict=True):
        ids, nll = torch.from_numpy(tokenizer.target.encode(document)), 0.0
        for at in range(1, len(ids)):
            logits = model(ids[None, max(0, at - 32) : at])[0, -1].double()
            nll -= float(torch.log_softmax(logits, -1)[ids[at]].detach())
        assert row["tokens"] == len(ids) - 1 == row["characters"] - 1
        assert row["loss"] == pytest.approx(nll / row["tokens"], abs=1e-5)
        assert row["bits_per_byte"] == pytest.approx(nll / math.log(2) / (len(document.encode()) - 1), abs=1e-5)
        total, count = total + nll, count + row["tokens"]
    assert [row["document"] for row in found["rows"]] == [1, 2, 3] == list(range(1, found["documents"] + 1))
    assert found["loss"] == pytest.approx(total / count, abs=1e-5) and found["tokens"] == count
    assert found["perplexity"] == pytest.approx(math.exp(found["loss"]))


def test_documents_are_told_in_words(runs, capsys, tmp_path) -> None:
    text = load_corpus(TextCorpus, RunReader(runs / "text").config.data).splits["validation"].text
    path = tmp_path / "own.txt"
    path.write_text(f"{text[:200]}<|endoftext|>{text[200:500]}<|endoftext|>{text[:1]}", newline="")
    assert main(["evaluate", "text", "--text", str(path), "--runs-dir", str(runs), "--device", "cpu"]) == 0
    said = capsys.readouterr().out
    assert "step 8" in said and str(path) in said and "bits per byte" in said
    assert "2; losses range from" in said and "1 too short to be scored" in said


def test_a_text_that_the_run_trained_on_is_said_to_be_one(runs, capsys, tmp_path) -> None:
    splits = load_corpus(TextCorpus, RunReader(runs / "text").config.data).splits
    for split, share in (("train", 1.0), ("validation", 0.5)):
        (tmp_path / "own.txt").write_text(splits["train"].text[:600] + splits[split].text[-600:], newline="")
        found = evaluated(capsys, runs, "text", "--text", str(tmp_path / "own.txt"))
        assert found["overlap"]["share"] == pytest.approx(share, abs=0.05)
    assert main(["evaluate", "text", "--text", str(tmp_path / "own.txt"), "--runs-dir", str(runs)]) == 0
    assert "of the given text also appears word for word in the training text" in capsys.readouterr().out
    (tmp_path / "own.txt").write_text(splits["validation"].text[:900], newline="")
    assert evaluated(capsys, runs, "text", "--text", str(tmp_path / "own.txt")).get("overlap", {}).get("share", 0) < 0.2


def test_evaluate_reports_texts_and_sentences_that_the_run_trained_on(runs, capsys, tmp_path) -> None:
    corpus = load_corpus(LabelledCorpus, RunReader(runs / "classes").config.data)
    pairs_of = load_corpus(ParallelCorpus, RunReader(runs / "pairs").config.data)
    files = {"classes": ("--csv", "own.csv"), "pairs": ("--source", "own.en", "--reference", "own.de")}
    for split, share in (("train", 1.0), ("validation", 0.0)):
        texts, found = corpus.splits[split], pairs_of.splits[split]
        with (tmp_path / "own.csv").open("w", newline="") as file:
            csv.writer(file).writerows(zip((corpus.classes[i] for i in texts.classes[:9]), texts.texts, strict=False))
        (tmp_path / "own.en").write_text("\n".join(found.sources[:5]))
        (tmp_path / "own.de").write_text("\n".join(found.targets[:5]), encoding="utf-8")
        for run, options in files.items():
            given = [option if option.startswith("--") else str(tmp_path / option) for option in options]
            record = evaluated(capsys, runs, run, *given)
            assert record["overlap"]["share"] == share and record["overlap"]["split"] == "given"
            assert main(["evaluate", run, *given, "--runs-dir", str(runs), "--device", "cpu"]) == 0
            assert ("  ⚠ 100.0% of the given" in capsys.readouterr().out) is (split == "train")
    assert "overlap" not in evaluated(capsys, runs, "pairs")  # its own splits are told of in data.json


def test_without_the_runs_corpus_no_overlap_is_reported(capsys, runs, tmp_path) -> None:
    for change in (lambda path: path.write_text("a\tb\n" * 9), Path.unlink):
        kept = (runs / "pairs.tsv").read_bytes()
        (tmp_path / "own.en").write_text(PAIRS[5][0])
        (tmp_path / "own.de").write_text(PAIRS[5][1], encoding="utf-8")
        change(runs / "pairs.tsv")
        files = ("--source", str(tmp_path / "own.en"), "--reference", str(tmp_path / "own.de"))
        found = evaluated(capsys, runs, "pairs", *files)
        (runs / "pairs.tsv").write_bytes(kept)
        assert "bleu" in found and "overlap" not in found


def test_sentences_of_your_own_are_translated_and_scored_in_their_order(runs, capsys, tmp_path) -> None:
    sources, references = zip(*PAIRS[5:11], strict=True)
    for name, lines in (("a.en", sources), ("a.de", references)):
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    files = ("--source", str(tmp_path / "a.en"), "--reference", str(tmp_path / "a.de"))
    found = evaluated(capsys, runs, "pairs", *files, "--beam", "2")
    rows = found["rows"]
    assert [row["source"] for row in rows] == list(sources) and [row["sentence"] for row in rows] == [1, 2, 3, 4, 5, 6]
    expected = score_translations(sources, references, [row["output"] for row in rows])
    assert (found["bleu"], found["chrf"], found["exact_match"]) == (expected.bleu, expected.chrf, expected.exact_match)
    assert [row["score"] for row in rows] == [row.score for row in expected.rows]
    assert [row["tokens"] for row in rows] == [len(reference) + 1 for reference in references]
    nll = sum(row["loss"] * row["tokens"] for row in rows)
    assert found["loss"] == pytest.approx(nll / sum(row["tokens"] for row in rows))
    (tmp_path / "b.en").write_text(sources[2] + "\n")
    (tmp_path / "b.de").write_text(references[2] + "\n", encoding="utf-8")
    alone = evaluated(capsys, runs, "pairs", "--source", str(tmp_path / "b.en"), "--reference", str(tmp_path / "b.de"))
    assert alone["loss"] == pytest.approx(rows[2]["loss"], abs=1e-5)


def test_files_of_your_own_may_be_in_another_encoding_that_is_named(runs, capsys, tmp_path) -> None:
    text = load_corpus(TextCorpus, RunReader(runs / "text").config.data).splits["validation"].text
    (tmp_path / "own.txt").write_bytes(text.replace("\n", "\r\n").encode("utf-16-be"))
    words = ["evaluate", "text", "--text", str(tmp_path / "own.txt"), "--runs-dir", str(runs), "--device", "cpu"]
    assert main(words) == 2 and "it seems to be utf-16-be: set --encoding utf-16-be" in capsys.readouterr().err
    found = evaluated(capsys, runs, "text", "--text", str(tmp_path / "own.txt"), "--encoding", "utf-16-be")
    assert found["loss"] == evaluated(capsys, runs, "text")["loss"]
    assert found["notes"][0] == "read as utf-16-be: own.txt" and "CR LF" in found["notes"][1]


def test_numbers_of_classes_are_taken_only_if_one_way_of_counting_fits(runs, capsys, tmp_path) -> None:
    corpus = load_corpus(LabelledCorpus, RunReader(runs / "classes").config.data)
    n, path = len(corpus.classes), tmp_path / "a.csv"
    for start, last, said in ((0, n - 2, "from 0"), (1, n, "from 1")):
        path.write_text("".join(f"{i},text {i}\n" for i in range(start, last + 1)))
        found = evaluated(capsys, runs, "classes", "--csv", str(path))
        assert [row["class"] for row in found["rows"]] == [corpus.classes[i - start] for i in range(start, last + 1)]
        assert found["notes"] == [f"the classes of a.csv are counted {said}"]
    for numbers, said in (
        (range(1, n), "could be counted from 0 or from 1"),
        (range(n + 1), "is not one of the run's"),
    ):
        path.write_text("".join(f"{i},text {i}\n" for i in numbers))
        words = ["evaluate", "classes", "--csv", str(path), "--runs-dir", str(runs), "--device", "cpu"]
        assert main(words) == 2 and said in capsys.readouterr().err


def test_texts_of_your_own_are_classified_by_the_names_or_numbers_of_their_classes(runs, capsys, tmp_path) -> None:
    corpus = load_corpus(LabelledCorpus, RunReader(runs / "classes").config.data)
    held_out, expected = corpus.splits["validation"], evaluated(capsys, runs, "classes")
    texts = [text.replace('"', '""') for text in held_out.texts]
    files = {
        "names": "class,text\n"
        + "".join(f'{corpus.classes[i]},"{text}"\n' for i, text in zip(held_out.classes, texts, strict=True)),
        "numbers": "".join(f'{i + 1},"{text}"\n' for i, text in zip(held_out.classes, texts, strict=True)),
    }
    for name, rows in files.items():
        path = tmp_path / f"{name}.csv"
        path.write_text(rows, encoding="utf-8")
        found = evaluated(capsys, runs, "classes", "--csv", str(path))
        assert all(found[key] == expected[key] for key in ("loss", "accuracy", "macro_f1", "confusion", "texts"))
        assert found["csv"] == str(path) and "rows" not in expected and not found["probes"]
        assert [row["class"] for row in found["rows"]] == [corpus.classes[i] for i in held_out.classes]
        right = [row["class"] == row["predicted"] for row in found["rows"]]
        assert sum(right) / len(right) == pytest.approx(found["accuracy"])
        assert sum(row["loss"] for row in found["rows"]) / len(right) == pytest.approx(found["loss"])


BAD = {
    "a text for pairs": (["pairs", "--text", "a.txt"], "translates sentences; it can be scored with --source"),
    "pairs for a text": (["text", "--source", "a.en", "--reference", "a.de"], "it can be scored with --text FILE"),
    "rows for a text": (["text", "--csv", "a.csv"], "it can be scored with --text FILE"),
    "a text for classes": (["classes", "--text", "a.txt"], "classifies texts; it can be scored with --csv FILE"),
    "an unknown class": (
        ["classes", "--csv", "a.csv"],
        "a.csv: class 'nonsense' is not one of the run's classes; it must be",
    ),
    "no references": (["pairs", "--source", "a.en"], "--source also needs --reference FILE"),
    "a split too": (["text", "--text", "a.txt", "--split", "test"], "leave it out to score a.txt"),
    "no such file": (["text", "--text", "nowhere.txt"], "nowhere.txt: cannot be read"),
    "unknown signs": (["text", "--text", "zh.txt"], "zh.txt: this model has never seen '中'"),
    "too short": (["masked", "--text", "short.txt"], "short.txt: too short to be scored"),
    "unknown signs in a pair": (["pairs", "--source", "zh.txt", "--reference", "a.txt"], "zh.txt: line 1: this model"),
    "uneven": (["pairs", "--source", "two.txt", "--reference", "short.txt"], "every line needs a translation"),
}


@pytest.mark.parametrize(("arguments", "said"), BAD.values(), ids=BAD)
def test_files_that_cannot_be_scored_are_refused(runs, capsys, tmp_path, monkeypatch, arguments, said) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (
        ("zh.txt", "中文 " * 30),
        ("short.txt", "the\n"),
        ("a.txt", "a\n"),
        ("two.txt", "the\nthe a\n"),
        ("a.csv", "nonsense,the a\n"),
    ):
        Path(name).write_text(text, encoding="utf-8")
    capsys.readouterr()
    assert main(["evaluate", *arguments, "--runs-dir", str(runs), "--device", "cpu"]) == 2
    error = capsys.readouterr().err
    assert said in error and len([line for line in error.splitlines() if "Error" in line or said in line]) == 1
