"""Byte-level BPE (Sennrich et al. 2016; bytes as in GPT-2, Radford et al. 2019), trained by Hugging Face `tokenizers`.

It starts from the 256 bytes, so no text is unknown and every text comes back as it was. Tokens 0 … 255 are the bytes
themselves, each later one joins two earlier ones: the list of those pairs is the whole tokenizer. It is kept in that
form and not in the library's, so that a newer library reads it and a damaged file cannot ask for anything else.
"""

import codecs
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tokenizers as hf
from numpy.typing import NDArray

from engine.data.tokenizers.protocol import SCHEMA, UNKNOWN, sha256_of_json
from engine.errors import InputError

BYTES = 256
LARGEST = 1_000_000  # tokens
LONGEST_PIECE = 64  # bytes; a longer token is a ruler or a damaged file
SEEN_AT_LEAST = 2  # a pair that occurs once is not worth a token
CHUNK = 50_000  # characters; longer texts are encoded in several parts, side by side
BATCH = 2_000  # texts handed to the library at once: it holds up other threads while it takes and returns them
# GPT-2's pattern cuts before and after a line break between two of these: so can we, and nothing changes.
LINE_END = re.compile(r"[!-~\w]\n(?=[!-~\w])")

Progress = Callable[[int, int], None]
"""Called with how many texts have been read, and how many there are."""


def _byte_signs() -> list[str]:
    """GPT-2's printable sign for each byte, by which the library names them."""
    shown = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = iter(range(0x100, 0x200))
    return [chr(byte) if byte in shown else chr(next(hidden)) for byte in range(BYTES)]


SIGNS = _byte_signs()


def _chunks(text: str) -> Iterator[str]:
    """The text in parts that are encoded as the whole would be."""
    start = 0
    while len(text) - start > CHUNK and (cut := LINE_END.search(text, start + CHUNK)):
        yield text[start : cut.end()]
        start = cut.end()
    yield text[start:]


def _pieces(merges: Sequence[tuple[int, int]]) -> list[bytes]:
    """The bytes of each token. Two merges may lead to the same bytes: those are one token.

    Raises:
        ValueError: a merge of tokens that do not exist yet, or too long a token.
    """
    pieces = [bytes([byte]) for byte in range(BYTES)]
    known = set(pieces)
    for number, (left, right) in enumerate(merges):
        if not (0 <= left < len(pieces) and 0 <= right < len(pieces)):
            raise ValueError(f"merge {number + 1} joins a token that does not exist")
        piece = pieces[left] + pieces[right]
        if len(piece) > LONGEST_PIECE:
            raise ValueError(f"merge {number + 1} makes a token of {len(piece)} bytes; {LONGEST_PIECE} is the most")
        if piece not in known:
            known.add(piece)
            pieces.append(piece)
    return pieces


class BpeTokenizer:
    """Frequent byte sequences as tokens.

    Args:
        merges: pairs of earlier tokens, the most frequent first.

    Raises:
        ValueError: merges that make no vocabulary.
    """

    kind = "bpe"

    def __init__(self, merges: Sequence[tuple[int, int]]) -> None:
        self.merges = tuple(merges)
        self.pieces = tuple(_pieces(self.merges))
        names = ["".join(SIGNS[byte] for byte in piece) for piece in self.pieces]
        model = hf.models.BPE(
            vocab={name: token for token, name in enumerate(names)},
            merges=[(names[left], names[right]) for left, right in self.merges],
        )
        self._model = hf.Tokenizer(model)
        self._model.pre_tokenizer = hf.pre_tokenizers.ByteLevel(add_prefix_space=False)

    @classmethod
    def trained(cls, texts: Iterable[str], size: int, progress: Progress | None = None) -> "BpeTokenizer":
        """The tokenizer of these texts; the same texts give the same one, in whatever order they come.

        Args:
            texts: read once.
            size: tokens, the 256 bytes among them; small texts may give fewer.
            progress: called now and then while the texts are read; counting pairs afterwards takes as long again.

        Raises:
            InputError: a size that cannot be, no text at all, or half a surrogate pair in one.
        """
        if not BYTES < size <= LARGEST:
            raise InputError(
                f"data.bpe_size = {size}: byte-level BPE begins with {BYTES} bytes; {BYTES + 1} to {LARGEST} will do"
            )
        trainer = hf.trainers.BpeTrainer(
            vocab_size=size,
            min_frequency=SEEN_AT_LEAST,
            show_progress=False,
            initial_alphabet=hf.pre_tokenizers.ByteLevel.alphabet(),
            max_token_length=LONGEST_PIECE,
        )
        learner = hf.Tokenizer(hf.models.BPE())
        learner.pre_tokenizer = hf.pre_tokenizers.ByteLevel(add_prefix_space=False)
        texts = list(texts)
        if not any(texts):
            raise InputError("there is no text to train a BPE tokenizer on")
        _refuse_surrogates(texts)
        learner.train_from_iterator(_reported(texts, progress), trainer)
        return cls(_merges(json.loads(learner.to_str())["model"]["merges"]))

    @property
    def vocab_size(self) -> int:
        """How many tokens there are."""
        return len(self.pieces)

    def encode(self, text: str) -> NDArray[np.int64]:
        """(n,) token ids of a text.

        Raises:
            InputError: half a surrogate pair, which no UTF-8 text holds.
        """
        return np.concatenate(self._encoded(list(_chunks(text))))

    def encode_all(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """Token ids of many texts, on all cores.

        Raises:
            InputError: as `encode`.
        """
        return self._encoded(texts)

    def _encoded(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        _refuse_surrogates(texts)
        ids: list[NDArray[np.int64]] = []
        for start in range(0, len(texts), BATCH):
            encoded = self._model.encode_batch_fast(list(texts[start : start + BATCH]), add_special_tokens=False)
            ids += [np.array(one.ids, dtype=np.int64) for one in encoded]
        return ids

    def bytes_of(self, token: int) -> bytes:
        """The UTF-8 bytes of a token, perhaps a part of a character; those of U+FFFD past the vocabulary."""
        return self.pieces[token] if 0 <= token < self.vocab_size else UNKNOWN.encode()

    def decode(self, ids: Iterable[int]) -> str:
        """The text of token ids; U+FFFD for ids past the vocabulary and for bytes that make no character."""
        return b"".join(self.bytes_of(token) for token in ids).decode(errors="replace")

    def decoder(self) -> "BpeDecoder":
        """For ids that arrive one at a time."""
        return BpeDecoder(self)

    def to_json(self) -> str:
        """The whole tokenizer as JSON text."""
        return json.dumps({"schema": SCHEMA, "kind": self.kind, "merges": self.merges}, separators=(",", ":"))

    def library_json(self) -> str:
        """The same as the library's own JSON text."""
        return self._model.to_str()

    @property
    def sha256(self) -> str:
        """The hash of its JSON: two runs with the same hash encode text alike."""
        return sha256_of_json(self.to_json())

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "BpeTokenizer":
        """The tokenizer of a parsed JSON object.

        Raises:
            ValueError, KeyError, TypeError: not one of BPE, or damaged.
        """
        merges = data["merges"]
        if len(merges) > LARGEST:
            raise ValueError(f"{len(merges)} merges; {LARGEST} is the most")
        for merge in merges:
            if len(merge) != 2 or not all(type(token) is int for token in merge):
                raise ValueError("a merge is a pair of token ids")
        return cls([(left, right) for left, right in merges])


class BpeDecoder:
    """Withholds the bytes of an unfinished character: what it gives never has to be taken back."""

    def __init__(self, tokenizer: BpeTokenizer) -> None:
        self._tokenizer = tokenizer
        self._bytes = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, token: int) -> str:
        """The text that this id completes."""
        return self._bytes.decode(self._tokenizer.bytes_of(token))

    def finish(self) -> str:
        """U+FFFD if a character is unfinished, else nothing."""
        return self._bytes.decode(b"", final=True)


def _reported(texts: Sequence[str], progress: Progress | None) -> Iterator[str]:
    for done, text in enumerate(texts, start=1):
        yield from _chunks(text)
        if progress is not None and (done % 1000 == 0 or done == len(texts)):
            progress(done, len(texts))


def _merges(named: Iterable[tuple[str, str]]) -> list[tuple[int, int]]:
    """The library's merges, which name tokens by their signs, as pairs of our ids."""
    ids = {sign: byte for byte, sign in enumerate(SIGNS)}
    merges = []
    for left, right in named:
        merges.append((ids[left], ids[right]))
        ids.setdefault(left + right, len(ids))
    return merges


def _refuse_surrogates(texts: Iterable[str]) -> None:
    """The library would stop with a message about codecs."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            found = f"U+{ord(text[error.start]):04X} at character {error.start + 1}"
            raise InputError(f"half a surrogate pair ({found}) is no text; UTF-8 text is needed") from None
