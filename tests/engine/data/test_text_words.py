"""Words of running text: as published where rare words are already <unk>, and any text elsewhere."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.base.errors import InputError
from engine.data import sources
from engine.data.text_sizes import TextSizes, sizes_of
from engine.data.tokenizers import TextWordTokenizer
from engine.data.tokenizers.load import parse

PUBLISHED = {
    "wikitext-2-sample/valid.txt": 217_646,
    "wikitext-2-sample/test.txt": 245_569,
    "ptb-sample/valid.txt": 73_760,
    "ptb-sample/test.txt": 82_430,
}


@pytest.mark.parametrize("file", PUBLISHED)
def test_the_published_splits_have_the_published_number_of_tokens(real_data, file: str) -> None:
    text = "".join(sources.find_source(str(real_data / file)).pieces(""))
    tokenizer = TextWordTokenizer.train(text, 1_000_000)
    ids = tokenizer.encode(text)
    assert len(ids) == PUBLISHED[file] == sizes_of(text.encode()).words
    assert [tokenizer.words[i] for i in ids] == [w for line in text.splitlines() for w in (*line.split(), "<eos>")]


def test_words_come_by_count_and_all_others_are_unk() -> None:
    tokenizer = TextWordTokenizer.train("b b a a c <unk> \n b rare\n", 5)
    assert tokenizer.words == ("<unk>", "b", "<eos>", "a", "c")
    assert tokenizer.encode("a zebra <unk> \n rare").tolist() == [3, 0, 0, 2, 0]


def test_where_no_word_is_unk_yet_words_seen_once_are() -> None:
    tokenizer = TextWordTokenizer.train("The cat sat. The cat ran.", 100)
    assert tokenizer.words == ("<unk>", ".", "The", "cat")
    assert tokenizer.decode(tokenizer.encode("The cat sat. The")) == "The cat <unk>. The"


@given(st.text(alphabet="ab .,\n'(é中\t", max_size=60))
def test_a_text_of_known_words_comes_back(text: str) -> None:
    tokenizer = TextWordTokenizer.train(text * 3, 1_000)
    ids = tokenizer.encode(text)
    if 0 not in ids:
        assert (tokenizer.encode(tokenizer.decode(ids)) == ids).all()
    again = parse(json.loads(tokenizer.to_json()))
    assert again.sha256 == tokenizer.sha256 and (again.target.encode(text) == ids).all()


@pytest.mark.parametrize("text", [" <unk> a\nb", "\n<unk>", " \n <unk> b", "<unk> c", "é <unk>"])
def test_the_first_token_knows_its_bytes(text: str) -> None:
    tokenizer = TextWordTokenizer.train(text, 100)
    ids = tokenizer.encode(text)
    rest = text.encode()[tokenizer.first_token_bytes(text, int(ids[0])) :].decode()
    assert (tokenizer.encode(rest) == ids[1:]).all()


DAMAGED = {
    "no words": {"words": [], "spaced": True},
    "another first word": {"words": ["a"], "spaced": True},
    "a word twice": {"words": ["<unk>", "a", "a"], "spaced": True},
    "white space in a word": {"words": ["<unk>", "a b"], "spaced": True},
    "two words in one": {"words": ["<unk>", "a.b"], "spaced": False},
    "a number": {"words": ["<unk>", 7], "spaced": True},
    "no truth": {"words": ["<unk>", "a"], "spaced": "yes"},
}


@pytest.mark.parametrize("vocabulary", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_vocabulary_is_refused(vocabulary: dict) -> None:
    with pytest.raises((InputError, ValueError)):
        parse({"schema": 1, "kind": "text-words", "vocabulary": vocabulary})


def test_sizes_of_a_text_that_starts_within_a_character() -> None:
    raw = "é中 b\n".encode()
    assert sizes_of(raw) == TextSizes(characters=5, words=3, bytes=8, spaceless=-1)
    assert sizes_of(raw[1:]) == TextSizes(characters=4, words=3, bytes=7, spaceless=0)
    assert sizes_of(b"") == TextSizes(0, 0, 0, 0)
