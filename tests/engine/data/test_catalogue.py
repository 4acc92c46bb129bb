"""Which corpora there are, of which kind, and whether they are here."""

from dataclasses import replace
from pathlib import Path

import pytest

from engine.base.errors import InputError
from engine.config.sections import DataConfig
from engine.data.catalogue import KINDS, kind_of, load_corpus
from engine.data.corpus import CorpusEntry, Remote
from engine.data.documents.corpus import DocumentCorpus
from engine.data.known import CORPORA, kind_by_name, names_of
from engine.data.parallel.pairs import ParallelCorpus


def test_every_registered_corpus_is_listed_once() -> None:
    assert all(name == entry.name for name, entry in CORPORA.items())
    loaded = {name for kind in KINDS.values() for name in kind.named_loaders}
    from_hub = {name for name, entry in CORPORA.items() if entry.hub and entry.kind == "text"}
    assert loaded == set(CORPORA) - {"tiny-shakespeare", "ag-news"} - from_hub  # those two are read as one's own
    assert sorted(name for kind in KINDS for name in names_of(kind)) == sorted(CORPORA)


def test_a_generated_corpus_comes_first_and_is_never_missing(monkeypatch) -> None:
    generated = CorpusEntry("made-up", "pairs", "generated pairs", languages=("en", "de"))
    monkeypatch.setitem(CORPORA, "made-up", generated)
    first = CORPORA[names_of("pairs")[0]]
    assert first.remotes == () and CORPORA["made-up"].kind_label == "pairs, en → de"
    assert names_of("text")[0] == "playlets" and CORPORA["playlets"].characters == 64
    assert names_of("documents") == ["biographies", "biographies-named", "cs224n-birthplaces"]


@pytest.mark.parametrize(
    ("corpus", "kind"),
    [
        ("playlets", "text"),
        ("multi30k", "pairs"),
        ("multi30k#de,en", "pairs"),
        ("biographies", "documents"),
        ("cs224n-birthplaces", "documents"),
        ("a.txt", "text"),
        ("some/where", "text"),
        ("a.tsv", "pairs"),
        ("a.TSV.gz", "pairs"),
        ("a.en,a.de", "pairs"),
        ("a.txt#1,2", "pairs"),
        ("bulletins", "labelled"),
        ("headlines", "pairs"),
        ("a.csv", "labelled"),
        ("a.CSV.gz", "labelled"),
    ],
)
def test_the_spelling_says_which_kind_a_corpus_is(corpus: str, kind: str) -> None:
    assert kind_of(corpus) == kind


def test_what_stands_there_says_which_kind_a_path_is(tmp_path) -> None:
    assert kind_of(str(tmp_path)) == "pairs"
    (tmp_path / "one, two.txt").write_text("a text whose name has a comma")
    assert kind_of(str(tmp_path)) == "text" and kind_of(str(tmp_path / "one, two.txt")) == "text"
    (tmp_path / "train.en").write_text("Pairs come first.")
    assert kind_of(str(tmp_path)) == "pairs"
    (tmp_path / "documents.txt").write_text("a document\nanother")
    assert kind_of(str(tmp_path)) == "documents" and kind_of(str(tmp_path / "documents.txt")) == "text"
    assert len(load_corpus(DocumentCorpus, DataConfig(corpus=str(tmp_path))).documents["train"]) == 1


@pytest.mark.parametrize("corpus", ["multi3k", "nobody", "x" * 300, "a.tsv#1", "~no-such-person/x"])
def test_what_is_neither_a_name_nor_a_path_is_one_line(corpus: str) -> None:
    with pytest.raises(InputError) as refused:
        kind_of(corpus)
    assert "\n" not in str(refused.value) and kind_by_name(corpus) is None


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def test_a_corpus_is_here_when_a_folder_has_all_of_its_files(tmp_path) -> None:
    entry = CORPORA["multi30k"]
    first, second = tmp_path / "a", tmp_path / "b"
    touch(first, *(remote.file for remote in entry.remotes[:-1]))
    assert entry.find_files([first, second]) is None
    touch(second, *(remote.file for remote in entry.remotes))
    assert entry.find_files([first, second]) == second / "multi30k"
    touch(first, "tiny-shakespeare/input.txt")
    assert CORPORA["tiny-shakespeare"].find_files([second, first]) == first / "tiny-shakespeare" / "input.txt"


def test_other_files_that_do_as_well_are_found_as_the_loader_finds_them(tmp_path) -> None:
    entry = CORPORA["tatoeba-en-de"]
    assert entry.find_files([tmp_path]) is None
    touch(tmp_path, "tatoeba-en-de/deu.tsv")
    lines = [f"{i} cats sleep\t{i} Katzen schlafen\n" for i in range(3_000)]
    (tmp_path / "tatoeba-en-de" / "deu.tsv").write_text("".join(lines))
    assert entry.find_files([tmp_path]) == tmp_path / "tatoeba-en-de"
    assert len(load_corpus(ParallelCorpus, DataConfig(corpus="tatoeba-en-de"), tmp_path).splits["train"]) == 1_000
    talks = CORPORA["iwslt2017-en-de"]
    touch(tmp_path, *(f"iwslt2017-en-de/{name}" for name in talks.instead[0][1:]))
    assert talks.find_files([tmp_path]) is None
    touch(tmp_path, f"iwslt2017-en-de/{talks.instead[0][0]}")
    assert talks.find_files([tmp_path]) == tmp_path / "iwslt2017-en-de"


def test_files_without_an_address_are_here_as_the_loader_finds_them(tmp_path) -> None:
    entry = CORPORA["cs224n-birthplaces"]
    assert (
        entry.needs_manual_download
        and not CORPORA["multi30k"].needs_manual_download
        and entry.kind_label == "documents"
    )
    touch(tmp_path, *(remote.file for remote in entry.remotes[:-1]))
    assert entry.find_files([tmp_path]) is None
    touch(tmp_path, entry.remotes[-1].file)
    assert entry.find_files([tmp_path]) == tmp_path / "cs224n-birthplaces"


def test_files_laid_out_as_ones_own_need_no_loader(tmp_path, monkeypatch) -> None:
    remotes = tuple(Remote("", f"mine/train.{language}", None, 1_000) for language in ("en", "de"))
    known = CORPORA["tiny-shakespeare"]  # has none either
    mine = replace(known, name="mine", kind="pairs", languages=("en", "de"), remotes=remotes)
    monkeypatch.setitem(CORPORA, "mine", mine)
    touch(tmp_path, "mine/train.en")
    for language, words in (("en", "cats sleep"), ("de", "Katzen schlafen")):
        (tmp_path / "mine" / f"train.{language}").write_text("".join(f"{i} {words}\n" for i in range(20)))
    there, back = (load_corpus(ParallelCorpus, DataConfig(corpus=name), tmp_path) for name in ("mine", "mine#de,en"))
    assert (there.name, there.version, there.source) == ("mine", "mine", str((tmp_path / "mine").resolve()))
    assert back.languages == ("de", "en") and back.splits["train"].sources == there.splits["train"].targets
