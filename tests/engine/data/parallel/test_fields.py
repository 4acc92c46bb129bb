"""Articles with their summaries: two fields of a table, Gigaword's files and CNN/DailyMail's."""

import csv
import gzip
import json
from pathlib import Path

import pytest

from engine.base.errors import InputError
from engine.config.sections import DataConfig
from engine.data import hub
from engine.data.catalogue import kind_of, load_corpus
from engine.data.known import CORPORA
from engine.data.parallel.pairs import ParallelCorpus

ROWS = [{"id": str(i), "article": f"Article {i}.\nIts  second line.", "summary": f"summary {i}"} for i in range(20)]
FIELDS = "#article,summary"


def write(path: Path, rows: list[dict[str, str]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, list(rows[0]))
            table.writeheader()
            table.writerows(rows)
    elif path.suffix == ".jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    else:
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.Table.from_pylist(rows), path)
    return path


def load(corpus: str, data_dir: Path | None = None, **data) -> ParallelCorpus:
    return load_corpus(ParallelCorpus, DataConfig(corpus=corpus, **data), data_dir)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_two_fields_of_a_table_are_pairs_of_one_line_each(suffix: str, tmp_path: Path) -> None:
    corpus = f"{write(tmp_path / f'news.{suffix}', ROWS)}{FIELDS}"
    assert kind_of(corpus) == "pairs"
    found = load(corpus)
    pairs = dict(
        zip(
            *[sum(sides, ()) for sides in zip(*[(p.sources, p.targets) for p in found.splits.values()], strict=True)],
            strict=True,
        )
    )
    assert pairs == {f"Article {i}. Its second line.": f"summary {i}" for i in range(20)}
    assert found.languages == ("article", "summary") and set(found.splits) == {"train", "validation"}


def test_the_fields_may_stand_in_either_order_and_must_be_there(tmp_path: Path) -> None:
    path = write(tmp_path / "news.jsonl", ROWS)
    assert load(f"{path}#summary,article").splits["train"].sources[0].startswith("summary")
    with pytest.raises(InputError, match="line 1: no field named 'sumary'; did you mean 'summary'"):
        load(f"{path}#article,sumary")
    with pytest.raises(InputError, match="'article' is chosen twice"):
        load(f"{path}#article,article")


def test_a_folder_is_read_split_by_split_and_empty_sides_are_counted(tmp_path: Path) -> None:
    write(tmp_path / "news" / "train-0.jsonl", ROWS)
    write(tmp_path / "news" / "train-1.jsonl", [ROWS[0] | {"article": "Another."}, ROWS[1] | {"summary": " \n"}])
    write(tmp_path / "news" / "validation.jsonl", [ROWS[0] | {"article": "Held out."}])
    found = load(f"{tmp_path / 'news'}{FIELDS}")
    assert {name: len(pairs) for name, pairs in found.splits.items()} == {"train": 21, "validation": 1}
    assert found.notes == ("1 row with an empty side is left out",)


@pytest.mark.parametrize(
    "stems",
    [
        {"train": "train.{}.txt.gz", "validation": "valid.{}.filter.txt", "sides": ("article", "title")},
        {"train": "train.{}.txt", "validation": "dev.{}.txt", "test": "test.{}.txt", "sides": ("src", "tgt")},
    ],
)
def test_gigawords_files_are_its_official_splits_and_a_part_of_them_will_do(stems, tmp_path: Path) -> None:
    folder = tmp_path / "gigaword"
    folder.mkdir()
    first, second = stems.pop("sides")
    for split, name in stems.items():
        for side in (first, second):
            lines = "".join(
                "\n" if (split, side, i) == ("train", second, 5) else f"{split} {side} {i}\n" for i in range(40)
            )
            path = folder / name.format(side)
            path.write_bytes(gzip.compress(lines.encode()) if path.suffix == ".gz" else lines.encode())
    found = load("gigaword", tmp_path)
    assert {name: len(pairs) for name, pairs in found.splits.items()} == dict.fromkeys(stems, 40) | {"train": 39}
    assert found.splits["validation"].targets[3] == f"validation {second} 3" and "1 row " in found.notes[0]
    some = load("gigaword", tmp_path, corpus_size=30).splits
    assert {name: len(pairs) for name, pairs in some.items()} == dict.fromkeys(stems, 3) | {"train": 30}
    assert some["train"].sources == found.splits["train"].sources[:30]


def test_no_more_of_gigaword_is_read_than_is_needed(tmp_path: Path) -> None:
    """What follows is no text. A row without a title costs one more line, and is counted only if it comes before."""
    folder = tmp_path / "gigaword"
    folder.mkdir()
    for split in ("train", "dev"):
        for side in ("src", "tgt"):
            empty = {(side, i) for i in (5, 30, 31)} if side == "tgt" else set()
            lines = "".join("\n" if (side, i) in empty else f"{split} {side} {i}\n" for i in range(60)).encode()
            (folder / f"{split}.{side}.txt").write_bytes(lines + b"\xff\n" * 40)
    some = load("gigaword", tmp_path, corpus_size=29)
    assert some.splits["train"].sources[-1] == "train src 29" and len(some.splits["train"]) == 29
    assert some.notes == ("1 row with an empty side is left out",)
    with pytest.raises(InputError, match=r"train.src.txt: byte \d+ \(line 61\)"):
        load("gigaword", tmp_path)
    for side, name in (("src", "article"), ("tgt", "title")):
        (folder / f"train.{name}.txt.gz").write_bytes(gzip.compress((folder / f"train.{side}.txt").read_bytes()))
        (folder / f"train.{side}.txt").unlink()
        (folder / f"dev.{side}.txt").rename(folder / f"valid.{name}.filter.txt")
    again = load("gigaword", tmp_path, corpus_size=29)
    assert again.splits == some.splits and again.notes == some.notes


def test_gigaword_has_no_address_and_says_where_its_files_go(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("TUI_TRANSFORMER_DATA", raising=False)
    with pytest.raises(InputError, match="train.article.txt.*harvardnlp/sent-summary"):
        load("gigaword", tmp_path)


def test_cnn_dailymail_is_read_as_the_hub_keeps_it(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("TUI_TRANSFORMER_DATA", raising=False)
    entry = CORPORA["cnn-dailymail"]
    with pytest.raises(InputError, match="data fetch cnn-dailymail` to get it.*phrasebook needs no download"):
        load("cnn-dailymail", tmp_path)
    wanted = hub.parse(entry.hub)
    assert wanted is not None and entry.licence and wanted.folder == "3.0.0"
    place = tmp_path / "hub" / wanted.repository
    files = []
    for part, rows in (("train-00000-of-00002", ROWS[:12]), ("train-00001-of-00002", ROWS[12:]),
                       ("validation-00000-of-00001", ROWS[:5]), ("test-00000-of-00001", ROWS[:6])):  # fmt: skip
        named = [{"article": f"{part} {row['article']}", "highlights": row["summary"], "id": row["id"]} for row in rows]
        files.append(f"3.0.0/{part}.parquet")
        write(place / wanted.revision / files[-1], named)
    kept = {"corpus": wanted.uri, "commit": wanted.revision, "files": files}
    hub._listing_path(wanted, tmp_path).write_text(json.dumps(kept))
    found = load("cnn-dailymail", tmp_path)
    assert {name: len(pairs) for name, pairs in found.splits.items()} == {"train": 20, "validation": 5, "test": 6}
    assert found.splits["train"].sources[13].startswith("train-00001-of-00002 Article 13. Its second")
    assert load("cnn-dailymail", tmp_path, corpus_size=20).splits["test"].targets == ("summary 0", "summary 1")
