"""Byte-level BPE (Sennrich et al. 2016; bytes as in GPT-2, Radford et al. 2019), trained by Hugging Face `tokenizers`.

It starts from the 256 bytes, so no text is unknown and every text comes back as it was. Tokens 0 … 255 are the bytes
themselves, each later one joins two earlier ones: the list of those pairs is the whole tokenizer. It is kept in that
form and not in the library's, so that a newer library reads it and a damaged file cannot ask for anything else.
"""

import codecs
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tokenizers as hf
from numpy.typing import NDArray

from engine.data.cache import cache_folder, store
from engine.data.framing import sha256_of_texts
from engine.data.tokenizers.protocol import SCHEMA, UNKNOWN, Tokenizer
from engine.errors import InputError

BYTES = 256
LARGEST = 1_000_000  # tokens
LONGEST_PIECE = 64  # bytes; a longer token is a ruler or a damaged file
SEEN_AT_LEAST = 2  # a pair that occurs once is not worth a token
CHUNK = 50_000  # characters; longer texts are encoded in several parts, side by side
BATCH = 2_000  # texts handed to the library at once: it holds up other threads while it takes and returns them
# GPT-2's pattern cuts before and after a line break between two of these: so can we, and nothing changes.
LINE_END = re.compile(r"[!-~\w]\n(?=[!-~\w])")

KEPT_VERSION = 1  # of what is kept of a trained tokenizer, and of how it is trained

Progress = Callable[[int, int], None]
"""Called with how many texts have been read, and how many there are."""


def _byte_signs() -> list[str]:
    """Return GPT-2's printable sign for each byte, by which the library names them."""
    shown = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = iter(range(0x100, 0x200))
    return [chr(byte) if byte in shown else chr(next(hidden)) for byte in range(BYTES)]


SIGNS = _byte_signs()


def _chunks(text: str) -> Iterator[str]:
    """Yield the text in parts that are encoded as the whole would be."""
    start = 0
    while len(text) - start > CHUNK and (cut := LINE_END.search(text, start + CHUNK)):
        yield text[start : cut.end()]
        start = cut.end()
    yield text[start:]


def _pieces(merges: Sequence[tuple[int, int]]) -> list[bytes]:
    """Return the bytes of each token. Two merges may lead to the same bytes: those are one token.

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


class BpeTokenizer(Tokenizer):
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
        """Return the tokenizer of these texts; the same texts give the same one, in whatever order they come.

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

        def reported() -> Iterator[str]:
            for done, text in enumerate(texts, start=1):
                yield from _chunks(text)
                if progress is not None and (done % 1000 == 0 or done == len(texts)):
                    progress(done, len(texts))

        learner.train_from_iterator(reported(), trainer)
        # The library names tokens by their signs; ours are pairs of ids.
        ids = {sign: byte for byte, sign in enumerate(SIGNS)}
        merges = []
        for left, right in json.loads(learner.to_str())["model"]["merges"]:
            merges.append((ids[left], ids[right]))
            ids.setdefault(left + right, len(ids))
        return cls(merges)

    @property
    def vocab_size(self) -> int:
        return len(self.pieces)

    def encode(self, text: str) -> NDArray[np.int64]:
        return np.concatenate(self.encode_all(list(_chunks(text))))

    def encode_all(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """Return token ids of many texts, on all cores."""
        _refuse_surrogates(texts)
        ids: list[NDArray[np.int64]] = []
        for start in range(0, len(texts), BATCH):
            encoded = self._model.encode_batch_fast(list(texts[start : start + BATCH]), add_special_tokens=False)
            ids += [np.array(one.ids, dtype=np.int64) for one in encoded]
        return ids

    def bytes_of(self, token: int) -> bytes:
        """Return the UTF-8 bytes of a token, perhaps a part of a character; those of U+FFFD past the vocabulary."""
        return self.pieces[token] if 0 <= token < self.vocab_size else UNKNOWN.encode()

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of token ids; U+FFFD for ids past the vocabulary and for bytes that make no character."""
        return b"".join(self.bytes_of(token) for token in ids).decode(errors="replace")

    def decoder(self) -> "BpeDecoder":
        return BpeDecoder(self)

    def to_json(self) -> str:
        return json.dumps({"schema": SCHEMA, "kind": self.kind, "merges": self.merges}, separators=(",", ":"))

    def library_json(self) -> str:
        """Return the same as the library's own JSON text."""
        return self._model.to_str()

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "BpeTokenizer":
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
        return self._bytes.decode(self._tokenizer.bytes_of(token))

    def finish(self) -> str:
        return self._bytes.decode(b"", final=True)


def _refuse_surrogates(texts: Iterable[str]) -> None:
    """The library would stop with a message about codecs."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            found = f"U+{ord(text[error.start]):04X} at character {error.start + 1}"
            raise InputError(f"half a surrogate pair ({found}) is no text; UTF-8 text is needed") from None


def bpe_of(texts: Sequence[str], size: int, progress: Progress | None = None) -> BpeTokenizer:
    """Return the BPE tokenizer of these texts: from the cache, or trained now and kept for the next time.

    Args:
        texts: what it learns from; for a shared vocabulary the sources followed by the targets.
        size: tokens, the 256 bytes among them.
        progress: as in `BpeTokenizer.trained`; not called where nothing has to be trained.

    Raises:
        InputError: as `BpeTokenizer.trained`.
    """
    made_by = json.dumps([KEPT_VERSION, hf.__version__, size, sha256_of_texts(texts)])
    path = cache_folder() / "tokenizers" / f"{hashlib.sha256(made_by.encode()).hexdigest()}.json"
    try:
        data = json.loads(path.read_bytes())
        found = BpeTokenizer.from_json(data["tokenizer"])
        if found.sha256 == data["sha256"]:
            return found
    except (OSError, ValueError, KeyError, TypeError, RecursionError):  # missing, or damaged: it is made again
        pass
    made = BpeTokenizer.trained(texts, size, progress)
    content = json.dumps({"sha256": made.sha256, "tokenizer": json.loads(made.to_json())})
    store(path, lambda file: file.write(content.encode()))
    return made
