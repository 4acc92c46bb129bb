"""How much of a held-out split is also in the training split: seen data tests memorization, not generalization.

Texts are compared by passages and by whole documents and lines; sentences and questions one by one. A passage is
`PASSAGE` identical bytes, about the 50 tokens that Lee et al. (2022, "Deduplicating training data makes language models
better") count as a duplicate, or 67 Chinese characters. Some overlap is natural: the test sets of standard benchmarks
share 6 % on average, and up to 13 %, with their own training sets (Radford et al. 2019, section 4, by 8-grams). At
`VOID_SHARE` or more, scores are not compared. Shorter repetitions are natural (log lines, choruses, boilerplate), so
repeated lines only cause a warning.
"""

import functools
import unicodedata
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from engine.base.language import Message
from engine.data.corpus import END_OF_TEXT
from engine.data.framing import fold_case_and_spaces
from engine.data.text_sizes import SPACELESS
from engine.runs.verdict import OK, OVERLAP, REPEATED, Verdict

if TYPE_CHECKING:
    from engine.data.parallel.pairs import Pairs

VOID_SHARE = 0.10  # share at which scores on the split are no longer compared
MIN_REPORTED_SHARE = 0.001  # share below which nothing is reported
PASSAGE = 200  # bytes of UTF-8
MAX_SAMPLE_BYTES = 2_000_000  # bytes of held-out text; longer text is sampled in evenly spaced stretches
STRETCH = 1 << 16  # bytes
PIECE = 1 << 17  # characters of training text hashed at once
TABLE_BITS = 22  # size of the table that rules out most training passages before any search
BASE = 0x9E3779B97F4A7C15  # odd, so it has an inverse modulo 2**64
EXAMPLE_LENGTH = 60  # characters of an example
# Characters of a line or document that counts; the second in scripts without spaces.
MIN_UNIT_LENGTH, MIN_SPACELESS_LENGTH = 20, 8
MAX_UNITS = 50_000  # distinct lines, and documents, that are looked up; of more, a sample
MAX_UNIT_LENGTH = 1 << 20  # characters; a longer line or document is compared in parts
PUNCTUATION = frozenset(("Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sk"))  # Sk: ` and ´, which serve as quotes

Hashes = NDArray[np.uint64]

# By the unit: what is said of an overlap, and what if there is none.
SENTENCES = {
    "text": (
        Message("{share} of the {split} text also appears word for word in the training text"),
        Message(
            "no passage of {passage} bytes{whole} and no line of {least} characters or more of the {split} text "
            "appears in the training text"
        ),
    ),
    "documents": (
        Message("{share} of the {split} documents' text also appears word for word in the training documents"),
        Message("no passage of {passage} bytes and no whole {split} document appears in the training documents"),
    ),
    "pairs": (
        Message(
            "{share} of the {split} pairs ({seen:,} of {total:,}) share a sentence with the training "
            "pairs, ignoring case and punctuation{both}"
        ),
        Message(
            "none of the {total:,} {split} pairs share a sentence with the training pairs, ignoring case "
            "and punctuation"
        ),
    ),
    "questions": (
        Message(
            "{share} of the {split} questions ({seen:,} of {total:,}) are also asked in training, ignoring case and "
            "punctuation"
        ),
        Message("none of the {total:,} {split} questions are asked in training, ignoring case and punctuation"),
    ),
    "texts": (
        Message(
            "{share} of the {split} texts ({seen:,} of {total:,}) are also in training, ignoring case and punctuation"
        ),
        Message("none of the {total:,} {split} texts are in training, ignoring case and punctuation"),
    ),
}
# What is added about documents and lines that appear whole.
WHOLE_SENTENCES = {
    "documents": Message("{said}; distinct documents found there whole: {seen:,} of {total:,} ({share})"),
    "lines": Message(
        "{said}; distinct lines of {least} characters or more found there whole: {seen:,} of {total:,} ({share})"
    ),
}


@dataclass(frozen=True)
class Overlap:
    of: str  # the unit: "text" and "documents" in bytes, "pairs", "questions" and "texts" one by one
    split: str  # the held-out one
    seen: int  # how many appear in training
    total: int  # how many there are
    example: str = ""  # an example, shortened, without control characters; "" if none was seen
    both: int = 0  # pairs whose source and target are both in training
    documents: int = 0  # distinct documents looked up
    documents_seen: int = 0  # how many are also documents in training
    lines: int = 0  # distinct lines looked up
    lines_seen: int = 0  # how many are also lines in training
    sampled: bool = False  # whether only some of the documents or lines were looked up
    generated: bool = False  # whether a grammar writes the text, so that repetition is natural

    @property
    def share(self) -> float:
        return self.seen / self.total

    @property
    def score_voiding_share(self) -> float:
        """The share seen of passages, documents or rows, whichever is larger: too much of it voids a score."""
        return max(self.share, 0.0 if self.generated else self.documents_seen / max(1, self.documents))

    @property
    def repeated_line_share(self) -> float:
        """The share of distinct lines seen."""
        return self.lines_seen / max(1, self.lines)

    @property
    def voids_score(self) -> bool:
        return self.score_voiding_share >= VOID_SHARE

    @property
    def repeats_many_lines(self) -> bool:
        return self.repeated_line_share >= VOID_SHARE and not self.generated

    @property
    def verdict(self) -> Verdict:
        """Return whether so much of the held-out split is in training that its score measures memorization."""
        if not self.voids_score and not self.repeats_many_lines:
            return Verdict("overlap", "before", 0, OK, self.score_voiding_share, self.sentence)
        if not self.voids_score:
            why = Message(
                "{said}. Lines repeat in many texts; if they should not in this one, the score measures memorization: "
                "remove duplicates from the corpus, then train again",
                said=self.sentence,
            )
            return Verdict("overlap", "before", 0, REPEATED, self.repeated_line_share, why)
        why = Message(
            "{said}. The score measures memorization, so it is not compared with other runs: remove duplicates from "
            "the corpus or hold out different text, then train again",
            said=self.sentence,
        )
        return Verdict("overlap", "before", 0, OVERLAP, self.score_voiding_share, why)

    @property
    def is_reportable(self) -> bool:
        return self.score_voiding_share >= MIN_REPORTED_SHARE or self.repeats_many_lines

    @property
    def sentence(self) -> str:
        """Return a sentence without its full stop, with the shares and an example."""
        said, none = SENTENCES[self.of]
        units = (("documents", self.documents_seen, self.documents), ("lines", self.lines_seen, self.lines))
        whole = [(unit, seen, total) for unit, seen, total in units if seen]
        if whole and not self.seen:
            said = Message("no passage of {passage} bytes of the {split} text appears in the training text")
        both = Message(", {both:,} of them on both sides", both=self.both) if self.both else ""
        values: dict[str, Any] = {"split": self.split, "seen": self.seen, "total": self.total, "both": both}
        values |= {"share": _percent(self.share), "passage": PASSAGE, "least": MIN_UNIT_LENGTH}
        values["whole"] = Message(", no document") if self.documents else ""
        said = (said if self.seen or whole else none).format(**values)
        for unit, seen, total in whole:
            share = _percent(seen / total)
            said = WHOLE_SENTENCES[unit].format(said=said, share=share, seen=seen, total=total, least=MIN_UNIT_LENGTH)
        if self.sampled and whole:
            said = Message("{said}; only a sample of these was looked up", said=said)
        return Message("{said}; for example “{example}”", said=said, example=self.example) if self.example else said

    def to_json(self) -> dict[str, str | int | float]:
        return {"share": round(self.share, 6), **asdict(self)}


def text_overlap(
    train: Iterable[str], held_out: str, split: str, whole: Iterable[str] | None = None, *, generated: bool = False
) -> Overlap | None:
    """Return the share of a held-out text covered by passages of the training text, and the documents and lines in
    both; None without text. `whole`: the held-out text in pieces, if `held_out` is only stretches of it.
    """
    lines, documents = _Units("\n"), _Units(END_OF_TEXT)
    pieces = lines.pass_through(_rechunk((held_out,) if whole is None else whole), lines.add)
    deque(documents.pass_through(pieces, documents.add), maxlen=0)
    pieces = lines.pass_through(_rechunk(train), lines.look_up)
    if documents.marked:
        pieces = documents.pass_through(pieces, documents.look_up)
    else:  # one text without documents
        documents.known.clear()
    found = _make_overlap("text", split, *_find_passages(held_out.encode("utf-8", "surrogatepass"), pieces))
    return found and replace(
        found,
        example=found.example or documents.example or lines.example,
        documents=len(documents.known),
        documents_seen=len(documents.seen),
        lines=len(lines.known),
        lines_seen=len(lines.seen),
        sampled=documents.sampled or lines.sampled,
        generated=generated,
    )


def document_overlap(train: Sequence[str], held_out: Sequence[str], split: str) -> Overlap | None:
    """Like `text_overlap`, but a document equal to one in training, ignoring case and punctuation, counts in full."""
    known, alone = set(normalize_for_comparison(train)), normalize_for_comparison(held_out)
    encoded = [f"{text}\n".encode("utf-8", "surrogatepass") for text in held_out]
    whole = b"".join(encoded)
    looked_at, seen = _find_passages(whole, (f"{text}\n" for text in train))
    if len(looked_at) == len(whole):
        start = 0
        for text, raw in zip(alone, encoded, strict=True):
            if text in known:
                seen[start : start + len(raw)] = True
            start += len(raw)
    found, asked = _make_overlap("documents", split, looked_at, seen), set(filter(_is_long_enough, alone))
    return found and replace(found, documents=len(asked), documents_seen=len(asked & known))


def pair_overlap(train: "Pairs", held_out: "Pairs", split: str) -> Overlap | None:
    """Return how many held-out pairs share a sentence with training on either side; None without pairs."""
    if not len(held_out):
        return None
    sides = []
    for known, asked in ((train.sources, held_out.sources), (train.targets, held_out.targets)):
        there = set(normalize_for_comparison(known))
        sides.append([sentence in there for sentence in normalize_for_comparison(asked)])
    either = [i for i, pair in enumerate(zip(*sides, strict=True)) if any(pair)]
    both = [i for i in either if sides[0][i] and sides[1][i]]
    example = ""
    if either:
        first = (both or either)[0]
        example = (held_out.sources if sides[0][first] else held_out.targets)[first]
    return Overlap("pairs", split, len(either), len(held_out), shorten(example), len(both))


def question_overlap(
    train: Sequence[str], held_out: Sequence[str], split: str, of: str = "questions"
) -> Overlap | None:
    if not held_out:
        return None
    known = set(normalize_for_comparison(train))
    seen = [text for text, words in zip(held_out, normalize_for_comparison(held_out), strict=True) if words in known]
    return Overlap(of, split, len(seen), len(held_out), shorten(seen[0]) if seen else "")


labelled_overlap = functools.partial(question_overlap, of="texts")


def normalize_for_comparison(sentences: Sequence[str]) -> list[str]:
    """Return sentences without case, punctuation and compatibility forms (NFKC); one of only marks is kept."""
    whole = unicodedata.normalize("NFKC", "\n".join(text.replace("\n", " ") for text in sentences)).casefold()
    marks = {ord(one): " " for one in set(whole) if unicodedata.category(one) in PUNCTUATION}
    plain = whole.translate(marks).split("\n") if sentences else []
    return [" ".join(text.split()) or fold_case_and_spaces(one) for text, one in zip(plain, sentences, strict=True)]


def shorten(text: str) -> str:
    line = " ".join("".join(one if one.isprintable() else " " for one in text[: 4 * EXAMPLE_LENGTH]).split())
    return line if len(line) <= EXAMPLE_LENGTH else f"{line[: EXAMPLE_LENGTH - 1].rstrip()}…"


def _percent(share: float) -> str:
    return f"{share:.1%}" if share >= MIN_REPORTED_SHARE else Message("under {little:.1%}", little=MIN_REPORTED_SHARE)


class _Units:
    """The distinct lines or documents of a held-out text, and which are also in training: compared after NFKC, ignoring
    case and the amount of white space.

    Memory use depends on neither text: of more than `MAX_UNITS` units, those with the smallest checksums are kept,
    which are a random sample, but always the same.
    """

    def __init__(self, mark: str) -> None:
        self.mark, self.marked, self.sampled = mark, False, False  # what ends a unit; whether there is any
        self.known: dict[int, tuple[int, str]] = {}  # by a unit's hash: its checksum and beginning
        self.seen: set[int] = set()
        self.most = 1 << 32  # above all checksums that are looked up

    def pass_through(self, pieces: Iterable[str], take: Callable[[Iterable[str]], None]) -> Iterator[str]:
        """Yield the pieces of a text unchanged, passing its units to `take` along the way."""
        held = ""
        for piece in pieces:
            yield piece
            text, mark, held = (held + piece).rpartition(self.mark)
            self.marked |= bool(mark)
            if len(held) > MAX_UNIT_LENGTH:
                text, held = f"{text}{mark}{held[:MAX_UNIT_LENGTH]}", held[MAX_UNIT_LENGTH:]
            take(self._split_units(text))
        take(self._split_units(held))

    def _split_units(self, text: str) -> Iterator[str]:
        plain = unicodedata.normalize("NFKC", text).casefold().replace(END_OF_TEXT, self.mark).replace("\r", "\n")
        return map(" ".join, map(str.split, plain.split(self.mark)))

    def add(self, units: Iterable[str]) -> None:
        for unit in filter(_is_long_enough, units):
            checksum = crc32(unit.encode("utf-8", "surrogatepass"))
            if checksum < self.most:
                self.known.setdefault(hash(unit), (checksum, unit[: 4 * EXAMPLE_LENGTH]))
            if len(self.known) > MAX_UNITS:
                self.sampled, self.most = True, sorted(self.known.values())[MAX_UNITS // 2][0]
                self.known = {key: one for key, one in self.known.items() if one[0] < self.most}

    def look_up(self, units: Iterable[str]) -> None:
        self.seen |= self.known.keys() & map(hash, units)

    @property
    def example(self) -> str:
        return next((shorten(unit) for key, (_, unit) in self.known.items() if key in self.seen), "")


def _is_long_enough(unit: str) -> bool:
    """Return whether a line or document is longer than a mere phrase."""
    return len(unit) >= MIN_UNIT_LENGTH or (len(unit) >= MIN_SPACELESS_LENGTH and SPACELESS.search(unit) is not None)


def _find_passages(held_out: bytes, train: Iterable[str]) -> tuple[bytes, NDArray[np.bool_]]:
    """Return a held-out text or evenly spaced stretches of it, and (bytes,) whether each byte is in a `train` passage.

    Each passage is a 64-bit polynomial hash (Karp and Rabin 1987), from running sums of bytes times powers of `BASE`.
    Memory use does not depend on the size of `train`.
    """
    if len(held_out) > MAX_SAMPLE_BYTES:
        count, last = MAX_SAMPLE_BYTES // STRETCH, len(held_out) - STRETCH
        starts = [last * i // (count - 1) for i in range(count)]
        held_out = b"".join(held_out[start : start + STRETCH] for start in starts)
    edges = np.zeros(len(held_out) + 1, dtype=np.int64)
    if held_out:
        width = min(PASSAGE, len(held_out))
        known, of = np.unique(_passage_hashes(held_out, width), return_inverse=True)
        found = np.zeros(len(known), dtype=np.bool_)
        # Number of passages not yet found, by the first bits of their hash.
        table = np.bincount(_table_slots(known), minlength=1 << TABLE_BITS).astype(np.uint32)
        before = b""
        for piece in _rechunk(train):
            raw = before + piece.encode("utf-8", "surrogatepass")
            hashes = _passage_hashes(raw, width)
            # Looking up sorted hashes is several times faster.
            hashes = np.sort(hashes[table[_table_slots(hashes)] > 0])
            at = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
            new = np.unique(at[(known[at] == hashes) & ~found[at]])
            found[new] = True
            np.subtract.at(table, _table_slots(known[new]), 1)
            before = raw[len(raw) - min(len(raw), width - 1) :]
        begins = np.flatnonzero(found[of])
        edges[begins] += 1
        edges[begins + width] -= 1  # starts are distinct, and so are ends
    return held_out, np.cumsum(edges[:-1]) > 0


def _make_overlap(of: str, split: str, text: bytes, seen: NDArray[np.bool_]) -> Overlap | None:
    if not text:
        return None
    count = int(seen.sum())
    example = ""
    if count:  # show the start of the longest stretch found
        edges = np.flatnonzero(np.diff(np.concatenate(([0], seen.view(np.int8), [0]))))
        start, stop = max(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True), key=lambda s: s[1] - s[0])
        example = shorten(text[start:stop][: 16 * EXAMPLE_LENGTH].decode("utf-8", "ignore"))
    return Overlap(of, split, count, len(text), example)


def _passage_hashes(raw: bytes, width: int) -> Hashes:
    """Return the hash of each passage, (n - width + 1,)."""
    n = len(raw) - width + 1
    if n < 1:
        return np.zeros(0, dtype=np.uint64)
    up, down = _powers(max(len(raw), 4 * PIECE))
    sums = np.zeros(len(raw) + 1, dtype=np.uint64)  # arithmetic modulo 2**64 throughout
    np.cumsum(np.frombuffer(raw, dtype=np.uint8) * up[: len(raw)], out=sums[1:])
    return np.asarray((sums[width:] - sums[:n]) * down[:n])


@functools.lru_cache(maxsize=1)
def _powers(count: int) -> tuple[Hashes, Hashes]:
    """Return (count,) powers of `BASE` from the zeroth on, and (count,) their inverses, modulo 2**64."""
    found = []
    for base in (BASE, pow(BASE, -1, 1 << 64)):
        factors = np.full(count, base, dtype=np.uint64)
        factors[0] = 1
        found.append(np.cumprod(factors, dtype=np.uint64))
    return found[0], found[1]


def _table_slots(hashes: Hashes) -> NDArray[np.int64]:
    return (hashes >> np.uint64(64 - TABLE_BITS)).astype(np.int64)


def _rechunk(texts: Iterable[str]) -> Iterator[str]:
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
