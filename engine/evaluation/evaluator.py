"""Scores one split the way a run's config asks, as the fields of a validation record."""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from engine.config.schema import RunConfig
from engine.data.corpora import Split
from engine.data.loader import Batches
from engine.evaluation.metrics import TokenScores, excess_over_floor, nanogpt_loss, probe_scores, score_tokens


class Evaluator:
    """Exact scores of one split.

    Args:
        config: context, stride, batch size, protocols.
        split: the text with its floor and probes.
        tokens: (n,) the same text encoded, on the model's device.
        batches: random batches of this split for nanoGPT's protocol.
    """

    def __init__(self, config: RunConfig, split: Split, tokens: Tensor, batches: Batches | None = None) -> None:
        self.config, self.split, self.tokens, self.batches = config, split, tokens, batches

    def scores(self, model: nn.Module, between: Callable[[], None] = lambda: None) -> TokenScores:
        """Every token's score."""
        return score_tokens(
            model,
            self.tokens,
            context=self.config.model.context_length,
            stride=self.config.stride,
            batch_size=self.config.evaluation.batch_size or 2 * self.config.train.batch_size,
            between=between,
        )

    def record(self, model: nn.Module, between: Callable[[], None] = lambda: None) -> dict[str, Any]:
        """The scores as fields of a validation record; context and stride are part of what they mean."""
        scores = self.scores(model, between)
        record: dict[str, Any] = {
            "context": scores.context,
            "stride": scores.stride,
            "loss": scores.loss,
            "perplexity": scores.perplexity,
            "bits_per_character": scores.bits_per_character(len(self.split.text) - 1),
            "accuracy": scores.accuracy,
            "probes": {},
        }
        if self.split.floor is not None:
            record["excess"] = excess_over_floor(scores, self.split.floor)
        if self.config.evaluation.probes:
            record["probes"] = probe_scores(scores, self.split.probes)
        if self.config.evaluation.nanogpt_batches and self.batches is not None:
            record["nanogpt_loss"] = nanogpt_loss(model, self.batches, self.config.evaluation.nanogpt_batches)
        return record
