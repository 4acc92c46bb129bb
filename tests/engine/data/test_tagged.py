"""A tag at the start of a source is one token; anywhere else it is text."""

import pytest
import tokenizers as hf
from hypothesis import given
from hypothesis import strategies as st

from engine.base.errors import InputError
from engine.data.tokenizers import BpeTokenizer, CharacterTokenizer, TaggedTokenizer, describe, read_tokenizer

PLAIN = BpeTokenizer([(97, 98)])
TAGGED = TaggedTokenizer(PLAIN, ("de", "zh-CN"))


@given(st.text(), st.sampled_from(["", "<de> ", "<zh-CN> ", "<fr> ", "<de>"]))
def test_any_text_round_trips_and_only_a_known_tag_at_the_start_is_a_token(text: str, tag: str) -> None:
    ids = TAGGED.encode(tag + text)
    assert TAGGED.decode(ids) == tag + text
    known = tag in ("<de> ", "<zh-CN> ") or text.startswith(("<de> ", "<zh-CN> "))
    assert int((ids >= PLAIN.vocab_size).sum()) == known


def test_a_saved_one_is_the_same_and_the_library_gives_the_same_ids(tmp_path) -> None:
    (tmp_path / "t.json").write_text(TAGGED.to_json(), encoding="utf-8")
    again = read_tokenizer(tmp_path / "t.json")
    assert again.sha256 == TAGGED.sha256 and again.target.tags == ("de", "zh-CN")
    assert describe(again) == "257 bpe and 2 tags"
    library = hf.Tokenizer.from_str(TAGGED.library_json())
    for text in ("<de> abc", "<zh-CN> 你好", "abc"):
        assert library.encode(text).ids == TAGGED.encode(text).tolist()


@pytest.mark.parametrize(
    "of", ['{"tags":["a b"],"tokenizer":{}}', '{"tags":["de"]}', '{"tags":["de","de"],"tokenizer":1}']
)
def test_damage_is_refused(tmp_path, of: str) -> None:
    (tmp_path / "t.json").write_text(f'{{"schema":1,"kind":"tagged","of":{of}}}')
    with pytest.raises(InputError, match="cannot read this tokenizer"):
        read_tokenizer(tmp_path / "t.json")


def test_tags_do_not_stand_before_tags(tmp_path) -> None:
    (tmp_path / "t.json").write_text(TaggedTokenizer(TAGGED, ("fr",)).to_json(), encoding="utf-8")
    with pytest.raises(InputError, match="only a plain tokenizer can have tags"):
        read_tokenizer(tmp_path / "t.json")


def test_typed_texts_are_addressed_and_unknown_languages_named() -> None:
    assert TAGGED.add_language_tags(["a", "<zh-CN> b"]) == ["<de> a", "<zh-CN> b"]
    assert TAGGED.add_language_tags(["a"], "zh-CN") == ["<zh-CN> a"]
    with pytest.raises(InputError, match="does not translate into 'fr'; choose de or zh-CN"):
        TAGGED.add_language_tags(["a"], "fr")
    with pytest.raises(InputError, match="into only one language"):
        PLAIN.add_language_tags(["a"], "fr")


def test_an_unknown_character_is_found_behind_the_tag() -> None:
    assert TaggedTokenizer(CharacterTokenizer("ab"), ("de",)).first_unknown("<de> abc") == 7
