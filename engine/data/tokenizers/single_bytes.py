"""Byte tokens: the 256 bytes of UTF-8, nothing to train, and every text can be encoded."""

import json
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.data.tokenizers.bpe import BYTES, BpeTokenizer, refuse_surrogates
from engine.data.tokenizers.protocol import SCHEMA


class ByteTokenizer(BpeTokenizer):
    """Byte-level BPE without a merge; a token is its byte's value."""

    kind, joins_spaces = "bytes", False

    def __init__(self) -> None:
        super().__init__(())

    def encode(self, text: str) -> NDArray[np.int64]:
        refuse_surrogates([text])
        return np.frombuffer(text.encode(), dtype=np.uint8).astype(np.int64)

    def encode_all(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        return [self.encode(text) for text in texts]

    def last_cut(self, text: str) -> int:
        return len(text)

    def to_json(self) -> str:
        return json.dumps({"schema": SCHEMA, "kind": self.kind, "bytes": BYTES}, separators=(",", ":"))
