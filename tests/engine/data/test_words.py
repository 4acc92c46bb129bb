"""Words as tokens: every text comes back, and a part of a text has the tokens that it has within it."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.base.errors import InputError
from engine.config.sections import DataConfig
from engine.data.catalogue import load_corpus
from engine.data.documents.corpus import DocumentCorpus
from engine.data.tokenizers import WordTokenizer, read_tokenizer

CORPUS = load_corpus(DocumentCorpus, DataConfig(corpus="biographies-named", corpus_size=40))
TOKENIZER = WordTokenizer.from_texts(CORPUS.texts())
TEXTS = [*CORPUS.documents["train"], *CORPUS.documents["validation"]]


def pieces(tokenizer: WordTokenizer, text: str) -> list[str]:
    return [tokenizer.words[token] for token in tokenizer.encode(text)]


def test_words_and_marks_are_tokens_and_spaces_are_not() -> None:
    text = "Ada Norrin. Where was Ada Norrin born?"
    assert pieces(WordTokenizer.from_texts([text]), text) == [
        "Ada",
        "Norrin",
        ".",
        "Where",
        "was",
        "Ada",
        "Norrin",
        "born",
        "?",
    ]


@pytest.mark.parametrize("text", ["well-known", "don't", "I’ve", "x_1", "São", "3rd"])
def test_what_is_written_as_one_word_is_one(text: str) -> None:
    assert pieces(WordTokenizer.from_texts([text]), text) == [text]


def test_every_text_of_a_corpus_comes_back() -> None:
    questions = [question for asked in CORPUS.questions.values() for question in asked]
    for text in (*TEXTS, *(question.text for question in questions), *(str(question.answer) for question in questions)):
        assert TOKENIZER.decode(TOKENIZER.encode(text)) == text


def test_an_answer_has_the_tokens_that_it_has_within_its_document() -> None:
    for fact in CORPUS.recall_facts["recall"]:
        parts = [TOKENIZER.encode(part) for part in (fact.prefix, fact.answer, fact.suffix)]
        assert np.array_equal(np.concatenate(parts), TOKENIZER.encode(fact.prefix + fact.answer + fact.suffix))


@given(st.lists(st.sampled_from(TOKENIZER.words), max_size=12))
def test_any_sentence_of_known_words_comes_back(words: list[str]) -> None:
    text = " ".join(words).replace(" .", ".").replace(" ,", ",").replace(" ?", "?")
    if not text.startswith((".", ",", "?")):
        assert TOKENIZER.decode(TOKENIZER.encode(text)) == text


@given(st.text(st.sampled_from("ab-'.?!,()\"“” \t\n\xa0é1_") | st.characters(), max_size=30))
def test_any_text_at_all_comes_back_but_for_a_space_at_either_end(text: str) -> None:
    if text.strip(" "):
        tokenizer = WordTokenizer.from_texts([text])
        again = tokenizer.decode(tokenizer.encode(text))
        assert again.strip(" ") == text.strip(" ") and again in (text, text.strip(" "), text[1:], text[:-1])
        assert text.strip(" ") != text or again == text


@given(st.lists(st.sampled_from(["Ada", "was", "born", ".", ",", "(", ")", "?"]), min_size=1, max_size=9), st.data())
def test_a_text_cut_at_a_word_has_the_same_tokens(words: list[str], data) -> None:
    tokenizer = WordTokenizer.from_texts(["Ada was born . , ( ) ?", " ".join(words), "a.b", "(a"])
    text = tokenizer.decode(tokenizer._ids[word] for word in words)
    whole = tokenizer.encode(text)
    cut = data.draw(st.integers(0, len(whole)))
    before = tokenizer.decode(whole[:cut])
    assert text.startswith(before)
    parts = [tokenizer.encode(before), tokenizer.encode(text[len(before) :])]
    assert np.array_equal(np.concatenate(parts), whole)


def test_text_arrives_as_it_would_at_once() -> None:
    ids = TOKENIZER.encode(TEXTS[0])
    decoder = TOKENIZER.decoder()
    for _ in range(2):  # after `finish` it begins anew
        assert "".join(decoder.feed(int(token)) for token in ids) + decoder.finish() == TEXTS[0]


def test_ids_that_are_no_words_are_marked() -> None:
    tokenizer = WordTokenizer.from_texts(["Ada was"])
    assert tokenizer.decode([0, 7, 1, -1]) == "Ada \ufffd was \ufffd"


def test_an_unknown_word_is_named_with_the_nearest_known_one() -> None:
    tokenizer = WordTokenizer.from_texts(["Ada was born in Arlow."])
    with pytest.raises(
        InputError,
        match=r"never seen 'Arlo' and.*|'Arlo'; its vocabulary has 6 words and punctuation marks; did you mean",
    ):
        tokenizer.encode("Ada was born in Arlo.")
    with pytest.raises(InputError, match=r"'a', 'b', 'c', 'd', 'e' and 2 more; its vocabulary has 6 words"):
        tokenizer.encode("a b c d e f g a b")
    with pytest.raises(InputError, match="words with no space between them"):
        tokenizer.encode("Ada.Ada")
    with pytest.raises(InputError, match=r"'\\x1b'"):
        tokenizer.encode("Ada \x1b")
    assert len(tokenizer.encode("")) == 0


def test_the_order_of_the_texts_does_not_matter_and_their_words_do() -> None:
    assert WordTokenizer.from_texts(TEXTS).sha256 == WordTokenizer.from_texts(reversed(TEXTS)).sha256
    assert WordTokenizer.from_texts(TEXTS).sha256 != WordTokenizer.from_texts(TEXTS[:5]).sha256


def test_nothing_to_learn_from_is_refused() -> None:
    with pytest.raises(InputError, match="words must be"):
        WordTokenizer.from_texts(["", " "])


def words(*found: object) -> str:
    return json.dumps({"schema": 1, "kind": "words", "words": list(found)})


DAMAGED = {
    "no words": ('{"schema":1,"kind":"words"}', "it has no 'words'"),
    "no list": ('{"schema":1,"kind":"words","words":"ab"}', "a list of strings"),
    "none": (words(), "words must be distinct"),
    "a number": (words("a", 7), "a list of strings"),
    "one twice": (words("a", "a"), "words must be distinct"),
    "another order": (words("b", "a"), "in code-point order"),
    "two words in one": (words("a b"), "neither a word nor"),
    "a word with its mark": (words("a."), "neither a word nor"),
    "a word with a space": (words(" a"), "neither a word nor"),
}


@pytest.mark.parametrize(("text", "says"), DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_refused_in_one_line(tmp_path, text: str, says: str) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(text)
    with pytest.raises(InputError, match=says):
        read_tokenizer(path)


def test_it_is_saved_and_loaded_whole(tmp_path) -> None:
    path = tmp_path / "tokenizer.json"
    original = WordTokenizer.from_texts(["a\u2028b", 'say "it"', "é\n(x)", "\ud800"])
    path.write_text(original.to_json())
    again = read_tokenizer(path)
    assert isinstance(again, WordTokenizer) and (again.words, again.sha256) == (original.words, original.sha256)
