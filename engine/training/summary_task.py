"""The summarization task: sentence pairs whose source is an article, cut to the source's length, scored by ROUGE."""

from dataclasses import dataclass
from typing import Self

import torch

from engine.config.schema import RunConfig
from engine.data.overlap import Overlap, labelled_overlap
from engine.evaluation.scorers import SummaryScorer
from engine.runs.records import DataFacts
from engine.training.translation_task import TranslationTask


@dataclass(frozen=True)
class SummaryTask(TranslationTask):
    scores = SummaryScorer

    def overlap_with(self, trained: Self) -> Overlap | None:
        """Of articles alone: the same headline may well stand above two of them."""
        known, asked = trained.corpus.splits["train"], self.corpus.splits["validation"]
        return labelled_overlap(known.sources, asked.sources, "validation")

    def facts(self, config: RunConfig) -> DataFacts:
        found = super().facts(config)
        return found.model_copy(update={"lead": self.scorer(config, torch.device("cpu")).lead})
