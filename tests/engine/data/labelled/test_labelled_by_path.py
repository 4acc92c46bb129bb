"""Labelled texts of one's own: what a CSV file may look like, how it is split, and what is refused."""

import gzip
from pathlib import Path

import pytest

from engine.base.errors import InputError
from engine.config.schema import RunConfig
from engine.config.sections import DataConfig
from engine.data.catalogue import kind_of, load_corpus
from engine.data.labelled.by_path import read_table
from engine.data.labelled.corpus import LabelledCorpus
from engine.data.synthetic.draws import Draws
from engine.runs.verdict import OK, SUSPICIOUS
from engine.tasks.task import make_task


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def load(path: Path, **changes: object) -> LabelledCorpus:
    return load_corpus(LabelledCorpus, DataConfig(corpus=str(path), **changes))


def many(rows: int) -> str:
    return "".join(f"{1 + i % 3},text number {i}\n" for i in range(rows))


def test_without_a_header_the_first_column_is_the_class_and_the_others_are_the_text(tmp_path) -> None:
    path = written(tmp_path / "a.csv", '"3","Fears for T N","Unions say ""no""."\n"4","The race\nis on",""\n')
    assert read_table(path)[0] == [('Fears for T N Unions say "no".', "3"), ("The race is on", "4")]


@pytest.mark.parametrize(
    "header", ["text,label", "Label,text", "id,category,text", "Class Index,Title,Description", "note,class"]
)
def test_a_header_names_the_class_and_perhaps_the_text(tmp_path, header: str) -> None:
    cells = {"label": "b", "category": "b", "class index": "b", "class": "b", "id": "17"}
    row = ",".join(cells.get(name.casefold(), "good") for name in header.split(","))
    found = read_table(written(tmp_path / "a.csv", f"{header}\n{row}\n"))[0]
    assert found == [("good good" if "Title" in header else "good", "b")]


@pytest.mark.parametrize(
    ("first", "kind"),
    [("text", "text"), ("id,text", "text"), ("story", "text"), ("text,label", "labelled"), ("3,Good news", "labelled")],
)
def test_a_table_whose_header_names_a_text_but_no_class_is_a_text(tmp_path, first: str, kind: str) -> None:
    path = written(tmp_path / "a" / "train.csv", f"{first}\n")
    assert kind_of(str(path)) == kind_of(str(path.parent)) == kind
    assert kind_of(f"{path}:story") == "text"


def test_one_file_is_split_by_the_hash_of_its_texts(tmp_path) -> None:
    path = written(tmp_path / "a.csv", many(300))
    one = load(path, validation_fraction=0.1, test_fraction=0.2)
    assert {split: len(found) for split, found in one.splits.items()} == {"train": 210, "validation": 30, "test": 60}
    rows = many(300).splitlines(keepends=True)
    again = load(written(tmp_path / "b.csv", "".join(reversed(rows))), validation_fraction=0.1, test_fraction=0.2)
    assert all(set(again.splits[split].texts) == set(found.texts) for split, found in one.splits.items())


def test_equal_texts_share_a_side(tmp_path) -> None:
    one = load(written(tmp_path / "a.csv", many(60) + many(60)), validation_fraction=0.2)
    assert not set(one.splits["train"].texts) & set(one.splits["validation"].texts)


def test_a_folder_has_a_file_per_split(tmp_path) -> None:
    for name, rows in (("train", 30), ("dev", 6), ("test", 9)):
        written(tmp_path / f"{name}.csv", many(rows))
    written(tmp_path / "classes.txt", "World\nSports\nBusiness\n")
    one = load(tmp_path)
    assert kind_of(str(tmp_path)) == "labelled"
    assert {split: len(found) for split, found in one.splits.items()} == {"train": 30, "validation": 6, "test": 9}
    assert one.classes == ("World", "Sports", "Business") and one.splits["test"].classes == (0, 1, 2) * 3
    (tmp_path / "dev.csv").unlink()
    split = load(tmp_path, validation_fraction=0.1, test_fraction=0.1)  # the test split is that of the file
    assert {name: len(found) for name, found in split.splits.items()} == {"train": 27, "validation": 3, "test": 9}


def test_numbers_without_names_are_in_their_order_and_files_may_be_packed(tmp_path) -> None:
    rows = "".join(f"{i},text {k} of class {i}\n" for i in (10, 9, 1) for k in range(40))
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(rows.encode()))
    assert load(tmp_path / "a.csv.gz").classes == ("1", "9", "10")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("only one column\n", "line 1: one column"),
        ("1,a\n2,b,c\n", "line 2: 3 columns"),
        ("1,a\n2, \n", "line 2: the text is empty"),
        ("1,a\n,b\n", "line 2: the class is empty"),
        ('1,a\n2,"b"c\n', "line 2: not a CSV row"),
        ("label,text\n", "no rows"),
        ("1,a\n1,b\n1,c\n1,d\n", "1 different classes"),
        ("1,a\n", "too few"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line(tmp_path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as refused:
        load(written(tmp_path / "a.csv", text), validation_fraction=0.6)
    assert "\n" not in str(refused.value)


# What gives the class away


def reviews(path: Path, header: str, row: str, rows: int = 600) -> Path:
    """A table of reviews, each of ten words drawn from twenty; `row` may use `label`, `name`, `i` and `words`."""
    draws, some = (
        Draws(1),
        "room food staff good bad clean slow fine hotel bed view it was the a of again never nice not",
    )
    lines = [header] if header else []
    for i in range(rows):
        label, words = draws.pick((0, 1)), " ".join(draws.pick(some.split()) for _ in range(10))
        lines.append(row.format(label=label, name=("negative", "positive")[label], i=i, words=words))
    return written(path, "\n".join(lines))


@pytest.mark.parametrize(
    ("header", "row", "column"),
    [
        ("label,label_name,review_text", "{label},{name},{words}", "'label_name'"),
        ("review_text,\x1b[31mred,label", "{words},{name},{label}", "'\\[31mred'"),
        ("", "{label},{name},{words}", "2"),
        ("label,text,title", "{label},{words},{name}", "'title'"),
    ],
)
def test_a_column_that_repeats_the_class_is_refused_when_a_run_starts(tmp_path, header, row, column) -> None:
    path = reviews(tmp_path / "a.csv", header, row)
    config = RunConfig.model_validate(
        {"model": {"architecture": "encoder"}, "objective": {"kind": "classification"}}
        | {"data": {"corpus": str(path), "tokenizer": "words"}}
    )
    task = make_task(config, None)  # as a run of an earlier version does
    for begin in (lambda: task.resolve_config(config, "test", 1), lambda: task.corpus.describe("")):
        with pytest.raises(InputError, match=f"column {column} repeats the class; remove it") as refused:
            begin()
        assert "\n" not in str(refused.value) and "\x1b" not in str(refused.value)


@pytest.mark.parametrize(
    ("header", "row", "said"),
    [
        ("label,i\x1bd,review_text", "{label},{i},{words}", ["the columns 'id', 'review_text' make up the text"]),
        ("label,review_text", "{label},{words}", []),
        ("label,id,text", "{label},{i},{words}", []),
        ("label,title,text", "{label},{i},{words}", []),
        ("", "{label},{i},{words}", []),
    ],
)
def test_unrecognized_columns_that_are_joined_are_named(tmp_path, header, row, said: list[str]) -> None:
    corpus = load(reviews(tmp_path / "a.csv", header, row))
    assert not corpus.refusal and [note.partition(";")[0] for note in corpus.notes] == said
    assert [one.verdict.verdict for one in corpus.shortcuts] == ["ok"]


@pytest.mark.parametrize(
    ("row", "word"),
    [
        ("{label},{name} {words}", "'negative' → '0'; any other text → '1'"),
        ("{label},{words} ({name}!)", "'negative' → '0'; any other text → '1'"),
    ],
)
def test_a_word_that_gives_the_class_away_is_reported_before_training(tmp_path, row: str, word: str) -> None:
    corpus = load(reviews(tmp_path / "a.csv", "", row))
    (found,) = (one.verdict for one in corpus.shortcuts)
    assert found.verdict == SUSPICIOUS and "classify 100.0% of the texts" in found.why and word in found.why
    assert ("⚠ shortcut", found.why) in corpus.describe("").lines


def test_too_few_texts_or_a_common_class_are_no_shortcut(tmp_path) -> None:
    few = load(reviews(tmp_path / "few.csv", "", "{label},{name} {words}", rows=150))
    assert few.shortcuts == []  # 15 held-out texts
    rows = [f"{int(i % 200 == 0)},text {i} of many, all different" for i in range(20_000)]
    common = load(written(tmp_path / "common.csv", "\n".join(rows)))
    assert all(one.verdict.verdict == OK for one in common.shortcuts)  # always 0 is right for 99.5 %


def test_sound_corpora_have_no_shortcut(cached_corpora) -> None:
    (found,) = load(Path("bulletins"), corpus_size=2_000).shortcuts
    assert found.share < 0.6 and found.verdict.verdict == OK


def test_a_class_that_training_lacks_and_a_missing_name_are_refused(tmp_path) -> None:
    written(tmp_path / "train.csv", many(30))
    written(tmp_path / "test.csv", "4,a text\n")
    with pytest.raises(InputError, match="class '4' appears in the test rows"):
        load(tmp_path)
    written(tmp_path / "test.csv", many(3))
    written(tmp_path / "classes.txt", "World\nSports\n")
    with pytest.raises(InputError, match="2 names, for classes 1 to 2, but the rows contain class 3"):
        load(tmp_path)


def test_ag_news_is_read_as_published(real_data) -> None:
    path = real_data / "ag-news-sample" / "test.csv"
    if not path.is_file():
        pytest.skip("ag-news-sample/test.csv is not there")
    rows = read_table(path)[0]
    assert len(rows) == 7_600 and {name: sum(n == name for _, n in rows) for name in "1234"} == dict.fromkeys(
        "1234", 1_900
    )
    one = load(path, validation_fraction=0.0658, test_fraction=0.0658)
    assert one.classes == ("World", "Sports", "Business", "Sci/Tech")
    assert [len(found) for found in one.splits.values()] == [6_600, 500, 500]
    assert one.shortcuts[0].share < 0.4 and not one.notes and not one.refusal
