import json
from pathlib import Path

import pytest

from engine.base.errors import InputError
from engine.config.sections import DataConfig
from engine.data.catalogue import kind_of, load_corpus, portable_name
from engine.data.corpora import TextCorpus
from engine.data.sources import END_OF_TEXT, find_source, split_field

STORIES = ["Once upon a time,\nthere was a fox.", "Es war einmal ein Fuchs: “schlau”.", "从前有一只狐狸。"] * 40


def jsonl(path: Path, rows: list[object]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def parquet(path: Path, **columns: list[object]) -> Path:
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(arrow.table(columns), path)
    return path


def csv(path: Path, header: str, texts: list[str]) -> Path:
    rows = "".join('"{}",1\n'.format(text.replace('"', '""')) for text in texts)
    path.write_text(f"{header}\n{rows}", encoding="utf-8")
    return path


def whole(corpus: object, **data: object) -> str:
    return "".join(
        split.text for split in load_corpus(TextCorpus, DataConfig(corpus=str(corpus), **data)).splits.values()
    )


def test_every_kind_of_file_gives_the_same_text(tmp_path) -> None:
    """Each document ends with the end-of-text mark, and nothing else is added."""
    expected = "".join(story + END_OF_TEXT for story in STORIES)
    rows = [{"id": 1, "story": story} for story in STORIES]
    assert whole(jsonl(tmp_path / "a.jsonl", rows)) == expected
    csv(tmp_path / "a.csv", "story,n", STORIES)
    assert whole(f"{tmp_path / 'a.csv'}:story") == expected
    assert whole(f"{parquet(tmp_path / 'a.parquet', story=STORIES, n=list(range(len(STORIES))))}:story") == expected
    (tmp_path / "folder").mkdir()
    for number, story in enumerate(STORIES):
        (tmp_path / "folder" / f"{number:03}.txt").write_text(story, encoding="utf-8", newline="")
    assert whole(tmp_path / "folder") == expected


def test_a_text_alone_stays_as_it_is(tmp_path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbf" + "ä\rb\u2028\f\u0085".encode() * 90)
    assert whole(path) == "ä\rb\u2028\f\u0085" * 90


def test_the_field_named_text_is_read_unless_another_is_asked_for(tmp_path) -> None:
    path = jsonl(tmp_path / "a.jsonl", [{"text": "one " * 30, "title": "two " * 30}] * 9)
    assert whole(path).startswith("one one") and whole(f"{path}:title").startswith("two two")
    assert split_field(f"{path}:title") == (str(path), "title") and split_field(str(path)) == (str(path), None)
    colon = tmp_path / "a:b.txt"
    colon.write_text("a text whose name has a colon" * 9)
    assert split_field(str(colon)) == (str(colon), None) and whole(colon).startswith("a text")


def test_a_folder_may_have_its_own_splits(tmp_path) -> None:
    (tmp_path / "data").mkdir()
    for name, word in (
        ("train-00000-of-00002", "a"),
        ("train-00001-of-00002", "b"),
        ("validation-0", "c"),
        ("test", "d"),
    ):
        jsonl(tmp_path / "data" / f"{name}.jsonl", [{"text": word * 50}] * 3)
    (tmp_path / "README.txt").write_text("no part of it")
    splits = load_corpus(TextCorpus, DataConfig(corpus=str(tmp_path))).splits
    assert {name: "".join(sorted(set(split.text.replace(END_OF_TEXT, "")))) for name, split in splits.items()} == {
        "train": "ab",
        "validation": "c",
        "test": "d",
    }
    (tmp_path / "data" / "validation-0.jsonl").unlink()
    splits = load_corpus(TextCorpus, DataConfig(corpus=str(tmp_path), test_fraction=0.2)).splits
    assert list(splits) == ["train", "validation", "test"] and splits["test"].text.startswith("d")
    assert len(splits["validation"].text) == pytest.approx(0.1 * 6 * 63, abs=1)


def test_a_path_with_a_field_means_the_same_from_anywhere(tmp_path, monkeypatch) -> None:
    jsonl(tmp_path / "a.jsonl", [{"story": "x" * 90}] * 9)
    (tmp_path / "texts").mkdir()
    jsonl(tmp_path / "texts" / "b.jsonl", [{"story": "y" * 90}] * 9)
    monkeypatch.chdir(tmp_path)
    for corpus in ("a.jsonl:story", "texts:story"):
        assert kind_of(corpus) == "text"
        assert portable_name(corpus, "text") == f"{tmp_path / corpus.partition(':')[0]}:story"
    moved = load_corpus(TextCorpus, DataConfig(corpus="/gone/a.jsonl:story"), tmp_path)
    assert moved.splits["train"].text.startswith("xxx")


BAD: dict[str, tuple[str, bytes, str]] = {
    "no JSON": ("a.jsonl", b'{"text": "a"}\nnonsense\n', "line 2: not a JSON object"),
    "no object": ("a.jsonl", b"[1]\n", "line 1: not a JSON object"),
    "latin-1": ("a.jsonl", b'{"text": "\xe4"}\n', "byte 10 (line 1) is not UTF-8"),
    "no such field": ("a.jsonl:txt", b'{"text": "a"}\n', "no field named 'txt'; did you mean 'text'?"),
    "a number": ("a.jsonl:n", b'{"text": "a", "n": 1}\n', "field 'n' is not text"),
    "several fields": ("a.jsonl", b'{"one": "a", "two": "b"}\n', "which field is the text? Choose one of one, two"),
    "half a pair": ("a.jsonl", b'{"text": "\\ud800"}\n', "a lone surrogate"),
    "nothing in it": ("a.jsonl", b'{"text": ""}\n{"text": null}\n', "this file is empty"),
    "a ragged row": ("a.csv:text", b"text,n\na,1\nb\n", "line 3: 1 columns, but the header has 2"),
    "latin-1 table": ("a.csv:text", b"text,n\n\xe4,1\n", "not UTF-8"),
    "an open quote": ("a.csv:text", b'text,n\n"a,1\n', "not a CSV row"),
    "no Parquet": ("a.parquet:text", b"PAR1 nonsense", "not a Parquet file"),
    "a field of a text": ("a.txt:text", b"a text", "a plain text file has no fields"),
}


@pytest.mark.parametrize(("name", "raw", "said"), BAD.values(), ids=BAD)
def test_a_faulty_file_is_named_with_its_line(tmp_path, name: str, raw: bytes, said: str) -> None:
    if "parquet" in name:
        pytest.importorskip("pyarrow")
    (tmp_path / name.partition(":")[0]).write_bytes(raw)
    with pytest.raises(InputError) as error:
        load_corpus(TextCorpus, DataConfig(corpus=str(tmp_path / name)))
    assert said in str(error.value) and name.partition(":")[0] in str(error.value)


def test_a_fault_of_a_parquet_file_is_named_with_its_row(tmp_path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    ends = arrow.array([*range(300), 302], arrow.int32()).buffers()[1]
    texts = arrow.Array.from_buffers(arrow.string(), 300, [None, ends, arrow.py_buffer(b"a" * 299 + b"\xed\xa0\x80")])
    parquet.write_table(arrow.table({"text": texts}), tmp_path / "a.parquet")
    for field, said in (("", "a.parquet: row 300: not UTF-8"), (":txt", "row 1: no field named 'txt'; did you mean")):
        with pytest.raises(InputError, match=said):
            load_corpus(TextCorpus, DataConfig(corpus=f"{tmp_path / 'a.parquet'}{field}"))


def test_without_pyarrow_a_line_says_how_to_get_it(tmp_path, monkeypatch) -> None:
    import sys

    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"needs pyarrow: run pip install 'tui-transformer\[parquet\]'"):
        load_corpus(TextCorpus, DataConfig(corpus=str(tmp_path / "a.parquet")))


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["a.jsonl", "b.csv"], "files of several kinds (.jsonl, .csv)"),
        (["train.jsonl", "more.jsonl"], "more.jsonl belongs to no split"),
        (["test.jsonl"], "nothing to train on, only test.jsonl"),
        (["picture.png"], "no text in this folder"),
    ],
)
def test_a_folder_that_cannot_be_split_is_refused(tmp_path, names: list[str], said: str) -> None:
    for name in names:
        jsonl(tmp_path / name, [{"text": "a"}])
    with pytest.raises(InputError) as error:
        find_source(str(tmp_path))
    assert said in str(error.value)
