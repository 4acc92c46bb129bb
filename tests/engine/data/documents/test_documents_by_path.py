"""Documents and questions of your own: every form that is read, and every way in which it can be wrong."""

from pathlib import Path

import pytest

from engine.base.errors import InputError
from engine.config.sections import DataConfig
from engine.data.catalogue import load_corpus
from engine.data.documents.corpus import DocumentCorpus, Question

LINES = [f"P{i}. P{i} was born in T{i % 7}." for i in range(100)]
TRAIN = "".join(f"Where was P{i} born?\tT{i % 7}\n" for i in range(50))
VALIDATION = "".join(f"Where was P{i} born?\tT{i % 7}\n" for i in range(50, 80))


def load(path: Path, **changes: object) -> DocumentCorpus:
    return load_corpus(DocumentCorpus, DataConfig.model_validate({"corpus": str(path), **changes}))


@pytest.fixture
def folder(tmp_path) -> Path:
    place = tmp_path / "town"
    place.mkdir()
    (place / "documents.txt").write_text("\n".join(LINES) + "\n")
    (place / "train.tsv").write_text(TRAIN)
    (place / "validation.tsv").write_text(VALIDATION)
    return place


def text(tmp_path: Path, lines: list[str]) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_the_lines_of_a_text_are_documents_cut_by_line(tmp_path) -> None:
    corpus = load(text(tmp_path, LINES))
    train, validation = (corpus.documents[split] for split in ("train", "validation"))
    assert (len(train), len(validation)) == (90, 10) and sorted(train + validation) == sorted(LINES)
    assert corpus.questions == {} and corpus.recall_facts == {} and corpus.name == "text.txt"
    assert load(text(tmp_path, LINES), validation_fraction=0.3, test_fraction=0.1).documents.keys() == {
        *("train", "validation", "test")
    }


def test_documents_stand_in_the_order_of_the_file(tmp_path) -> None:
    train = load(text(tmp_path, LINES)).documents["train"]
    assert [LINES.index(line) for line in train] == sorted(LINES.index(line) for line in train)


def test_one_more_line_moves_no_other(tmp_path) -> None:
    before = set(load(text(tmp_path, LINES)).documents["validation"])
    after = set(load(text(tmp_path, [*reversed(LINES), "one more."])).documents["validation"])
    assert len(before - after) <= 1


def test_the_same_line_is_never_on_both_sides(tmp_path) -> None:
    documents = load(text(tmp_path, LINES * 3)).documents
    assert not set(documents["train"]) & set(documents["validation"]) and len(documents["train"]) == 270


def test_empty_lines_are_no_documents_and_line_ends_are_not_text(tmp_path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes("\r\n\r\n".join(LINES).encode())
    documents = load(path).documents
    assert sorted(documents["train"] + documents["validation"]) == sorted(LINES)


def test_a_folder_has_documents_and_questions(folder) -> None:
    corpus = load(folder)
    assert {split: len(asked) for split, asked in corpus.questions.items()} == {"train": 50, "validation": 30}
    assert corpus.questions["train"][3] == Question("Where was P3 born?", "T3")
    assert len(corpus.documents["validation"]) == 10 and corpus.name == "town" and corpus.source == str(folder)
    assert any("10 of the 100 documents are held out" in note for note in corpus.notes)


def test_validation_documents_of_their_own_leave_the_others_whole(folder) -> None:
    (folder / "documents-validation.txt").write_text("Q. Q was born in T1.\n")
    corpus = load(folder)
    assert len(corpus.documents["train"]) == 100 and corpus.documents["validation"] == ("Q. Q was born in T1.",)
    assert corpus.notes == ()


@pytest.mark.parametrize("name", ["valid.tsv", "val.tsv", "dev.tsv"])
def test_validation_has_its_usual_other_names(folder, name: str) -> None:
    (folder / "validation.tsv").rename(folder / name)
    assert len(load(folder).questions["validation"]) == 30


def test_documents_need_no_questions(folder) -> None:
    (folder / "train.tsv").unlink()
    (folder / "validation.tsv").unlink()
    assert load(folder).questions == {}


@pytest.mark.parametrize("header", ["question\tanswer\n", "Question\tAnswer\n", ""])
def test_a_header_is_no_question(folder, header: str) -> None:
    (folder / "train.tsv").write_text(header + TRAIN)
    assert len(load(folder).questions["train"]) == 50


def test_a_test_may_be_blind(folder) -> None:
    (folder / "test.tsv").write_text("question\nWhere was P90 born?\nWhere was P91 born?\n")
    assert [question.answer for question in load(folder).questions["test"]] == [None, None]
    (folder / "test.tsv").write_text("Where was P90 born?\tT6\n")
    assert load(folder).questions["test"] == (Question("Where was P90 born?", "T6"),)


def at(name: str, content: str | bytes):
    def damage(folder: Path) -> None:
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    return damage


def without(name: str):
    return lambda folder: (folder / name).unlink()


GOOD = "Where?\tHere\n"
WRONG = {
    "three columns": (
        at("train.tsv", GOOD * 4 + "a\tb\tc\n"),
        r"train\.tsv: line 5: 3 columns; expected a question",
    ),
    "one column": (at("train.tsv", GOOD + "Where was Ada born? London\n"), r"train\.tsv: line 2: one column"),
    "an empty line": (at("validation.tsv", GOOD + "\n" + GOOD), r"validation\.tsv: line 2: an empty line"),
    "no question": (at("train.tsv", GOOD + " \tLondon\n"), r"line 2: the question is empty"),
    "no answer": (at("train.tsv", GOOD + "Where?\t \n"), r"line 2: the answer is empty"),
    "a header alone": (at("train.tsv", "question\tanswer\n"), "line 1: a header and nothing below it"),
    "a blind validation": (at("validation.tsv", "Where?\n"), r"validation\.tsv: line 1: one column"),
    "a test half blind": (
        at("test.tsv", "Where?\nWhen?\tNow\n"),
        r"test\.tsv: line 2: 2 columns; the first question has no",
    ),
    "latin-1": (
        at("train.tsv", "Wo?\tKöln\n".encode("latin-1")),
        r"train\.tsv: byte 5 \(line 1\) is not UTF-8; it seems to be cp1252",
    ),
    "latin-1 documents": (
        at("documents.txt", "ok\nK\xf6ln".encode("latin-1")),
        r"documents\.txt: byte 4 \(line 2\) is not UTF-8",
    ),
    "a zero byte": (at("documents.txt", b"a\nb\x00c\n"), r"documents\.txt: line 2 has a NUL byte"),
    "a zero byte in a question": (at("train.tsv", b"a\tb\n\x00\tc\n"), r"train\.tsv: line 2 has a NUL byte"),
    "empty documents": (at("documents.txt", "\n\n"), r"documents\.txt: this file is empty"),
    "empty questions": (at("train.tsv", ""), r"train\.tsv: this file is empty"),
    "a line without end": (at("documents.txt", "x" * 100_001), r"documents\.txt: line 1: 100,001 characters"),
    "one document": (at("documents.txt", "only this\n" * 50), "1 distinct lines are too few"),
    "carriage returns only": (at("train.tsv", "a\tb\rc\td\r"), "carriage returns only"),
    "a zip": (at("documents.txt", b"PK\x03\x04" + b"x" * 50), r"documents\.txt: packed as zip"),
    "nothing held out": (without("validation.tsv"), r"found train\.tsv but no validation\.tsv"),
    "nothing to learn from": (without("train.tsv"), r"found validation\.tsv but no train\.tsv"),
    "no documents": (without("documents.txt"), r"no documents\.txt in this folder"),
}


@pytest.mark.parametrize(("damage", "says"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_one_line_that_names_the_file_and_the_line(folder, damage, says: str) -> None:
    damage(folder)
    with pytest.raises(InputError, match=says) as refused:
        load(folder)
    assert "town" in str(refused.value) and "\n" not in str(refused.value) and len(str(refused.value)) < 400


@pytest.mark.parametrize(
    ("corpus", "says"),
    [
        ("nowhere.txt", "nowhere.txt: no such file"),
        ("no/where", "no such file"),
        ("questions.tsv", "give a folder with documents.txt"),
        ("~no-such-person/x", "not a valid path"),
        ("a\x00b.txt", "not a valid path"),
        ("x" * 300 + ".txt", "not a valid path"),
    ],
)
def test_a_path_that_is_none_is_one_line(tmp_path, monkeypatch, corpus: str, says: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as refused:
        load_corpus(DocumentCorpus, DataConfig(corpus=corpus))
    assert says in str(refused.value) and "\n" not in str(refused.value)
