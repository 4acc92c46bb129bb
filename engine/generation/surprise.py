"""Surprise: what a model would have needed to be told at each token of a text, −log p(token | all it sees before it).

Windows are those of evaluation, a context long and half a context apart: a token far into the text is predicted with
at least half a context before it. Losses are in nats. T tokens, V vocabulary, K alternatives.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Generator, Tensor

from engine import capabilities
from engine.config.schema import RunConfig
from engine.data.objectives import make_objective
from engine.data.padding import Tokens
from engine.errors import InputError
from engine.evaluation.metrics import windows
from engine.generation.answering import Prompt
from engine.generation.sampling import Alternative
from engine.generation.translation import Translator
from engine.model.transformer import EncoderDecoder, Network, evaluating


@dataclass(frozen=True)
class TokenSurprise:
    """A token and its nats, −log p(token | what comes before it); None where nothing predicts it.

    `alternatives` are the likeliest tokens in its place, best first; their `chance` is their probability.
    """

    token: int
    nats: float | None
    alternatives: tuple[Alternative, ...] = ()


@dataclass(frozen=True)
class Surprise:
    """A text, token by token, scored in windows of `context` tokens that are `stride` tokens apart.

    The first token has no surprise where nothing comes before it. For a model with a `source` the text is its target.
    """

    tokens: tuple[TokenSurprise, ...]
    source: tuple[int, ...]
    context: int
    stride: int

    @property
    def scored(self) -> int:
        return sum(token.nats is not None for token in self.tokens)

    @property
    def total(self) -> float:
        return math.fsum(token.nats for token in self.tokens if token.nats is not None)

    @property
    def mean(self) -> float:
        """Nats per scored token."""
        return self.total / max(1, self.scored)

    @property
    def perplexity(self) -> float:
        """e^mean; infinite where that overflows."""
        return math.exp(self.mean) if self.mean < 700 else math.inf


def why_no_surprise(config: RunConfig) -> str | None:
    """Return why a model of this kind has no surprise of a text, or None if it has."""
    if config.objective.kind == "masked":
        return (
            "this model fills gaps that it sees from both sides: it has no probability of a character given only what "
            "comes before it"
        )
    if capabilities.sees_ahead(config.model) and config.objective.kind == "next-token":
        return "this model sees the character it is asked for: it could not be surprised"
    return None


def surprise(model: Network, config: RunConfig, vocab_size: int, ids: Tensor, alternatives: int = 0) -> Surprise:
    """Return how surprised a model is by each token of a text (T,).

    For a model with a source, its objective makes source and target of the text. `alternatives` is K.

    Raises:
        InputError: it is not defined for this kind of model, or the text is too short.
    """
    reason = why_no_surprise(config)
    if reason is not None:
        raise InputError(f"surprise: {reason}")
    if isinstance(model, EncoderDecoder):
        return _target_surprise(model, config, vocab_size, ids, alternatives)
    if ids.numel() < 2:
        raise InputError("surprise: a text needs at least two characters: the first has nothing before it")
    context = config.model.context_length
    stride = max(1, context // 2)
    found = [TokenSurprise(int(ids[0]), None)]
    with evaluating(model):
        for start, length, scored in windows(ids.numel(), context, stride):
            logits = model(ids[None, start : start + length])[0, -scored:]
            targets = ids[start + length - scored + 1 : start + length + 1]
            found += _scored(logits, targets, vocab_size, alternatives)
    return Surprise(tuple(found), (), context, stride)


def _target_surprise(
    model: EncoderDecoder, config: RunConfig, vocab_size: int, ids: Tensor, alternatives: int
) -> Surprise:
    """Score the target that the objective makes of a text, given its source."""
    kind, source, context = config.objective.kind, config.model.source_tokens, config.model.context_length
    split = kind == "continuation"  # the text goes on after its source
    least, most = (source + 1, source + context) if split else (3 if kind == "shifted" else 1, source)
    if not least <= ids.numel() <= most:
        what = f"a source of {source} characters and what comes after it" if split else "a source"
        raise InputError(f"surprise: this model needs {what}: {least} to {most} characters, and these are {len(ids)}")
    batch = make_objective(config, vocab_size).batch(ids[None], Generator())
    assert batch.source is not None
    with evaluating(model):
        logits = model(batch.source, batch.tokens)[0]
        found = _scored(logits, batch.targets[0], vocab_size, alternatives)
    return Surprise(tuple(found), tuple(batch.source[0].tolist()), context, context)


def translation_surprise(translator: Translator, source: str, target: str, alternatives: int = 0) -> Surprise:
    """Return how surprised a translator is by each token of a translation, its end included.

    Raises:
        InputError: characters the model has never seen, or a translation longer than its context.
    """
    read, special = translator.encoded(source), translator.special.target
    words = torch.from_numpy(translator.tokenizer.target.encode(target)).to(read.device)
    context = translator.config.model.context_length
    if words.numel() >= context:
        raise InputError(f"surprise: the translation has {words.numel()} tokens; {context - 1} are the most")
    answers = torch.cat((words, words.new_tensor([special.end])))
    tokens = torch.cat((words.new_tensor([special.start]), words))
    with evaluating(translator.model):
        logits = translator.model(read[None], tokens[None])[0]
        found = _scored(logits, answers, translator.tokenizer.vocab_size, alternatives)
    return Surprise(tuple(found), tuple(read.tolist()), context, context)


def answer_surprise(
    model: Network, prompt: Prompt, answer: Tokens, vocab_size: int, alternatives: int = 0
) -> list[TokenSurprise]:
    """Return how surprised a model of documents is by each token (T,) of an answer, its end included.

    Raises:
        InputError: the context has no room for it.
    """
    device, context = next(model.parameters()).device, model.config.context_length
    tokens = np.concatenate((prompt.tokens, answer)).astype(np.int64)
    if len(tokens) > context:
        raise InputError(f"surprise: with the answer there are {len(tokens)} tokens; this model sees {context} at once")
    read, asked = torch.from_numpy(tokens).to(device), torch.tensor([*answer.tolist(), prompt.end], device=device)
    with evaluating(model):
        if isinstance(model, EncoderDecoder):
            assert prompt.source is not None
            logits = model(torch.from_numpy(prompt.source).to(device)[None], read[None])[0]
        else:
            logits = model(read[None])[0]
        return _scored(logits[-asked.numel() :], asked, vocab_size, alternatives)


def _scored(logits: Tensor, targets: Tensor, vocab_size: int, alternatives: int) -> list[TokenSurprise]:
    """(T, V) logits and (T,) targets → one `TokenSurprise` each."""
    belief = logits.float().log_softmax(-1)
    nats = (-belief.gather(1, targets[:, None])[:, 0]).tolist()
    if alternatives <= 0:
        return [TokenSurprise(token, value) for token, value in zip(targets.tolist(), nats, strict=True)]
    values, ranked = belief[:, :vocab_size].topk(min(alternatives, vocab_size))
    rows = zip(targets.tolist(), nats, ranked.tolist(), torch.exp(values).tolist(), strict=True)
    return [
        TokenSurprise(token, value, tuple(Alternative(id_, p, p) for id_, p in zip(best, likely, strict=True)))
        for token, value, best, likely in rows
    ]
