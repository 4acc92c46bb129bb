"""Tables: rows, cells and columns as their writers meant them."""

import csv as writers
import gzip
import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.base.errors import InputError
from engine.config.sections import DataConfig
from engine.data.catalogue import KINDS, kind_of, load_corpus
from engine.data.corpora import TextCorpus
from engine.data.corpus import END_OF_TEXT
from engine.data.tables import parse_delimited, read_columns, read_delimited
from engine.data.text_files import Reading, cut_lines

ODD = "\u2028 \u0085 \x0b \x0c \x1c \x1d \x1e \r, ;\t"  # none of them ends a row
CELL = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=20)


def documents(path: Path, field: str = "", **data: object) -> list[str]:
    corpus = load_corpus(TextCorpus, DataConfig(corpus=f"{path}{field and ':' + field}", **data))
    return "".join(split.text for split in corpus.splits.values()).split(END_OF_TEXT)[:-1]


def notes(path: Path, field: str = "") -> tuple[str, ...]:
    return load_corpus(TextCorpus, DataConfig(corpus=f"{path}{field and ':' + field}")).all_notes


@given(st.lists(st.lists(CELL, min_size=2, max_size=2), min_size=1, max_size=5), st.sampled_from(["\n", "\r\n"]))
def test_what_a_csv_writer_wrote_comes_back(rows: list[list[str]], end: str) -> None:
    from io import StringIO

    file = StringIO(newline="")
    writers.writer(file, lineterminator=end, quoting=writers.QUOTE_ALL).writerows(rows)
    found = [cells for _, cells in parse_delimited(cut_lines([file.getvalue()], "a"), "a")]
    assert found == rows


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("columns", [1, 2])
def test_only_line_ends_outside_quotation_marks_end_a_row(tmp_path, end: str, columns: int) -> None:
    texts = [f'text {i} {ODD if i % 2 else "plain"} "quoted" two\nlines' for i in range(60)]
    with (tmp_path / "a.csv").open("w", encoding="utf-8", newline="") as file:
        out = writers.writer(file, lineterminator=end)
        out.writerow(["text", "n"][:columns])
        out.writerows([text, str(i)][:columns] for i, text in enumerate(texts))
    assert documents(tmp_path / "a.csv", "text") == texts


def test_a_null_in_the_first_row_decides_nothing(tmp_path) -> None:
    rows = [{"id": f"note-{i:04}", "text": f"words {i}" if i % 9 else None} for i in range(90)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = documents(tmp_path / "a.jsonl")
    assert found == [f"words {i}" for i in range(90) if i % 9]
    assert notes(tmp_path / "a.jsonl") == ("rows left out because they have no text: 10",)


def test_a_row_without_the_field_is_left_out_and_counted_unless_no_row_has_it(tmp_path) -> None:
    rows = [{"text": f"words {i}"} if i % 3 else {"other": 1} for i in range(60)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert len(documents(tmp_path / "a.jsonl")) == 40 and "no text: 20" in notes(tmp_path / "a.jsonl")[0]
    with pytest.raises(InputError, match="line 1: no field named 'texts'; did you mean 'text'"):
        documents(tmp_path / "a.jsonl", "texts")


def test_a_field_within_fields_has_a_dotted_path(tmp_path) -> None:
    pytest.importorskip("pyarrow")
    from pyarrow import Table, parquet

    rows = [{"message": {"text": f"words {i}"}, "turns": [{"say": f"turn {i}"}], "a.b": f"dot {i}"} for i in range(60)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    parquet.write_table(
        Table.from_pylist([{"message": row["message"], "n": 1} for row in rows]), tmp_path / "a.parquet"
    )
    wanted = [f"words {i}" for i in range(60)]
    assert (
        documents(tmp_path / "a.jsonl", "message.text") == documents(tmp_path / "a.parquet", "message.text") == wanted
    )
    assert documents(tmp_path / "a.jsonl", "turns.0.say")[1] == "turn 1"
    assert documents(tmp_path / "a.jsonl", "a.b")[1] == "dot 1"
    assert documents(tmp_path / "a.parquet") == wanted  # the only text in it


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.json.gz"])
def test_a_json_array_is_recognized_and_said(tmp_path, name: str, indent: int | None) -> None:
    rows = [{"text": f"words ]}},[{{ {i} \u2028"} for i in range(300)]
    raw = json.dumps(rows, indent=indent, ensure_ascii=False).encode()
    (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    assert documents(tmp_path / name) == [row["text"] for row in rows]
    assert notes(tmp_path / name) == (f"read as a JSON array of objects: {name}",)
    cut = raw[:-1].rstrip()
    (tmp_path / "b.json").write_bytes(cut)
    with pytest.raises(InputError, match=r"b.json: line \d+: not a JSON object"):
        documents(tmp_path / "b.json")


def test_semicolons_and_tabs_are_recognized_and_said(tmp_path) -> None:
    for mark, said in ((";", "semicolons"), ("\t", "tabs")):
        path = tmp_path / f"{ord(mark)}.csv"
        path.write_text(f"id{mark}text\n" + "".join(f"{i}{mark}a text, with commas, {i}\n" for i in range(60)))
        assert documents(path)[7] == "a text, with commas, 7" and notes(path) == (
            f"{said} separate the cells of {path.name}",
        )
    labels = tmp_path / "labels.csv"
    labels.write_text("label;text\n" + "".join(f"{i % 3};text, no {i}\n" for i in range(60)))
    assert kind_of(str(labels)) == "labelled"
    corpus = load_corpus(KINDS["labelled"].corpus_class, DataConfig(corpus=str(labels)))
    assert corpus.classes == ("0", "1", "2") and corpus.all_notes == ("semicolons separate the cells of labels.csv",)
    (tmp_path / "commas.csv").write_text("text,n\n" + "".join(f"a; b; {i},{i}\n" for i in range(60)))
    assert documents(tmp_path / "commas.csv", "text")[3] == "a; b; 3" and not notes(tmp_path / "commas.csv", "text")


@pytest.mark.parametrize("quoting", [writers.QUOTE_ALL, writers.QUOTE_NONNUMERIC])
def test_a_table_whose_every_cell_is_quoted_is_unquoted_and_said(tmp_path, quoting: int) -> None:
    with (tmp_path / "p.tsv").open("w", encoding="utf-8", newline="") as file:
        out = writers.writer(file, delimiter="\t", quoting=quoting, lineterminator="\n")
        out.writerow(["n", "en", "de"])
        out.writerows([i, f'say "{i}"', f"sag\tes {i}"] for i in range(60))
    made = KINDS["pairs"].corpus_class
    for chosen in ("#en,de", "#2,3"):
        corpus = load_corpus(made, DataConfig(corpus=f"{tmp_path / 'p.tsv'}{chosen}"))
        pairs = [pair for split in corpus.splits.values() for pair in zip(split.sources, split.targets, strict=True)]
        assert ('say "7"', "sag\tes 7") in pairs
        assert corpus.all_notes == ("every cell of p.tsv is quoted; the quotation marks are left out",)


def test_quotation_marks_in_a_table_that_is_not_quoted_are_text(tmp_path) -> None:
    (tmp_path / "p.tsv").write_text("".join(f'"Hi {i}," he said\t"Hallo {i}"\n' for i in range(60)))
    corpus = load_corpus(KINDS["pairs"].corpus_class, DataConfig(corpus=str(tmp_path / "p.tsv")))
    assert corpus.splits["train"].targets[0].startswith('"Hallo') and not corpus.all_notes


def test_packed_tables_are_known_by_their_own_header(tmp_path) -> None:
    for n in range(12):  # compressed, the first bytes differ from file to file
        rows = "label,text\n" + "".join(f"{(i + n) % 3},text {n} {i}\n" for i in range(60))
        (tmp_path / f"{n}.csv.gz").write_bytes(gzip.compress(rows.encode()))
        assert kind_of(str(tmp_path / f"{n}.csv.gz")) == "labelled"
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"text\n" + b"words\n" * 60))
    assert kind_of(str(tmp_path / "t.csv.gz")) == "text" and len(documents(tmp_path / "t.csv.gz")) == 60


def test_rows_are_read_one_after_the_other(tmp_path) -> None:
    (tmp_path / "a.csv").write_bytes(b"text\n" + b"words\n" * (1 << 18) + b"\xff\n")
    rows = read_columns(tmp_path / "a.csv", [None], Reading())
    assert next(rows) == (2, ["words"])
    (tmp_path / "a.tsv").write_bytes(b"a\tb\n" * (1 << 19) + b"\xff\n")
    assert next(read_delimited(tmp_path / "a.tsv", delimiter="\t")) == (1, ["a", "b"])


def cpu_seconds(code: str, *arguments: str) -> float:
    """The CPU seconds of a process that reads something."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


READ = """
import sys
from pathlib import Path
from engine.base.errors import InputError
from engine.data.tables import read_columns
from engine.data.text_files import Reading
try:
    print(sum(len(cells[0]) for _, cells in read_columns(Path(sys.argv[1]), [None], Reading())))
except InputError as error:
    print(error)
"""


def test_an_array_on_one_line_takes_linear_time(tmp_path) -> None:
    seconds = []
    for count in (20_000, 200_000):
        (tmp_path / "a.json").write_text(json.dumps([{"text": f"some words {i} " * 4} for i in range(count)]))
        seconds.append(cpu_seconds(READ, str(tmp_path / "a.json")))
    assert seconds[1] < 15 * seconds[0] + 1, seconds  # 100 times as long if it were quadratic


def test_a_cell_of_many_megabytes_takes_linear_time(tmp_path) -> None:
    seconds = []
    for size in (4, 16):
        (tmp_path / "a.csv").write_bytes(b'text\n"' + b"some words and\n" * (size << 16) + b'"\n')
        seconds.append(cpu_seconds(READ, str(tmp_path / "a.csv")))
    assert seconds[1] < 6 * seconds[0] + 1, seconds  # 16 times as long if it were quadratic


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
def test_a_parquet_bomb_is_refused_within_300_megabytes(tmp_path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for name, table in (
        ("repeated", arrow.table({"text": arrow.array(["a" * (8 << 20)] * 128)})),
        ("plain", arrow.table({"text": [f"{i}" + "a" * (1 << 20) for i in range(128)]})),
    ):
        path = tmp_path / f"{name}.parquet"
        parquet.write_table(table, path, compression="zstd", use_dictionary=name == "repeated")
        assert path.stat().st_size < 1 << 20
        # Of the process itself: what its parent had before it does not count.
        code = f"{READ}\nprint(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1])"
        words = [sys.executable, "-c", f"import re\n{code}", str(path)]
        said, most = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
        assert "unpacks to more than 200 times its size" in said and int(most) < 300 << 10, (name, said, most)


def test_classes_are_counted_from_0_where_there_is_a_0_and_it_is_said(tmp_path) -> None:
    made = KINDS["labelled"].corpus_class
    (tmp_path / "classes.txt").write_text("World\nSports\nBusiness\n")

    def load(first: int, names: int = 3) -> object:
        rows = "".join(f"{first + i % names},text no {i}\n" for i in range(90))
        (tmp_path / "train.csv").write_text("label,text\n" + rows)
        return load_corpus(made, DataConfig(corpus=str(tmp_path)))

    assert load(1).classes == load(0).classes == ("World", "Sports", "Business")
    assert load(0).all_notes == ("the rows count classes from 0, so the first line of classes.txt names class 0",)
    assert load(1).all_notes == ()
    with pytest.raises(InputError, match="3 names, for classes 0 to 2, but the rows contain class 3"):
        load(0, 4)
    with pytest.raises(InputError, match="3 names, for classes 1 to 3, but the rows contain class 4"):
        load(2)
