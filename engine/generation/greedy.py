"""Greedy translation of one sentence, token by token as it is written, with where the decoder looked for each."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.data.pairs import Specials
from engine.errors import InputError
from engine.generation.alignment import captured, of_head
from engine.generation.beam import closed_tokens, likeliest
from engine.model.transformer import EncoderDecoder


@dataclass(frozen=True)
class Written:
    """One token of a translation.

    Args:
        token: of the text.
        chance: under the model.
        attention: (S) the weight of each source token while it was written; sums to 1.
    """

    token: int
    chance: float
    attention: tuple[float, ...]


def stream_translation(
    model: EncoderDecoder,
    source: Tensor,
    *,
    specials: Specials,
    allowed: int,
    max_length: int,
    layer: int = -1,
    head: int | None = None,
) -> Iterator[Written]:
    """Translate one sentence, always by the likeliest token: what `translate_batch` finds with a beam of 1.

    Args:
        model: in evaluation mode.
        source: (S,) int64, without padding.
        specials: start, end and padding.
        allowed: tokens of the text; no id from here on is written but the end.
        max_length: tokens written at most, the end included; never more than the model's context. Where as many come,
            the model had not ended.
        layer: whose cross-attention is shown, from 0; −1 is the last.
        head: which head of it, from 0; None: the mean of all.

    Yields:
        Each token of the text; the end ends it.

    Raises:
        InputError: no such layer or head, a length below 1, or a model whose answers are no numbers.
        ValueError: an empty source, or no token for the end.
    """
    if source.numel() == 0:
        raise ValueError("a source needs at least one token")
    limit = min(max_length, model.config.context_length)
    if limit < 1:
        raise InputError(f"max_length {max_length} must be at least 1")
    closed = closed_tokens(model.vocab_size, specials, allowed, source.device)
    with torch.inference_mode():
        memory, cache = model.encode(source[None]), model.new_cache()
    token = specials.start
    for _ in range(limit):
        with torch.inference_mode(), captured(model, layer) as weights:
            logits = model.decode(source.new_tensor([[token]]), memory, cache=cache)[:, -1]
            ids, log_probabilities = likeliest(logits, 1, closed)
            attention = of_head(weights[0][0], head)[-1]
        token = int(ids)
        if token == specials.end:
            return
        yield Written(token, math.exp(float(log_probabilities)), tuple(attention.float().tolist()))
