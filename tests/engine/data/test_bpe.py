"""Byte-level BPE: nothing is unknown, nothing is lost, and the same texts always give the same tokenizer."""

import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.base.errors import InputError
from engine.data.tokenizers import BpeTokenizer
from engine.data.tokenizers import bpe as module

TEXTS = ["the cat sat on the mat\n", "the other cats sat there\n", "Grüße, 世界! 🎭👩‍👩‍👧 the end\n"] * 30
TRAINED = BpeTokenizer.train(TEXTS, 296)
ANY_TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=80)
AWKWARD = [
    "",
    " ",
    "   leading and trailing   ",
    "tabs\t\tand\r\nline\n\n\nbreaks\r",
    "\x00\x01\x1b[31m\x7f\x85\u2028\ufeff",
    "e\u0301\u0323 ﬁ Å \u200b\u200d\u202e",
    "👩‍👩‍👧‍👦🏴󠁧󠁢󠁳󠁣󠁴󠁿🇩🇪",
    "日本語のテキスト 한국어 ไทย עברית",
    "\U0010ffff\ufffe\ufffd",
    "Ġthe Ċ <s> </s> [MASK]",
]


@given(ANY_TEXT)
def test_any_text_round_trips(text: str) -> None:
    assert TRAINED.decode(TRAINED.encode(text)) == text


@pytest.mark.parametrize("text", AWKWARD)
def test_awkward_text_round_trips(text: str) -> None:
    ids = TRAINED.encode(text)
    assert TRAINED.decode(ids) == text and ids.dtype == np.int64 and ids.ndim == 1


@given(st.lists(ANY_TEXT, max_size=6))
def test_many_at_once_are_encoded_like_each_alone(texts: list[str]) -> None:
    assert [ids.tolist() for ids in TRAINED.encode_all(texts)] == [TRAINED.encode(text).tolist() for text in texts]


@given(st.lists(st.integers(0, TRAINED.vocab_size + 3), max_size=30))
@example([0xF0, 0x9F, 0x8E])
def test_ids_one_at_a_time_give_the_same_text_and_never_take_any_back(ids: list[int]) -> None:
    decoder = TRAINED.decoder()
    parts = [decoder.feed(token) for token in ids]
    assert "".join(parts) + decoder.finish() == TRAINED.decode(ids)
    assert decoder.finish() == ""


def test_an_unfinished_character_is_withheld_until_it_is_whole() -> None:
    decoder = TRAINED.decoder()
    raw = "🦉ä".encode()
    assert [decoder.feed(byte) for byte in raw] == ["", "", "", "🦉", "", "ä"]
    assert decoder.feed(raw[0]) == "" and decoder.finish() == "\ufffd"


def test_ids_past_the_vocabulary_decode_to_a_mark() -> None:
    size = TRAINED.vocab_size
    assert TRAINED.decode([ord("a"), size, -1, ord("b"), size + 999]) == "a\ufffd\ufffdb\ufffd"


def test_the_first_256_tokens_are_the_bytes_and_the_rest_join_earlier_ones() -> None:
    assert [TRAINED.bytes_of(byte) for byte in range(256)] == [bytes([byte]) for byte in range(256)]
    assert TRAINED.vocab_size == 296 and len(set(TRAINED.token_bytes)) == 296
    assert len(TRAINED.encode("the cat sat on the mat\n")) < 10


def test_what_it_has_learned_it_takes() -> None:
    assert b" the" in TRAINED.token_bytes
    assert TRAINED.encode(" the").tolist() == [TRAINED.token_bytes.index(b" the")]


def test_the_order_of_the_texts_does_not_matter() -> None:
    assert BpeTokenizer.train(TEXTS[::-1], 296).sha256 == TRAINED.sha256
    assert BpeTokenizer.train(iter(TEXTS), 296).to_json() == TRAINED.to_json()
    assert BpeTokenizer.train(TEXTS, 290).sha256 != TRAINED.sha256


PROGRAM = """
from engine.data.tokenizers import BpeTokenizer
import sys
texts = [f"{a}{b} {b}{a} {a}{a}{b}" for a in "abcdefghij" for b in "klmnopqrst"] * 3
print(BpeTokenizer.train(texts, 400).sha256, "torch" in sys.modules)
"""


@pytest.mark.slow
def test_every_process_learns_the_same() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed, "RAYON_NUM_THREADS": threads, "PYTHONPATH": str(Path.cwd())},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed, threads in (("0", "1"), ("1", "2"), ("2", "4"), ("3", "2"))
    }
    assert len(found) == 1 and next(iter(found)).endswith("False\n")


SPACES = BpeTokenizer([(a, b) for a in b" \n" for b in b" \n"] + [(256, 10), (257, 32), (258, 10), (259, 97)])


@given(st.lists(st.sampled_from(["ab", " ", "\n", "\n\n", " \n", "é", "界", "'s", ".", "\u2028", "12"]), max_size=60))
@example(["ab", "\n", " \n", "ab"])
@example(["ab", "ab", "\n", "\n", "ab"])
def test_a_long_text_in_parts_is_encoded_like_the_whole(parts: list[str]) -> None:
    text = "".join(parts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CHUNK", 3)
        assert SPACES.encode(text).tolist() == SPACES._model.encode(text).ids
        assert "".join(module._separately_encodable_chunks(text)) == text


def test_many_batches_are_one_list() -> None:
    texts = [f"the cat {i}" for i in range(module.BATCH * 2 + 3)]
    assert [TRAINED.decode(ids) for ids in TRAINED.encode_all(texts)] == texts


def test_a_small_text_gives_a_small_vocabulary() -> None:
    assert BpeTokenizer.train(["ab"], 5000).vocab_size == 256
    assert max(map(len, BpeTokenizer.train(["=" * 5000] * 3, 400).token_bytes)) <= 64


@pytest.mark.parametrize("size", [-1, 0, 256, 1_000_001])
def test_sizes_that_cannot_be_are_refused(size: int) -> None:
    with pytest.raises(InputError, match="data.bpe_size"):
        BpeTokenizer.train(TEXTS, size)


@pytest.mark.parametrize("texts", [[], [""], ["", ""]])
def test_no_text_is_refused(texts: list[str]) -> None:
    with pytest.raises(InputError, match="no text to train"):
        BpeTokenizer.train(texts, 300)


@pytest.mark.parametrize("act", [TRAINED.encode, lambda t: TRAINED.encode_all([t]), lambda t: TRAINED.train([t], 300)])
def test_half_a_surrogate_pair_is_named(act) -> None:
    with pytest.raises(InputError, match=r"U\+D83C at character 3"):
        act("ab\ud83c")


def test_its_json_is_small_plain_and_whole() -> None:
    data = json.loads(TRAINED.to_json())
    assert set(data) == {"schema", "kind", "merges"} and len(data["merges"]) == 40
    assert BpeTokenizer.from_json(data["merges"]).encode("the cats").tolist() == TRAINED.encode("the cats").tolist()


def test_two_merges_to_the_same_bytes_are_one_token() -> None:
    a, b, c = b"abc"
    tokenizer = BpeTokenizer([(b, c), (a, b), (a, 256), (257, c)])
    assert tokenizer.vocab_size == 259
    assert tokenizer.decode(tokenizer.encode("abc ab bc")) == "abc ab bc"


@pytest.mark.slow
def test_multi30k_is_learned_in_20_seconds_and_encoded_in_5(real_data: Path) -> None:
    texts: list[str] = []
    for language in ("en", "de"):
        raw = (real_data / "multi30k" / f"train.{language}.gz").read_bytes()
        texts += gzip.decompress(raw).decode().splitlines()
    start = time.perf_counter()
    tokenizer = BpeTokenizer.train(texts, 8000)
    trained = time.perf_counter()
    ids = tokenizer.encode_all(texts)
    encoded = time.perf_counter()
    assert tokenizer.vocab_size == 8000 and [tokenizer.decode(one) for one in ids] == texts
    assert trained - start < 20 and encoded - trained < 5
