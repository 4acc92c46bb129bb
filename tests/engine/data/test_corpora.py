import pytest

from engine.base.errors import InputError
from engine.config.sections import DataConfig
from engine.data.catalogue import load_corpus
from engine.data.corpora import TextCorpus


def test_playlets_splits_fall_between_scenes_and_carry_their_floor() -> None:
    corpus = load_corpus(TextCorpus, DataConfig(corpus_size=60_000, test_fraction=0.1))
    assert list(corpus.splits) == ["train", "validation", "test"]
    for split in corpus.splits.values():
        assert split.text.startswith("== ")
        assert split.floor is not None and len(split.floor) == len(split.text)
        assert all((probe.at < len(split.text)).all() for probe in split.probes)
    total = sum(len(split.text) for split in corpus.splits.values())
    assert 0.05 < len(corpus.splits["validation"].text) / total < 0.15


def test_recall_is_reported_near_and_far() -> None:
    probes = {p.name: p for p in load_corpus(TextCorpus, DataConfig(corpus_size=60_000)).splits["validation"].probes}
    assert (probes["recall<110"].distance < 110).all() and (probes["recall>=110"].distance >= 110).all()
    near, far = (probes[name].description for name in ("recall<110", "recall>=110"))
    assert near.endswith("near (under 110 characters)") and far.endswith("far (110 characters or more)")


def test_the_corpus_seed_changes_the_text_and_nothing_else_does() -> None:
    a, b = (load_corpus(TextCorpus, DataConfig(corpus_size=20_000)).sha256 for _ in range(2))
    assert a == b != load_corpus(TextCorpus, DataConfig(corpus_size=20_000, corpus_seed=2)).sha256


def test_a_text_file_is_cut_by_characters_last_part_validation(tmp_path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("äbc\r\n" * 200, encoding="utf-8", newline="")
    corpus = load_corpus(TextCorpus, DataConfig(corpus=str(path)))
    assert len(corpus.splits["train"].text) == 720 and len(corpus.splits["validation"].text) == 80
    assert "\r" not in corpus.splits["train"].text and corpus.source == str(path)
    assert corpus.all_notes == ("CR LF was read as LF 200 times; data.line_ends = keep prevents it",)
    kept = load_corpus(TextCorpus, DataConfig(corpus=str(path), line_ends="keep"))
    assert len(kept.splits["train"].text) == 900 and "\r\n" in kept.splits["train"].text and not kept.all_notes


def test_tiny_shakespeare_is_split_as_everybody_splits_it(real_data) -> None:
    corpus = load_corpus(TextCorpus, DataConfig(corpus="tiny-shakespeare"), real_data)
    assert len(corpus.splits["validation"].text) == 111_540
    assert len(corpus.splits["train"].text) == 1_003_854


NAMED = {
    ("wikitext-2", "train.txt", "valid.txt", "test.txt"),
    ("wikitext-2", "wiki.train.tokens", "wiki.valid.tokens", "wiki.test.tokens"),
    ("ptb", "ptb.train.txt", "ptb.valid.txt", "ptb.test.txt"),
    ("ptb", "train.txt", "valid.txt", "test.txt"),
}


@pytest.mark.parametrize(("name", "train", "valid", "test"), sorted(NAMED))
def test_official_splits_are_read_by_any_of_their_names(tmp_path, name: str, train: str, valid: str, test: str) -> None:
    (tmp_path / name).mkdir()
    for file in (train, valid, test):
        (tmp_path / name / file).write_text(f" {file} <unk> \n")
    corpus = load_corpus(TextCorpus, DataConfig(corpus=name, validation_fraction=0.5), tmp_path)
    assert {split: part.text for split, part in corpus.splits.items()} == {
        "train": f" {train} <unk> \n",
        "validation": f" {valid} <unk> \n",
        "test": f" {test} <unk> \n",
    }


@pytest.mark.parametrize("name", ["wikitext-2", "ptb"])
def test_a_missing_official_split_is_named(tmp_path, monkeypatch, name: str) -> None:
    monkeypatch.delenv("TUI_TRANSFORMER_DATA", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "none"))
    with pytest.raises(InputError, match=rf"data fetch {name}.*train.txt, .*valid.txt, .*test.txt"):
        load_corpus(TextCorpus, DataConfig(corpus=name), tmp_path)
    (tmp_path / name).mkdir()
    (tmp_path / name / "wiki.valid.tokens").write_text(" a \n")
    (tmp_path / name / "valid.txt").write_text(" a \n")
    with pytest.raises(InputError, match="train"):
        load_corpus(TextCorpus, DataConfig(corpus=name), tmp_path)


BAD = {
    "empty": b"",
    "blank": b" \n\n ",
    "binary": b"\x00\x01\x02" * 100,
    "latin-1": "Grüße".encode("latin-1") * 50,
    "utf-16": "text".encode("utf-16-le") * 50,
}


@pytest.mark.parametrize("raw", BAD.values(), ids=BAD.keys())
def test_files_that_are_no_text_are_refused(tmp_path, raw: bytes) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(raw)
    with pytest.raises(InputError, match="text.txt"):
        load_corpus(TextCorpus, DataConfig(corpus=str(path)))


@pytest.mark.parametrize("name", ["playlet", "nope", "missing.txt", "/", "a/b"])
def test_names_that_are_no_corpus_are_refused(name: str) -> None:
    with pytest.raises(InputError):
        load_corpus(TextCorpus, DataConfig(corpus=name))


def test_a_known_corpus_that_is_not_here_says_where_to_put_it(tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("TUI_TRANSFORMER_DATA", raising=False)
    monkeypatch.setattr("engine.data.corpus.user_data_path", lambda _: tmp_path)
    with pytest.raises(InputError, match=r"input\.txt at .*tiny-shakespeare.*playlets needs no download"):
        load_corpus(TextCorpus, DataConfig(corpus="tiny-shakespeare"))
