"""The interface that all tokenizers share."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

SCHEMA = 1  # of tokenizer.json
UNKNOWN = "\ufffd"  # what ids past the vocabulary decode to: an embedding may be padded, a special token has no text


K = TypeVar("K", bound="Tokenizer")


class Decoder(Generic[K]):
    """Decodes ids one at a time; here every token is whole, so nothing waits."""

    def __init__(self, tokenizer: K) -> None:
        self._tokenizer = tokenizer

    def feed(self, token: int) -> str:
        """Return the text that this id completes; empty while a character is unfinished."""
        return self._tokenizer.decode([token])

    def finish(self) -> str:
        """Return the rest, U+FFFD for an incomplete character, else nothing, and reset."""
        return ""


class Tokenizer(Protocol):
    """Text ↔ token ids, 0 … vocab_size − 1."""

    @property
    def kind(self) -> str:
        """Its name in tokenizer.json and in a config."""

    @property
    def vocab_size(self) -> int: ...

    def encode(self, text: str) -> NDArray[np.int64]:
        """Return (n,) token ids of a text. Raises InputError: names anything without a token."""

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of token ids; ids past the vocabulary become U+FFFD."""

    def decoder(self) -> "Decoder[Any]":
        """Return a decoder for ids that arrive one at a time."""
        return Decoder(self)

    def to_json(self) -> str:
        """Return the whole tokenizer as JSON text."""

    def encode_all(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """Return token ids of many texts, each as `encode` gives them."""
        return [self.encode(text) for text in texts]

    @property
    def sha256(self) -> str:
        """The hash of its JSON: two runs with the same hash encode text alike."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()
