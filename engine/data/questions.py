"""Batches of questions with their answers, of like length side by side."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from engine.config.schema import RunConfig
from engine.data.buckets import Buckets
from engine.data.objectives import Batch, QuestionAnswer
from engine.data.padding import Tokens, text_of


@dataclass(frozen=True)
class EncodedQuestions:
    """Questions and their answers as token ids, without special tokens; answers[i] belongs to questions[i]."""

    questions: Sequence[Tokens]
    answers: Sequence[Tokens]

    def __len__(self) -> int:
        return len(self.questions)

    def chosen(self, rows: Sequence[int]) -> "EncodedQuestions":
        """Some of them, in this order."""
        return EncodedQuestions([self.questions[i] for i in rows], [self.answers[i] for i in rows])


class QuestionBatches:
    """The batch stream of questions: each once an epoch.

    Args:
        asked: what is trained on, at least one.
        config: `train.batch_size` questions, or `train.batch_tokens` with their padding.
        objective: puts question and answer together.
        device: where the batches go.

    Raises:
        InputError: a question is longer than the budget.
    """

    def __init__(
        self,
        asked: EncodedQuestions,
        config: RunConfig,
        objective: QuestionAnswer,
        device: torch.device | str = "cpu",
    ) -> None:
        self.asked, self.objective, self.device = asked, objective, device
        lengths = objective.sides(asked.questions, asked.answers)
        self._buckets = Buckets(lambda epoch: lengths, config, "question")

    @property
    def steps_per_epoch(self) -> int:
        """Optimizer steps of the first epoch; others may differ by a few."""
        return self._buckets.steps_per_epoch

    @property
    def padding(self) -> float:
        """Share of an epoch's places that hold nothing."""
        return self._buckets.padding

    def largest(self) -> tuple[int, int]:
        """(step, micro-batch) of the largest batch of the first epoch."""
        return self._buckets.largest()

    def batch(self, step: int, micro: int) -> Batch:
        """The micro-batch `micro` of optimizer step `step` (counted from 1)."""
        _, rows = self._buckets.rows(step, micro)
        return answered(self.objective, self.asked.chosen(rows.tolist()), self.device)

    def probed(self) -> Tensor:
        """(1, L) questions and answers as one text."""
        rows = [part for pair in zip(self.asked.questions, self.asked.answers, strict=True) for part in pair]
        return text_of(rows, self.objective.window).to(self.device)


def answered(objective: QuestionAnswer, asked: EncodedQuestions, device: torch.device | str) -> Batch:
    """The batch of some questions."""
    return objective.answered(asked.questions, asked.answers, device)


def scored_questions(
    asked: EncodedQuestions, objective: QuestionAnswer, size: int, device: torch.device | str
) -> Iterator[Batch]:
    """All questions, `size` at once, the short ones first."""
    order = np.argsort(objective.sides(asked.questions, asked.answers).sum(1), kind="stable").tolist()
    for start in range(0, len(order), size):
        yield answered(objective, asked.chosen(order[start : start + size]), device)
