"""Word tokens, with punctuation marks as separate tokens: short sequences, for texts with a known vocabulary.

Between two tokens stands a space, unless the second is a mark that closes ("born?") or the first one that opens
("(born"). Where a text differs, the gap is itself a token: "" for nothing, " " for a space before a full stop, "\\n"
for a new line. So every text round-trips exactly, except that a space at either end that the rule would write is left
out, so that a piece has the same tokens as within the whole text:
`encode("She was born in ")` followed by `encode("London")` is `encode("She was born in London")`.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, Self

import numpy as np
import tokenizers as hf
from numpy.typing import NDArray

from engine.base.errors import InputError, comma_separated, did_you_mean
from engine.base.language import Message, tr
from engine.data.tokenizers.protocol import SCHEMA, UNKNOWN, Decoder, Tokenizer

# A word (well-known and don't are one each), a mark, or white space.
PIECE = re.compile(r"(?P<word>\w+(?:['’-]\w+)*)|(?P<gap>\s+)|[^\w\s]")
CLOSES = frozenset(".,;:?!)]}%…»”")
OPENS = frozenset("([{«“¿¡")
SPACE, NOTHING = " ", ""
N_NAMED_WORDS = 5  # words named in an error

# For the library's own regular expressions: Python's \w and \s, signs within a word, code points that no text has.
WORD, GAP = r"\p{L}\p{N}_", "\\s\x1c-\x1f"
INNER = "'’-"
PRIVATE = range(0xE000, 0xF900)


def _usual_gap(left: str, right: str) -> str:
    """Return the default gap between two tokens."""
    return NOTHING if left in OPENS or right in CLOSES else SPACE


def is_gap(token: str) -> bool:
    return not token or token.isspace()


def word_tokens(text: str) -> Iterator[str]:
    """Yield the tokens of a text; a gap at either end is treated as if a word lay beyond it."""
    left: str | None = None
    gap = NOTHING
    for match in PIECE.finditer(text):
        if match["gap"] is not None:
            gap = match["gap"]
            continue
        if (left is not None or gap) and gap != _usual_gap(left or "", match[0]):
            yield gap
        yield match[0]
        left, gap = match[0], NOTHING
    if gap and gap != _usual_gap(left or "", ""):
        yield gap


class WordTokenizer(Tokenizer):
    """One token per word, mark or unusual gap, in code-point order. Raises InputError: invalid words, or in another
    order.
    """

    kind = "words"

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)
        self._ids = {word: token for token, word in enumerate(self.words)}
        for word in self.words:
            if not self._is_token(word):
                raise InputError(
                    Message("tokenizer: {word!r} is neither a word nor a punctuation mark", word=word[:40])
                )
        if wrong := self._order_error():
            raise InputError(wrong)

    def _is_token(self, word: str) -> bool:
        return is_gap(word) or bool(PIECE.fullmatch(word))

    def _order_error(self) -> str:
        """Return what is wrong with the order of the words; "" if nothing."""
        sorted_ = self.words and all(one < other for one, other in pairwise(self.words))
        return "" if sorted_ else tr("tokenizer: words must be distinct and in code-point order")

    def _tokens(self, text: str) -> Iterator[str]:
        return word_tokens(text)

    @classmethod
    def from_texts(cls, texts: Iterable[str]) -> "WordTokenizer":
        """Return the tokenizer of every word and mark in these texts; there must be some."""
        return cls(sorted(set(chain.from_iterable(map(word_tokens, texts)))))

    @classmethod
    def from_frequent(cls, texts: Iterable[str], least: int = 2) -> "WordTokenizer":
        """Return the tokenizer of the words and marks that occur at least so often in these texts; if none does, of
        all.
        """
        counts = Counter(chain.from_iterable(map(word_tokens, texts)))
        return cls(sorted(word for word, n in counts.items() if n >= least) or sorted(counts))

    @property
    def vocab_size(self) -> int:
        return len(self.words)

    def encode_with_unknown(self, texts: Sequence[str], unknown: int) -> list[NDArray[np.int64]]:
        known, other = self._ids, unknown if self.unknown is None else self.unknown
        return [np.fromiter((known.get(one, other) for one in self._tokens(text)), dtype=np.int64) for text in texts]

    def encode(self, text: str) -> NDArray[np.int64]:
        if self.unknown is not None:
            return self.encode_with_unknown([text], self.unknown)[0]
        tokens = list(word_tokens(text))
        try:
            return np.array([self._ids[token] for token in tokens], dtype=np.int64)
        except KeyError:
            unknown = [token for token in dict.fromkeys(tokens) if token not in self._ids]
        shown = (f"{one[:40]!r}" if one else tr("words with no space between them") for one in unknown[:N_NAMED_WORDS])
        more = tr(" and {n} more", n=len(unknown) - N_NAMED_WORDS) if len(unknown) > N_NAMED_WORDS else ""
        hint = did_you_mean(unknown[0][:40], self.words) if not is_gap(unknown[0]) else ""
        never = tr("this model has never seen {shown}{more}", shown=comma_separated(shown), more=more)
        problem = Message(
            "{never}; its vocabulary has {vocab_size:,} words and punctuation marks{hint}",
            never=never,
            vocab_size=self.vocab_size,
            hint=hint,
        )
        raise InputError(problem)

    def decode(self, ids: Iterable[int]) -> str:
        decoder = self.decoder()
        return "".join(decoder.feed(token) for token in ids)

    def decoder(self) -> "WordDecoder":
        return WordDecoder(self.words)

    def to_json(self) -> str:
        return json.dumps({"schema": SCHEMA, "kind": self.kind, "words": self.words})

    def library_json(self) -> str:
        return word_library_json(self.words)

    @classmethod
    def from_json(cls, words: Any, **how: Any) -> Self:
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise ValueError(tr("words must be a list of strings"))
        return cls(words, **how)


class WordDecoder(Decoder):
    """Writes the space before a word with the word; holds nothing back; `between` is what stands between two tokens."""

    def __init__(self, words: Sequence[str], between: Callable[[str, str], str] = _usual_gap) -> None:
        self._words, self._between = words, between
        self._left: str | None = None  # the previous token; None at the start and after an explicit gap

    def feed(self, token: int) -> str:
        word = self._words[token] if 0 <= token < len(self._words) else UNKNOWN
        if is_gap(word):
            self._left = None
            return word
        before = NOTHING if self._left is None else self._between(self._left, word)
        self._left = word
        return before + word

    def finish(self) -> str:
        self._left = None
        return ""


def word_library_json(words: Sequence[str], unk: str | None = None) -> str:
    """Return `library_json` of these words; any other word is `unk`, if given."""
    used = set().union(*words)
    nothing, between = [chr(code) for code in PRIVATE if chr(code) not in used][:2]
    ids = {word or nothing: i for i, word in enumerate(words)}
    made = hf.Tokenizer(hf.models.WordLevel(ids) if unk is None else hf.models.WordLevel(ids, unk_token=unk))
    opens, closes, inner = ("".join(re.escape(sign) for sign in sorted(signs)) for signs in (OPENS, CLOSES, INNER))
    # A private-use character marks two tokens without the usual space between them.
    touching = (
        rf"(?<=[{WORD}])(?=[^{WORD}{GAP}{closes}{inner}])",
        rf"(?<=[{WORD}])(?=[{inner}](?![{WORD}]))",
        rf"(?<=[^{WORD}{GAP}{opens}{inner}])(?=[{WORD}])",
        rf"(?<=\A[{inner}]|[^{WORD}][{inner}])(?=[{WORD}])",
        rf"(?<=[^{WORD}{GAP}{opens}])(?=[^{WORD}{GAP}{closes}])",
    )
    unknown = [hf.normalizers.Replace(sign, UNKNOWN) for sign in (nothing, between)]
    marked = hf.normalizers.Replace(hf.Regex("|".join(touching)), nothing)
    made.normalizer = hf.normalizers.Sequence([*unknown, marked])
    usual = hf.Regex(rf"(?<![{GAP}{opens}]){SPACE}(?![{GAP}{closes}])")
    piece = hf.Regex(rf"[{WORD}]+(?:[{inner}][{WORD}]+)*|[{GAP}]+|[^{WORD}{GAP}]")
    splits = [hf.pre_tokenizers.Split(one, then) for one, then in ((usual, "removed"), (piece, "isolated"))]
    made.pre_tokenizer = hf.pre_tokenizers.Sequence(splits)
    unseen = (
        *(rf"\A{between}", rf"{between}{nothing}{between}?", rf"{between}(?=[{GAP}])", rf"(?<=[{GAP}]){between}"),
        *(rf"{between}(?=[{closes}])", rf"(?<=[{opens}]){between}"),
    )
    made.decoder = hf.decoders.Sequence(
        [
            hf.decoders.Replace(hf.Regex(r"\A"), between),
            hf.decoders.Fuse(),
            *(hf.decoders.Replace(hf.Regex(one), NOTHING) for one in unseen),
            hf.decoders.Replace(between, SPACE),
        ]
    )
    return made.to_str()
