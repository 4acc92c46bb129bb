"""The interface that all tokenizers share."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from engine.base.errors import InputError
from engine.base.language import Message

SCHEMA = 1  # of tokenizer.json
UNKNOWN = "\ufffd"  # what ids past the vocabulary decode to: an embedding may be padded, a special token has no text


class Decoder:
    """Decodes ids one at a time; here every token is whole characters, so nothing is withheld."""

    def __init__(self, tokenizer: "Tokenizer") -> None:
        self._tokenizer = tokenizer

    def feed(self, token: int) -> str:
        """Return the text that this id completes; empty while a character is unfinished."""
        return self._tokenizer.decode([token])

    def finish(self) -> str:
        """Return the rest, U+FFFD for an incomplete character, else nothing, and reset."""
        return ""


class AnyTokenizer(ABC):
    """What a checkpoint's tokenizer.json holds: a tokenizer, or a pair of them; see `PairTokenizer`."""

    kind: ClassVar[str]  # its name in tokenizer.json and in a config
    is_pair = False

    @property
    @abstractmethod
    def sides(self) -> "tuple[Tokenizer, Tokenizer]":
        """The encoder's and the decoder's tokenizer; the same one twice if it is not a pair."""

    @property
    def source(self) -> "Tokenizer":
        return self.sides[0]

    @property
    def target(self) -> "Tokenizer":
        return self.sides[1]

    @property
    def shared(self) -> bool:
        """Whether both sides share one vocabulary, so embeddings can be tied."""
        return self.target is self.source

    @property
    @abstractmethod
    def vocab_size(self) -> int:
        """The number of tokens on the target side."""

    @abstractmethod
    def to_json(self) -> str:
        """Return the whole tokenizer as JSON text."""

    @property
    def sha256(self) -> str:
        """The hash of its JSON: two runs with the same hash encode text alike."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()


class Tokenizer(AnyTokenizer):
    """Text ↔ token ids, 0 … vocab_size − 1."""

    joins_spaces: ClassVar[bool] = False  # whether the space before a word is a part of its first token
    per_character: ClassVar[bool] = False  # whether every token is one character
    tags: tuple[str, ...] = ()  # the languages that a source can ask for; see `tagged.py`
    end_of_text: int | None = None  # the token that ends a document; None if that is not a single token
    token_bytes: tuple[bytes, ...] = ()  # the bytes of each token, where these need not be whole characters
    unknown: ClassVar[int | None] = None  # the token of everything outside the vocabulary; None if that is an error

    @property
    def sides(self) -> "tuple[Tokenizer, Tokenizer]":
        return self, self

    @abstractmethod
    def encode(self, text: str) -> NDArray[np.int64]:
        """Return (n,) token ids of a text. Raises InputError: names anything without a token."""

    def encode_all(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """Return the token ids of each of many texts, as `encode` does."""
        return [self.encode(text) for text in texts]

    def encode_with_unknown(self, texts: Sequence[str], unknown: int) -> list[NDArray[np.int64]]:
        """Return the token ids of each of many texts, with `unknown` for each part that has no token."""
        return self.encode_all(texts)

    @property
    def untagged(self) -> "Tokenizer":
        """The tokenizer of the texts, without the tags."""
        return self

    def add_language_tags(self, texts: Sequence[str], language: str = "") -> list[str]:
        """Return typed texts as sources that say which language to translate them to, if there is a choice."""
        if language:
            problem = Message(
                "this model translates into only one language; leave out '{language}'", language=language[:20]
            )
            raise InputError(problem)
        return list(texts)

    def encode_parts(self, text: str) -> Iterator[NDArray[np.int32]]:
        """Yield a text's token ids, in parts where this saves memory for a large one."""
        yield self.encode(text).astype(np.int32)

    def last_cut(self, text: str) -> int:
        """Return the last place at which a text can be cut, whatever follows it, so that both parts encode as the whole
        would; 0 if none is known.
        """
        return 0

    def first_unknown(self, text: str) -> int | None:
        """Return the index of the first character without a token, from 0; None if there is none, or if tokens are
        not characters.
        """
        return None

    def undetermined_kinds_and_texts(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield what a text's tokens leave open, in order: (kind, text), as in `spelling.py`; perhaps nothing."""
        yield from ()

    def first_token_bytes(self, text: str, token: int) -> int:
        """Return how many of a text's UTF-8 bytes its first token stands for."""
        return len(self.decode([token]).encode("utf-8", "surrogatepass"))

    def decode_continuation(self, before: Iterable[int], ids: Iterable[int]) -> str:
        """Return the text of token ids that follow others."""
        decoder = self.decoder()
        for token in before:
            decoder.feed(token)
        return "".join(decoder.feed(token) for token in ids) + decoder.finish()

    @abstractmethod
    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of token ids; ids past the vocabulary become U+FFFD."""

    def decoder(self) -> Decoder:
        """Return a decoder for ids that arrive one at a time."""
        return Decoder(self)

    @abstractmethod
    def library_json(self) -> str:
        """Return a tokenizer.json for Hugging Face `tokenizers`: `Tokenizer.from_file` gives the same ids and texts.

        Special tokens are left out: the library would also match their names in ordinary text.
        """
