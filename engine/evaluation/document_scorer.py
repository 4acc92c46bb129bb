"""Scores held-out documents, and asks for facts that the training documents told."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from engine.config.schema import RunConfig
from engine.data.corruption import scored_documents
from engine.data.loader import mask_generator
from engine.data.objectives import span_corruption
from engine.data.padding import Tokens
from engine.data.tokenizers import Tokenizer
from engine.evaluation.evaluator import evaluation_batch
from engine.evaluation.metrics import TokenScores, score_batches
from engine.evaluation.translation import exact_match
from engine.generation.answering import Answer, greedy_answers
from engine.generation.prompts import Prompt
from engine.model.transformer import DecoderLM, EncoderDecoder


@dataclass(frozen=True)
class Fact:
    """What a recall probe asks.

    Args:
        prompt: the text with a gap.
        answer: what stood there.
        length: its tokens.
        continued: whether the prompt is the beginning of a text without a gap, which goes on after the answer.
    """

    prompt: Prompt
    answer: str
    length: int
    continued: bool = False


class DocumentScorer:
    """Exact scores of one split of documents, corrupted in the same way each time, and the share of facts recalled.

    Args:
        config: objective, seed, batch size.
        documents: the split, each with something to take out.
        facts: by the name of their probe.
        tokenizer: of the documents.
        device: the model's.
    """

    def __init__(
        self,
        config: RunConfig,
        documents: Sequence[Tokens],
        facts: Mapping[str, Sequence[Fact]],
        tokenizer: Tokenizer,
        device: torch.device,
    ) -> None:
        self.config, self.documents, self.facts, self.tokenizer = config, documents, facts, tokenizer
        self.device, self.objective = device, span_corruption(config, tokenizer.vocab_size)

    def record(self, model: nn.Module, between: Callable[[], None] = lambda: None) -> dict[str, Any]:
        """The scores as fields of a validation record."""
        assert isinstance(model, DecoderLM | EncoderDecoder)
        scores = self.token_scores(model, between)
        facts = self.facts if self.config.evaluation.probes else {}
        return {
            "documents": len(self.documents),
            "loss": scores.loss,
            "perplexity": scores.perplexity,
            "accuracy": scores.accuracy,
            "probes": {name: self.recalled(model, asked, between) for name, asked in facts.items()},
            "probe_places": {name: len(asked) for name, asked in facts.items()},
            "profile": scores.profile(),
        }

    def outputs(self) -> None:
        """Documents are scored, and none is written."""

    def predictions(self) -> None:
        """No question was asked."""

    def token_scores(self, model: nn.Module, between: Callable[[], None] = lambda: None) -> TokenScores:
        """The nll of every token that the objective asks for."""
        generator = mask_generator(self.config.evaluation.seed, "evaluation")
        size, context = evaluation_batch(self.config), self.config.model.context_length
        batches = scored_documents(self.documents, self.objective, generator, size, self.device)
        return score_batches(model, batches, context=context, stride=context, between=between)

    def recalled(
        self,
        model: DecoderLM | EncoderDecoder,
        facts: Sequence[Fact],
        between: Callable[[], None] = lambda: None,
    ) -> float:
        """The share of facts whose gap is filled exactly, or which a text goes on with, greedily."""
        answers = greedy_answers(
            model,
            [fact.prompt for fact in facts],
            allowed=self.tokenizer.vocab_size,
            most=1 + max(fact.length for fact in facts),  # what goes on after that is wrong in any case
            between=between,
        )
        outputs = [self._said(fact, answer) for fact, answer in zip(facts, answers, strict=True)]
        return exact_match([fact.answer for fact in facts], outputs)

    def _said(self, fact: Fact, answer: Answer) -> str:
        if fact.continued:
            return self.tokenizer.decode(answer.tokens[: fact.length])
        return self.tokenizer.decode(answer.tokens) if answer.finished else ""
