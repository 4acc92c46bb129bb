"""Answers to prompts by a model of documents: greedy ones to many at once, sampled ones and beam search for one.

A prompt is what stands before the part that the model writes, with the token that ends that part. No prompt is padded,
so an answer depends on none of the others. An answer's probability is the product of its tokens' under the model, the
end's too; there is no length penalty. Notation: B prompts, R live hypotheses, T time, V vocabulary.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Generator, Tensor

from engine.config.schema import RunConfig
from engine.data.objectives import Corrupts, QuestionAnswer, SentinelSpans, SpanCorruption
from engine.data.padding import Tokens
from engine.data.tokenizers import Tokenizer
from engine.errors import InputError
from engine.generation.beam import BeamOptions, Hypothesis, SentenceBeam, extend, likeliest
from engine.generation.sampling import (
    DecoderPredictor,
    EndingPredictor,
    Predictor,
    SampledToken,
    Sampling,
    SourcePredictor,
    stream_to_end,
)
from engine.model.decoding import Decoding
from engine.model.transformer import EncoderDecoder, EncoderLM, Network, evaluating

AT_ONCE = 256  # prompts


@dataclass(frozen=True)
class Prompt:
    """A text to be continued."""

    tokens: Tokens  # (T,) what the decoder has before it writes, at least one
    end: int  # the token that ends what it writes
    source: Tokens | None = None  # (S,) what the encoder of an encoder-decoder reads
    marks: tuple[int, ...] = ()  # special tokens that it may write besides the end


def question_prompt(objective: QuestionAnswer, question: Tokens) -> Prompt:
    """`question ⁇`; the answer ends with ⁇."""
    mark = np.array([objective.mask], dtype=np.int64)
    if objective.conditional:
        return Prompt(mark, objective.mask, question)
    return Prompt(np.concatenate((question, mark)), objective.mask)


def recall_prompt(objective: Corrupts, prefix: Tokens, suffix: Tokens) -> Prompt:
    return gaps_prompt(objective, (prefix, suffix))


def continued_prompt(objective: SpanCorruption, beginning: Tokens) -> Prompt:
    """Show the beginning of a document in which nothing is masked; where it ends there is a ⁇."""
    return Prompt(beginning, objective.mask)


def gaps_prompt(objective: Corrupts, parts: Sequence[Tokens]) -> Prompt:
    """Show a text with gaps as the objective would if it had masked what stood there.

    `parts` are what stands before, between and behind the gaps: with sentinels any number that the objective has
    sentinels for; else one gap.
    """
    gaps = len(parts) - 1
    if isinstance(objective, SentinelSpans):
        sentinels = [np.array([objective.first + i], dtype=np.int64) for i in range(gaps)]
        read = [part for pair in zip(parts, sentinels, strict=False) for part in pair]
        before = np.array([objective.start, objective.first], dtype=np.int64)
        marks = tuple(range(objective.first + 1, objective.first + gaps))
        return Prompt(before, objective.first + gaps, np.concatenate((*read, parts[-1])), marks)
    assert isinstance(objective, SpanCorruption)
    prefix, suffix = parts
    mark = np.array([objective.mask], dtype=np.int64)
    return Prompt(np.concatenate((prefix, mark, suffix, mark)), objective.mask)


def document_prompt(objective: Corrupts, document: Tokens, generator: Generator) -> tuple[Prompt, Tokens]:
    """Corrupt a document; return the prompt and (T,) what was taken out, with sentinels but without the end."""
    batch = objective.corrupted([document], generator)
    targets = batch.targets[0].numpy()
    if isinstance(objective, SentinelSpans):
        assert batch.source is not None
        marks = tuple(range(objective.first, int(targets[-1])))
        return Prompt(batch.tokens[0, :1].numpy(), int(targets[-1]), batch.source[0].numpy(), marks), targets[:-1]
    assert isinstance(objective, SpanCorruption)
    row = np.concatenate((batch.tokens[0, :1].numpy(), targets))
    last_mark = int(np.flatnonzero(row == objective.mask)[1])
    return Prompt(row[: last_mark + 1], objective.mask), row[last_mark + 1 : -1]


@dataclass(frozen=True)
class Answer:
    """The tokens written after a prompt, without the end, and whether the model ended them or the length limit did."""

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
    """Answer each prompt greedily, prompts of one length at a time.

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
                found = _equal_length_answers(model, [prompts[i] for i in some], allowed, most, between)
                for i, answer in zip(some, found, strict=True):
                    answers[i] = answer
    return answers


def _equal_length_answers(
    model: Network, prompts: Sequence[Prompt], allowed: int, most: int, between: Callable[[], None]
) -> list[Answer]:
    """Answer prompts of equal length that share one end."""
    device, first = next(model.parameters()).device, prompts[0]
    pending = torch.from_numpy(np.stack([prompt.tokens for prompt in prompts])).to(device)
    limit = min(most, model.config.context_length - pending.shape[1] + 1)
    predictor = _predictor(model, prompts, device)
    closed = _closed(model, first, allowed, device)
    cache = predictor.new_cache(pending.shape[1] + limit)
    columns: list[Tensor] = []
    ended = torch.zeros(len(prompts), dtype=torch.bool, device=device)
    while len(columns) < limit and not ended.all():
        between()
        pending, _ = likeliest(predictor.next_logits(pending, cache), 1, closed)
        columns.append(pending)
        ended |= pending[:, 0] == first.end
    answers = []
    for row in torch.cat(columns, dim=1).tolist():
        finished = first.end in row
        answers.append(Answer(tuple(row[: row.index(first.end)] if finished else row), finished))
    return answers


def _predictor(model: Network, prompts: Sequence[Prompt], device: torch.device) -> Predictor:
    """Return the model as a predictor after some prompts; their sources, where there are any, are read now."""
    assert not isinstance(model, EncoderLM)
    if not isinstance(model, EncoderDecoder):
        return DecoderPredictor(model)
    sources = [prompt.source for prompt in prompts if prompt.source is not None]
    return SourcePredictor(model, torch.from_numpy(np.stack(sources)).to(device))


def _closed(model: Network, prompt: Prompt, allowed: int, device: torch.device) -> Tensor:
    """Return (V,) bool: what is never written, which is neither text nor the prompt's end or marks."""
    closed = torch.arange(model.vocab_size, device=device) >= allowed
    closed[[prompt.end, *prompt.marks]] = False
    return closed


def sample_answer(
    model: Network, prompt: Prompt, how: Sampling, seed: int, *, allowed: int, most: int, alternatives: int = 0
) -> Iterator[SampledToken]:
    """Sample an answer token by token, or at temperature 0 the greedy one; its end is not given.

    Arguments are as in `greedy_answers` and `stream_to_end`. The prompt's marks are numbered after the text's tokens,
    then its end.

    Raises:
        InputError: the prompt is too long.
    """
    limit = _limit(model, prompt, most)
    device = next(model.parameters()).device
    with evaluating(model):
        predictor = EndingPredictor(_predictor(model, [prompt], device), allowed, prompt.end, prompt.marks)
    tokens, context = torch.from_numpy(prompt.tokens).to(device), model.config.context_length
    yield from stream_to_end(predictor, tokens, limit, how, seed, context=context, alternatives=alternatives)


def beam_answers(
    model: Network, prompt: Prompt, *, allowed: int, most: int, beam: int, n_best: int
) -> list[Hypothesis]:
    """Return the `n_best` likeliest answers to a prompt that a beam search finds, best first.

    Arguments are as in `greedy_answers`; `beam` hypotheses are followed, 1 is greedy.

    Raises:
        InputError: the prompt is too long, or the model's answers are no numbers.
    """
    limit = _limit(model, prompt, most)
    device = next(model.parameters()).device
    closed = _closed(model, prompt, allowed, device)
    k = min(beam, int((~closed).sum()))
    sentence = SentenceBeam(BeamOptions(beam, n_best, limit, prompt.end, lambda length: 1.0))
    with evaluating(model):
        predictor = _predictor(model, [prompt], device)
        cache = predictor.new_cache(len(prompt.tokens) + limit)
        rows = cache.cache if isinstance(cache, Decoding) else cache
        pending = torch.from_numpy(prompt.tokens).to(device)[None]
        while sentence.live:
            moves = extend([sentence], predictor.next_logits(pending, cache), closed, k)
            if moves:
                rows.select(torch.tensor([parent for parent, _ in moves], device=device))
                pending = torch.tensor([[token] for _, token in moves], device=device)
    return sentence.done[:n_best]


def _limit(model: Network, prompt: Prompt, most: int) -> int:
    """Return how many tokens may be written, the end included."""
    read, context = len(prompt.tokens), model.config.context_length
    if prompt.source is not None and len(prompt.source) > model.config.source_tokens:
        raise InputError(f"prompt: it has {len(prompt.source)} tokens; this model reads {model.config.source_tokens}")
    if read > context:
        raise InputError(f"prompt: it has {read} tokens with its marks; this model sees {context} at once")
    return min(most, context - read + 1)


def answer_questions(
    model: Network,
    tokenizer: Tokenizer,
    config: RunConfig,
    questions: Sequence[str],
    *,
    most: int,
    between: Callable[[], None] = lambda: None,
) -> list[str]:
    """Answer each question greedily, on one line; what the limit of `most` tokens cut off stands as far as it goes.

    Raises:
        InputError: a question that the tokenizer cannot read or the context has no room for.
    """
    objective = QuestionAnswer(config, tokenizer.vocab_size)
    prompts = [question_prompt(objective, question) for question in tokenizer.encode_all(questions)]
    found = greedy_answers(model, prompts, allowed=tokenizer.vocab_size, most=most, between=between)
    return [" ".join(tokenizer.decode(answer.tokens).splitlines()).strip() for answer in found]
