"""What a model of documents is asked: what stands before the part that it writes, and the token that ends that part."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Generator

from engine.data.objectives import Corrupts, QuestionAnswer, SentinelSpans, SpanCorruption
from engine.data.padding import Tokens


@dataclass(frozen=True)
class Prompt:
    """One text that is to be gone on with.

    Args:
        tokens: (T,) what the decoder has before it writes, at least one.
        end: the token that ends what it writes.
        source: (S,) what the encoder of an encoder-decoder reads.
        marks: special tokens that it may write besides the end.
    """

    tokens: Tokens
    end: int
    source: Tokens | None = None
    marks: tuple[int, ...] = ()


def question_prompt(objective: QuestionAnswer, question: Tokens) -> Prompt:
    """`question ⁇`; the answer ends with ⁇."""
    mark = np.array([objective.mask], dtype=np.int64)
    if objective.conditional:
        return Prompt(mark, objective.mask, question)
    return Prompt(np.concatenate((question, mark)), objective.mask)


def recall_prompt(objective: Corrupts, prefix: Tokens, suffix: Tokens) -> Prompt:
    """A text with a gap, as the objective would show it if it had masked what stood there."""
    return gaps_prompt(objective, (prefix, suffix))


def continued_prompt(objective: SpanCorruption, beginning: Tokens) -> Prompt:
    """The beginning of a document that nothing is masked in; where it ends there is a ⁇."""
    return Prompt(beginning, objective.mask)


def gaps_prompt(objective: Corrupts, parts: Sequence[Tokens]) -> Prompt:
    """A text with gaps, as the objective would show it if it had masked what stood there.

    Args:
        objective: with sentinels any number of gaps that it has sentinels for; else one.
        parts: what stands before, between and behind the gaps.
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
    """A document with something taken out, and (T,) what was: sentinels with it, the end without."""
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
