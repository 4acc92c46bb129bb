"""What knowing nothing but counts would score: the lines a trained model must get below. Nats per token."""

import numpy as np
from numpy.typing import NDArray

MAX_BIGRAM_VOCABULARY = 2_000
ADD = 1e-2


def unigram_loss(train: NDArray[np.int64], held_out: NDArray[np.int64], vocab_size: int) -> float:
    """Mean nll of the held-out tokens under the training frequencies (add-0.01 smoothed)."""
    counts = np.bincount(train, minlength=vocab_size) + ADD
    return float(-np.log(counts / counts.sum())[held_out[1:]].mean())


def bigram_loss(train: NDArray[np.int64], held_out: NDArray[np.int64], vocab_size: int) -> float | None:
    """Mean nll of each held-out token given the one before it; None above 2,000 tokens of vocabulary.

    Counts back off to unigram frequencies with the weight of one observation (Dirichlet smoothing).
    """
    if vocab_size > MAX_BIGRAM_VOCABULARY:
        return None
    unigram = np.bincount(train, minlength=vocab_size) + ADD
    unigram = unigram / unigram.sum()
    pairs = train[:-1] * vocab_size + train[1:]
    counts = np.bincount(pairs, minlength=vocab_size**2).reshape(vocab_size, vocab_size).astype(np.float64)
    before, after = held_out[:-1], held_out[1:]
    probability = (counts[before, after] + unigram[after]) / (counts.sum(1)[before] + 1.0)
    return float(-np.log(probability).mean())
