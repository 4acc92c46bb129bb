"""The summarization task: sentence pairs whose source is an article, cut to the source's length, scored by ROUGE."""

from dataclasses import dataclass

import torch

from engine.config.schema import RunConfig
from engine.data.overlap import Overlap, labelled_overlap
from engine.data.parallel.pairs import Pairs
from engine.runs.records import DataFacts
from engine.tasks.scorers import SummaryScorer
from engine.tasks.translation_task import TranslationTask


@dataclass(frozen=True)
class SummaryTask(TranslationTask):
    scorer_class = SummaryScorer

    @staticmethod
    def overlap_between(train: Pairs, held_out: Pairs, split: str) -> Overlap | None:
        """Of articles alone: the same headline may well stand above two of them."""
        return labelled_overlap(train.sources, held_out.sources, split)

    def facts(self, config: RunConfig) -> DataFacts:
        found = super().facts(config)
        return found.model_copy(update={"lead": self.scorer(config, torch.device("cpu")).lead})
