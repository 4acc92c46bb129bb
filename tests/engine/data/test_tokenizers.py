import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.base.errors import InputError
from engine.data.tokenizers import BpeTokenizer, CharacterTokenizer, PairTokenizer, difference, read_tokenizer


@given(st.text(min_size=1, max_size=200))
def test_any_text_round_trips(text: str) -> None:
    tokenizer = CharacterTokenizer.from_texts([text])
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.vocab_size == len(set(text))


def test_saved_tokenizer_is_the_same(tmp_path) -> None:
    tokenizer = CharacterTokenizer.from_texts(["Grüße, 世界 🎭\n"])
    (tmp_path / "t.json").write_text(tokenizer.to_json(), encoding="utf-8")
    again = read_tokenizer(tmp_path / "t.json")
    assert again.characters == tokenizer.characters and again.sha256 == tokenizer.sha256


def test_unseen_characters_are_named() -> None:
    with pytest.raises(InputError, match=r"never seen 'x' \(U\+0078\), '世' \(U\+4E16\)"):
        CharacterTokenizer.from_texts(["abc"]).encode("ax世x")


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"schema":9,"kind":"characters","characters":"a"}', '{"schema":1'])
def test_damaged_tokenizers_are_refused(tmp_path, text: str) -> None:
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(InputError):
        read_tokenizer(tmp_path / "t.json")


def test_ids_past_the_vocabulary_decode_to_a_mark() -> None:
    assert CharacterTokenizer.from_texts(["ab"]).decode([0, 5, 1]) == "a\ufffdb"


DIFFERENCES = {
    "alike": (CharacterTokenizer("ab"), CharacterTokenizer("ab"), ""),
    "a character": (CharacterTokenizer("ab"), CharacterTokenizer("ac"), "token 1 is 'b' (U+0062) vs 'c' (U+0063)"),
    "size": (
        CharacterTokenizer("ab"),
        CharacterTokenizer("abc"),
        "2 characters vs 3 characters; the first 2 tokens are the same",
    ),
    "kind": (CharacterTokenizer("ab"), BpeTokenizer([]), "kind 'characters' vs 'bpe'"),
    "a piece": (
        BpeTokenizer([(97, 98)]),
        BpeTokenizer([(97, 99)]),
        "token 256 is 'ab' vs 'ac'",
    ),
    "a side": (
        PairTokenizer(CharacterTokenizer("ab"), CharacterTokenizer("xy")),
        PairTokenizer(CharacterTokenizer("ab"), CharacterTokenizer("xz")),
        "targets: token 1 is 'y' (U+0079) vs 'z' (U+007A)",
    ),
}


@pytest.mark.parametrize("case", DIFFERENCES)
def test_two_tokenizers_differ_in_kind_size_or_a_token_that_is_named(case: str) -> None:
    one, other, said = DIFFERENCES[case]
    assert difference(one, other) == said


def test_the_first_character_that_is_unknown_is_found_at_its_place() -> None:
    assert CharacterTokenizer("ab").first_unknown("abba?b!") == 4
    assert CharacterTokenizer("ab").first_unknown("abba") is None
