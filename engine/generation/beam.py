"""Beam search: the likeliest translations of a batch of sentences, cached, all of them at once.

What a beam is, and which translation is better, is said in `engine.generation.hypotheses`. The live hypotheses of all
sentences are the rows of one batch; a sentence leaves it as soon as nothing better can come. Notation: B sentences,
S source time, R rows, V vocabulary.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor

from engine.data.pairs import Specials
from engine.errors import InputError
from engine.evaluation.metrics import evaluating
from engine.generation.hypotheses import Hypothesis, LengthPenalty, Rules, Sentence, penalty_of
from engine.model.cache import Cache
from engine.model.span import Span
from engine.model.transformer import EncoderDecoder


def closed_tokens(vocab_size: int, specials: Specials, allowed: int, device: torch.device) -> Tensor:
    """(V,) bool: the tokens that are never written: all but the text's, which are below `allowed`, and the end.

    Raises:
        ValueError: the model has no token for the end.
    """
    if not 0 <= specials.end < vocab_size:
        raise ValueError(f"the end token {specials.end} is not among the model's {vocab_size} tokens")
    ids = torch.arange(vocab_size, device=device)
    return ((ids >= allowed) | (ids == specials.pad) | (ids == specials.start)) & (ids != specials.end)


def likeliest(logits: Tensor, k: int, closed: Tensor) -> tuple[Tensor, Tensor]:
    """The k likeliest next tokens of each row, best first, at a tie the lower id first.

    Args:
        logits: (R, V).
        k: how many, at most as many as are open.
        closed: (V,) bool, never chosen.

    Returns:
        (R, k) token ids and (R, k) their log probabilities under the model, fp32 or wider.

    Raises:
        InputError: the model's answers are no numbers.
    """
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    log_probabilities = wide.log_softmax(-1).masked_fill(closed, -math.inf)
    ids = log_probabilities.argmax(-1, keepdim=True) if k == 1 else _in_order(log_probabilities, k)
    chosen = log_probabilities.gather(-1, ids)
    if not chosen.isfinite().all():
        raise InputError("the model predicts no numbers (NaN or infinite): its training diverged, or it is damaged")
    return ids, chosen


def _in_order(scores: Tensor, k: int) -> Tensor:
    """`topk`'s places, best first and at a tie the lower first: it takes any of the equals, in any order."""
    values, places = scores.topk(min(k + 1, scores.shape[-1]))
    if values.shape[-1] > k and (values[:, k] == values[:, k - 1]).any():  # a tie at the border
        return scores.sort(dim=-1, descending=True, stable=True).indices[:, :k]
    places = places[:, :k].sort(-1).values
    return places.gather(-1, scores.gather(-1, places).sort(dim=-1, descending=True, stable=True).indices)


def translate_batch(
    model: EncoderDecoder,
    source: Tensor,
    source_at: Span | None,
    *,
    specials: Specials,
    allowed: int,
    max_length: int | Sequence[int],
    beam: int = 1,
    n_best: int = 1,
    length_penalty: LengthPenalty = "gnmt",
    alpha: float = 0.6,
    between: Callable[[], None] = lambda: None,
) -> list[list[Hypothesis]]:
    """The best translations of each of several sentences that a beam search finds.

    A sentence's translations do not depend on what is beside it in the batch.

    Args:
        model: reads and writes; dropout is off meanwhile.
        source: (B, S) int64, each row at most `model.config.source_tokens` tokens.
        source_at: their positions, −1 at padding; None: there is none.
        specials: start, end and padding.
        allowed: tokens of the text; no id from here on is written but the end.
        max_length: most tokens to write, including the end, for all sentences or for each; never more than the model's
            context.
        beam: hypotheses a sentence keeps; 1 is greedy decoding.
        n_best: translations wanted of each sentence, at most `beam`.
        length_penalty: how a log probability is made comparable between lengths; see `LENGTH_PENALTIES`.
        alpha: its exponent: 0 compares log probabilities as they are, more favours longer translations.
        between: called before each token; may raise to stop.

    Returns:
        For each sentence its distinct translations, best score first; fewer than `n_best` only where fewer exist.

    Raises:
        InputError: a beam or a length below 1, more translations than places, an unknown length penalty or too large
            an alpha, or a model whose answers are no numbers.
        ValueError: a source of no length, or no token for the end.
    """
    penalty = penalty_of(length_penalty, alpha)
    lengths = [max_length] * source.shape[0] if isinstance(max_length, int) else max_length
    limits = [min(length, model.config.context_length) for length in lengths]
    if min(limits, default=1) < 1 or beam < 1 or not 1 <= n_best <= beam:
        raise InputError(
            f"beam {beam}, n_best {n_best}, max_length {max_length}: each must be at least 1, and n_best at most beam"
        )
    if source.shape[0] == 0:
        return []
    if len(limits) != source.shape[0]:
        raise ValueError(f"{len(limits)} lengths for {source.shape[0]} sources")
    if source.shape[1] == 0:
        raise ValueError("a source needs at least one token")
    sentences = [Sentence(Rules(beam, n_best, limit, specials.end, penalty)) for limit in limits]
    closed = closed_tokens(model.vocab_size, specials, allowed, source.device)
    k = min(beam, int((~closed).sum()))
    with evaluating(model):
        rows = _Rows(model, source, source_at, specials.start)
        active = sentences
        while active:
            between()
            ids, chosen = (part.tolist() for part in likeliest(rows.logits(), k, closed))
            extensions = [list(zip(*row, strict=True)) for row in zip(ids, chosen, strict=True)]
            borders = [0]
            for sentence in active:
                borders.append(borders[-1] + len(sentence.live))
            moves = [
                [(first + parent, token) for parent, token in sentence.advance(extensions[first:stop])]
                for sentence, (first, stop) in zip(active, pairwise(borders), strict=True)
            ]
            active = [sentence for sentence in active if sentence.live]
            if active:
                rows.advance([move for of_one in moves for move in of_one])
    return [sentence.done[:n_best] for sentence in sentences]


class _Rows:
    """The live hypotheses of all sentences as rows of one batch, sentence by sentence, with their cache."""

    def __init__(self, model: EncoderDecoder, source: Tensor, source_at: Span | None, start: int) -> None:
        self.model = model
        self.cache: Cache = model.new_cache()
        self.memory = model.encode(source, source_at)
        self.tokens = torch.full_like(source[:, :1], start)
        self.owners = list(range(source.shape[0]))  # which sentence each row is of

    def logits(self) -> Tensor:
        """(R, V): of the token after those that each row has."""
        return self.model.decode(self.tokens, self.memory, cache=self.cache)[:, -1]

    def advance(self, moves: Sequence[tuple[int, int]]) -> None:
        """New rows, each an old one with a token more."""
        parents, tokens = [parent for parent, _ in moves], [token for _, token in moves]
        if parents != list(range(len(self.owners))):
            owners = [self.owners[parent] for parent in parents]
            rows = torch.tensor(parents, dtype=torch.long, device=self.tokens.device)
            self.cache.select(rows, same_sources=owners == self.owners)
            self.owners = owners
        self.tokens = torch.tensor(tokens, dtype=torch.long, device=self.tokens.device)[:, None]
