"""What remembering alone would score: the translation of the most similar sentence of the training split."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.data.synthetic.phrasebook.sentences import Sentence

_CHUNK = 256  # held-out sentences compared at a time: 256 × 18,000 numbers fit in any machine
_CANDIDATES = 8  # by words in common; the edit distance decides among these


@dataclass(frozen=True)
class NearestNeighbour:
    """What the baseline scores.

    Attributes:
        exact_match: share of translations that are right to the letter.
        token_accuracy: right words, each in its place, per word of the reference.
    """

    exact_match: float
    token_accuracy: float


def words(text: str) -> list[str]:
    """Return the words and marks of a sentence."""
    return re.findall(r"\w+|[^\w\s]", text)


def nearest_neighbour_baseline(train: Sequence[Sentence], held_out: Sequence[Sentence]) -> NearestNeighbour:
    """Translate each held-out source by the target of the most similar training source.

    Most similar: among the sources with the greatest share of words in common, the one with the smallest edit
    distance in words; of several, the first.
    """
    if not train or not held_out:
        raise ValueError(f"nothing to compare: {len(train)} training pairs, {len(held_out)} held-out pairs")
    train = tuple({pair.source: pair for pair in train}.values())
    column = {word: n for n, word in enumerate(sorted({word for pair in train for word in words(pair.source)}))}
    bags = _bags([pair.source for pair in train], column)
    lengths = np.array([len(words(pair.source)) for pair in train], dtype=np.float32)
    exact = right = total = 0
    for start in range(0, len(held_out), _CHUNK):
        chunk = held_out[start : start + _CHUNK]
        own = np.array([len(words(pair.source)) for pair in chunk], dtype=np.float32)
        share = 2 * (_bags([pair.source for pair in chunk], column) @ bags.T) / (own[:, None] + lengths)
        best = np.argsort(-share, axis=1, kind="stable")[:, :_CANDIDATES]
        for pair, candidates in zip(chunk, best, strict=True):
            source = words(pair.source)
            nearest = min((train[n] for n in candidates), key=lambda other: _edits(words(other.source), source))
            exact += nearest.target == pair.target
            reference, translation = words(pair.target), words(nearest.target)
            right += sum(a == b for a, b in zip(reference, translation, strict=False))
            total += len(reference)
    return NearestNeighbour(exact / len(held_out), right / total)


def _bags(sentences: Sequence[str], column: dict[str, int]) -> npt.NDArray[np.float32]:
    """Return which words each sentence has: (sentences, words)."""
    bags = np.zeros((len(sentences), len(column)), dtype=np.float32)
    for row, sentence in enumerate(sentences):
        for word in Counter(words(sentence)):
            if word in column:
                bags[row, column[word]] = 1.0
    return bags


def _edits(a: Sequence[str], b: Sequence[str]) -> int:
    """Return the edit distance in words."""
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, right in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (left != right))
    return row[-1]
