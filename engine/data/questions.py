"""Batches of questions with their answers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from engine.config.schema import RunConfig
from engine.data.buckets import BucketedBatches
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
        return EncodedQuestions([self.questions[i] for i in rows], [self.answers[i] for i in rows])


class QuestionBatches(BucketedBatches):
    """The batch stream of questions, of which there is at least one."""

    def __init__(
        self, asked: EncodedQuestions, config: RunConfig, objective: QuestionAnswer, device: torch.device | str = "cpu"
    ) -> None:
        self.asked, self.objective, self.device = asked, objective, device
        lengths = objective.sides(asked.questions, asked.answers)
        super().__init__(lambda epoch: lengths, config, "question")

    def batch(self, step: int, micro: int) -> Batch:
        _, rows = self.rows(step, micro)
        chosen = self.asked.chosen(rows.tolist())
        return self.objective.answered(chosen.questions, chosen.answers, self.device)

    def probed(self) -> Tensor:
        """Return (1, L) questions and answers as one text."""
        rows = [part for pair in zip(self.asked.questions, self.asked.answers, strict=True) for part in pair]
        return text_of(rows, self.objective.window).to(self.device)


def scored_questions(
    asked: EncodedQuestions, objective: QuestionAnswer, size: int, device: torch.device | str
) -> Iterator[Batch]:
    """Yield all questions, `size` at once, the short ones first."""
    order = np.argsort(objective.sides(asked.questions, asked.answers).sum(1), kind="stable").tolist()
    for start in range(0, len(order), size):
        chosen = asked.chosen(order[start : start + size])
        yield objective.answered(chosen.questions, chosen.answers, device)
