"""Scores a split of sentence pairs: the loss of its references, and how good what is written instead is."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from engine.config.schema import RunConfig
from engine.data.pairs import EncodedPairs, pair_batch
from engine.data.parallel.pairs import Pairs
from engine.data.tokenizers import PairTokenizer
from engine.evaluation.evaluator import evaluation_batch
from engine.evaluation.metrics import TokenScores, score_batches
from engine.evaluation.translation import TranslationScores, exact_match, score_translations
from engine.generation.translator import Translator, both_specials
from engine.model.transformer import EncoderDecoder


@dataclass(frozen=True)
class ScoredSplit:
    """Pairs as they stand in the corpus, and as tokens."""

    pairs: Pairs
    encoded: EncodedPairs


class TranslationScorer:
    """Exact scores of one split, and exact matches of others.

    Args:
        config: beam, batch size, how many sentences are translated.
        split: what the loss and BLEU are of.
        probes: other splits by name, such as unseen constructions: the share of exact matches.
        tokenizer: of both sides.
        device: the model's.
    """

    def __init__(
        self,
        config: RunConfig,
        split: ScoredSplit,
        probes: Mapping[str, ScoredSplit],
        tokenizer: PairTokenizer,
        device: torch.device,
    ) -> None:
        self.config, self.split, self.probes, self.tokenizer, self.device = config, split, probes, tokenizer, device
        self._special = both_specials(tokenizer)
        self._outputs: list[str] = []

    def record(self, model: nn.Module, between: Callable[[], None] = lambda: None) -> dict[str, Any]:
        """The scores as fields of a validation record."""
        assert isinstance(model, EncoderDecoder)
        scores = self.token_scores(model, between)
        written = self.translations(model, self.split, between)
        self._outputs = [row.output for row in written.rows]
        characters = sum(len(target) + 1 for target in self.split.pairs.targets)  # each ends
        probes = self.probes if self.config.evaluation.probes else {}
        return {
            "sentences": len(self.split.pairs),
            "loss": scores.loss,
            "perplexity": scores.perplexity,
            "bits_per_character": math.fsum(scores.nll) / math.log(2) / characters,
            "accuracy": scores.accuracy,
            "bleu": written.bleu,
            "bleu_signature": written.bleu_signature,
            "chrf": written.chrf,
            "exact_match": written.exact_match,
            "beam": self.config.evaluation.beam,
            "translated": written.n,
            "probes": {name: self._exact(model, split, between) for name, split in probes.items()},
            "probe_places": {name: self._asked(split) for name, split in probes.items()},
            "profile": scores.profile(),
        }

    def outputs(self) -> dict[str, Any]:
        """The translations of the last record beside their references: what a paired test of two runs asks for."""
        references = list(self.split.pairs.targets[: len(self._outputs)])
        return {"beam": self.config.evaluation.beam, "references": references, "outputs": self._outputs}

    def predictions(self) -> None:
        """No question is asked."""

    def token_scores(self, model: nn.Module, between: Callable[[], None] = lambda: None) -> TokenScores:
        """The nll of every token of the references, ends included, without smoothing."""
        encoded = self.split.encoded
        order = np.argsort(encoded.lengths.sum(1), kind="stable").tolist()
        size = evaluation_batch(self.config)
        context = self.config.model.context_length
        batches = (
            pair_batch(encoded.chosen(order[start : start + size]), self._special, self.device)
            for start in range(0, len(order), size)
        )
        return score_batches(model, batches, context=context, stride=context, between=between)

    def translations(
        self, model: EncoderDecoder, split: ScoredSplit, between: Callable[[], None] = lambda: None
    ) -> TranslationScores:
        """The first `evaluation.translations` sentences of a split, translated and held against their references."""
        outputs = self._written(model, split, between)
        sources, references = (side[: len(outputs)] for side in (split.pairs.sources, split.pairs.targets))
        return score_translations(sources, references, outputs)

    def _exact(self, model: EncoderDecoder, split: ScoredSplit, between: Callable[[], None]) -> float:
        """What a probe asks, without the scores that take as long as translating."""
        outputs = self._written(model, split, between)
        return exact_match(split.pairs.targets[: len(outputs)], outputs)

    def _asked(self, split: ScoredSplit) -> int:
        """How many sentences of a split are translated."""
        return min(self.config.evaluation.translations or len(split.pairs), len(split.pairs))

    def _written(self, model: EncoderDecoder, split: ScoredSplit, between: Callable[[], None]) -> list[str]:
        beam, sources = self.config.evaluation.beam, split.encoded.sources[: self._asked(split)]
        translator = Translator(model, self.tokenizer, self.config)
        found = translator.translate_encoded(sources, beam=beam, between=between)
        return [best[0].text for best in found]
