"""Count lines of separate sentences, held against the same counted by hand."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.data.baselines import PSEUDO_COUNT, sentence_losses

VOCAB = 5
SENTENCES = st.lists(st.lists(st.integers(0, VOCAB - 1), max_size=6), min_size=1, max_size=8)


def arrays(sentences: list[list[int]]) -> list[np.ndarray]:
    return [np.array(sentence, dtype=np.int64) for sentence in sentences]


def by_hand(train: list[list[int]], held_out: list[list[int]]) -> tuple[float, float]:
    """Each token and each end, one after the other."""
    singles, pairs, firsts = Counter(), Counter(), Counter()
    for sentence in train:
        for before, after in zip(["start", *sentence], [*sentence, "end"], strict=True):
            singles[after] += 1
            pairs[before, after] += 1
            firsts[before] += 1
    total = sum(singles.values()) + PSEUDO_COUNT * (VOCAB + 1)
    unigram, bigram = [], []
    for sentence in held_out:
        for before, after in zip(["start", *sentence], [*sentence, "end"], strict=True):
            share = (singles[after] + PSEUDO_COUNT) / total
            unigram.append(-math.log(share))
            bigram.append(-math.log((pairs[before, after] + share) / (firsts[before] + 1)))
    return sum(unigram) / len(unigram), sum(bigram) / len(bigram)


@given(SENTENCES, SENTENCES)
def test_sentence_lines_are_those_counted_by_hand(train: list[list[int]], held_out: list[list[int]]) -> None:
    unigram, bigram = by_hand(train, held_out)
    found = sentence_losses(arrays(train), arrays(held_out), VOCAB)
    assert found == {"unigram": pytest.approx(unigram), "bigram": pytest.approx(bigram)}


def test_no_sentence_knows_the_one_before_it() -> None:
    train = [[0, 1], [2, 3]] * 100
    shuffled = [[0, 1]] * 100 + [[2, 3]] * 100
    for held_out in ([[0, 1], [2, 3]], [[2, 3], [0, 1]]):
        losses = {sentence_losses(arrays(order), arrays(held_out), VOCAB)["bigram"] for order in (train, shuffled)}
        assert len(losses) == 1


def test_a_large_vocabulary_has_a_bigram_line_too() -> None:
    tokens = np.arange(30_000)
    assert sentence_losses([tokens] * 3, [tokens], 30_000)["bigram"] < 0.3
    assert sentence_losses([tokens], [tokens], 30_000)["unigram"] > 0.3
