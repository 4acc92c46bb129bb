"""What a text's loss can be divided by: its characters, words and bytes, whatever the tokens are."""

import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

CHUNK_LENGTH = 1 << 20  # characters at once
# Thai, Lao, Tibetan, Burmese; Khmer; kana; Han.
SPACELESS = re.compile(
    "[\u0e00-\u109f\u1780-\u17ff\u3040-\u312f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff]"
)


class TextSizes(NamedTuple):
    characters: int
    words: int  # what stands between white space, and line ends, as published word perplexities count
    bytes: int  # of UTF-8
    spaceless: int  # letters of scripts without spaces between words, minus all other letters


def sizes_of(raw: bytes) -> TextSizes:
    """Return the sizes of UTF-8 text; if it starts within a character, only the bytes of that one count."""
    starts = (np.frombuffer(raw, dtype=np.uint8) & 0xC0) != 0x80
    text = raw.decode("utf-8", "surrogatepass" if not raw or starts[0] else "replace")
    return TextSizes(int(starts.sum()), len(text.split()) + raw.count(b"\n"), len(raw), _spaceless_letter_surplus(text))


def _spaceless_letter_surplus(text: str) -> int:
    counts = np.bincount(np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4"))
    letters = ((chr(code), int(counts[code])) for code in np.flatnonzero(counts).tolist())
    return sum(n if SPACELESS.match(letter) else -n for letter, n in letters if letter.isalpha())


def sizes_of_pieces(pieces: Iterable[str]) -> TextSizes:
    """Return the sizes of a text that comes in pieces, which may end within a word."""
    characters = words = size = spaceless = 0
    within = False  # a word
    for piece in pieces:
        if piece:
            characters += len(piece)
            words += len(piece.split()) + piece.count("\n") - int(within and not piece[0].isspace())
            size += len(piece.encode("utf-8", "surrogatepass"))
            spaceless += sum(
                _spaceless_letter_surplus(piece[at : at + CHUNK_LENGTH]) for at in range(0, len(piece), CHUNK_LENGTH)
            )
            within = not piece[-1].isspace()
    return TextSizes(characters, words, size, spaceless)
