"""What every tokenizer can do, whatever its tokens are."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

SCHEMA = 1  # of tokenizer.json
UNKNOWN = "\ufffd"  # what ids past the vocabulary decode to: an embedding may be padded, a special token has no text


class Decoder(Protocol):
    """Text from ids that arrive one at a time."""

    def feed(self, token: int) -> str:
        """Return the text that this id completes; empty while a character is unfinished."""

    def finish(self) -> str:
        """Return what is left: U+FFFD for a character that never became whole, else nothing. Then begin anew."""


class Tokenizer(Protocol):
    """Text ↔ token ids, 0 … vocab_size − 1."""

    @property
    def kind(self) -> str:
        """Its name in tokenizer.json and in a config."""

    @property
    def vocab_size(self) -> int: ...

    def encode(self, text: str) -> NDArray[np.int64]:
        """Return (n,) token ids of a text.

        Raises:
            InputError: what has no token; names it.
        """

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of token ids; ids past the vocabulary become U+FFFD."""

    def decoder(self) -> Decoder:
        """Return one for ids that arrive one at a time."""

    def to_json(self) -> str:
        """Return the whole tokenizer as JSON text."""

    def encode_all(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """Return token ids of many texts, each as `encode` gives them."""
        return [self.encode(text) for text in texts]

    @property
    def sha256(self) -> str:
        """The hash of its JSON: two runs with the same hash encode text alike."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()
