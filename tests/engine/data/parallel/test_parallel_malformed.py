"""Every way to hand in translations that are none: one clear line that names the file, the line, and what to do."""

import gzip
import io
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.base.errors import InputError
from engine.config.sections import DataConfig
from engine.data.catalogue import load_corpus
from engine.data.parallel import lines
from engine.data.parallel.by_path import align_lines
from engine.data.parallel.iwslt import parse_segments, parse_tagged
from engine.data.parallel.lines import split_lines
from engine.data.parallel.pairs import ParallelCorpus
from engine.data.parallel.table import parse_pairs_and_languages
from engine.data.tables import parse_delimited
from engine.data.text_files import cut_lines, decode

EN = "".join(f"This is sentence {i}.\n" for i in range(40))
DE = "".join(f"Das ist Satz {i}.\n" for i in range(40))
DE_SHORT = DE[: DE.rindex("Das")]
TSV = "".join(f"This is sentence {i}.\tDas ist Satz {i}.\n" for i in range(40))
NAMED_TSV = "id\tEnglisch\tDeutsch\n" + "".join(f"{i}\tThis is {i}.\tDas ist {i}.\n" for i in range(40))

Files = dict[str, str | bytes]


def pair(source: str | bytes, target: str | bytes) -> Files:
    return {"a.en": source, "a.de": target}


def line_changed(text: str, number: int, line: str) -> str:
    parts = text.split("\n")
    parts[number - 1] = line
    return "\n".join(parts)


def xml(*sentences: str, head: str = "", docid: str = "1") -> str:
    segments = "\n".join(sentences)
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n{head}<mteval>\n<doc docid="{docid}">\n{segments}\n</doc>\n</mteval>'
    )


TWO = ('<seg id="1"> One. </seg>', '<seg id="2"> Two. </seg>')
ENTITIES = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>\n'


def iwslt(**changed: str | bytes) -> Files:
    """A whole small IWSLT folder, with some of its files changed: `train_en`, `dev_de` …"""
    files: dict[str, str | bytes] = {"train_en": EN, "train_de": DE}
    for stem in ("dev", "tst"):
        for language in ("en", "de"):
            files[f"{stem}_{language}"] = xml(*TWO)
    files |= changed
    names = {"train": "train.tags.en-de.{}", "dev": "IWSLT17.TED.dev2010.en-de.{}.xml"}
    names["tst"] = "IWSLT17.TED.tst2013.en-de.{}.xml"
    return {
        f"iwslt2017-en-de/{names[key.split('_')[0]].format(key.split('_')[1])}": content
        for key, content in files.items()
    }


def zipped(*names: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, EN)
    return buffer.getvalue()


def damaged(raw: bytes) -> bytes:
    middle = len(raw) // 2
    return raw[:middle] + bytes(255 - byte for byte in raw[middle : middle + 20]) + raw[middle + 20 :]


# what is wrong → the files, the corpus asked for, what the message must say
AB = "{}/a.en,{}/a.de"
CASES: dict[str, tuple[Files, str, str]] = {
    # two files
    "a line too few": (pair(EN, DE_SHORT), AB, r"40 lines and .*39: .*a\.de ends after line 39"),
    "a line too many": (pair(EN, DE + "Noch einer.\n"), AB, r"40 lines and .*41: .*a\.en ends after line 40"),
    "an empty source": (pair(line_changed(EN, 7, ""), DE), AB, r"a\.en: line 7: this line is empty, but .*a\.de has"),
    "a blank target": (
        pair(EN, line_changed(DE, 9, " \t ")),
        AB,
        r"a\.de: line 9: this line is empty, but .*a\.en has",
    ),
    "both empty": (
        pair(line_changed(EN, 5, ""), line_changed(DE, 5, "")),
        AB,
        r"line 5: this line is empty, and so is",
    ),
    "the last source empty": (
        pair(line_changed(EN, 40, ""), DE),
        AB,
        r"a\.en: line 40: this line is empty, but .*a\.de has",
    ),
    "many empty lines at the end": (pair(EN + "\n" * 11, DE), AB, r"41 lines and .*40"),
    "empty file": (pair("", DE), AB, r"a\.en: this file is empty; it needs one sentence per line"),
    "a file of odd blanks": (pair(EN, "\x1c\u00a0\n\u2003\n"), AB, r"a\.de: this file is empty"),
    "blank file": (pair(EN, " \n\n"), AB, r"a\.de: this file is empty"),
    "only a byte-order mark": (pair(b"\xef\xbb\xbf", DE), AB, r"a\.en: this file is empty"),
    "latin-1": (
        pair(EN, (DE + "Grüße\n").encode("latin-1")),
        AB,
        r"a\.de: byte 672 \(line 41\) is not UTF-8; it seems to be cp1252: set data\.encoding = cp1252",
    ),
    "utf-16": (pair(EN, DE.encode("utf-16-be")), AB, r"a\.de: line 1 has a NUL byte; it seems to be utf-16-be: set"),
    "binary": (pair(EN, b"text\nmore\n\x00\x01\x02"), AB, r"a\.de: line 3 has a NUL byte, so this is not text"),
    "half a surrogate": (pair(EN, b"ja\n\xed\xa0\x80\n"), AB, r"a\.de: byte 3 \(line 2\) is not UTF-8; convert"),
    "carriage returns alone": (pair(EN.replace("\n", "\r"), DE), AB, r"a\.en: its lines end in carriage returns"),
    "one endless line": (pair("x" * 100_001 + "\n", "y\n"), AB, r"a\.en: line 1: 100,001 characters"),
    "too large": (pair(EN * 400, DE), AB, r"a\.en: larger than 20,000 characters"),
    "the same file twice": (pair(EN, DE), "{}/a.en,{}/a.en", r"a\.en: given for both sides"),
    "the same file by another name": (pair(EN, DE), "{}/a.en,{}/./sub/../a.en", r"given for both sides"),
    "the same text twice": (pair(EN, EN), AB, r"a\.en and .*a\.de contain the same text"),
    "a missing file": ({"a.en": EN, "b.de": DE}, AB, r"a\.de: no such file; did you mean 'b\.de'"),
    "a missing folder": (pair(EN, DE), "{}/no/a.en,{}/a.de", r"a\.en: no such file; the folder .*no does not exist"),
    "a folder for a file": (pair(EN, DE) | {"sub/x": ""}, "{}/a.en,{}/sub", r"sub: this is a folder"),
    "three files": (pair(EN, DE), "{}/a.en,{}/a.de,{}/a.fr", r"name two files separated by one comma"),
    "a comma too many": (pair(EN, DE), "{}/a.en,", r"name two files separated by one comma"),
    "columns of two files": (
        pair(EN, DE),
        AB + "#1,2",
        r"# selects columns of a table, but these two files have no columns",
    ),
    "too few to cut": (pair("One.\n", "Eins.\n"), AB, r"its 1 pairs form 1 groups .*nothing for train"),
    "all hang together": (
        pair(EN, "".join(f"Dasselbe{' ' * (i % 3)}.\n" if i else "DASSELBE .\n" for i in range(40))),
        AB,
        r"40 pairs form 2 groups|40 pairs form 1 groups",
    ),
    # compressed
    "gzip that is none": ({"a.en.gz": EN, "a.de": DE}, "{}/a.en.gz,{}/a.de", r"a\.en\.gz: is not packed, although"),
    "gzip cut short": (
        {"a.en.gz": gzip.compress(EN.encode())[:-10], "a.de": DE},
        "{}/a.en.gz,{}/a.de",
        r"a\.en\.gz: a damaged archive",
    ),
    "gzip with flipped bytes": (
        {"a.en.gz": damaged(gzip.compress(EN.encode())), "a.de": DE},
        "{}/a.en.gz,{}/a.de",
        r"a\.en\.gz: a damaged archive",
    ),
    "gzip that unpacks without end": (
        {"a.en.gz": gzip.compress(b"a" * 1_000_000), "a.de": DE},
        "{}/a.en.gz,{}/a.de",
        r"a\.en\.gz: larger than 20,000 characters",
    ),
    "zip by another name": (pair(zipped("x"), DE), AB, r"a\.en: packed as zip; unpack it"),
    # a table
    "a table of one column": ({"p.tsv": EN}, "{}/p.tsv", r"p\.tsv: line 1: one column; source and target need a tab"),
    "a table without a file": ({"q.tsv": TSV}, "{}/p.tsv", r"p\.tsv: no such file; did you mean 'q\.tsv'"),
    "a cell too many": (
        {"p.tsv": line_changed(TSV, 8, "a\tb\tc")},
        "{}/p.tsv",
        r"line 8: 3 columns, but line 1 has 2",
    ),
    "a cell too few": ({"p.tsv": line_changed(TSV, 8, "a")}, "{}/p.tsv", r"line 8: 1 columns, but line 1 has 2"),
    "an empty line": ({"p.tsv": line_changed(TSV, 8, "")}, "{}/p.tsv", r"line 8: an empty line, but line 1 has 2"),
    "an empty cell": ({"p.tsv": line_changed(TSV, 8, "a\t ")}, "{}/p.tsv", r"line 8: column 2 \(target\) is empty"),
    "an empty first cell": ({"p.tsv": line_changed(TSV, 8, "\tb")}, "{}/p.tsv", r"line 8: column 1 \(source\)"),
    "an unknown column": ({"p.tsv": NAMED_TSV}, "{}/p.tsv#Englich,Deutsch", r"'Englich'; did you mean 'Englisch'"),
    "a column like none": (
        {"p.tsv": NAMED_TSV},
        "{}/p.tsv#zz,Deutsch",
        r"'zz'; the columns are 'id', 'Englisch', 'Deutsch'",
    ),
    "a column with bytes of control": ({"p.tsv": NAMED_TSV}, "{}/p.tsv#\x1b[31m,Deutsch", r"named '\\x1b\[31m'"),
    "a number too high": ({"p.tsv": NAMED_TSV}, "{}/p.tsv#2,7", r"3 columns, so there is no column 7"),
    "number nought": ({"p.tsv": NAMED_TSV}, "{}/p.tsv#0,1", r"3 columns, so there is no column 0"),
    "one column twice": ({"p.tsv": NAMED_TSV}, "{}/p.tsv#2,2", r"column 2 is chosen twice"),
    "one column only": ({"p.tsv": NAMED_TSV}, "{}/p.tsv#2", r"# must be followed by two or more columns"),
    "a target chosen twice": ({"p.tsv": NAMED_TSV}, "{}/p.tsv#2,3,3", r"'3' is chosen twice"),
    "two columns of one name": ({"p.tsv": "de\tde\nx\ty\n"}, "{}/p.tsv#de,x", r"2 columns are named 'de'"),
    "a header alone": ({"p.tsv": "en\tde\n"}, "{}/p.tsv", r"line 1: a header and nothing below it"),
    "columns of the same text": ({"p.tsv": "a\ta\nb\tb\n"}, "{}/p.tsv", r"columns 1 and 2 contain the same text"),
    "a table in latin-1": ({"p.tsv": b"Hi\tGr\xfc\xdf\n"}, "{}/p.tsv", r"byte 5 \(line 1\) is not UTF-8"),
    # a folder
    "an empty folder": ({"f/x": ""}, "{}/f", r"f: train\.XX and train\.YY are needed.*it has no files with such names"),
    "a folder without training": (
        {"f/val.en": EN, "f/val.de": DE},
        "{}/f",
        r"train\.XX.* needed.*it has val\.de, val\.en",
    ),
    "a folder of one language": (
        {"f/train.en": EN},
        "{}/f",
        r"found train\.en but no translation of it, such as train\.de",
    ),
    "a folder of the other language": ({"f/train.de": DE}, "{}/f", r"found train\.de but .*such as train\.en"),
    "a folder of three": (
        {f"f/train.{one}": EN for one in ("en", "de", "fr")},
        "{}/f",
        r"found the languages en, de and fr; choose two: .*f#en,de",
    ),
    "a folder of three others": (
        {f"f/train.{one}": EN for one in ("cs", "fr", "it")},
        "{}/f",
        r"found the languages cs, fr and it; choose two: .*f#cs,fr",
    ),
    "a folder without that language": (
        {"f/train.en": EN, "f/train.de": DE},
        "{}/f#en,fr",
        r"f: no train\.fr to go with train",
    ),
    "validation of one language": (
        {"f/train.en": EN, "f/train.de": DE, "f/val.en": EN},
        "{}/f",
        r"f: no val\.de to go with val",
    ),
    "a folder misaligned": ({"f/train.en": EN, "f/train.de": DE_SHORT}, "{}/f", r"train\.de ends after line 39"),
    # names
    "a name misspelt": ({}, "multi3k", r"no parallel corpus named 'multi3k'; did you mean 'multi30k'"),
    "a name of nothing": ({}, "zzzz", r"known: .*multi30k, tatoeba-en-de.*a\.en,b\.de"),
    "a direction that is not there": (
        {},
        "multi30k#en,fr",
        r"has only the directions multi30k#en,de and multi30k#de,en",
    ),
    "a zero byte in the name": ({}, "a\x00b.tsv", r"cannot be read|not a valid path"),
    "a name too long": ({}, "x" * 3000 + ".tsv", r"cannot be read|not a valid path"),
    "somebody else's home": ({}, "~nobody-here/a.tsv", r"not a valid path"),
    # IWSLT
    "IWSLT tags that do not meet": (
        iwslt(train_en=line_changed(EN, 3, "<title>A</title>")),
        "iwslt2017-en-de",
        r"\.en: line 3: <title> and a sentence, the latter in .*\.de: the two files are not aligned",
    ),
    "IWSLT text too short": (iwslt(train_de=DE_SHORT), "iwslt2017-en-de", r"has 40 lines and .*39: .*\.de ends after"),
    "IWSLT with tags alone": (
        iwslt(train_en="<url>a</url>\n", train_de="<url>b</url>\n"),
        "iwslt2017-en-de",
        r"found tags but no sentences",
    ),
    "IWSLT without development": (
        {name: text for name, text in iwslt().items() if "dev2010" not in name},
        "iwslt2017-en-de",
        r"dev2010\.en-de\.en\.xml: no such file",
    ),
    "XML cut short": (iwslt(dev_de=xml(*TWO)[:-20]), "iwslt2017-en-de", r"dev2010.*de\.xml: line \d: damaged XML"),
    "XML with a bare ampersand": (
        iwslt(dev_en=xml(TWO[0], '<seg id="2">H & M</seg>')),
        "iwslt2017-en-de",
        r"line 5: damaged XML",
    ),
    "XML that declares entities": (
        iwslt(tst_en=xml(*TWO, head=ENTITIES)),
        "iwslt2017-en-de",
        r"line 2: a document type",
    ),
    "XML with a DTD from elsewhere": (
        iwslt(tst_en=xml(*TWO, head='<!DOCTYPE x SYSTEM "file:///etc/passwd">\n')),
        "iwslt2017-en-de",
        r"line 2: a document type declaration",
    ),
    "XML with an unknown entity": (
        iwslt(dev_en=xml('<seg id="1">&xxe;</seg>')),
        "iwslt2017-en-de",
        r"line 4: damaged XML \(undefined entity\)",
    ),
    "XML that is none": (iwslt(dev_en="hello\n"), "iwslt2017-en-de", r"line 1: damaged XML"),
    "XML in latin-1": (
        iwslt(dev_en=xml('<seg id="1">Grüße</seg>').encode("latin-1")),
        "iwslt2017-en-de",
        r"byte \d+ \(line 4\) is not UTF-8",
    ),
    "XML without sentences": (iwslt(dev_en=xml()), "iwslt2017-en-de", r"no <seg id=…> sentences found"),
    "a sentence twice": (
        iwslt(dev_en=xml(TWO[0], TWO[0])),
        "iwslt2017-en-de",
        r"line 5: sentence '1' of talk '1' .*twice",
    ),
    "a sentence without id": (iwslt(dev_en=xml("<seg>a</seg>")), "iwslt2017-en-de", r"line 4: a <seg> without id"),
    "a sentence without talk": (iwslt(dev_en="<x><seg id='1'>a</seg></x>"), "iwslt2017-en-de", r"without a <doc>"),
    "a talk without id": (iwslt(dev_en=xml(*TWO, docid="")), "iwslt2017-en-de", r"line 3: a <doc> without docid"),
    "an empty sentence": (iwslt(dev_de=xml('<seg id="1"> </seg>')), "iwslt2017-en-de", r"line 4: sentence '1' .*empty"),
    "a sentence in a sentence": (
        iwslt(dev_de=xml('<seg id="1">a<seg id="2">b</seg></seg>')),
        "iwslt2017-en-de",
        r"a <seg> within a <seg>",
    ),
    "another sentence": (
        iwslt(dev_de=xml(TWO[0])),
        "iwslt2017-en-de",
        r"de\.xml: no sentence '2' of talk '1', although .*en\.xml has one \(sentences: 1 and 2\)",
    ),
    "a sentence more": (
        iwslt(dev_en=xml(TWO[0])),
        "iwslt2017-en-de",
        r"en\.xml: no sentence '2' of talk '1', although .*de\.xml has one \(sentences: 1 and 2\)",
    ),
    "another talk": (iwslt(dev_de=xml(*TWO, docid="2")), "iwslt2017-en-de", r"no sentence '1' of talk '1'"),
    "an archive of something else": (
        {"iwslt2017-en-de/en-de.zip": zipped("a.txt")},
        "iwslt2017-en-de",
        r"en-de\.zip: no train\.tags\.en-de\.en in it",
    ),
    "an archive cut short": (
        {"iwslt2017-en-de/en-de.zip": zipped("en-de/train.tags.en-de.en")[:-30]},
        "iwslt2017-en-de",
        r"en-de\.zip .*damaged zip archive",
    ),
    "an archive damaged within": (
        {"iwslt2017-en-de/en-de.zip": damaged(zipped("en-de/train.tags.en-de.en"))},
        "iwslt2017-en-de",
        r"en-de\.zip .*damaged zip archive",
    ),
}


@pytest.fixture
def nowhere_else(tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("TUI_TRANSFORMER_DATA", raising=False)
    monkeypatch.setattr("engine.data.corpus.user_data_path", lambda _: tmp_path / "none")


@pytest.mark.parametrize("case", CASES)
def test_malformed_translations_are_refused_in_one_line(tmp_path: Path, monkeypatch, nowhere_else, case: str) -> None:
    files, corpus, expected = CASES[case]
    (tmp_path / "sub").mkdir()
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    if "20,000" in expected:
        monkeypatch.setattr(lines, "MAX_CHARACTERS", 20_000)
    with pytest.raises(InputError, match=expected) as caught:
        load_corpus(ParallelCorpus, DataConfig(corpus=corpus.replace("{}", str(tmp_path))), tmp_path)
    assert "\n" not in str(caught.value) and "\x1b" not in str(caught.value)


def test_the_small_iwslt_folder_is_otherwise_right(tmp_path: Path, nowhere_else) -> None:
    for name, content in iwslt().items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(str(content), encoding="utf-8")
    corpus = load_corpus(ParallelCorpus, DataConfig(corpus="iwslt2017-en-de"), tmp_path)
    assert [len(pairs) for pairs in corpus.splits.values()] == [40, 2, 2]


@pytest.mark.parametrize("name", ["multi30k", "tatoeba-en-de", "iwslt2017-en-de"])
def test_a_known_corpus_that_is_not_here_says_how_to_get_it(tmp_path: Path, nowhere_else, name: str) -> None:
    with pytest.raises(InputError, match=rf"data fetch {name}` to get it, or put .* from https://.* in .*none/{name}"):
        load_corpus(ParallelCorpus, DataConfig(corpus=name), tmp_path)


JUMBLE = st.lists(
    st.sampled_from(
        [b"a", b"\t", b"\n", b"\r", b" ", b"\x1c", b"\x00", b"\xc3\xa9", b"\xff", b"1\t2", b'"', b'""', b"<url>"]
    )
    | st.sampled_from(
        [b"<doc docid='1'>", b"</doc>", b"<seg id='1'>", b"</seg>", b"<!DOCTYPE a>", b"&amp;", b"\x1f\x8b"]
    )
).map(b"".join)


@given(JUMBLE, JUMBLE)
def test_no_bytes_at_all_get_past_an_input_error(one: bytes, other: bytes) -> None:
    def text(raw: bytes) -> str:
        return "".join(decode([raw], Path("a")))

    readers = (
        lambda: align_lines(split_lines(text(one), "a"), split_lines(text(other), "b")),
        lambda: parse_tagged(split_lines(text(one), "a"), split_lines(text(other), "b")),
        lambda: parse_pairs_and_languages(parse_delimited(cut_lines([text(one)], "a"), "a", delimiter="\t"), "a"),
        lambda: list(parse_delimited(cut_lines([text(one)], "a"), "a")),
        lambda: parse_segments(text(one), "a"),
    )
    for read in readers:
        with suppress(InputError):
            read()
