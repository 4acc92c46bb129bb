"""A token at the start of a source that says which language to translate it to (Johnson et al. 2017): "<nl> I see."

The tag is one token, numbered after those of the text. Anywhere else, its characters are text.
"""

import json
import re
from collections.abc import Iterable, Sequence

import numpy as np
import tokenizers as hf
from numpy.typing import NDArray

from engine.base.errors import InputError, join_or
from engine.base.language import Message
from engine.data.tokenizers.protocol import SCHEMA, Decoder, Tokenizer

TAG = re.compile(r"<([\w-]{1,20})> ")


def add_tag(source: str, language: str) -> str:
    return f"<{language}> {source}"


def remove_tag(source: str) -> str:
    return TAG.sub("", source, count=1) if TAG.match(source) else source


def target_language_of(source: str) -> str:
    """Return the language that a source is to be translated to; "" without a tag."""
    found = TAG.match(source)
    return found[1] if found else ""


class TaggedTokenizer(Tokenizer):
    """A tokenizer with a token for each of these languages. Raises InputError: a name that no tag can have."""

    kind = "tagged"

    def __init__(self, plain: Tokenizer, tags: Sequence[str]) -> None:
        self.plain, self.tags = plain, tuple(tags)
        if len(set(self.tags)) < len(self.tags) or not all(TAG.fullmatch(add_tag("", tag)) for tag in self.tags):
            raise InputError(Message("tokenizer: tags must be distinct language names"))
        self._ids = {tag: plain.vocab_size + number for number, tag in enumerate(self.tags)}

    @property
    def vocab_size(self) -> int:
        return self.plain.vocab_size + len(self.tags)

    @property
    def untagged(self) -> Tokenizer:
        return self.plain

    def encode(self, text: str) -> NDArray[np.int64]:
        return self.encode_all([text])[0]

    def encode_all(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        tags = [self._ids.get(target_language_of(text)) for text in texts]
        rest = [text if tag is None else remove_tag(text) for text, tag in zip(texts, tags, strict=True)]
        encoded = self.plain.encode_all(rest)
        return [ids if tag is None else np.insert(ids, 0, tag) for ids, tag in zip(encoded, tags, strict=True)]

    def first_unknown(self, text: str) -> int | None:
        rest = remove_tag(text) if target_language_of(text) in self.tags else text
        place = self.plain.first_unknown(rest)
        return None if place is None else place + len(text) - len(rest)

    def decode(self, ids: Iterable[int]) -> str:
        decoder = self.decoder()
        return "".join(decoder.feed(token) for token in ids) + decoder.finish()

    def decoder(self) -> Decoder:
        return _TaggedDecoder(self)

    def add_language_tags(self, texts: Sequence[str], language: str = "") -> list[str]:
        """Return texts with a tag each: their own, or else this language's, or else the first."""
        language = language or self.tags[0]
        if language not in self.tags:
            problem = Message(
                "this model does not translate into '{language}'; choose {known}",
                language=language[:20],
                known=join_or(self.tags),
            )
            raise InputError(problem)
        return [text if target_language_of(text) in self.tags else add_tag(text, language) for text in texts]

    def to_json(self) -> str:
        of = {"tags": self.tags, "tokenizer": json.loads(self.plain.to_json())}
        return json.dumps({"schema": SCHEMA, "kind": self.kind, "of": of}, separators=(",", ":"))

    def library_json(self) -> str:
        """As for any tokenizer, with the tags as added tokens: the library finds them anywhere in a text."""
        made = hf.Tokenizer.from_str(self.plain.library_json())
        made.add_tokens([hf.AddedToken(add_tag("", tag), normalized=False) for tag in self.tags])
        return str(made.to_str())


class _TaggedDecoder(Decoder):
    def __init__(self, tokenizer: TaggedTokenizer) -> None:
        self._first, self._tags = tokenizer.plain.vocab_size, tokenizer.tags
        self._plain = tokenizer.plain.decoder()

    def feed(self, token: int) -> str:
        if self._first <= token < self._first + len(self._tags):
            return self._plain.finish() + add_tag("", self._tags[token - self._first])
        return self._plain.feed(token)

    def finish(self) -> str:
        return self._plain.finish()
