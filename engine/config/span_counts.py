"""How much of a document T5's span corruption takes out: plain counts, which a config needs before there is any text.

Raffel et al. 2020, §3.1.4, and `random_spans_noise_mask` of their code.
"""


def span_counts(length: int, mask_fraction: float, span_mean: float) -> tuple[int, int]:
    """(tokens that are taken out, spans they stand in) of a document; at least one of each, and something is left.

    Args:
        length: tokens of the document, at least 2.
        mask_fraction: the share that is taken out.
        span_mean: tokens of a span, on average.
    """
    taken = min(max(round(length * mask_fraction), 1), length - 1)
    spans = max(round(taken / span_mean), 1)
    return taken, min(spans, taken, length - taken)


def corrupted_lengths(length: int, mask_fraction: float, span_mean: float) -> tuple[int, int]:
    """(tokens of the source, tokens of the target), sentinels with them: the target has one more, which ends it."""
    taken, spans = span_counts(length, mask_fraction, span_mean)
    return length - taken + spans, taken + spans + 1
