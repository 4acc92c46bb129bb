"""Our tokenizers in the format of Hugging Face `tokenizers`: `Tokenizer.from_file` gives the same ids and texts.

Special tokens are left out: the library would also match their names in ordinary text.
"""

import re

import tokenizers as hf

from engine.data.tokenizers.bpe import BpeTokenizer
from engine.data.tokenizers.characters import CharacterTokenizer
from engine.data.tokenizers.protocol import Tokenizer
from engine.data.tokenizers.words import CLOSES, NOTHING, OPENS, SPACE, WordTokenizer

PRIVATE = range(0xE000, 0xF900)  # private-use code points
# Python's \w and \s in the syntax of the library's own regular expressions.
WORD, GAP = r"\p{L}\p{N}_", "\\s\x1c-\x1f"
INNER = "'’-"  # within a word
REPLACED = "\ufffd"


def library_json(tokenizer: Tokenizer) -> str:
    """Return a tokenizer.json that `tokenizers.Tokenizer.from_file` reads; it refuses unknown characters too."""
    if isinstance(tokenizer, CharacterTokenizer):
        made = hf.Tokenizer(hf.models.WordLevel({c: i for i, c in enumerate(tokenizer.characters)}))
        made.pre_tokenizer = hf.pre_tokenizers.Split(hf.Regex(r"[\s\S]"), "isolated")
        made.decoder = hf.decoders.Fuse()
    elif isinstance(tokenizer, BpeTokenizer):
        made = hf.Tokenizer.from_str(tokenizer.library_json())
        made.decoder = hf.decoders.ByteLevel()
    elif isinstance(tokenizer, WordTokenizer):
        made = _words(tokenizer)
    else:
        raise TypeError(f"cannot convert a {type(tokenizer).__name__}")
    return made.to_str()


def _words(tokenizer: WordTokenizer) -> hf.Tokenizer:
    used = set().union(*tokenizer.words)
    nothing, between = [chr(code) for code in PRIVATE if chr(code) not in used][:2]
    made = hf.Tokenizer(hf.models.WordLevel({word or nothing: i for i, word in enumerate(tokenizer.words)}))
    opens, closes, inner = ("".join(re.escape(sign) for sign in sorted(signs)) for signs in (OPENS, CLOSES, INNER))
    # A private character marks two tokens without the usual space between them.
    touch = "|".join(
        (
            rf"(?<=[{WORD}])(?=[^{WORD}{GAP}{closes}{inner}])",
            rf"(?<=[{WORD}])(?=[{inner}](?![{WORD}]))",
            rf"(?<=[^{WORD}{GAP}{opens}{inner}])(?=[{WORD}])",
            rf"(?<=\A[{inner}]|[^{WORD}][{inner}])(?=[{WORD}])",
            rf"(?<=[^{WORD}{GAP}{opens}])(?=[^{WORD}{GAP}{closes}])",
        )
    )
    made.normalizer = hf.normalizers.Sequence(
        [
            *(hf.normalizers.Replace(sign, REPLACED) for sign in (nothing, between)),
            hf.normalizers.Replace(hf.Regex(touch), nothing),
        ]
    )
    usual = rf"(?<![{GAP}{opens}]){SPACE}(?![{GAP}{closes}])"
    piece = rf"[{WORD}]+(?:[{inner}][{WORD}]+)*|[{GAP}]+|[^{WORD}{GAP}]"
    made.pre_tokenizer = hf.pre_tokenizers.Sequence(
        [
            hf.pre_tokenizers.Split(hf.Regex(usual), "removed"),
            hf.pre_tokenizers.Split(hf.Regex(piece), "isolated"),
        ]
    )
    unseen = (
        *(rf"\A{between}", rf"{between}{nothing}{between}?", rf"{between}(?=[{GAP}])", rf"(?<=[{GAP}]){between}"),
        *(rf"{between}(?=[{closes}])", rf"(?<=[{opens}]){between}"),
    )
    made.decoder = hf.decoders.Sequence(
        [
            hf.decoders.Replace(hf.Regex(r"\A"), between),
            hf.decoders.Fuse(),
            *(hf.decoders.Replace(hf.Regex(one), NOTHING) for one in unseen),
            hf.decoders.Replace(between, SPACE),
        ]
    )
    return made
