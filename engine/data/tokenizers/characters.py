"""Character tokens: nothing to train, and any text in the same alphabet can be encoded."""

import json
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import tokenizers as hf
from numpy.typing import NDArray

from engine.base.errors import InputError, comma_separated
from engine.base.language import Message, tr
from engine.data.tokenizers.protocol import SCHEMA, UNKNOWN, Tokenizer

PIECE = 1_000_000  # characters encoded at once


class CharacterTokenizer(Tokenizer):
    """One token per character (Unicode code point), in code-point order."""

    kind, per_character = "characters", True

    def __init__(self, characters: Sequence[str]) -> None:
        self.characters = tuple(characters)
        self._codes = np.array([ord(c) for c in self.characters], dtype=np.uint32)
        if len(self.characters) == 0 or np.any(np.diff(self._codes.astype(np.int64)) <= 0):
            raise InputError(Message("tokenizer: characters must be distinct and in code-point order"))

    @classmethod
    def from_texts(cls, texts: Iterable[str]) -> "CharacterTokenizer":
        return cls(sorted(set[str]().union(*texts)))

    @property
    def vocab_size(self) -> int:
        return len(self.characters)

    def encode(self, text: str) -> NDArray[np.int64]:
        return np.concatenate([np.empty(0, np.int64), *self.encode_parts(text)], dtype=np.int64)

    def encode_with_unknown(self, texts: Sequence[str], unknown: int) -> list[NDArray[np.int64]]:
        found = []
        for text in texts:
            pieces = [np.empty(0, np.int64)]
            for _, ids, missing in self._look_up(text):
                ids[missing] = unknown
                pieces.append(ids)
            found.append(np.concatenate(pieces))
        return found

    def encode_parts(self, text: str) -> Iterator[NDArray[np.int32]]:
        for start, ids, unknown in self._look_up(text):
            if unknown.size:
                distinct = list(dict.fromkeys(text[start + int(i)] for i in unknown[:1000]))
                named = comma_separated(f"{c!r} (U+{ord(c):04X})" for c in distinct[:5])
                more = tr(" and {n} more", n=len(distinct) - 5) if len(distinct) > 5 else ""
                sample = "".join(c for c in self.characters if c.isprintable())[:80]
                problem = Message(
                    "this model has never seen {named}{more}; it knows {vocab_size} characters: {sample}",
                    named=named,
                    more=more,
                    vocab_size=self.vocab_size,
                    sample=sample,
                )
                raise InputError(problem)
            yield ids.astype(np.int32)

    def last_cut(self, text: str) -> int:
        return len(text)

    def first_unknown(self, text: str) -> int | None:
        return next((start + int(unknown[0]) for start, _, unknown in self._look_up(text) if unknown.size), None)

    def _look_up(self, text: str) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int64]]]:
        """Yield pieces of a million characters, so that a large text needs little memory: where each starts, its ids,
        and where in it an unknown character stands.
        """
        for start in range(0, len(text), PIECE):
            raw = text[start : start + PIECE].encode("utf-32-le", errors="surrogatepass")
            codes = np.frombuffer(raw, dtype=np.uint32)
            ids = np.minimum(np.searchsorted(self._codes, codes), self.vocab_size - 1)
            yield start, ids, np.flatnonzero(self._codes[ids] != codes)

    def decode(self, ids: Iterable[int]) -> str:
        size = self.vocab_size
        return "".join(self.characters[i] if 0 <= i < size else UNKNOWN for i in ids)

    def to_json(self) -> str:
        return json.dumps({"schema": SCHEMA, "kind": self.kind, "characters": "".join(self.characters)})

    def library_json(self) -> str:
        made = hf.Tokenizer(hf.models.WordLevel({c: i for i, c in enumerate(self.characters)}))
        made.pre_tokenizer = hf.pre_tokenizers.Split(hf.Regex(r"[\s\S]"), "isolated")
        made.decoder = hf.decoders.Fuse()
        return made.to_str()
