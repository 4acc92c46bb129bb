"""Words of running text: a vocabulary by count; every other word is `<unk>`.

A training text that already has `<unk>`, as WikiText-2 and Penn Treebank do, is split as it was published: words stand
between white space, and a line end is `<eos>`. Elsewhere words, punctuation marks and unusual gaps are tokens, as
`words` splits documents, and a word that training has only once is `<unk>`, so that the model learns to expect it.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

import tokenizers as hf

from engine.base.language import tr
from engine.data.tokenizers.protocol import SCHEMA
from engine.data.tokenizers.words import GAP, SPACE, WordDecoder, WordTokenizer, word_library_json, word_tokens

UNK, EOS = "<unk>", "<eos>"
SEEN_AT_LEAST = 2  # in a text without `<unk>`
USUAL_GAP = re.compile(r"\w (?=\w)")  # where no gap is a token
LOOKED_BACK = 1 << 14  # characters from the end of a text in which a gap is looked for first
MAX_VOCABULARY = 1_000_000  # words
SPACED = re.compile(r"([^\S\n]*)(\n|\S+)")  # a gap, and the word or line end after it


def _whitespace_separated_tokens(text: str) -> Iterator[str]:
    *lines, last = text.split("\n")
    for line in lines:
        yield from line.split()
        yield EOS
    yield from last.split()


def has_unknown(pieces: Iterable[str]) -> bool:
    """Return whether a text that comes in pieces has `<unk>`."""
    end = ""
    for piece in pieces:
        if UNK in end + piece:
            return True
        end = (end + piece)[1 - len(UNK) :]
    return False


class TextWordTokenizer(WordTokenizer):
    """One token per word; `words` starts with `<unk>`, then the most frequent come first. `spaced`: words stand between
    white space. Raises InputError: words that the text could not have, or one twice.
    """

    kind, unknown = "text-words", 0

    def __init__(self, words: Sequence[str], *, spaced: bool) -> None:
        self.spaced = spaced
        super().__init__(words)
        self._shown = ["\n" if word == EOS else word for word in self.words] if spaced else []

    def _is_token(self, word: str) -> bool:
        return word == UNK or (word.split() == [word] if self.spaced else super()._is_token(word))

    def _order_error(self) -> str:
        if not self.words or self.words[0] != UNK:
            return tr("tokenizer: the first word must be {unk}", unk=UNK)
        return tr("tokenizer: words must be distinct") if len(self._ids) < len(self.words) else ""

    def _tokens(self, text: str) -> Iterator[str]:
        return _whitespace_separated_tokens(text) if self.spaced else super()._tokens(text)

    @classmethod
    def train(cls, text: str, most: int) -> "TextWordTokenizer":
        """Return the tokenizer of the `most` frequent words of a text, `<unk>` included; of equally frequent ones, the
        first in code-point order.
        """
        return cls.from_parts((text,), most, spaced=UNK in text)

    @classmethod
    def from_parts(cls, parts: Iterable[str], most: int, *, spaced: bool) -> "TextWordTokenizer":
        """The same for a text that comes in parts, perhaps cut by `last_cut`."""
        counts: Counter[str] = Counter()
        for part in parts:
            counts.update(_whitespace_separated_tokens(part) if spaced else word_tokens(part))
        least = 1 if spaced else SEEN_AT_LEAST
        known = [(-n, word) for word, n in counts.items() if n >= least and word != UNK]
        return cls([UNK, *(word for _, word in sorted(known)[: most - 1])], spaced=spaced)

    def undetermined_kinds_and_texts(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield each word that is `<unk>` and, where words stand between white space, every gap and line end."""
        if not self.spaced:
            yield from (("word", word) for word in word_tokens(text) if word not in self._ids)
            return
        left = "\n"
        for found in SPACED.finditer(text):
            gap, word = found.groups()
            yield "edge" if "\n" in (left, word) else "gap", gap
            known = EOS if word == "\n" else word
            if self._ids.get(known, self.unknown) == self.unknown:
                yield "word", word
            elif known == EOS:
                yield "line", word
            left = word

    def last_cut(self, text: str) -> int:
        if self.spaced:
            return text.rfind("\n") + 1
        for start in (max(0, len(text) - LOOKED_BACK), 0):
            cuts = [found.end() for found in USUAL_GAP.finditer(text, start)]
            if cuts:
                return cuts[-1]
        return 0

    def first_token_bytes(self, text: str, token: int) -> int:
        word = next(self._tokens(text), "")
        end = text.find("\n") + 1 if word == EOS and self.spaced else text.find(word) + len(word)
        return len(text[:end].encode("utf-8", "surrogatepass"))

    def decoder(self) -> WordDecoder:
        return WordDecoder(self._shown, lambda left, right: SPACE) if self.spaced else super().decoder()

    def to_json(self) -> str:
        words = {"spaced": self.spaced, "words": self.words}
        return json.dumps({"schema": SCHEMA, "kind": self.kind, "vocabulary": words})

    def library_json(self) -> str:
        if not self.spaced:
            return word_library_json(self.words, UNK)
        made = hf.Tokenizer(hf.models.WordLevel({word: i for i, word in enumerate(self.words)}, unk_token=UNK))
        made.normalizer = hf.normalizers.Replace("\n", f" {EOS} ")
        made.pre_tokenizer = hf.pre_tokenizers.Split(hf.Regex(f"[{GAP}]+"), "removed")
        made.decoder = hf.decoders.Sequence(
            [
                hf.decoders.Replace(hf.Regex(r"\A"), " "),
                hf.decoders.Fuse(),
                hf.decoders.Replace(f" {EOS}", "\n"),
                hf.decoders.Replace("\n ", "\n"),
                hf.decoders.Replace(hf.Regex(r"\A "), ""),
            ]
        )
        return made.to_str()

    @classmethod
    def from_json(cls, words: Any, **how: Any) -> Self:
        if not isinstance(how["spaced"], bool):
            raise ValueError(tr("spaced must be true or false"))
        return super().from_json(words, **how)
