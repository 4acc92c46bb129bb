"""How much of a held-out split is also in the training split: seen data tests memorization, not generalization.

Texts are compared by passages, sentences and questions one by one. A passage is `PASSAGE` identical bytes, about the 50
tokens that Lee et al. (2022, "Deduplicating training data makes language models better") count as a duplicate, or 67
Chinese characters. Shorter repetitions are natural: log lines, choruses, boilerplate. So is some overlap: the test sets
of standard benchmarks share 6 % on average, and up to 13 %, with their own training sets (Radford et al. 2019, section
4, by 8-grams). At `MUCH` or more, scores are not compared.
"""

import functools
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.data.framing import folded

if TYPE_CHECKING:
    from engine.data.parallel.pairs import Pairs

MUCH = 0.10  # share at which scores on the split are no longer compared
LITTLE = 0.001  # share below which nothing is reported
PASSAGE = 200  # bytes of UTF-8
LOOKED_AT = 2_000_000  # bytes of held-out text; longer text is sampled in evenly spaced stretches
STRETCH = 1 << 16  # bytes
PIECE = 1 << 17  # characters of training text hashed at once
TABLE_BITS = 22  # size of the table that rules out most training passages before any search
BASE = 0x9E3779B97F4A7C15  # odd, so it has an inverse modulo 2**64
SHOWN = 60  # characters of an example
PUNCTUATION = frozenset(("Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sk"))  # Sk: ` and ´, which serve as quotes

Hashes = NDArray[np.uint64]


@dataclass(frozen=True)
class Overlap:
    of: str  # the unit: "text" and "documents" in bytes, "pairs" and "questions" one by one
    split: str  # the held-out one
    seen: int  # how many appear in training
    total: int  # how many there are
    example: str = ""  # an example, shortened, without control characters; "" if none was seen
    both: int = 0  # pairs whose source and target are both in training

    @property
    def share(self) -> float:
        return self.seen / self.total

    @property
    def much(self) -> bool:
        return self.share >= MUCH

    @property
    def worth_saying(self) -> bool:
        return self.share >= LITTLE

    @property
    def said(self) -> str:
        """Return a sentence without its full stop, with the share and an example."""
        share = f"{self.share:.1%}" if self.share >= LITTLE else f"under {LITTLE:.1%}"
        count, aside = f"{self.seen:,} of {self.total:,}", "ignoring case and punctuation"
        if self.of == "text" or self.of == "documents":
            of = "text" if self.of == "text" else "documents' text"
            said = f"{share} of the {self.split} {of} also appears word for word in the training {self.of}"
            none = f"no passage of the {self.split} {of} appears in the training {self.of}"
        elif self.of == "pairs":
            both = f", {self.both:,} of them on both sides" if self.both else ""
            said = f"{share} of the {self.split} pairs ({count}) share a sentence with training, {aside}{both}"
            none = f"none of the {self.total:,} {self.split} pairs share a sentence with training, {aside}"
        else:
            said = f"{share} of the {self.split} questions ({count}) are also asked in training, {aside}"
            none = f"none of the {self.total:,} {self.split} questions are asked in training, {aside}"
        return f"{said}; for example “{self.example}”" if self.seen else none

    def to_json(self) -> dict[str, str | int | float]:
        return {"share": round(self.share, 6), **asdict(self)}


def text_overlap(train: Iterable[str], held_out: str, split: str) -> Overlap | None:
    """Return the share of a held-out text covered by passages of the training text; None without text."""
    found = _Passages(held_out.encode("utf-8", "surrogatepass"))
    found.look_in(train)
    return found.overlap("text", split)


def document_overlap(train: Sequence[str], held_out: Sequence[str], split: str) -> Overlap | None:
    """Like `text_overlap`, but a document equal to one in training, ignoring case and punctuation, counts in full."""
    known = set(words_alone(train))
    encoded = [f"{text}\n".encode("utf-8", "surrogatepass") for text in held_out]
    found = _Passages(b"".join(encoded))
    found.look_in(f"{text}\n" for text in train)
    if found.sampled:
        return found.overlap("documents", split)
    start = 0
    for text, raw in zip(words_alone(held_out), encoded, strict=True):
        if text in known:
            found.seen[start : start + len(raw)] = True
        start += len(raw)
    return found.overlap("documents", split)


def pair_overlap(train: "Pairs", held_out: "Pairs", split: str) -> Overlap | None:
    """Return how many held-out pairs share a sentence with training on either side; None without pairs."""
    if not len(held_out):
        return None
    sides = []
    for known, asked in ((train.sources, held_out.sources), (train.targets, held_out.targets)):
        there = set(words_alone(known))
        sides.append([sentence in there for sentence in words_alone(asked)])
    either = [i for i, pair in enumerate(zip(*sides, strict=True)) if any(pair)]
    both = [i for i in either if sides[0][i] and sides[1][i]]
    example = ""
    if either:
        first = (both or either)[0]
        example = (held_out.sources if sides[0][first] else held_out.targets)[first]
    return Overlap("pairs", split, len(either), len(held_out), shortened(example), len(both))


def question_overlap(train: Sequence[str], held_out: Sequence[str], split: str) -> Overlap | None:
    if not held_out:
        return None
    known = set(words_alone(train))
    seen = [text for text, words in zip(held_out, words_alone(held_out), strict=True) if words in known]
    return Overlap("questions", split, len(seen), len(held_out), shortened(seen[0]) if seen else "")


def words_alone(sentences: Sequence[str]) -> list[str]:
    """Return sentences without case, punctuation and compatibility forms (NFKC); one of only marks is kept."""
    whole = unicodedata.normalize("NFKC", "\n".join(text.replace("\n", " ") for text in sentences)).casefold()
    marks = {ord(one): " " for one in set(whole) if unicodedata.category(one) in PUNCTUATION}
    plain = whole.translate(marks).split("\n") if sentences else []
    return [" ".join(text.split()) or folded(sentence) for text, sentence in zip(plain, sentences, strict=True)]


def shortened(text: str) -> str:
    line = " ".join("".join(one if one.isprintable() else " " for one in text[: 4 * SHOWN]).split())
    return line if len(line) <= SHOWN else f"{line[: SHOWN - 1].rstrip()}…"


class _Passages:
    """A held-out text whose passages are looked up in other texts; their size does not affect memory.

    Each passage is a 64-bit polynomial hash (Karp and Rabin 1987), from running sums of bytes times powers of `BASE`.
    """

    def __init__(self, held_out: bytes) -> None:
        self.sampled = len(held_out) > LOOKED_AT
        self._bytes = held_out
        if self.sampled:  # evenly spaced stretches
            count, last = LOOKED_AT // STRETCH, len(held_out) - STRETCH
            starts = [last * i // (count - 1) for i in range(count)]
            self._bytes = b"".join(held_out[start : start + STRETCH] for start in starts)
        self._width = min(PASSAGE, len(self._bytes))
        self._hashes, self._of = np.unique(self._hashed(self._bytes), return_inverse=True)
        self._found = np.zeros(len(self._hashes), dtype=np.bool_)
        # Number of passages not yet found, by the first bits of their hash.
        self._table = np.bincount(_places(self._hashes), minlength=1 << TABLE_BITS).astype(np.uint32)
        self.seen = np.zeros(len(self._bytes), dtype=np.bool_)

    def look_in(self, train: Iterable[str]) -> None:
        if not self._bytes:
            return
        before = b""
        for piece in _pieces(train):
            raw = before + piece.encode("utf-8", "surrogatepass")
            hashes = self._hashed(raw)
            hashes = np.sort(hashes[self._table[_places(hashes)] > 0])  # sorted hashes are found several times faster
            at = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
            new = np.unique(at[(self._hashes[at] == hashes) & ~self._found[at]])
            self._found[new] = True
            np.subtract.at(self._table, _places(self._hashes[new]), 1)
            before = raw[len(raw) - min(len(raw), self._width - 1) :]
        edges = np.zeros(len(self._bytes) + 1, dtype=np.int64)
        starts = np.flatnonzero(self._found[self._of])
        edges[starts] += 1
        edges[starts + self._width] -= 1  # starts are distinct, and so are ends
        self.seen |= np.cumsum(edges[:-1]) > 0

    def overlap(self, of: str, split: str) -> Overlap | None:
        if not self._bytes:
            return None
        count = int(self.seen.sum())
        example = ""
        if count:  # the beginning of the longest stretch found
            edges = np.flatnonzero(np.diff(np.concatenate(([0], self.seen.view(np.int8), [0]))))
            start, stop = max(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True), key=lambda s: s[1] - s[0])
            example = shortened(self._bytes[start:stop][: 16 * SHOWN].decode("utf-8", "ignore"))
        return Overlap(of, split, count, len(self._bytes), example)

    def _hashed(self, raw: bytes) -> Hashes:
        """Return (n - width + 1,) the hash of each passage."""
        n = len(raw) - self._width + 1
        if n < 1 or not self._width:
            return np.zeros(0, dtype=np.uint64)
        up, down = _powers(max(len(raw), 4 * PIECE))
        sums = np.zeros(len(raw) + 1, dtype=np.uint64)  # arithmetic modulo 2**64 throughout
        np.cumsum(np.frombuffer(raw, dtype=np.uint8) * up[: len(raw)], out=sums[1:])
        return np.asarray((sums[self._width :] - sums[:n]) * down[:n])


@functools.lru_cache(maxsize=1)
def _powers(count: int) -> tuple[Hashes, Hashes]:
    """Return (count,) powers of `BASE` from the zeroth on, and (count,) their inverses, modulo 2**64."""
    found = []
    for base in (BASE, pow(BASE, -1, 1 << 64)):
        factors = np.full(count, base, dtype=np.uint64)
        factors[0] = 1
        found.append(np.cumprod(factors, dtype=np.uint64))
    return found[0], found[1]


def _places(hashes: Hashes) -> NDArray[np.int64]:
    return (hashes >> np.uint64(64 - TABLE_BITS)).astype(np.int64)


def _pieces(texts: Iterable[str]) -> Iterator[str]:
    gathered: list[str] = []
    length = 0
    for text in texts:
        for start in range(0, len(text), PIECE):
            gathered.append(text[start : start + PIECE])
            length += len(gathered[-1])
            if length >= PIECE:
                yield "".join(gathered)
                gathered, length = [], 0
    if gathered:
        yield "".join(gathered)
