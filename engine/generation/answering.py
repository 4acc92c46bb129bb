"""Greedy answers to many prompts: the likeliest token at each place, with a KV cache, prompts of one length at a time.

No prompt is padded, so what is written depends on none of the others. Notation: B prompts, T time, V vocabulary.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from engine.errors import InputError
from engine.evaluation.metrics import evaluating
from engine.generation.beam import likeliest
from engine.generation.prompts import Prompt
from engine.generation.sampling import Decodes, FromDecoder, FromSource
from engine.model.transformer import EncoderDecoder, EncoderLM, Network

AT_ONCE = 256  # prompts


@dataclass(frozen=True)
class Answer:
    """What was written after a prompt.

    Args:
        tokens: without the end.
        finished: whether the model ended it; else the length limit did.
    """

    tokens: tuple[int, ...]
    finished: bool


def greedy_answers(
    model: Network,
    prompts: Sequence[Prompt],
    *,
    allowed: int,
    most: int,
    between: Callable[[], None] = lambda: None,
) -> list[Answer]:
    """The greedy answer to each prompt.

    Args:
        model: a decoder, or an encoder-decoder where prompts have sources; it is evaluated, whatever mode it is in.
        prompts: each at most as long as the context.
        allowed: tokens of the text; of those from here on only a prompt's end and marks are ever written.
        most: tokens of an answer, the end included; never more than the context has room for.
        between: called before each token; may raise to stop.

    Raises:
        InputError: a prompt longer than the context, or a model whose answers are no numbers.
    """
    context = model.config.context_length
    groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for i, prompt in enumerate(prompts):
        if len(prompt.tokens) > context:
            raise InputError(f"a prompt of {len(prompt.tokens)} tokens does not fit into a context of {context}")
        read = None if prompt.source is None else len(prompt.source)
        groups[len(prompt.tokens), read or 0, prompt.end, prompt.marks].append(i)
    answers = [Answer((), finished=False)] * len(prompts)
    with evaluating(model):
        for rows in groups.values():
            for start in range(0, len(rows), AT_ONCE):
                some = rows[start : start + AT_ONCE]
                for i, answer in zip(
                    some, _answered(model, [prompts[i] for i in some], allowed, most, between), strict=True
                ):
                    answers[i] = answer
    return answers


def _answered(
    model: Network, prompts: Sequence[Prompt], allowed: int, most: int, between: Callable[[], None]
) -> list[Answer]:
    """Answers to prompts of one length, with one end."""
    device, first = next(model.parameters()).device, prompts[0]
    pending = torch.from_numpy(np.stack([prompt.tokens for prompt in prompts])).to(device)
    limit = min(most, model.config.context_length - pending.shape[1] + 1)
    writer = writer_of(model, prompts, device)
    closed = torch.arange(model.vocab_size, device=device) >= allowed
    closed[[first.end, *first.marks]] = False
    cache = writer.new_cache(pending.shape[1] + limit)
    columns: list[Tensor] = []
    ended = torch.zeros(len(prompts), dtype=torch.bool, device=device)
    while len(columns) < limit and not ended.all():
        between()
        pending, _ = likeliest(writer.next_logits(pending, cache), 1, closed)
        columns.append(pending)
        ended |= pending[:, 0] == first.end
    return [_until(row, first.end) for row in torch.cat(columns, dim=1).tolist()]


def writer_of(model: Network, prompts: Sequence[Prompt], device: torch.device) -> Decodes:
    """What answers some prompts, as the model does; their sources, where there are any, are read now."""
    assert not isinstance(model, EncoderLM)
    if not isinstance(model, EncoderDecoder):
        return FromDecoder(model)
    sources = [prompt.source for prompt in prompts if prompt.source is not None]
    return FromSource(model, torch.from_numpy(np.stack(sources)).to(device))


def _until(row: Sequence[int], end: int) -> Answer:
    if end not in row:
        return Answer(tuple(row), finished=False)
    return Answer(tuple(row[: row.index(end)]), finished=True)
