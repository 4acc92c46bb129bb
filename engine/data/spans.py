"""Span corruption: which part of a document is removed, and how the rest is arranged.

Two families. That of Stanford's CS224N (assignment 5, minGPT) is for decoders: one span moves to the end of its
document. That of T5 (Raffel et al. 2020, §3.1.4) is for encoder-decoders: several short spans become the target.
Every draw comes from the generator, and none depends on the tokens. n documents.
"""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator

from engine.config.sections import SHORTEST_DOCUMENT
from engine.config.tasks import span_counts
from engine.data.padding import Tokens

Counts = NDArray[np.int64]


def _uniform(n: int, columns: int, generator: Generator) -> list[NDArray[np.float64]]:
    """Return `columns` × (n,) numbers in [0, 1); a document's are drawn consecutively."""
    return list(torch.rand(n, columns, generator=generator, dtype=torch.float64).numpy().T)


def random_prefix_lengths(lengths: Counts, longest: int, generator: Generator) -> Counts:
    """Return (n,) the tokens of each document to read: its first 4 to `longest`, uniformly, if it has them.

    The beginning survives: a document begins with its subject's name.
    """
    (drawn,) = _uniform(len(lengths), 1, generator)
    wanted = SHORTEST_DOCUMENT + (drawn * (longest - SHORTEST_DOCUMENT + 1)).astype(np.int64)
    return np.minimum(wanted, lengths)


def cs224n_spans(lengths: Counts, fraction: float, generator: Generator) -> tuple[Counts, Counts]:
    """Return (n,) the start of each document's masked span and (n,) its length, as the assignment specifies.

    The length is uniform on 1 … 2 · fraction · t − 1, whose mean is fraction · t (a non-integer bound is rounded at
    random, preserving the mean), and every place with room for it is equally likely.
    """
    rounding, size, place = _uniform(len(lengths), 3, generator)
    most = np.maximum(1, np.floor(2.0 * fraction * lengths - 1.0 + rounding).astype(np.int64))
    sizes = np.minimum(1 + (size * most).astype(np.int64), lengths)
    return (place * (lengths - sizes + 1)).astype(np.int64), sizes


def early_half_length_spans(lengths: Counts, fraction: float, generator: Generator) -> tuple[Counts, Counts]:
    """The same as a course report drew it: not as specified, and never far from the document's beginning.

    Prefix and span are both uniform on 1 … fraction · t: on average the span is half of what was asked for, 13.7 % of
    that report's documents instead of 25 %. Its later correction is a fraction of 0.5: 26.5 %.
    """
    prefix, size = _uniform(len(lengths), 2, generator)
    most = np.maximum(1, (fraction * lengths).astype(np.int64))
    return 1 + (prefix * most).astype(np.int64), 1 + (size * most).astype(np.int64)


SPANS: dict[str, Callable[[Counts, float, Generator], tuple[Counts, Counts]]] = {
    "cs224n": cs224n_spans,
    "cs224n-half": early_half_length_spans,
}


def move_span_to_end(document: Tokens, start: int, size: int, mask: int) -> Tokens:
    """`prefix ⁇ suffix ⁇ span ⁇`: the span moves to the end; marks stand at its old place, before and after it.

    The assignment's text has no mark after the span, but its later versions' examples do: it teaches a model where to
    stop, as its answers must later.
    """
    mark = np.array([mask], dtype=np.int64)
    prefix, span, suffix = np.split(document, [start, start + size])
    return np.concatenate((prefix, mark, suffix, mark, span, mark))


def random_segmentation(items: int, parts: int, generator: Generator) -> Counts:
    """Return (parts,) lengths ≥ 1 that sum to `items`, uniformly: T5's `_random_segmentation`."""
    borders = torch.randperm(items - 1, generator=generator)[: parts - 1].sort().values.numpy() + 1
    return np.diff(np.concatenate(([0], borders, [items])))


def replace_with_sentinels(
    document: Tokens, mask_fraction: float, span_mean: float, first: int, generator: Generator
) -> tuple[Tokens, Tokens]:
    """Return (source, target) of T5: `text ① text ② text` and `① span ② span ③`; the last sentinel ends the target.
    Like `random_spans_noise_mask`, which always starts with text and ends with a span, so a single span would always
    end a short document. Here, as with its `random_roll`, a span may be first, and text may follow the last. The
    document has (t,) ≥ 2 tokens; `first` is the id of ①, the others follow it.
    """
    taken, spans = span_counts(len(document), mask_fraction, span_mean)
    hidden = random_segmentation(taken, spans, generator)
    shown = random_segmentation(len(document) - taken + 2, spans + 1, generator)
    shown[[0, -1]] -= 1  # may be empty
    lengths = [length for pair in zip(shown, hidden, strict=False) for length in pair]
    parts = np.split(document, np.cumsum(lengths))
    sentinels = [np.array([first + i], dtype=np.int64) for i in range(spans + 1)]
    source = [part for pair in zip(parts[0::2], sentinels, strict=True) for part in pair]
    target = [part for pair in zip(sentinels, parts[1::2], strict=False) for part in pair]
    return np.concatenate(source[:-1]), np.concatenate((*target, sentinels[spans]))
