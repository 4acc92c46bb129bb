"""Byte-level BPE (Sennrich et al. 2016; bytes as in GPT-2, Radford et al. 2019), trained by Hugging Face `tokenizers`.

It starts from the 256 bytes, so every text can be encoded and round-trips exactly. Tokens 0 … 255 are the bytes
themselves, each later one joins two earlier ones: the list of those pairs is the whole tokenizer. It is stored in that
form, not the library's, so newer libraries can read it and a damaged file can ask for nothing else.
"""

import codecs
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tokenizers as hf
from numpy.typing import NDArray

from engine.base.errors import InputError
from engine.base.language import Message, tr
from engine.data.cache import cached_numbers
from engine.data.corpus import END_OF_TEXT
from engine.data.framing import sha256_of_texts
from engine.data.tokenizers.protocol import SCHEMA, UNKNOWN, Decoder, Tokenizer

BYTES = 256
MAX_VOCABULARY = 1_000_000  # tokens
LONGEST_PIECE = 64  # bytes; training makes no longer token: it would be a horizontal rule
LONGEST_GIVEN = 256  # bytes; GPT-2 has rules of 128, and anything longer is damage
SEEN_AT_LEAST = 2  # a pair that occurs once is not worth a token
CHUNK = 50_000  # characters; longer texts are encoded in parallel parts
BATCH = 2_000  # texts per library call: it blocks other threads while taking and returning them
# GPT-2's pattern always splits at a line break between two of these, so we can split there too.
LINE_END = re.compile(r"[!-~\w]\n(?=[!-~\w])")
LOOKED_BACK = 1 << 14  # characters from the end of a text in which a line break is looked for first

KEPT_VERSION = 3  # of the cached tokenizer's format, and of its training


def _byte_symbols() -> list[str]:
    """Return GPT-2's printable character for each byte, the library's name for it."""
    shown = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = iter(range(0x100, 0x200))
    return [chr(byte) if byte in shown else chr(next(hidden)) for byte in range(BYTES)]


SIGNS = _byte_symbols()


def _separately_encodable_chunks(text: str) -> Iterator[str]:
    """Yield the text in parts that encode as the whole would."""
    start = 0
    while len(text) - start > CHUNK and (cut := LINE_END.search(text, start + CHUNK)):
        yield text[start : cut.end()]
        start = cut.end()
    yield text[start:]


class BpeTokenizer(Tokenizer):
    """Frequent byte sequences as tokens; `merges` are pairs of earlier tokens, the most frequent first. Merges that
    give the same bytes are one token. With `end_of_text`, the mark that ends a document is one more. Raises ValueError
    if a merge's tokens do not exist yet, or its token is too long.
    """

    kind, joins_spaces = "bpe", True

    def __init__(self, merges: Sequence[tuple[int, int]], *, end_of_text: bool = False) -> None:
        self.merges = tuple(merges)
        pieces = [bytes([byte]) for byte in range(BYTES)]
        known = set(pieces)
        for number, (left, right) in enumerate(self.merges, start=1):
            if not (0 <= left < len(pieces) and 0 <= right < len(pieces)):
                raise ValueError(tr("merge {number} joins a token that does not exist", number=number))
            piece = pieces[left] + pieces[right]
            if len(piece) > LONGEST_GIVEN:
                problem = tr(
                    "merge {number} makes a token of {n} bytes; the maximum is {longest}",
                    number=number,
                    n=len(piece),
                    longest=LONGEST_GIVEN,
                )
                raise ValueError(problem)
            if piece not in known:
                known.add(piece)
                pieces.append(piece)
        names = ["".join(SIGNS[byte] for byte in piece) for piece in pieces]
        model = hf.models.BPE(
            vocab={name: token for token, name in enumerate(names)},
            merges=[(names[left], names[right]) for left, right in self.merges],
        )
        self._model = hf.Tokenizer(model)
        self._model.pre_tokenizer = hf.pre_tokenizers.ByteLevel(add_prefix_space=False)
        if end_of_text:
            self.end_of_text = len(pieces)
            pieces.append(END_OF_TEXT.encode())
            self._model.add_tokens([hf.AddedToken(END_OF_TEXT, normalized=False)])
        self.token_bytes = tuple(pieces)  # the bytes of each token

    @classmethod
    def train(cls, texts: Iterable[str], size: int) -> "BpeTokenizer":
        """Train on these texts, in any order; small texts give fewer than `size` tokens. If one contains the mark that
        ends a document, that is one more. Raises InputError: a size that cannot be, no text at all, or a lone
        surrogate in one.
        """
        if not BYTES < size <= MAX_VOCABULARY:
            problem = Message(
                "data.bpe_size = {size}: byte-level BPE starts from {bytes} bytes; choose {bytes2} to {largest}",
                size=size,
                bytes=BYTES,
                bytes2=BYTES + 1,
                largest=MAX_VOCABULARY,
            )
            raise InputError(problem)
        trainer = hf.trainers.BpeTrainer(
            vocab_size=size,
            min_frequency=SEEN_AT_LEAST,
            show_progress=False,
            initial_alphabet=hf.pre_tokenizers.ByteLevel.alphabet(),
            max_token_length=LONGEST_PIECE,
        )
        learner = hf.Tokenizer(hf.models.BPE())
        learner.pre_tokenizer = hf.pre_tokenizers.ByteLevel(add_prefix_space=False)
        seen = ends = False

        def chunks() -> Iterator[str]:  # one pass: the texts may not fit into memory
            nonlocal seen, ends
            for text in texts:
                refuse_surrogates([text])
                first, *others = text.split(END_OF_TEXT)
                ends = ends or bool(others)
                for document in (first, *others):
                    seen = seen or bool(document)
                    yield from _separately_encodable_chunks(document)

        learner.train_from_iterator(chunks(), trainer)
        if not seen:
            raise InputError(Message("there is no text to train a BPE tokenizer on"))
        # The library names tokens by characters; ours are pairs of ids.
        ids = {sign: byte for byte, sign in enumerate(SIGNS)}
        merges = []
        for left, right in json.loads(learner.to_str())["model"]["merges"]:
            merges.append((ids[left], ids[right]))
            ids.setdefault(left + right, len(ids))
        return cls(merges, end_of_text=ends)

    @property
    def vocab_size(self) -> int:
        return len(self.token_bytes)

    def encode(self, text: str) -> NDArray[np.int64]:
        return np.concatenate(self.encode_all(list(_separately_encodable_chunks(text))))

    def last_cut(self, text: str) -> int:
        for start in (max(0, len(text) - LOOKED_BACK), 0):
            cuts = [found.end() for found in LINE_END.finditer(text, start)]
            if cuts:
                return cuts[-1]
        return 0

    def encode_all(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """Return token ids of many texts, on all cores."""
        refuse_surrogates(texts)
        ids: list[NDArray[np.int64]] = []
        for start in range(0, len(texts), BATCH):
            encoded = self._model.encode_batch_fast(list(texts[start : start + BATCH]), add_special_tokens=False)
            ids += [np.array(one.ids, dtype=np.int64) for one in encoded]
        return ids

    def bytes_of(self, token: int) -> bytes:
        """Return a token's UTF-8 bytes, perhaps part of a character; U+FFFD's past the vocabulary."""
        return self.token_bytes[token] if 0 <= token < self.vocab_size else UNKNOWN.encode()

    def first_token_bytes(self, text: str, token: int) -> int:
        return len(self.bytes_of(token))

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of token ids; U+FFFD for ids past the vocabulary and for invalid bytes."""
        return b"".join(self.bytes_of(token) for token in ids).decode(errors="replace")

    def decoder(self) -> "BpeDecoder":
        return BpeDecoder(self)

    def to_json(self) -> str:
        made = {"schema": SCHEMA, "kind": self.kind, "merges": self.merges}
        ends = {} if self.end_of_text is None else {"end_of_text": True}
        return json.dumps(made | ends, separators=(",", ":"))

    def library_json(self) -> str:
        made = hf.Tokenizer.from_str(self._model.to_str())
        made.decoder = hf.decoders.ByteLevel()
        return made.to_str()

    @classmethod
    def from_json(cls, merges: Any, *, end_of_text: bool = False) -> "BpeTokenizer":
        if len(merges) > MAX_VOCABULARY:
            raise ValueError(tr("{n} merges; the maximum is {largest}", n=len(merges), largest=MAX_VOCABULARY))
        for merge in merges:
            if len(merge) != 2 or not all(type(token) is int for token in merge):
                raise ValueError(tr("a merge must be a pair of token ids"))
        return cls([(left, right) for left, right in merges], end_of_text=end_of_text)


class BpeDecoder(Decoder):
    """Withholds the bytes of an unfinished character, so its output is never revised."""

    def __init__(self, tokenizer: BpeTokenizer) -> None:
        self._bytes_of = tokenizer.bytes_of
        self._text = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, token: int) -> str:
        return self._text.decode(self._bytes_of(token))

    def finish(self) -> str:
        return self._text.decode(b"", final=True)


def refuse_surrogates(texts: Iterable[str]) -> None:
    """Refuse lone surrogates: the library's error would be about codecs."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            found = tr("U+{ord:04X} at character {start}", ord=ord(text[error.start]), start=error.start + 1)
            raise InputError(Message("a lone surrogate ({found}) is not text; use UTF-8 text", found=found)) from None


def cached_bpe(texts: Sequence[str], size: int) -> BpeTokenizer:
    """Return the BPE tokenizer of these texts, from the cache or trained now and cached; as `BpeTokenizer.train`."""
    return cached_bpe_by_hash(sha256_of_texts(texts), texts, size)


def cached_bpe_by_hash(sha256: str, texts: Iterable[str], size: int) -> BpeTokenizer:
    """The same for texts whose hash is already known, which are read only if the tokenizer is not in the cache."""
    made_by = (KEPT_VERSION, hf.__version__, size, sha256)

    def train() -> NDArray[np.float64]:
        made = BpeTokenizer.train(texts, size)
        return np.array([(made.end_of_text is not None, 0), *made.merges], dtype=np.float64).ravel()

    ends, *merges = cached_numbers("tokenizers", made_by, train).astype(np.int64).reshape(-1, 2).tolist()
    return BpeTokenizer([(left, right) for left, right in merges], end_of_text=bool(ends[0]))
