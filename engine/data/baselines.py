"""Count-based baselines: the losses a trained model must beat. Nats per token.

A text is one stream of tokens. Separate sentences, such as a translation's targets, are each counted with their end
token, independent of the sentence before.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

MAX_BIGRAM_VOCABULARY = 2_000
PSEUDO_COUNT = 1e-2
PIECE = 4_000_000  # tokens counted at once
Ids = NDArray[np.int64]
TokenPairs = tuple[Ids, Ids]  # tokens, and the token after each


def unigram_loss(train: Ids, held_out: Ids, vocab_size: int) -> float:
    """Return the mean nll of the held-out tokens under the training frequencies (add-0.01 smoothed)."""
    counts = _token_counts(train, vocab_size) + PSEUDO_COUNT
    nll = -np.log(counts / counts.sum())
    return float(_token_counts(held_out[1:], vocab_size) @ nll / (len(held_out) - 1))


def bigram_loss(train: Ids, held_out: Ids, vocab_size: int) -> float | None:
    """Return the mean nll of each held-out token given the previous one; None above a vocabulary of 2,000. Counts back
    off to unigram frequencies with the weight of one observation (Dirichlet smoothing).
    """
    if vocab_size > MAX_BIGRAM_VOCABULARY:
        return None
    unigram = _token_counts(train, vocab_size) + PSEUDO_COUNT
    unigram = unigram / unigram.sum()
    counts = _bigram_counts(train, vocab_size)
    probability = (counts + unigram) / (counts.sum(1, keepdims=True) + 1.0)
    return float((_bigram_counts(held_out, vocab_size) * -np.log(probability)).sum() / (len(held_out) - 1))


def _token_counts(ids: Ids, size: int) -> NDArray[np.float64]:
    counts = np.zeros(size)
    for start in range(0, len(ids), PIECE):
        counts += np.bincount(ids[start : start + PIECE], minlength=size)
    return counts


def _bigram_counts(ids: Ids, size: int) -> NDArray[np.float64]:
    """Return (size, size) how often a token [column] follows another [row]."""
    counts = np.zeros(size * size)
    for start in range(0, len(ids) - 1, PIECE):
        piece = ids[start : start + PIECE + 1].astype(np.int64)
        counts += np.bincount(piece[:-1] * size + piece[1:], minlength=size * size)
    return counts.reshape(size, size)


def sentence_losses(train: Sequence[Ids], held_out: Sequence[Ids], vocab_size: int) -> dict[str, float]:
    """Return the `unigram` and `bigram` losses of sentences, given without start and end: each end is predicted too,
    and each first token from the start.
    """
    known, asked = _join_with_borders(train, vocab_size), _join_with_borders(held_out, vocab_size)
    # The first border precedes everything and is never predicted: not counted, just as it is not scored.
    unigram = unigram_loss(known[1:], asked, vocab_size + 1)
    return token_pair_losses((known[:-1], known[1:]), (asked[:-1], asked[1:]), vocab_size + 1) | {"unigram": unigram}


def token_pair_losses(train: TokenPairs, held_out: TokenPairs, vocab_size: int) -> dict[str, float]:
    """Return the `unigram` and `bigram` losses of targets, smoothed as above; bigrams condition on the tokens at which
    the targets are predicted. Only pairs that occur are counted, so V may be large.
    """
    (known, after), (asked, expected) = train, held_out
    unigram = np.bincount(after, minlength=vocab_size) + PSEUDO_COUNT
    unigram = unigram / unigram.sum()
    pairs, times = np.unique(known * vocab_size + after, return_counts=True)
    wanted = asked * vocab_size + expected
    place = np.searchsorted(pairs, wanted)
    pairs, times = np.append(pairs, -1), np.append(times, 0)  # the lookup index of a pair past all known ones
    found = np.where(pairs[place] == wanted, times[place], 0)
    before = np.bincount(known, minlength=vocab_size)[asked]
    bigram = -np.log((found + unigram[expected]) / (before + 1.0))
    return {"unigram": float(-np.log(unigram)[expected].mean()), "bigram": float(bigram.mean())}


def naive_bayes(train: Sequence[Ids], classes: Ids, held_out: Sequence[Ids], vocab_size: int, n_classes: int) -> Ids:
    """Return (n,) the likeliest class of each held-out text by its words alone, in any order: a multinomial naive Bayes
    with add-one smoothing (Manning et al. 2008, §13.2).
    """
    counts = np.ones((n_classes, vocab_size))
    for text, label in zip(train, classes, strict=True):
        np.add.at(counts[label], text, 1.0)
    per_word = np.log(counts / counts.sum(1, keepdims=True))
    prior = np.log(np.bincount(classes, minlength=n_classes) / len(classes))
    found = np.empty(len(held_out), dtype=np.int64)
    for i, text in enumerate(held_out):
        found[i] = int((prior + per_word[:, text].sum(1)).argmax())
    return found


def class_prior_loss(train: Ids, held_out: Ids, n_classes: int) -> float:
    """Return the mean nll of the held-out classes under the training frequencies, in nats per text."""
    frequencies = np.bincount(train, minlength=n_classes) / len(train)
    return float(-np.log(frequencies)[held_out].mean())


def _join_with_borders(sentences: Sequence[Ids], border: int) -> Ids:
    edge = np.array([border], dtype=np.int64)
    return np.concatenate([edge, *(part for sentence in sentences for part in (sentence, edge))])
