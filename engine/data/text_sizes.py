"""What a text's loss can be divided by: its characters, words and bytes, whatever the tokens are."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np


class TextSizes(NamedTuple):
    characters: int
    words: int  # what stands between white space, and line ends, as published word perplexities count
    bytes: int  # of UTF-8


def sizes_of(raw: bytes) -> TextSizes:
    """Return the sizes of UTF-8 text; of a character that it starts within, only bytes count."""
    starts = (np.frombuffer(raw, dtype=np.uint8) & 0xC0) != 0x80
    words = len(raw.decode("utf-8", "surrogatepass" if not raw or starts[0] else "replace").split())
    return TextSizes(int(starts.sum()), words + raw.count(b"\n"), len(raw))


def sizes_of_pieces(pieces: Iterable[str]) -> TextSizes:
    """Return the sizes of a text that comes in pieces, which may end within a word."""
    characters = words = size = 0
    within = False  # a word
    for piece in pieces:
        if piece:
            characters += len(piece)
            words += len(piece.split()) + piece.count("\n") - int(within and not piece[0].isspace())
            size += len(piece.encode("utf-8", "surrogatepass"))
            within = not piece[-1].isspace()
    return TextSizes(characters, words, size)
