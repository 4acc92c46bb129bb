"""Answer prompts with a document model: many at once greedily, or one by sampling or beam search.

Objectives make the prompts that they were trained with (`engine.tasks`). No prompt is padded, so answers are
independent of one another. An answer's probability is the product of its tokens', the end token included;
there is no length penalty. Notation: B prompts, R live hypotheses, T time, V vocabulary.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from engine.base.errors import InputError
from engine.base.language import Message
from engine.data.objectives import TokenPrompt
from engine.generation.beam import Hypothesis, SentenceBeam, beam_search
from engine.generation.sampling import SampledToken, Sampling, stream_tokens
from engine.model.decoding import Predictor
from engine.model.transformer import Network, evaluating

AT_ONCE = 256  # prompts


def greedy_answers(
    model: Network,
    prompts: Sequence[TokenPrompt],
    *,
    text_vocab_size: int,
    most: int,
    between: Callable[[], None] = lambda: None,
) -> list[Hypothesis]:
    """Answer each prompt greedily, prompts of one length at a time, with a model in any mode.

    `allowed` counts the tokens of the text: beyond those only a prompt's end and marks are ever written. `most` tokens
    are written, the end included, and never more than the context has room for; `between` is called before each and may
    raise to stop. `InputError`: a prompt longer than the context, or a model whose answers are no numbers.
    """
    context = model.config.context_length
    groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for i, prompt in enumerate(prompts):
        if len(prompt.tokens) > context:
            problem = Message(
                "a prompt of {n} tokens does not fit in a context of {context}", n=len(prompt.tokens), context=context
            )
            raise InputError(problem)
        read = None if prompt.source is None else len(prompt.source)
        groups[len(prompt.tokens), read, prompt.end, prompt.extra_allowed].append(i)
    answers: dict[int, Hypothesis] = {}
    for rows in groups.values():
        for start in range(0, len(rows), AT_ONCE):
            some = rows[start : start + AT_ONCE]
            found = _search(model, [prompts[i] for i in some], text_vocab_size, most, between=between)
            answers |= {i: best for i, (best,) in zip(some, found, strict=True)}
    return [answers[i] for i in range(len(prompts))]


def beam_answers(
    model: Network, prompt: TokenPrompt, *, text_vocab_size: int, most: int, beam: int
) -> list[Hypothesis]:
    """Return the likeliest answers that beam search finds for a prompt, best first; see `greedy_answers`."""
    require_room(model, prompt)
    return _search(model, [prompt], text_vocab_size, most, beam)[0]


def sample_answer(
    model: Network,
    prompt: TokenPrompt,
    how: Sampling,
    seed: int,
    *,
    text_vocab_size: int,
    most: int,
    alternatives: int = 0,
) -> Iterator[SampledToken]:
    """Sample an answer token by token, or at temperature 0 the greedy one; see `greedy_answers` and `stream_tokens`."""
    context, device = model.config.context_length, next(model.parameters()).device
    tokens, open_ = torch.from_numpy(prompt.tokens).to(device), _allowed_token_ids(prompt, text_vocab_size, device)
    most = min(most, context - len(prompt.tokens) + 1)
    predictor = _make_predictor(model, [prompt], device)
    yield from stream_tokens(
        predictor, tokens, most, how, seed, context=context, allowed=open_, end=prompt.end, alternatives=alternatives
    )


def require_room(model: Network, prompt: TokenPrompt) -> None:
    """Raise InputError for a prompt longer than the model's context."""
    read, context = len(prompt.tokens), model.config.context_length
    if prompt.source is not None and len(prompt.source) > model.config.source_tokens:
        problem = Message(
            "the prompt has {n} tokens; this model reads at most {source_tokens}",
            n=len(prompt.source),
            source_tokens=model.config.source_tokens,
        )
        raise InputError(problem)
    if read > context:
        problem = Message(
            "the prompt has {read} tokens, special tokens included; this model sees at most {context} at once",
            read=read,
            context=context,
        )
        raise InputError(problem)


def _search(
    model: Network,
    prompts: Sequence[TokenPrompt],
    text_vocab_size: int,
    most: int,
    beam: int = 1,
    between: Callable[[], None] = lambda: None,
) -> list[list[Hypothesis]]:
    device, first = next(model.parameters()).device, prompts[0]
    pending = torch.from_numpy(np.stack([prompt.tokens for prompt in prompts])).to(device)
    limit = min(most, model.config.context_length - pending.shape[1] + 1)
    sentences = [SentenceBeam(beam, beam, limit, first.end, lambda length: 1.0) for _ in prompts]
    with evaluating(model):
        predictor = _make_predictor(model, prompts, device)
        return beam_search(predictor, pending, sentences, _allowed_token_ids(first, text_vocab_size, device), between)


def _make_predictor(model: Network, prompts: Sequence[TokenPrompt], device: torch.device) -> Predictor:
    sources = [prompt.source for prompt in prompts if prompt.source is not None]
    return Predictor(model, torch.from_numpy(np.stack(sources)).to(device) if sources else None)


def _allowed_token_ids(prompt: TokenPrompt, text_vocab_size: int, device: torch.device) -> Tensor:
    """Return (K,) ascending ids that may be written: those of the text, the prompt's marks and its end."""
    return torch.tensor([*range(text_vocab_size), *prompt.extra_allowed, prompt.end], device=device)
