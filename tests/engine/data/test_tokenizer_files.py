"""Tokenizers on disk: of every kind, damaged, and kept in the cache."""

import json
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.base.errors import InputError
from engine.data.tokenizers import (
    BpeTokenizer,
    CharacterTokenizer,
    PairTokenizer,
    Tokenizer,
    WordTokenizer,
    cached_bpe,
    read_any_tokenizer,
    read_tokenizer,
)

TEXTS = ["the cat sat on the mat", "die Katze saß auf der Matte"] * 20
BPE, OTHER, CHARACTERS, WORDS = (
    BpeTokenizer.train(TEXTS, 285),
    BpeTokenizer.train(TEXTS, 270),
    CharacterTokenizer.from_texts("abc"),
    WordTokenizer.from_texts(["abc", "cab, abc."]),
)


def saved(folder: Path, text: str) -> Path:
    path = folder / "tokenizer.json"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "tokenizer",
    [BPE, CHARACTERS, WORDS, PairTokenizer(BPE, BPE), PairTokenizer(BPE, OTHER), PairTokenizer(CHARACTERS, BPE)],
    ids=["bpe", "characters", "words", "shared", "two", "mixed"],
)
def test_every_kind_comes_back_as_it_was(tmp_path, tokenizer) -> None:
    again = read_tokenizer(saved(tmp_path, tokenizer.to_json()))
    assert type(again) is type(tokenizer) and again.sha256 == tokenizer.sha256
    assert again.vocab_size == tokenizer.vocab_size and again.kind == tokenizer.kind


def test_every_kind_of_text_tokenizer_does_the_same_things() -> None:
    tokenizers: list[Tokenizer] = [BPE, CHARACTERS, WORDS]
    for tokenizer in tokenizers:
        ids = tokenizer.encode_all(["abc", "", "cab"])
        assert [tokenizer.decode(one) for one in ids] == ["abc", "", "cab"]
        decoder = tokenizer.decoder()
        assert "".join(decoder.feed(int(token)) for token in ids[2]) + decoder.finish() == "cab"


def test_a_pair_says_whether_it_is_shared() -> None:
    equal = BpeTokenizer(BPE.merges)
    shared, two = PairTokenizer(BPE, equal), PairTokenizer(BPE, OTHER)
    assert shared.shared and shared.target is shared.source
    assert not two.shared and (two.source.vocab_size, two.vocab_size) == (285, 270)
    assert shared.sha256 != two.sha256 != PairTokenizer(OTHER, BPE).sha256
    assert json.loads(shared.to_json())["target"] is None


def bpe(**changed: object) -> str:
    return json.dumps({"schema": 1, "kind": "bpe", "merges": [[97, 98]], **changed})


def paired(source: object, target: object) -> str:
    return json.dumps({"schema": 1, "kind": "pair", "source": source, "target": target})


A_PAIR = json.loads(PairTokenizer(BPE, OTHER).to_json())
DAMAGED = {
    "empty": ("", "cannot read"),
    "no JSON": ("{", "cannot read"),
    "a list": ("[]", "cannot read"),
    "nothing in it": ("{}", "it has no 'schema'"),
    "another version": (bpe(schema=9), r"written by another version \(schema 9; this version reads 1\)"),
    "a version of another type": (bpe(schema=[1]), "written by another version"),
    "another kind": (
        bpe(kind="syllables"),
        "unknown kind of tokenizer 'syllables': it must be characters, bpe, words, bytes, text-words",
    ),
    "a kind of another type": (bpe(kind=["bpe"]), "unknown kind"),
    "no merges": ('{"schema":1,"kind":"bpe"}', "it has no 'merges'"),
    "merges of another type": (bpe(merges=7), "cannot read"),
    "a merge of three": (bpe(merges=[[97, 98, 99]]), "a merge must be a pair of token ids"),
    "a merge of text": (bpe(merges=[["a", "b"]]), "a merge must be a pair of token ids"),
    "a merge of true": (bpe(merges=[[True, 98]]), "a merge must be a pair of token ids"),
    "a merge of fractions": (bpe(merges=[[97.0, 98]]), "a merge must be a pair of token ids"),
    "a merge of text itself": (bpe(merges=["ab"]), "a merge must be a pair of token ids"),
    "a merge of what is to come": (bpe(merges=[[97, 256]]), "merge 1 joins a token that does not exist"),
    "a merge below zero": (bpe(merges=[[97, -1]]), "merge 1 joins a token that does not exist"),
    "tokens that double and double": (bpe(merges=[[97, 97], *([i, i] for i in range(256, 300))]), "token of 512 bytes"),
    "a pair without a side": ('{"schema":1,"kind":"pair","source":null}', "cannot read"),
    "a pair without target": (json.dumps({k: v for k, v in A_PAIR.items() if k != "target"}), "it has no 'target'"),
    "a pair of pairs": (paired(A_PAIR, None), "not of pairs"),
    "a pair with a damaged side": (paired(json.loads(bpe()), {"schema": 1, "kind": "bpe"}), "it has no 'merges'"),
    "too deep": ("[" * 100_000, "cannot read"),
    "pairs within pairs": ('{"schema":1,"kind":"pair","source":' * 5_000 + "1" + "}" * 5_000, "cannot read"),
    "characters twice": ('{"schema":1,"kind":"characters","characters":"aa"}', "distinct"),
    "pickle": ("\x80\x04cposix\nsystem\n", "cannot read"),
}


@pytest.mark.parametrize("text, expected", DAMAGED.values(), ids=DAMAGED)
def test_damaged_files_are_refused_in_one_line(tmp_path, text: str, expected: str) -> None:
    with pytest.raises(InputError, match=expected) as caught:
        read_tokenizer(saved(tmp_path, text))
    assert "tokenizer.json" in str(caught.value) and "\n" not in str(caught.value) and len(str(caught.value)) < 400


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 300) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["merges", "kind"]), inner),
    max_leaves=8,
)


@given(st.sampled_from(["characters", "bpe", "words", "pair"]), JSON, JSON)
def test_no_json_at_all_gets_past_an_input_error(tmp_path_factory, kind: str, one: object, other: object) -> None:
    data = {"schema": 1, "kind": kind, "merges": one, "characters": one, "words": one, "source": one, "target": other}
    path = saved(tmp_path_factory.getbasetemp(), json.dumps(data))
    with suppress(InputError):
        read_tokenizer(path)


FOREIGN = {"model": {"type": "BPE", "merges": ["a b"]}, "pre_tokenizer": {"type": "ByteLevel"}, "added_tokens": []}
TABLES = st.dictionaries(st.sampled_from(["type", "merges", "content", "use_regex"]), JSON)


@given(st.sampled_from([*FOREIGN, "normalizer"]), JSON | TABLES | st.lists(JSON | TABLES, max_size=2))
@example("model", [1])
@example("pre_tokenizer", [1])
@example("added_tokens", [1])
@example("model", {"type": "BPE", "merges": [1]})
def test_no_file_of_another_library_gets_past_an_input_error(tmp_path_factory, part: str, other: object) -> None:
    path = saved(tmp_path_factory.getbasetemp(), json.dumps(FOREIGN | {part: other}))
    with suppress(InputError):
        read_any_tokenizer(path)


def test_a_missing_file_and_a_huge_one_are_refused(tmp_path, monkeypatch) -> None:
    with pytest.raises(InputError, match="cannot read this tokenizer"):
        read_tokenizer(tmp_path / "none.json")
    monkeypatch.setattr("engine.data.tokenizers.load.MAX_BYTES", 10)
    with pytest.raises(InputError, match="larger than"):
        read_tokenizer(saved(tmp_path, bpe()))


# ── the cache ──


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("TUI_TRANSFORMER_CACHE", str(tmp_path))
    return tmp_path / "tokenizers"


@pytest.fixture
def trained(monkeypatch) -> list[int]:
    sizes: list[int] = []
    really = BpeTokenizer.train

    def counted(texts, size):
        sizes.append(size)
        return really(texts, size)

    monkeypatch.setattr(BpeTokenizer, "train", counted)
    return sizes


def test_the_same_texts_are_learned_from_once(folder, trained) -> None:
    assert {cached_bpe(TEXTS, 285).sha256 for _ in range(3)} == {BPE.sha256} and trained == [285]
    cached_bpe(TEXTS, 270), cached_bpe([*TEXTS, "more"], 270), cached_bpe(["".join(TEXTS)], 270)
    assert trained == [285, 270, 270, 270]
    assert [path.suffix for path in folder.iterdir()] == [".npy"] * 4


@pytest.mark.parametrize("damage", ["", "{}", "\x00", "\x93NUMPY", "x" * 100])
def test_a_damaged_one_is_made_again(folder, trained, damage: str) -> None:
    cached_bpe(TEXTS, 285)
    next(folder.iterdir()).write_text(damage)
    assert cached_bpe(TEXTS, 285).sha256 == BPE.sha256 and trained == [285, 285]
    assert cached_bpe(TEXTS, 285).sha256 == BPE.sha256 and trained == [285, 285]


def test_a_changed_merge_is_damage(folder, trained) -> None:
    cached_bpe(TEXTS, 285)
    path = next(folder.iterdir())
    merges = np.load(path)
    merges[-2:] = 97
    np.save(path, merges)
    assert cached_bpe(TEXTS, 285).sha256 == BPE.sha256 and len(trained) == 2


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(tmp_path, monkeypatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("TUI_TRANSFORMER_CACHE", str(tmp_path / "file"))
    assert cached_bpe(TEXTS, 285).sha256 == BPE.sha256
