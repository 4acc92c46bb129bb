"""Scores one split the way a run's config asks, as the fields of a validation record."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from engine import capabilities
from engine.config.schema import RunConfig
from engine.data.corpora import Split
from engine.data.loader import RandomWindows, TextBatches, mask_generator
from engine.data.objectives import Objective, make_objective, places
from engine.data.synthetic.grammar import Probe
from engine.evaluation.distance import scores_by_distance
from engine.evaluation.metrics import (
    TokenScores,
    excess_over_floor,
    nanogpt_loss,
    places_shown,
    places_with_history,
    probe_counts,
    score_tokens,
    score_windows,
)
from engine.evaluation.reachable import ReachableFloor, reachable_floor
from engine.model.visibility import self_attention
from engine.runs.record_version import RECORDS


def copied_places(config: RunConfig, objective: Objective) -> NDArray[np.bool_] | None:
    """(T,) whether the answer of each place stands where the model sees it; None if none does, or if it may.

    In a source, or in the input itself where self-attention may look ahead.
    """
    found_at = places(objective)
    if found_at is None or capabilities.leaks(config) is None:
        return None
    at = torch.arange(found_at.answers.numel())
    see = self_attention(config.model)
    shown = (found_at.answers[:, None] == found_at.tokens[None]) & torch.as_tensor(see(at[:, None], at[None]))
    found = shown.any(1)
    if found_at.source is not None:
        found = found | (found_at.answers[:, None] == found_at.source[None]).any(1)
    return found.numpy() if found.any() else None


def evaluation_batch(config: RunConfig) -> int:
    """Windows that are scored at once."""
    return config.evaluation.batch_size or 2 * config.train.batch_size


def largest_batch(config: RunConfig) -> int:
    """The most rows a run sends through the model at once, in training or scoring."""
    return max(config.train.batch_size, evaluation_batch(config))


class Evaluator:
    """Exact scores of one split.

    Args:
        config: objective, context, stride, batch size, protocols.
        split: the text with its floor and probes.
        tokens: (n,) the same text encoded, on the model's device.
        vocab_size: tokens of the text.
        records: version of the run's records. Since 2, a probe counts where the window shows its evidence, and excess
            is above the floor reachable in the window; before, a probe counted after context − stride characters,
            and excess was above the floor given the whole past. A run keeps the scoring rules it began with.
    """

    def __init__(
        self, config: RunConfig, split: Split, tokens: Tensor, vocab_size: int, records: int = RECORDS
    ) -> None:
        self.config, self.split, self.tokens, self.records = config, split, tokens, records
        self.objective = make_objective(config, vocab_size)
        self.copied = copied_places(config, self.objective)

    def scores(self, model: nn.Module, between: Callable[[], None] = lambda: None) -> TokenScores:
        """Every target's score."""
        config = self.config
        context, stride = config.model.context_length, config.stride
        batch_size = evaluation_batch(config)
        if config.objective.kind == "next-token":  # the last, shorter window counts too
            return score_tokens(
                model, self.tokens, context=context, stride=stride, batch_size=batch_size, between=between
            )
        return score_windows(
            model,
            self.tokens,
            self.objective,
            context=context,
            stride=stride,
            batch_size=batch_size,
            generator=mask_generator(config.evaluation.seed, "evaluation"),
            between=between,
        )

    def record(self, model: nn.Module, between: Callable[[], None] = lambda: None) -> dict[str, Any]:
        """The scores as fields of a validation record; context and stride are part of what they mean."""
        scores, config = self.scores(model, between), self.config
        record: dict[str, Any] = {
            "context": scores.context,
            "stride": scores.stride,
            "loss": scores.loss,
            "perplexity": scores.perplexity,
            "accuracy": scores.accuracy,
            "probes": {},
            "profile": scores.profile(),
        }
        if config.objective.kind == "next-token":
            record["bits_per_character"] = scores.bits_per_character(len(self.split.text) - 1)
            floor = self.split.floor if self.reachable is None else self.reachable.nats
            if floor is not None:
                record["excess"] = excess_over_floor(scores, floor)
            if config.evaluation.probes:
                record |= self._probes(scores)
        if self.copied is not None:
            record["honest_loss"] = scores.only(~self.copied)  # of the answers that cannot be copied
        if config.evaluation.nanogpt_batches and self.tokens.numel() >= self.objective.window:
            record["nanogpt_loss"] = self._nanogpt(model)
        return record

    @cached_property
    def reachable(self) -> ReachableFloor | None:
        """The floor reachable at this context and stride, if known."""
        if self.records < 2 or self.config.objective.kind != "next-token":
            return None
        return reachable_floor(self.split, self.config.model.context_length, self.config.stride)

    def _probes(self, scores: TokenScores) -> dict[str, Any]:
        first = self.records < 2
        counts = probe_counts(scores, self.split.probes, places_with_history if first else places_shown)
        found: dict[str, Any] = {"probes": {name: right / of for name, (right, of) in counts.items()}}
        if not first:
            found["probe_places"] = {name: of for name, (_, of) in counts.items()}
        by_distance = scores_by_distance(scores, self.split.probes, _shown_with_history if first else places_shown)
        return found | ({"by_distance": by_distance} if by_distance else {})

    def outputs(self) -> None:
        """A text is scored, and none is written."""

    def predictions(self) -> None:
        """No question is asked."""

    def _nanogpt(self, model: nn.Module) -> float:
        seed, device = self.config.evaluation.seed, self.tokens.device
        windows = RandomWindows(self.tokens, self.objective.window, self.config.train.batch_size, seed, device)
        batches = TextBatches(windows, self.objective, seed)
        return nanogpt_loss(model, batches, self.config.evaluation.nanogpt_batches)


def _shown_with_history(scores: TokenScores, probe: Probe) -> NDArray[np.bool_]:
    return places_with_history(scores, probe) & places_shown(scores, probe)
