"""Scores questions: the loss of their answers, and how many are answered exactly."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from engine.config.schema import RunConfig
from engine.data.documents.corpus import Question
from engine.data.objectives import QuestionAnswer
from engine.data.questions import EncodedQuestions, scored_questions
from engine.data.tokenizers import Tokenizer
from engine.evaluation.evaluator import evaluation_batch
from engine.evaluation.metrics import TokenScores, score_batches
from engine.generation.answering import greedy_answers
from engine.generation.prompts import question_prompt
from engine.model.transformer import DecoderLM, EncoderDecoder, Network


class Answerer:
    """Answers questions greedily with one model.

    Args:
        model: its weights may change between two calls.
        tokenizer: of questions and answers.
        config: the run's.
        most: tokens of an answer, its end included.
    """

    def __init__(self, model: Network, tokenizer: Tokenizer, config: RunConfig, most: int) -> None:
        self.model, self.tokenizer, self.most = model, tokenizer, most
        self.objective = QuestionAnswer(config, tokenizer.vocab_size)

    def answers(self, questions: Sequence[str], between: Callable[[], None] = lambda: None) -> list[str]:
        """One answer a question, on one line; what the length limit cut off stands as far as it goes.

        Raises:
            InputError: a question that the tokenizer cannot read or the context has no room for.
        """
        encoded = self.tokenizer.encode_all(questions)
        found = greedy_answers(
            self.model,
            [question_prompt(self.objective, question) for question in encoded],
            allowed=self.tokenizer.vocab_size,
            most=self.most,
            between=between,
        )
        return [" ".join(self.tokenizer.decode(answer.tokens).splitlines()).strip() for answer in found]


class AnswerScorer:
    """Exact scores of one split of questions.

    Args:
        config: objective and batch size.
        questions: as they stand in the corpus.
        encoded: those whose answer is told, as tokens.
        tokenizer: of both.
        device: the model's.
        most: tokens of an answer that is written, its end included.
    """

    def __init__(
        self,
        config: RunConfig,
        questions: Sequence[Question],
        encoded: EncodedQuestions,
        tokenizer: Tokenizer,
        device: torch.device,
        most: int,
    ) -> None:
        self.config, self.questions, self.encoded, self.tokenizer = config, questions, encoded, tokenizer
        self.device, self.most = device, most
        self.objective = QuestionAnswer(config, tokenizer.vocab_size)
        self._answers: list[str] = []

    def record(self, model: nn.Module, between: Callable[[], None] = lambda: None) -> dict[str, Any]:
        """The scores as fields of a validation record; where no answer is told, how many questions were answered."""
        assert isinstance(model, DecoderLM | EncoderDecoder)
        answers = Answerer(model, self.tokenizer, self.config, self.most).answers(
            [question.text for question in self.questions], between
        )
        self._answers = answers
        if not len(self.encoded):
            return {"questions": len(answers)}
        scores = self.token_scores(model, between)
        told = [(q.answer, given) for q, given in zip(self.questions, answers, strict=True) if q.answer is not None]
        right = sum(given == answer.strip() for answer, given in told)
        return {
            "questions": len(told),
            "loss": scores.loss,
            "perplexity": scores.perplexity,
            "accuracy": scores.accuracy,
            "right": right,
            "exact_match": right / len(told),
            "probes": {},
            "profile": scores.profile(),
        }

    def outputs(self) -> None:
        """What is written are answers: see `predictions`."""

    def predictions(self) -> str:
        """The answers of the last record, a line each."""
        return "".join(f"{answer}\n" for answer in self._answers)

    def token_scores(self, model: nn.Module, between: Callable[[], None] = lambda: None) -> TokenScores:
        """The nll of every token that is scored: the mark before an answer, the answer, and the mark that ends it."""
        context = self.config.model.context_length
        batches = scored_questions(self.encoded, self.objective, evaluation_batch(self.config), self.device)
        return score_batches(model, batches, context=context, stride=context, between=between)
