"""One prompt's answers: drawn token by token, or the likeliest whole ones that a beam search finds.

An answer's probability is the product of its tokens' under the model, the end's too. No length penalty: answers are
compared by that alone. Notation: R live hypotheses.
"""

from collections.abc import Iterator
from dataclasses import replace

import torch

from engine.errors import InputError
from engine.evaluation.metrics import evaluating
from engine.generation.answering import writer_of
from engine.generation.beam import likeliest
from engine.generation.hypotheses import Hypothesis, Rules, Sentence
from engine.generation.prompts import Prompt
from engine.generation.sampling import Drawn, Sampling, stream
from engine.generation.until_the_end import UntilTheEnd
from engine.model.decoding import Decoding
from engine.model.transformer import Network


def drawn_answer(
    model: Network, prompt: Prompt, how: Sampling, seed: int, *, allowed: int, most: int, alternatives: int = 0
) -> Iterator[Drawn]:
    """An answer drawn token by token, or at temperature 0 the greedy one; its end is not given.

    Args:
        model: a decoder, or an encoder-decoder where the prompt has a source.
        prompt: at most as long as the context.
        how: temperature and cuts.
        seed: of the draws.
        allowed: tokens of the text; the prompt's marks are numbered after them, and then its end.
        most: tokens at most, the end included; never more than the context has room for.
        alternatives: how many of the likeliest tokens to tell in each place.

    Raises:
        InputError: the prompt is too long.
    """
    limit = _room(model, prompt, most)
    device = next(model.parameters()).device
    with evaluating(model):
        writer = UntilTheEnd(writer_of(model, [prompt], device), allowed, prompt.end, prompt.marks)
    tokens = torch.from_numpy(prompt.tokens).to(device)
    for one in stream(
        writer,
        tokens,
        limit,
        replace(how, overflow="stop"),
        seed,
        context=model.config.context_length,
        allowed=writer.allowed,
        alternatives=alternatives,
    ):
        if one.token == writer.allowed - 1:
            return
        yield one


def ranked_answers(
    model: Network, prompt: Prompt, *, allowed: int, most: int, beam: int, n_best: int
) -> list[Hypothesis]:
    """The likeliest answers to a prompt that a beam search finds, best first.

    Args:
        model: as above; it is evaluated, whatever mode it is in.
        prompt: at most as long as the context.
        allowed: tokens of the text; of those from here on only the prompt's end and marks are written.
        most: tokens of an answer, the end included.
        beam: hypotheses that are followed; 1 is greedy.
        n_best: answers that are wanted, at most `beam`.

    Raises:
        InputError: the prompt is too long, or the model's answers are no numbers.
    """
    limit = _room(model, prompt, most)
    device = next(model.parameters()).device
    closed = torch.arange(model.vocab_size, device=device) >= allowed
    closed[[prompt.end, *prompt.marks]] = False
    k = min(beam, int((~closed).sum()))
    sentence = Sentence(Rules(beam, n_best, limit, prompt.end, lambda length: 1.0))
    with evaluating(model):
        writer = writer_of(model, [prompt], device)
        cache = writer.new_cache(len(prompt.tokens) + limit)
        rows = cache.cache if isinstance(cache, Decoding) else cache
        pending = torch.from_numpy(prompt.tokens).to(device)[None]
        while sentence.live:
            ids, chosen = (part.tolist() for part in likeliest(writer.next_logits(pending, cache), k, closed))
            moves = sentence.advance([list(zip(*row, strict=True)) for row in zip(ids, chosen, strict=True)])
            if moves:
                rows.select(torch.tensor([parent for parent, _ in moves], device=device))
                pending = torch.tensor([token for _, token in moves], device=device)[:, None]
    return sentence.done[:n_best]


def _room(model: Network, prompt: Prompt, most: int) -> int:
    """Tokens that may be written, the end included."""
    read, context = len(prompt.tokens), model.config.context_length
    if prompt.source is not None and len(prompt.source) > model.config.source_tokens:
        raise InputError(f"prompt: it has {len(prompt.source)} tokens; this model reads {model.config.source_tokens}")
    if read > context:
        raise InputError(f"prompt: it has {read} tokens with its marks; this model sees {context} at once")
    return min(most, context - read + 1)
