"""What the tokens of a text leave open, above all which word an `<unk>` stands for, and the cost of spelling it out.

A word model that pays nothing for unknown words cannot be compared with one that has to predict every byte. With
p(word | context) = p(`<unk>` | context) · q(word), it encodes the whole text, except white space at its ends, and its
bits are an upper bound. q is learned from the training split alone: one of a few usual texts, by add-one counts, or
else bytes, each given the one before (byte pairs back off, with the weight of one observation, to add-one counts of
single bytes). Each of these distributions sums to 1, and every word ends, so q is a distribution over all words.
"""

from collections import Counter
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from engine.base.language import tr
from engine.base.progress import Progress
from engine.data.cache import MIN_CACHED_LENGTH, cached_numbers
from engine.data.shards import encodable_parts
from engine.data.splits import AnySplit
from engine.data.tokenizers import Tokenizer

VERSION = 1  # of the cached counts
# What is left open -> its usual texts; others are spelled.
USUAL_TEXTS: Mapping[str, tuple[str, ...]] = {
    "word": ("<unk>",),  # a published text has it already
    "line": ("\n",),
    "gap": (" ", ""),
    "edge": (" ", ""),  # a gap beside a line end
}
SPELLED_COLUMN = 2  # the column of a spelled text
CHOICES = len(USUAL_TEXTS) * (SPELLED_COLUMN + 1)
END = 0xFF  # before the first byte of a word and after its last: no byte of UTF-8
BYTES = 256


def spelling_model_counts(text: str, tokenizer: Tokenizer) -> NDArray[np.float64]:
    """Return (CHOICES + BYTES²,) counts of what a text's tokens leave open: of each usual text and of spelled ones,
    then of each byte [column] after another [row].
    """
    choices, spelled = np.zeros((len(USUAL_TEXTS), SPELLED_COLUMN + 1)), [b""]
    rows = {kind: (choices[row], usual) for row, (kind, usual) in enumerate(USUAL_TEXTS.items())}
    for (kind, found), n in Counter(tokenizer.undetermined_kinds_and_texts(text)).items():
        row, usual = rows[kind]
        row[usual.index(found) if found in usual else SPELLED_COLUMN] += n
        spelled += [found.encode("utf-8", "surrogatepass")] * n if found not in usual else []
    raw = np.frombuffer(bytes([END]).join([*spelled, b""]), dtype=np.uint8).astype(np.int64)
    return np.append(choices, np.bincount(raw[:-1] * BYTES + raw[1:], minlength=BYTES * BYTES))


def split_spelling_model_counts(split: AnySplit, tokenizer: Tokenizer) -> NDArray[np.float64]:
    """The same for a split; cached if counting takes long."""

    def found() -> NDArray[np.float64]:
        progress, done = Progress(tr("counting the rare words"), split.length), 0
        total = spelling_model_counts("", tokenizer)
        for part in encodable_parts(split.pieces(), tokenizer):
            total += spelling_model_counts(part, tokenizer)
            done += len(part)
            progress.update(done)
        return total

    kept = (VERSION, split.sha256, tokenizer.sha256)
    return found() if split.length < MIN_CACHED_LENGTH else cached_numbers("spelling", kept, found)


def spelling_model_costs(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the nats of each choice and of each byte after another, in the order of `spelling_model_counts`."""
    choices, pairs = counts[:CHOICES].reshape(-1, SPELLED_COLUMN + 1) + 1.0, counts[CHOICES:].reshape(BYTES, BYTES)
    single = (pairs.sum(0) + 1.0) / (pairs.sum() + BYTES)
    chosen, after = choices / choices.sum(1, keepdims=True), (pairs + single) / (pairs.sum(1, keepdims=True) + 1.0)
    nats: NDArray[np.float64] = -np.log(np.concatenate([chosen.ravel(), after.ravel()]))
    return nats
