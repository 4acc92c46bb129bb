"""Files in any encoding, packed or not: one text, or one line that says what to set."""

import bz2
import codecs
import gzip
import lzma
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.base.errors import InputError
from engine.config.sections import DataConfig
from engine.data import text_files
from engine.data.catalogue import KINDS, load_corpus
from engine.data.text_files import Findings, Reading, cut_lines, decode, read_pieces, recognize_encoding

CHINESE = "第一回 甄士隱夢幻識通靈 賈雨村風塵懷閨秀\n此開卷第一回也。作者自云：因曾歷過一番夢幻之後。\n" * 9
JAPANESE = "吾輩は猫である。名前はまだ無い。\nどこで生れたかとんと見当がつかぬ。\n" * 9
GERMAN = "Die Bürger müssen über größere Maßnahmen prüfen – sehr schön.\n" * 9
RUSSIAN = "Все счастливые семьи похожи друг на друга.\n" * 9


def read(raw: bytes, path: Path, **how: Any) -> tuple[str, Findings]:
    path.write_bytes(raw)
    reading = Reading(**how)
    return "".join(read_pieces(path, reading)), reading.findings


@pytest.mark.parametrize(
    ("text", "encoding", "codec"),
    [
        (CHINESE, "big5", "big5"),
        (CHINESE, "gb18030", "gb18030"),
        (JAPANESE, "shift_jis", "cp932"),
        (GERMAN, "cp1252", "cp1252"),
        (CHINESE, "utf-16-le", "utf-16-le"),
        (GERMAN, "utf-16-be", "utf-16-be"),
    ],
)
def test_an_encoding_is_recognized_offered_and_read_when_it_is_set(tmp_path, text, encoding, codec) -> None:
    raw, path = text.encode(codec), tmp_path / "novel.txt"
    with pytest.raises(InputError, match=rf"it seems to be {encoding}: set data\.encoding = {encoding}$"):
        read(raw, path)
    with pytest.raises(InputError, match=rf"set --encoding {encoding}$"):
        read(raw, path, option="--encoding ")
    found, findings = read(raw, path, encoding=encoding)
    assert found == text and findings.encodings == {"novel.txt": encoding}
    assert findings.notes == (f"read as {encoding}: novel.txt",)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "gb18030", "big5"])
def test_a_text_is_the_same_in_blocks_of_any_size(monkeypatch, codec: str, size: int) -> None:
    raw = CHINESE.replace("\n", "\r\n").encode(codec)
    encoding = codec if codec in ("gb18030", "big5") else "auto"
    # A byte-order mark is looked for in the first block.
    blocks = [raw[:4], *(raw[i : i + size] for i in range(4, len(raw), size))]
    reading = Reading(encoding=encoding)
    assert "".join(decode(blocks, Path("a"), reading)) == CHINESE
    assert reading.findings.crlf == CHINESE.count("\n")


@pytest.mark.parametrize("codec", ["utf-16", "utf-8-sig"])
def test_a_byte_order_mark_says_how_a_file_is_read(tmp_path, codec: str) -> None:
    found, findings = read(GERMAN.encode(codec), tmp_path / "a.txt")
    assert found == GERMAN and findings.encodings == ({"a.txt": "utf-16-le"} if codec == "utf-16" else {})
    with pytest.raises(InputError, match=r"its byte-order mark says utf-\S+; leave out data\.encoding = big5"):
        read(GERMAN.encode(codec), tmp_path / "a.txt", encoding="big5")


def test_utf8_is_not_read_as_anything_else(tmp_path) -> None:
    with pytest.raises(InputError, match=r"is UTF-8 text; leave out data\.encoding = gb18030"):
        read(CHINESE.encode(), tmp_path / "a.txt", encoding="gb18030")
    assert read(b"plain\n" * 9, tmp_path / "a.txt", encoding="gb18030")[0] == "plain\n" * 9  # the same in both


@pytest.mark.parametrize("raw", [b"\xff", b"ok\n\x80\x81\n", RUSSIAN.encode("cp1251"), b"K\xf6", bytes(range(256)) * 9])
def test_nothing_is_offered_that_would_read_any_bytes(raw: bytes) -> None:
    assert recognize_encoding(raw) in ("", "cp1252") and recognize_encoding(RUSSIAN.encode("cp1251")) == ""
    for encoding in text_files.OFFERED:
        with pytest.raises(UnicodeDecodeError):
            bytes(range(256)).decode(text_files.CODECS.get(encoding, encoding))


@pytest.mark.parametrize(
    ("first", "encoding", "second"),
    [
        (CHINESE.encode(), "auto", "第一回".encode("big5")),
        (CHINESE.encode("big5"), "big5", "größer".encode()),
        (b"a\n" * 9, "gb18030", b"ok\xff"),
    ],
)
def test_a_file_of_two_encodings_is_refused_at_its_byte(tmp_path, first: bytes, encoding: str, second: bytes) -> None:
    raw = first + second * 3
    with pytest.raises(InputError) as refused:
        read(raw, tmp_path / "a.txt", encoding=encoding)
    codec = "utf-8" if encoding == "auto" else encoding
    with pytest.raises(UnicodeDecodeError) as expected:
        raw.decode(codec)
    line = raw[: expected.value.start].count(b"\n") + 1
    assert f"byte {expected.value.start:,} (line {line:,}) is not {codec.upper()}" in str(refused.value)
    assert "seems" not in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize("size", [5, 1 << 20])
def test_what_comes_before_a_wrong_byte_is_read(monkeypatch, size: int) -> None:
    monkeypatch.setattr(text_files, "BLOCK", size)
    pieces = cut_lines(decode([b"one\ntwo\nth\xffree\n"], Path("a")), "a")
    assert [next(pieces), next(pieces)] == ["one", "two"]
    with pytest.raises(InputError, match=r"byte 10 \(line 3\)"):
        next(pieces)


def test_line_ends_are_kept_where_the_user_says_so_or_the_run_is_old(tmp_path) -> None:
    raw = b"one\r\ntwo\rthree\r\n"
    assert read(raw, tmp_path / "a")[0] == "one\ntwo\rthree\n"
    assert read(raw, tmp_path / "a", keeps_cr=True)[0] == read(raw, tmp_path / "a", version=1)[0] == raw.decode()


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.bz2", "a.xz"])
def test_a_packed_file_is_read_whatever_its_name(tmp_path, pack, name: str) -> None:
    assert read(pack(CHINESE.encode()), tmp_path / name)[0] == CHINESE
    with pytest.raises(InputError, match=r"a damaged archive"):
        read(pack(CHINESE.encode())[:-9], tmp_path / name)
    with pytest.raises(InputError, match="unpacks to more than 200 times its size"):
        read(pack(b"a" * (70 << 20)), tmp_path / name)


@pytest.mark.parametrize(
    ("magic", "kind"), [(b"PK\x03\x04", "zip"), (b"\x28\xb5\x2f\xfd", "Zstandard"), (b"7z\xbc\xaf\x27\x1c", "7z")]
)
def test_other_archives_are_named(tmp_path, magic: bytes, kind: str) -> None:
    with pytest.raises(InputError, match=rf"a.txt: packed as {kind}; unpack it first"):
        read(magic + b"...", tmp_path / "a.txt")


@given(st.lists(st.binary(max_size=40), max_size=6), st.sampled_from(text_files.ENCODINGS))
def test_no_bytes_get_past_an_input_error(blocks: list[bytes], encoding: str) -> None:
    try:
        "".join(decode(blocks, Path("a"), Reading(encoding=encoding)))
    except InputError as error:
        assert "\n" not in str(error)


# Every kind of corpus that reads files, and the same text in all encodings.
LINES = [f"{i}：{line}" for i, line in enumerate(CHINESE.splitlines())]
FILES = {
    "text": {"novel.txt": "\n".join(LINES) + "\n"},
    "text ": {"novel.csv": "text\n" + "".join(f'"{a}\n{b}"\n' for a, b in pairwise(LINES))},
    "documents": {"novel.txt": "\n".join(LINES) + "\n"},
    "documents ": {
        "novel/documents.txt": "\n".join(LINES) + "\n",
        "novel/train.tsv": "".join(f"{line[:9]}?\t{line[9:12]}\n" for line in LINES),
        "novel/validation.tsv": "".join(f"{line[:8]}?\t{line[9:12]}\n" for line in LINES),
    },
    "pairs": {"novel.tsv": "".join(f"{line}\t{line[::-1]}\n" for line in LINES)},
    "pairs ": {"a.zh": "\n".join(LINES) + "\n", "b.zh": "\n".join(line[::-1] for line in LINES) + "\n"},
    "pairs  ": {"novel.csv": "one,two\n" + "".join(f"{line},{line[::-1]}\n" for line in LINES)},
    "labelled": {"novel.csv": "label,text\n" + "".join(f"{i % 2},{line}\n" for i, line in enumerate(LINES))},
}
NAMES = {"documents ": "novel", "pairs ": "{}/a.zh,{}/b.zh", "pairs  ": "{}/novel.csv#one,two"}
FORMS = {
    "utf-8": (lambda text: text.encode(), "auto"),
    "byte-order mark": (lambda text: codecs.BOM_UTF8 + text.encode(), "auto"),
    "crlf": (lambda text: text.replace("\n", "\r\n").encode(), "auto"),
    "utf-16": (lambda text: text.encode("utf-16"), "auto"),
    "gb18030": (lambda text: text.encode("gb18030"), "gb18030"),
    "big5": (lambda text: text.encode("big5"), "big5"),
}


@pytest.mark.parametrize("kind", FILES)
def test_one_novel_is_the_same_text_in_any_encoding_in_each_task_that_reads_files(tmp_path, kind: str) -> None:
    hashes = {}
    for form, (encode, encoding) in FORMS.items():
        folder = tmp_path / form
        for name, text in FILES[kind].items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(encode(text))
        name = NAMES.get(kind, next(iter(FILES[kind])))
        corpus = name.replace("{}", str(folder)) if "{}" in name else str(folder / name)
        data = DataConfig(corpus=corpus, encoding=encoding, validation_fraction=0.2)
        found = load_corpus(KINDS[kind.strip()].corpus_class, data)  # type: ignore[index]
        hashes[form] = found.sha256
        assert bool(found.reading.findings.encodings) == (form in ("utf-16", "gb18030", "big5"))
        if encoding != "auto":
            with pytest.raises(InputError, match=rf"it seems to be {encoding}: set data\.encoding = {encoding}"):
                load_corpus(KINDS[kind.strip()].corpus_class, DataConfig(corpus=corpus))  # type: ignore[index]
    assert len({str(sorted(one.items())) for one in hashes.values()}) == 1, hashes
