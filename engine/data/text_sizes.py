"""What a text's loss can be divided by: its characters, words and bytes, whatever the tokens are."""

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
