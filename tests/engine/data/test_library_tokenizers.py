"""An exported tokenizer gives the same ids and texts in Hugging Face `tokenizers` as here."""

import random
from pathlib import Path

import pytest
import tokenizers as hf

from engine.base.errors import InputError
from engine.data.tokenizers import (
    BpeTokenizer,
    ByteTokenizer,
    CharacterTokenizer,
    TextWordTokenizer,
    Tokenizer,
    WordTokenizer,
)

TEXTS = (
    *(
        "She was born in London.",
        "born( a )b. c.d",
        "a  b\n\nc",
        "  x ",
        " x",
        "x\n",
        " .a",
        "( ",
        " ",
        "",
        "\n",
        " \t",
    ),
    *(
        "don't well-known",
        "’tis 'x' -a- a- -b a-'b rock-’n’-roll",
        "“Hi”—he said…",
        "a.b",
        "a .b",
        "(a",
        "( a",
        "a ( b",
    ),
    *("3.5 + 4², ½ x_y ‿", "中文，字 字。", "e\u0301t ﷺ \u200f\u202e", "a\u00a0b\x1cc\x85d\u3000e", "..", "((", "a((b"),
    *(
        ") )",
        "$5",
        "a$5 b",
        "\x00\x1b[31m",
        "😀😀 👩‍👩‍👧",
        "[pad][start]<|endoftext|>",
        "\ue000\ue001 \ue000",
        "\r\n\r\n",
        "] [x] {y}",
    ),
)
SIGNS = "ab1 _'’-.,()[“”…$²½\u0301\n\t\u00a0\x1c中。"


def generated(count: int) -> list[str]:
    draw = random.Random(5)
    return ["".join(draw.choices(SIGNS, k=draw.randrange(12))) for _ in range(count)]


ALL = (*TEXTS, *generated(3000))
MADE: dict[str, Tokenizer] = {
    "characters": CharacterTokenizer.from_texts(ALL),
    "words": WordTokenizer.from_texts(ALL),
    "bpe": BpeTokenizer.train(ALL, 400),
    "bytes": ByteTokenizer(),
    "text-words": TextWordTokenizer.train(" ".join(ALL), 300),
    "spaced text-words": TextWordTokenizer.train("<unk> ".join(ALL), 300),
}


def from_file(tokenizer: Tokenizer, folder: Path) -> hf.Tokenizer:
    (folder / "tokenizer.json").write_text(tokenizer.library_json(), encoding="utf-8")
    return hf.Tokenizer.from_file(str(folder / "tokenizer.json"))


@pytest.mark.parametrize("kind", MADE)
def test_the_library_reads_the_same_ids_and_texts(tmp_path, kind: str) -> None:
    ours = MADE[kind]
    theirs = from_file(ours, tmp_path)
    assert theirs.get_vocab_size() == ours.vocab_size
    for text in ALL:
        ids = ours.encode(text).tolist()
        assert theirs.encode(text).ids == ids, repr(text)
        assert theirs.decode(ids) == ours.decode(ids), repr(text)


@pytest.mark.parametrize("kind", ["characters", "words"])
def test_what_was_never_seen_is_an_error_there_too(tmp_path, kind: str) -> None:
    ours = {"characters": CharacterTokenizer.from_texts(["ab"]), "words": WordTokenizer.from_texts(["a b"])}[kind]
    theirs = from_file(ours, tmp_path)
    for text in ("c", "ab\ue000", "a\ue000b", "a.b"):
        with pytest.raises(InputError):
            ours.encode(text)
        with pytest.raises(Exception, match="Missing"):
            theirs.encode(text)
