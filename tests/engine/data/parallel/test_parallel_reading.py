"""The readers give the text as it stands in the file, in every form a corpus comes in."""

import gzip
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.base.errors import InputError
from engine.config.sections import DataConfig
from engine.data.catalogue import load_corpus
from engine.data.framing import sha256_of_texts
from engine.data.known import CORPORA, names_of
from engine.data.parallel.by_path import load_path
from engine.data.parallel.iwslt import parse_segments, parse_tagged, parse_xml_pair
from engine.data.parallel.lines import NumberedLines, read_lines, read_text, split_lines
from engine.data.parallel.pairs import Pairs, ParallelCorpus
from engine.data.parallel.table import parse_pairs_and_languages
from engine.data.tables import parse_delimited, read_delimited, unquote

SENTENCE = st.text(st.characters(exclude_characters="\n\r\t\x00", exclude_categories=("Cs",)), min_size=1).filter(
    lambda text: text.strip() and not text.startswith(("\ufeff", "PK", "BZh"))
)


def read_xml(source: Path, target: Path) -> Pairs:
    return parse_xml_pair(*(read_text(path) for path in (source, target)))


def rows(lines: list[str]) -> tuple[Pairs, tuple[str, ...]]:
    return parse_pairs_and_languages(parse_delimited(iter(lines), "x", delimiter="\t"), "x")


def write(folder: Path, **files: str) -> None:
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(content, encoding="utf-8", newline="")


def numbered(language: str, count: int) -> str:
    return "".join(f"{language} {i}\n" for i in range(count))


@given(st.lists(SENTENCE, min_size=1))
def test_lines_come_back_as_they_were_written(sentences: list[str]) -> None:
    raw = "\n".join(sentences)
    assert split_lines(raw, "x").lines == split_lines(raw + "\n", "x").lines == sentences
    assert split_lines("\r\n".join([*sentences, ""]), "x").lines == sentences


def test_only_a_line_feed_ends_a_line() -> None:
    sentence = "one\u2028two\u0085three\x0bfour\x0cfive\x1csix\rseven"
    assert split_lines(f"  {sentence} \n", "x").lines == [f"  {sentence} "]


def test_composed_and_decomposed_letters_stay_as_they_are() -> None:
    assert split_lines("é\ne\u0301\nﬁ\u00a0\n", "x").lines == ["é", "e\u0301", "ﬁ\u00a0"]


@given(st.lists(SENTENCE, min_size=1, max_size=5), st.lists(SENTENCE, min_size=1, max_size=5))
def test_a_table_gives_what_two_files_would(ones: list[str], others: list[str]) -> None:
    pairs = list(zip(ones, others, strict=False))
    if any(unquote(cell) != cell for pair in pairs for cell in pair) or all(a == b for a, b in pairs):
        return
    lines = iter(["id\ta\tb", *(f"7\t{a}\t{b}" for a, b in pairs)])
    found, _ = parse_pairs_and_languages(parse_delimited(lines, "x", delimiter="\t"), "x", ("a", "b"))
    assert list(zip(found.sources, found.targets, strict=True)) == pairs


@pytest.mark.parametrize(
    ("first", "languages", "pairs"),
    [
        ("1\t2", ("source", "target"), 1),
        ("en\tde", ("en", "de"), 1),
        ("English\tGerman", ("english", "german"), 1),
        ("SOURCE\tTARGET", ("source", "target"), 1),
        ("It\tEs", ("source", "target"), 2),
        ("No\tNein", ("source", "target"), 2),
        ("2\t1", ("source", "target"), 2),
        ("Go.\tGeh.", ("source", "target"), 2),
    ],
)
def test_a_header_is_known_by_its_headings(first: str, languages: tuple[str, str], pairs: int) -> None:
    found, known = rows([first, "Run!\tLauf!"])
    assert known == languages and len(found) == pairs


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ('"Say ""aah."""', 'Say "aah."'),
        ('"""Who?"" she said."', '"Who?" she said.'),
        ('"Hi."', '"Hi."'),
        ('"Hi," he said, "you."', '"Hi," he said, "you."'),
        ('""', '""'),
        ('""""', '"'),
        ('Say ""aah""', 'Say ""aah""'),
        ('"', '"'),
        ("", ""),
    ],
)
def test_only_cells_that_a_csv_writer_quoted_are_unquoted(cell: str, text: str) -> None:
    assert unquote(cell) == text


def test_columns_are_found_by_name_and_by_number(tmp_path) -> None:
    write(tmp_path, p__tsv="id\tDeutsch\tEnglisch\n1\tHallo\tHi\n2\tGeh\tGo\n")
    lines = list(read_delimited(tmp_path / "p.tsv", delimiter="\t"))
    by_name, _ = parse_pairs_and_languages(lines, "p.tsv", ("Englisch", "Deutsch"))
    assert by_name == Pairs(("Hi", "Go"), ("Hallo", "Geh"))
    assert parse_pairs_and_languages(lines, "p.tsv", (3, 2))[0] == Pairs(
        ("Englisch", "Hi", "Go"), ("Deutsch", "Hallo", "Geh")
    )


TAGGED = "<doc docid='1'>\n<url>u</url>\n <title>A</title>\n<reviewer>r</reviewer>\n{}\n</doc>\n"


def test_tag_lines_are_no_sentences_and_pairs_with_an_empty_side_are_counted(tmp_path) -> None:
    write(tmp_path, en=TAGGED.format(" One.  two \n< three\n\nfour"), de=TAGGED.format("Eins. zwei\n< drei\nvier\n "))
    pairs, left_out = parse_tagged(read_lines(tmp_path / "en"), read_lines(tmp_path / "de"))
    assert pairs == Pairs(("One.  two", "< three"), ("Eins. zwei", "< drei")) and left_out == 2


def test_the_sentences_of_xml_are_joined_by_their_ids(tmp_path) -> None:
    en = "<m><doc docid='7'><title>T</title><seg id='1'> A &amp; B  c </seg><seg id='2'>two</seg></doc></m>"
    de = "<m><doc docid='7'><seg id='2'>zwei</seg><hl><seg id='1'>\nA und\nB</seg></hl></doc></m>"
    write(tmp_path, en=en, de=de)
    pairs = read_xml(tmp_path / "en", tmp_path / "de")
    assert pairs == Pairs(("A & B  c", "two"), ("A und B", "zwei"))


def test_deeply_nested_xml_needs_no_stack() -> None:
    raw = "<a>" * 200_000 + "<doc docid='1'><seg id='1'>x</seg></doc>" + "</a>" * 200_000
    assert parse_segments(raw, "x") == {("1", "1"): "x"}


def test_a_folder_is_read_split_by_split(tmp_path) -> None:
    write(tmp_path, train__en=numbered("en", 20), train__de=numbered("de", 20), dev__en="a\n", README__md="no")
    write(tmp_path, dev__de="b\n", notes__en="no", train__tsv="no")
    (tmp_path / "test.en.gz").write_bytes(gzip.compress(b"c\nd\n"))
    (tmp_path / "test.de.gz").write_bytes(gzip.compress(b"e\nf\n\n\n"))
    corpus = load_path(DataConfig(corpus=str(tmp_path)))
    assert {name: len(pairs) for name, pairs in corpus.splits.items()} == {"train": 20, "validation": 1, "test": 2}
    assert corpus.languages == ("en", "de") and corpus.splits["train"].sources[3] == "en 3"
    other = load_path(DataConfig(corpus=f"{tmp_path}#de,en"))
    assert other.languages == ("de", "en") and other.splits["test"] == corpus.splits["test"].reversed()


def test_one_pair_of_files_is_cut_by_the_fractions(tmp_path, monkeypatch) -> None:
    write(tmp_path, a__en=numbered("en", 200), a__de=numbered("de", 200))
    monkeypatch.chdir(tmp_path)
    corpus = load_corpus(ParallelCorpus, DataConfig(corpus="a.en,a.de", validation_fraction=0.1, test_fraction=0.05))
    assert {name: len(pairs) for name, pairs in corpus.splits.items()} == {"train": 170, "validation": 20, "test": 10}
    assert corpus.languages == ("en", "de") and corpus.name == "a.en,a.de"
    assert list(load_corpus(ParallelCorpus, DataConfig(corpus="a.en,a.de")).splits) == ["train", "validation"]


def test_a_name_with_a_hash_or_a_comma_is_a_name(tmp_path) -> None:
    write(tmp_path / "f", **{"a#b,c__tsv": "x\ty\n" + "".join(f"s{i}\tt{i}\n" for i in range(20))})
    corpus = load_corpus(ParallelCorpus, DataConfig(corpus=str(tmp_path / "f" / "a#b,c.tsv")))
    assert corpus.name == "a#b,c.tsv" and sum(map(len, corpus.splits.values())) == 21


def test_the_hash_tells_sides_and_sentences_apart() -> None:
    lists = [(["a", "b"], []), (["a"], ["b"]), (["ab"], []), ([], ["a", "b"]), (["a\nb"], []), (["a", "", "b"], [])]
    assert len({sha256_of_texts(*columns) for columns in lists}) == len(lists)


def test_an_iwslt_archive_is_read_without_unpacking_it(tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("TUI_TRANSFORMER_DATA", raising=False)
    place = tmp_path / "iwslt2017-en-de"
    place.mkdir()
    one = "<m><doc docid='1'><seg id='1'>{}</seg></doc></m>"
    with zipfile.ZipFile(place / "en-de.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("en-de/train.tags.en-de.en", "<url>x</url>\none\n\n")
        archive.writestr("en-de/train.tags.en-de.de", "<url>y</url>\neins\nzwei\n")
        for language in ("en", "de"):
            for name in ("dev2010", "tst2013"):
                archive.writestr(f"en-de/IWSLT17.TED.{name}.en-de.{language}.xml", one.format(language + name))
    corpus = load_corpus(ParallelCorpus, DataConfig(corpus="iwslt2017-en-de"), tmp_path)
    assert corpus.splits["train"] == Pairs(("one",), ("eins",))
    assert corpus.splits["test"] == Pairs(("entst2013",), ("detst2013",))
    assert corpus.notes == ("1 row with an empty side is left out",)


def test_tatoebas_archive_with_its_third_column_is_read(tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("TUI_TRANSFORMER_DATA", raising=False)
    (tmp_path / "tatoeba-en-de").mkdir()
    rows = "".join(f"Number {i}.\tNummer {i}.\tCC-BY 2.0 (France)\n" for i in range(2500))
    with zipfile.ZipFile(tmp_path / "tatoeba-en-de" / "deu-eng.zip", "w") as archive:
        archive.writestr("_about.txt", "about")
        archive.writestr("deu.txt", rows)
    corpus = load_corpus(ParallelCorpus, DataConfig(corpus="tatoeba-en-de"), tmp_path)
    assert [len(pairs) for pairs in corpus.splits.values()] == [500, 1000, 1000]
    assert corpus.splits["train"].targets[0].startswith("Nummer ")


def test_every_named_file_is_https_and_stays_in_its_folder() -> None:
    for entry in map(CORPORA.__getitem__, names_of("pairs")):
        for remote in entry.remotes:
            assert remote.url.startswith("https://") or (entry.needs_manual_download and entry.origin)
            assert remote.file.startswith(f"{entry.name}/")
            assert ".." not in remote.file and (remote.sha256 is None or len(remote.sha256) == 64)


# ── the real files, where they are ──


def test_multi30k_has_its_official_sizes_in_both_directions(real_data) -> None:
    corpus = load_corpus(ParallelCorpus, DataConfig(corpus="multi30k"), real_data)
    sizes = {"train": 29_000, "validation": 1_014, "test": 1_000}
    assert {name: len(pairs) for name, pairs in corpus.splits.items()} == sizes
    assert corpus.splits["test"].sources[0] == "A man in an orange hat starring at something."
    other = load_corpus(ParallelCorpus, DataConfig(corpus="multi30k#de,en"), real_data)
    assert other.languages == ("de", "en") and other.splits["test"].targets == corpus.splits["test"].sources
    assert other.sha256["test"] != corpus.sha256["test"]


def test_tatoeba_is_read_to_the_pair_and_shares_no_sentence(real_data) -> None:
    from engine.data.framing import fold_case_and_spaces

    corpus = load_corpus(ParallelCorpus, DataConfig(corpus="tatoeba-en-de"), real_data)
    rows = (real_data / "tatoeba-en-de" / "deu.tsv").read_bytes().count(b"\n") - 1
    assert sum(map(len, corpus.splits.values())) == rows
    assert len(corpus.splits["validation"]) == len(corpus.splits["test"]) == 1_000
    for side in ("sources", "targets"):
        train, validation, test = ({fold_case_and_spaces(s) for s in getattr(p, side)} for p in corpus.splits.values())
        assert not (train & validation or train & test or validation & test)
    assert not any('""' in text for pairs in corpus.splits.values() for text in pairs.sources + pairs.targets)


@pytest.mark.parametrize("name", ["dev2010", "tst2013"])
def test_iwslts_own_files_are_read_to_the_sentence(real_data, name: str) -> None:
    files = [real_data / "iwslt17-sample" / f"IWSLT17.TED.{name}.en-de.{one}.xml" for one in ("en", "de")]
    pairs = read_xml(*files)
    assert [path.read_bytes().count(b"<seg id=") for path in files] == [len(pairs), len(pairs)]
    assert all(text == text.strip() and "<" not in text for text in pairs.sources + pairs.targets)


def test_a_tag_on_both_sides_must_be_the_same() -> None:
    pairs, _ = parse_tagged(NumberedLines("a", ["<speaker>x", "one"]), NumberedLines("b", ["<speaker>y", "eins"]))
    assert len(pairs) == 1


def test_a_path_is_understood_wherever_one_stands(tmp_path, monkeypatch) -> None:
    from engine.data.parallel.by_path import make_absolute

    monkeypatch.chdir(tmp_path)
    (tmp_path / "one, two.tsv").write_text("a\tb\n")
    assert make_absolute("a.tsv#2,1") == f"{tmp_path}/a.tsv#2,1"
    assert make_absolute("a.en, a.de") == f"{tmp_path}/a.en,{tmp_path}/a.de"
    assert make_absolute("one, two.tsv") == f"{tmp_path}/one, two.tsv"
    assert make_absolute(".#de,en") == f"{tmp_path}#de,en" and make_absolute(make_absolute("x.tsv")) == make_absolute(
        "x.tsv"
    )


@pytest.mark.parametrize(("name", "test"), [("iwslt2017-en-zh", "tst2013"), ("ted-talks", "tst2010")])
def test_ted_talks_are_read_from_their_archive_in_every_direction(tmp_path, name: str, test: str) -> None:
    entry = CORPORA[name]
    place = tmp_path / name
    place.mkdir()
    with zipfile.ZipFile(tmp_path / entry.remotes[0].file, "w") as archive:
        for target in entry.languages[1:]:
            for side in ("en", target):
                lines = f"<talkid>1</talkid>\n{side} one \n{side} two\n"
                archive.writestr(f"folder/train.tags.en-{target}.{side}", lines)
                for stem in ("dev2010", test):
                    xml = f'<d><doc docid="1"><seg id="1"> {side} {stem} </seg></doc></d>'
                    archive.writestr(f"folder/IWSLT17.TED.{stem}.en-{target}.{side}.xml", xml)
    corpus = load_corpus(ParallelCorpus, DataConfig(corpus=name), tmp_path)
    sizes = [len(pairs) for pairs in corpus.splits.values()]
    assert sizes == [2 * (len(entry.languages) - 1), *[len(entry.languages) - 1] * 2]
    last = entry.languages[-1]
    one = load_corpus(ParallelCorpus, DataConfig(corpus=f"{name}#en,{last}"), tmp_path)
    assert one.splits["test"] == Pairs((f"en {test}",), (f"{last} {test}",)) and one.languages == ("en", last)


def test_chinese_to_english_is_its_other_direction(tmp_path) -> None:
    with pytest.raises(InputError, match="is not on this machine"):
        load_corpus(ParallelCorpus, DataConfig(corpus="iwslt2017-en-zh#zh,en"), tmp_path)
    with pytest.raises(InputError, match="ted-talks has only the directions ted-talks#en,de, .* and ted-talks#en,ro"):
        load_corpus(ParallelCorpus, DataConfig(corpus="ted-talks#de,en"), tmp_path)


def test_several_columns_are_several_target_languages(tmp_path) -> None:
    rows = ["en\tde\tfr", *(f"one {i}\teins {i}\t{f'un {i}' if i % 2 else ''}" for i in range(40))]
    (tmp_path / "t.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    corpus = load_path(DataConfig(corpus=f"{tmp_path / 't.tsv'}#en,de,fr", validation_fraction=0.2))
    assert corpus.languages == ("en", "de", "fr") and corpus.tagged_languages == ("de", "fr")
    assert sum(map(len, corpus.splits.values())) == 60
    bare = {name: {source[5:] for source in pairs.sources} for name, pairs in corpus.splits.items()}
    assert not bare["train"] & bare["validation"]  # a sentence is on one side, whatever it is translated to
    for pairs in corpus.splits.values():
        for source, target in zip(pairs.sources, pairs.targets, strict=True):
            assert target.split()[0] == {"<de>": "eins", "<fr>": "un"}[source.split()[0]]
    french = corpus.for_language("fr")
    assert french.languages == ("en", "fr") and all("<" not in one for one in french.splits["train"].sources)


def test_a_folder_of_several_languages_gives_each_its_direction(tmp_path) -> None:
    write(tmp_path, train__en="a\nb\n", train__zh="甲\n乙\n", train__ja="あ\n\n", val__en="c\n", val__zh="丙\n")
    write(tmp_path, val__ja="う\n")
    corpus = load_path(DataConfig(corpus=f"{tmp_path}#en,zh,ja"))
    assert corpus.splits["train"] == Pairs(("<zh> a", "<ja> a", "<zh> b"), ("甲", "あ", "乙"))
    assert corpus.splits["validation"] == Pairs(("<zh> c", "<ja> c"), ("丙", "う"))
