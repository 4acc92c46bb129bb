"""Score a split the way a run's config asks, as the fields of a validation record: one class a kind of task."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from engine import capabilities
from engine.config.schema import RunConfig
from engine.data.corpora import Split
from engine.data.corruption import scored_documents
from engine.data.documents.corpus import Question
from engine.data.loader import RandomWindows, TextBatches, mask_generator
from engine.data.objectives import Objective, QuestionAnswer, make_objective, places, span_corruption
from engine.data.padding import Tokens
from engine.data.pairs import EncodedPairs, pair_batch
from engine.data.parallel.pairs import Pairs
from engine.data.questions import EncodedQuestions, scored_questions
from engine.data.tokenizers import PairTokenizer, Tokenizer
from engine.evaluation.metrics import (
    Counted,
    TokenScores,
    excess_over_floor,
    nanogpt_loss,
    places_shown,
    places_with_history,
    probe_counts,
    score_batches,
    score_tokens,
    score_windows,
    scores_by_distance,
)
from engine.evaluation.reachable import ReachableFloor, reachable_floor
from engine.evaluation.translation import TranslationScores, exact_match, score_translations
from engine.generation.answering import Answer, Prompt, answer_questions, greedy_answers
from engine.generation.translation import Translator, both_specials
from engine.model.transformer import DecoderLM, EncoderDecoder
from engine.model.visibility import self_attention
from engine.runs.record_version import RECORDS


def copied_places(config: RunConfig, objective: Objective) -> NDArray[np.bool_] | None:
    """Return (T,) whether the model sees the answer of each place; None if no answer can be copied.

    It may stand in a source, or in the input itself where self-attention may look ahead.
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
    """Return how many windows are scored at once."""
    return config.evaluation.batch_size or 2 * config.train.batch_size


def largest_batch(config: RunConfig) -> int:
    """Return the most rows a run sends through the model at once, in training or scoring."""
    return max(config.train.batch_size, evaluation_batch(config))


class Scorer:
    """Scores one split; `between` is called between batches and may raise to stop."""

    def record(self, model: nn.Module, between: Callable[[], None] = lambda: None) -> dict[str, Any]:
        """Return the scores as fields of a validation record."""
        raise NotImplementedError

    def outputs(self) -> dict[str, Any] | None:
        """Return what was written to be scored for the last record (translations.json), if anything is."""
        return None

    def predictions(self) -> str | None:
        """Return the answers of the last record, a line each (predictions.txt), if questions are asked."""
        return None


class TextScorer(Scorer):
    """Exact scores of one split of a text.

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
        """Return the scores; context and stride are part of what they mean."""
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
            seed, device = config.evaluation.seed, self.tokens.device
            windows = RandomWindows(self.tokens, self.objective.window, config.train.batch_size, seed, device)
            batches = TextBatches(windows, self.objective, seed)
            record["nanogpt_loss"] = nanogpt_loss(model, batches, config.evaluation.nanogpt_batches)
        return record

    @cached_property
    def reachable(self) -> ReachableFloor | None:
        """The floor reachable at this context and stride, if known."""
        if self.records < 2 or self.config.objective.kind != "next-token":
            return None
        return reachable_floor(self.split, self.config.model.context_length, self.config.stride)

    def _probes(self, scores: TokenScores) -> dict[str, Any]:
        probes, first = self.split.probes, self.records < 2
        counts = probe_counts(scores, probes, places_with_history if first else places_shown)
        found: dict[str, Any] = {"probes": {name: right / of for name, (right, of) in counts.items()}}
        if not first:
            found["probe_places"] = {name: of for name, (_, of) in counts.items()}
        both: Counted = lambda scores, probe: places_with_history(scores, probe) & places_shown(scores, probe)
        by_distance = scores_by_distance(scores, probes, both if first else places_shown)
        return found | ({"by_distance": by_distance} if by_distance else {})


@dataclass(frozen=True)
class ScoredSplit:
    """Pairs as they stand in the corpus, and as tokens."""

    pairs: Pairs
    encoded: EncodedPairs


class TranslationScorer(Scorer):
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
            "probes": {
                # Not `translations`: BLEU takes as long as translating.
                name: exact_match(split.pairs.targets[: self._translated(split)], self._written(model, split, between))
                for name, split in probes.items()
            },
            "probe_places": {name: self._translated(split) for name, split in probes.items()},
            "profile": scores.profile(),
        }

    def outputs(self) -> dict[str, Any]:
        """Return the translations beside their references, for a paired test of two runs."""
        references = list(self.split.pairs.targets[: len(self._outputs)])
        return {"beam": self.config.evaluation.beam, "references": references, "outputs": self._outputs}

    def token_scores(self, model: nn.Module, between: Callable[[], None] = lambda: None) -> TokenScores:
        """Return the nll of every token of the references, ends included, without smoothing."""
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
        """Translate the first `evaluation.translations` sentences of a split and score them."""
        outputs = self._written(model, split, between)
        sources, references = (side[: len(outputs)] for side in (split.pairs.sources, split.pairs.targets))
        return score_translations(sources, references, outputs)

    def _translated(self, split: ScoredSplit) -> int:
        """Return how many sentences of a split are translated."""
        return min(self.config.evaluation.translations or len(split.pairs), len(split.pairs))

    def _written(self, model: EncoderDecoder, split: ScoredSplit, between: Callable[[], None]) -> list[str]:
        beam, sources = self.config.evaluation.beam, split.encoded.sources[: self._translated(split)]
        translator = Translator(model, self.tokenizer, self.config)
        found = translator.translate_encoded(sources, beam=beam, between=between)
        return [best[0].text for best in found]


@dataclass(frozen=True)
class Fact:
    """A question of a recall probe: a prompt and its answer."""

    prompt: Prompt  # the text with a gap
    answer: str  # what stood there
    length: int  # its tokens
    # whether the prompt is the beginning of a text without a gap, which goes on after the answer
    continued: bool = False


class DocumentScorer(Scorer):
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

    def token_scores(self, model: nn.Module, between: Callable[[], None] = lambda: None) -> TokenScores:
        """Return the nll of every token that the objective asks for."""
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
        """Return the share of facts whose gap is filled exactly, or with which a text is continued, greedily."""
        answers = greedy_answers(
            model,
            [fact.prompt for fact in facts],
            allowed=self.tokenizer.vocab_size,
            most=1 + max(fact.length for fact in facts),  # what goes on after that is wrong in any case
            between=between,
        )

        def text(fact: Fact, answer: Answer) -> str:
            if fact.continued:
                return self.tokenizer.decode(answer.tokens[: fact.length])
            return self.tokenizer.decode(answer.tokens) if answer.finished else ""

        outputs = [text(fact, answer) for fact, answer in zip(facts, answers, strict=True)]
        return exact_match([fact.answer for fact in facts], outputs)


class AnswerScorer(Scorer):
    """Exact scores of one split of questions.

    Args:
        config: objective and batch size.
        questions: as they stand in the corpus.
        encoded: those whose answer is known, as tokens.
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
        """Return the scores; without known answers only how many questions were answered."""
        assert isinstance(model, DecoderLM | EncoderDecoder)
        asked = [question.text for question in self.questions]
        answers = answer_questions(model, self.tokenizer, self.config, asked, most=self.most, between=between)
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

    def predictions(self) -> str:
        return "".join(f"{answer}\n" for answer in self._answers)

    def token_scores(self, model: nn.Module, between: Callable[[], None] = lambda: None) -> TokenScores:
        """Return the nll of every token of the answers, with the marks before and after each."""
        context = self.config.model.context_length
        batches = scored_questions(self.encoded, self.objective, evaluation_batch(self.config), self.device)
        return score_batches(model, batches, context=context, stride=context, between=between)
