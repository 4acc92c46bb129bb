"""Surprise: the information a model lacks at each token of a text, −log p(token | all it sees before it).

Windows are those of evaluation, one context long and half a context apart: a token far into the text is predicted from
at least half a context. Losses are in nats. T tokens, V vocabulary, K alternatives.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Generator, Tensor

from engine.base.errors import InputError
from engine.base.language import Message, tr
from engine.config.schema import RunConfig
from engine.config.visibility import sees_ahead
from engine.data.objectives import TokenPrompt, make_objective
from engine.data.padding import Tokens
from engine.evaluation.metrics import scoring_windows
from engine.generation.sampling import SampledToken
from engine.generation.translation import Translator
from engine.model.transformer import Network, evaluating


@dataclass(frozen=True)
class TokenSurprise:
    """A token and its nats, −log p(token | what comes before it); None where nothing predicts it.

    `alternatives` are the likeliest tokens in its place, best first; their `chance` is their probability.
    """

    token: int
    nats: float | None
    alternatives: tuple[SampledToken, ...] = ()


@dataclass(frozen=True)
class Surprise:
    """A text, token by token, scored in windows of `context` tokens that are `stride` tokens apart.

    The first token has no surprise where nothing comes before it. For a model with a `source` the text is its target.
    """

    tokens: tuple[TokenSurprise, ...]
    source: tuple[int, ...]
    context: int
    stride: int


def text_surprise(model: Network, config: RunConfig, vocab_size: int, ids: Tensor, alternatives: int = 0) -> Surprise:
    """Return how surprised a model is by each token of a text (T,).

    For a model with a source, its objective makes source and target of the text. `alternatives` is K. `InputError`: it
    is not defined for this kind of model, or the text is too short.
    """
    if config.task.fills_gaps:
        problem = Message(
            "surprise: this model fills gaps from both sides, so it cannot give a character's probability from "
            "the preceding text alone"
        )
        raise InputError(problem)
    if sees_ahead(config.model):
        raise InputError(
            Message("surprise: this model sees the character it has to predict, so nothing can surprise it")
        )
    if model.reads_source:
        return _surprise_given_source(model, config, vocab_size, ids, alternatives)
    if ids.numel() < 2:
        raise InputError(Message("surprise: the text needs at least two characters, as nothing comes before the first"))
    context = config.model.context_length
    stride = max(1, context // 2)
    found = [TokenSurprise(int(ids[0]), None)]
    with evaluating(model):
        for start, length, scored in scoring_windows(ids.numel(), context, stride):
            logits = model(ids[None, start : start + length])[0, -scored:]
            targets = ids[start + length - scored + 1 : start + length + 1]
            found += _token_surprises(logits, targets, vocab_size, alternatives)
    return Surprise(tuple(found), (), context, stride)


def _surprise_given_source(
    model: Network, config: RunConfig, vocab_size: int, ids: Tensor, alternatives: int
) -> Surprise:
    """Score the target that the objective makes of a text, given its source."""
    (least, most), source = config.task.surprise_length_range(config), config.model.source_tokens
    if not least <= ids.numel() <= most:
        what = (
            tr("a source of {source} characters and a continuation", source=source) if most > source else tr("a source")
        )
        problem = Message(
            "surprise: this model needs {what} ({least} to {most} characters); this text has {n}",
            what=what,
            least=least,
            most=most,
            n=len(ids),
        )
        raise InputError(problem)
    batch = make_objective(config, vocab_size).batch(ids[None], Generator())
    assert batch.source is not None
    found = _score_targets(model, batch.tokens[0], batch.targets[0], batch.source[0], vocab_size, alternatives)
    context = config.model.context_length
    return Surprise(tuple(found), tuple(batch.source[0].tolist()), context, context)


def translation_surprise(
    translator: Translator, source: str, target: str, alternatives: int = 0
) -> list[TokenSurprise]:
    """Return how surprised a translator is by each token of a translation, its end included.
    `InputError`: characters the model has never seen, or a translation longer than its context.
    """
    words, context = translator.tokenizer.target.encode(target), translator.config.model.context_length
    if len(words) >= context:
        raise InputError(
            Message(
                "surprise: the translation has {n} tokens; at most {context} fit", n=len(words), context=context - 1
            )
        )
    size = translator.tokenizer.vocab_size
    return answer_surprise(translator.model, translator.prompt(source), words, size, alternatives)


def answer_surprise(
    model: Network, prompt: TokenPrompt, answer: Tokens, vocab_size: int, alternatives: int = 0
) -> list[TokenSurprise]:
    """Return how surprised a document model is by each token (T,) of an answer, its end included.
    `InputError`: the context has no room for it.
    """
    device, context = next(model.parameters()).device, model.config.context_length
    tokens = np.concatenate((prompt.tokens, answer)).astype(np.int64)
    if len(tokens) > context:
        problem = Message(
            "surprise: the prompt and answer together have {n} tokens; this model sees at most {context} at once",
            n=len(tokens),
            context=context,
        )
        raise InputError(problem)
    read, asked = torch.from_numpy(tokens).to(device), torch.tensor([*answer.tolist(), prompt.end], device=device)
    source = None if prompt.source is None else torch.from_numpy(prompt.source).to(device)
    return _score_targets(model, read, asked, source, vocab_size, alternatives)


def _score_targets(
    model: Network, tokens: Tensor, targets: Tensor, source: Tensor | None, vocab_size: int, alternatives: int
) -> list[TokenSurprise]:
    """(T,) tokens are read, perhaps after a source (S,); the last of them predict those that are asked (≤ T,)."""
    with evaluating(model):
        logits = model.logits(tokens[None], None if source is None else source[None])
        return _token_surprises(logits[0, -targets.numel() :], targets, vocab_size, alternatives)


def _token_surprises(logits: Tensor, targets: Tensor, vocab_size: int, alternatives: int) -> list[TokenSurprise]:
    """(T, V) logits and (T,) targets → one `TokenSurprise` each."""
    belief = logits.float().log_softmax(-1)
    nats = (-belief.gather(1, targets[:, None])[:, 0]).tolist()
    values, ranked = belief[:, :vocab_size].topk(min(alternatives, vocab_size))
    rows = zip(targets.tolist(), nats, ranked.tolist(), torch.exp(values).tolist(), strict=True)
    return [
        TokenSurprise(token, value, tuple(SampledToken(id_, p, p) for id_, p in zip(best, likely, strict=True)))
        for token, value, best, likely in rows
    ]
