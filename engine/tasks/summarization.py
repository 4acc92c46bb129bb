"""Summarization: sentence pairs whose source is an article, cut to the source's length, scored by ROUGE."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch

from engine.base.language import tr, trn
from engine.config.measures import MEASURES_BY_KEY, ROUGE
from engine.config.schema import RunConfig
from engine.data.overlap import Overlap, labelled_overlap
from engine.data.parallel.pairs import Pairs
from engine.evaluation.summaries import copied_word_share, first_sentence, score_summaries
from engine.evaluation.translation import OutputScores
from engine.runs.records import DataFacts, LeadBaseline
from engine.tasks.task import ReportLine
from engine.tasks.translation import TranslationScorer, TranslationTask


class SummaryScorer(TranslationScorer):
    """Exact scores and ROUGE of one split."""

    @property
    def activity(self) -> str:
        return trn("summarizing {n:,} article", "summarizing {n:,} articles", len(self.pairs))

    def score_outputs(self, sources: Sequence[str], references: Sequence[str], outputs: Sequence[str]) -> OutputScores:
        return score_summaries(sources, references, outputs)

    def score_lines(self, written: OutputScores, how: str) -> Iterator[ReportLine]:
        """The scores of summaries, beside those of each article's first sentence."""
        said = trn("{n:,} article summarized {how}", "{n:,} articles summarized {how}", written.n, how=how)
        yield f"  {said}"
        beside = tr("{score:.2f}   the first sentence: {lead:.2f}")
        for key in ROUGE:
            yield MEASURES_BY_KEY[key].name, beside.format(score=written.scores[key], lead=getattr(self.lead, key))
        copied = tr(
            "{share:.2%} of the words occur in the article; in the reference summaries, {right:.2%}",
            share=written.scores["copied"],
            right=self.lead.copied,
        )
        yield tr("copied"), copied

    @cached_property
    def lead(self) -> LeadBaseline:
        n, pairs = self._n_translated(self.split), self.pairs
        articles, references = pairs.sources[:n], pairs.targets[:n]
        found = score_summaries(articles, references, [first_sentence(article) for article in articles])
        rouge = {name: value for name, value in found.scores.items() if name in ROUGE}
        return LeadBaseline.create(**rouge, copied=copied_word_share(articles, references), articles=n)


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
