"""Span corruption: which part of a document is removed, and how the rest is arranged.

Two families. That of Stanford's CS224N (assignment 5, minGPT) is for decoders: one span moves to the end of its
document. That of T5 (Raffel et al. 2020, §3.1.4) is for encoder-decoders: several short spans become the target.
Every draw comes from the generator, and none depends on the tokens. Documents are cut and corrupted anew in each epoch:
cuts are drawn for a whole epoch, since they determine row lengths, and masks for each batch. n documents.
"""

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from engine.base.errors import InputError
from engine.base.language import Message, tr, trn
from engine.config.schema import RunConfig
from engine.config.tasks import MASK, MASKS_IN_A_ROW, PAD, SHORTEST_DOCUMENT, START, corrupted_lengths, span_counts
from engine.data.documents.corpus import DocumentCorpus
from engine.data.loader import mask_generator
from engine.data.objectives import Batch, Objective, TokenPrompt, shifted_batch, source_target_batch
from engine.data.overlap import Overlap, document_overlap
from engine.data.padding import AnyDevice, Counts, Tokens
from engine.data.rows import BucketedBatches, Relabel, identity, lengths_of
from engine.data.tokenizers import AnyTokenizer
from engine.evaluation.translation import exact_match
from engine.generation.answering import greedy_answers
from engine.generation.beam import Hypothesis
from engine.model.transformer import Network
from engine.runs.records import DataFacts, EvaluationScores, ProbeFacts
from engine.tasks.documents import (
    REQUIRED_SPLITS,
    DocumentPipeline,
    DocumentTask,
    count_tokens,
    decode_with_marks,
    encode_answers,
)
from engine.tasks.pipeline import MARK
from engine.tasks.task import RowSampler, RowScorer, evaluation_batch, spread_indices

GAP = re.compile(r"⁇|_{2,}")  # in a prompt
MAX_COUNTED_DOCUMENTS = 10_000  # training documents for the unigram and bigram losses


def _uniform(n: int, columns: int, generator: Generator) -> list[NDArray[np.float64]]:
    """Return `columns` × (n,) numbers in [0, 1); a document's are drawn consecutively."""
    return list(torch.rand(n, columns, generator=generator, dtype=torch.float64).numpy().T)


def random_prefix_lengths(lengths: Counts, longest: int, generator: Generator) -> Counts:
    """Return (n,) the tokens of each document to read: its first 4 to `longest`, uniformly, if it has them.

    The beginning survives: a document begins with its subject's name.
    """
    (drawn,) = _uniform(len(lengths), 1, generator)
    wanted = SHORTEST_DOCUMENT + (drawn * (longest - SHORTEST_DOCUMENT + 1)).astype(np.int64)
    return np.minimum(wanted, lengths)


def cs224n_spans(lengths: Counts, fraction: float, generator: Generator) -> tuple[Counts, Counts]:
    """Return (n,) the start of each document's masked span and (n,) its length, as the assignment specifies.

    The length is uniform on 1 … 2 · fraction · t − 1, whose mean is fraction · t (a non-integer bound is rounded at
    random, preserving the mean), and every place with room for it is equally likely.
    """
    rounding, size, place = _uniform(len(lengths), 3, generator)
    most = np.maximum(1, np.floor(2.0 * fraction * lengths - 1.0 + rounding).astype(np.int64))
    sizes = np.minimum(1 + (size * most).astype(np.int64), lengths)
    return (place * (lengths - sizes + 1)).astype(np.int64), sizes


def early_half_length_spans(lengths: Counts, fraction: float, generator: Generator) -> tuple[Counts, Counts]:
    """The same as a course report drew it: not as specified, and never far from the document's beginning.

    Prefix and span are both uniform on 1 … fraction · t: on average the span is half of what was asked for, 13.7 % of
    that report's documents instead of 25 %. Its later correction is a fraction of 0.5: 26.5 %.
    """
    prefix, size = _uniform(len(lengths), 2, generator)
    most = np.maximum(1, (fraction * lengths).astype(np.int64))
    return 1 + (prefix * most).astype(np.int64), 1 + (size * most).astype(np.int64)


SPANS: dict[str, Callable[[Counts, float, Generator], tuple[Counts, Counts]]] = {
    "cs224n": cs224n_spans,
    "cs224n-half": early_half_length_spans,
}


def move_span_to_end(document: Tokens, start: int, size: int, mask: int) -> Tokens:
    """`prefix ⁇ suffix ⁇ span ⁇`: the span moves to the end; marks stand at its old place, before and after it.

    The assignment's text has no mark after the span, but its later versions' examples do: it teaches a model where to
    stop, as its answers must later.
    """
    mark = np.array([mask], dtype=np.int64)
    prefix, span, suffix = np.split(document, [start, start + size])
    return np.concatenate((prefix, mark, suffix, mark, span, mark))


def random_segmentation(items: int, parts: int, generator: Generator) -> Counts:
    """Return (parts,) lengths ≥ 1 that sum to `items`, uniformly: T5's `_random_segmentation`."""
    borders = torch.randperm(items - 1, generator=generator)[: parts - 1].sort().values.numpy() + 1
    return np.diff(np.concatenate(([0], borders, [items])))


def replace_with_sentinels(
    document: Tokens, mask_fraction: float, span_mean: float, first: int, generator: Generator
) -> tuple[Tokens, Tokens]:
    """Return (source, target) of T5: `text ① text ② text` and `① span ② span ③`; the last sentinel ends the target.
    Like `random_spans_noise_mask`, which always starts with text and ends with a span, so a single span would always
    end a short document. Here, as with its `random_roll`, a span may be first, and text may follow the last. The
    document has (t,) ≥ 2 tokens; `first` is the id of ①, the others follow it.
    """
    taken, spans = span_counts(len(document), mask_fraction, span_mean)
    hidden = random_segmentation(taken, spans, generator)
    shown = random_segmentation(len(document) - taken + 2, spans + 1, generator)
    shown[[0, -1]] -= 1  # may be empty
    lengths = [length for pair in zip(shown, hidden, strict=False) for length in pair]
    parts = np.split(document, np.cumsum(lengths))
    sentinels = [np.array([first + i], dtype=np.int64) for i in range(spans + 1)]
    source = [part for pair in zip(parts[0::2], sentinels, strict=True) for part in pair]
    target = [part for pair in zip(sentinels, parts[1::2], strict=False) for part in pair]
    return np.concatenate(source[:-1]), np.concatenate((*target, sentinels[spans]))


class CorruptionObjective(Objective):
    """Removes spans from n documents; a row has one side, or a source and a target."""

    reorders_text = True

    @abstractmethod
    def kept_lengths(self, lengths: Counts, generator: Generator) -> Counts:
        """Return (n,) the number of tokens read of each document, from its beginning."""

    @abstractmethod
    def side_lengths(self, document_lengths: Counts) -> Counts:
        """Return (n, sides) row lengths, in tokens, for documents of these lengths."""

    @abstractmethod
    def corrupt(self, documents: Sequence[Tokens], generator: Generator, device: AnyDevice = "cpu") -> Batch:
        """Return the batch of documents that are already cut; the generator draws the spans."""

    @abstractmethod
    def gap_prompt(self, parts: Sequence[Tokens]) -> TokenPrompt:
        """Return the prompt of a text with gaps, as if they had been masked; `parts` are the texts around them."""

    @abstractmethod
    def example(self, document: Tokens, generator: Generator) -> tuple[TokenPrompt, Tokens]:
        """Corrupt a document; return the prompt and (T,) what was taken out, with sentinels but without the end."""

    def continuation_prompt(self, text: Tokens) -> TokenPrompt | None:
        """Return the prompt of a text that goes on without a gap; None if the model predicts only what is masked."""
        return None

    def batch(self, windows: Tensor, generator: Generator) -> Batch:
        return self.corrupt(list(windows.cpu().numpy()), generator, windows.device)


class SpanAtEnd(CorruptionObjective):
    """`prefix ⁇ suffix ⁇ span ⁇`, each token predicted from those before it (CS224N, assignment 5).

    All but padding is scored, as in the assignment.
    """

    def __init__(self, config: RunConfig, vocab_size: int) -> None:
        super().__init__(config, vocab_size)
        self.pad, self.mask = self.special[PAD], self.special[MASK]
        self.draw, self.fraction = SPANS[config.objective.span_form], config.objective.span_fraction

    def kept_lengths(self, lengths: Counts, generator: Generator) -> Counts:
        return random_prefix_lengths(lengths, self.window, generator)

    def side_lengths(self, document_lengths: Counts) -> Counts:
        return document_lengths[:, None] + (MASKS_IN_A_ROW - 1)

    def corrupt(self, documents: Sequence[Tokens], generator: Generator, device: AnyDevice = "cpu") -> Batch:
        lengths = np.array([len(document) for document in documents], dtype=np.int64)
        starts, sizes = (part.tolist() for part in self.draw(lengths, self.fraction, generator))
        rows = [move_span_to_end(*span, self.mask) for span in zip(documents, starts, sizes, strict=True)]
        return shifted_batch(rows, [0] * len(rows), self.pad, device)

    def gap_prompt(self, parts: Sequence[Tokens]) -> TokenPrompt:
        prefix, suffix = parts
        mark = np.array([self.mask], dtype=np.int64)
        return TokenPrompt(np.concatenate((prefix, mark, suffix, mark)), self.mask)

    def example(self, document: Tokens, generator: Generator) -> tuple[TokenPrompt, Tokens]:
        batch = self.corrupt([document], generator)
        row = np.concatenate((batch.tokens[0, :1].numpy(), batch.targets[0].numpy()))
        last_mark = int(np.flatnonzero(row == self.mask)[1])
        return TokenPrompt(row[: last_mark + 1], self.mask), row[last_mark + 1 : -1]

    def continuation_prompt(self, text: Tokens) -> TokenPrompt:
        return TokenPrompt(text, self.mask)


class SentinelSpans(CorruptionObjective):
    """`text ① text ②` is read and `① span ② span ③` is written (Raffel et al. 2020, T5, §3.1.4)."""

    def __init__(self, config: RunConfig, vocab_size: int) -> None:
        super().__init__(config, vocab_size)
        self.pad, self.start = self.special[PAD], self.special[START]
        self.first_sentinel = self.start + 1
        self.span_parameters = (config.objective.mask_fraction, config.objective.span_mean)

    def kept_lengths(self, lengths: Counts, generator: Generator) -> Counts:
        # Nothing is drawn: a document is cut only to fit the source.
        return np.minimum(lengths, self.window)

    def side_lengths(self, document_lengths: Counts) -> Counts:
        lengths = [corrupted_lengths(int(cut), *self.span_parameters) for cut in document_lengths]
        return np.array(lengths, dtype=np.int64).reshape(-1, 2)

    def corrupt(self, documents: Sequence[Tokens], generator: Generator, device: AnyDevice = "cpu") -> Batch:
        how = (*self.span_parameters, self.first_sentinel, generator)
        rows = [replace_with_sentinels(document, *how) for document in documents]
        sources, targets = zip(*rows, strict=True)
        return source_target_batch(sources, targets, self.start, self.pad, device)

    def gap_prompt(self, parts: Sequence[Tokens]) -> TokenPrompt:
        gaps = len(parts) - 1  # at most one per sentinel
        sentinels = [np.array([self.first_sentinel + i], dtype=np.int64) for i in range(gaps)]
        read = [part for pair in zip(parts, sentinels, strict=False) for part in pair]
        before = np.array([self.start, self.first_sentinel], dtype=np.int64)
        marks = tuple(range(self.first_sentinel + 1, self.first_sentinel + gaps))
        return TokenPrompt(before, self.first_sentinel + gaps, np.concatenate((*read, parts[-1])), marks)

    def example(self, document: Tokens, generator: Generator) -> tuple[TokenPrompt, Tokens]:
        batch = self.corrupt([document], generator)
        assert batch.source is not None
        targets = batch.targets[0].numpy()
        marks = tuple(range(self.first_sentinel, int(targets[-1])))
        return TokenPrompt(batch.tokens[0, :1].numpy(), int(targets[-1]), batch.source[0].numpy(), marks), targets[:-1]


def corruption_objective(config: RunConfig, vocab_size: int) -> CorruptionObjective:
    return (SentinelSpans if config.objective.has_sentinels else SpanAtEnd)(config, vocab_size)


class DocumentBatches(BucketedBatches[CorruptionObjective]):
    """The batch stream of documents, of which there is at least one, each long enough to corrupt."""

    def __init__(
        self, documents: Sequence[Tokens], config: RunConfig, objective: CorruptionObjective, device: AnyDevice = "cpu"
    ) -> None:
        self.documents, self.objective, self.device = documents, objective, device
        self._whole = lengths_of(documents)
        self._cuts: tuple[int, Counts] = (-1, self._whole)
        super().__init__(lambda epoch: objective.side_lengths(self._epoch_kept_lengths(epoch)), config, tr("document"))

    def _make_batch(self, rows: Sequence[int], step: int, micro: int, relabel: Relabel = identity) -> Batch:
        epoch, _ = self.epoch_and_rows(step, micro)
        cuts = self._epoch_kept_lengths(epoch)
        documents = [relabel(self.documents[row][: cuts[row]]) for row in rows]
        return self.objective.corrupt(documents, mask_generator(self.seed, step, micro), self.device)

    def _epoch_kept_lengths(self, epoch: int) -> Counts:
        """Return (n,) the tokens of each document that an epoch reads."""
        if self._cuts[0] != epoch:
            generator = mask_generator(self.seed, "cut", "epoch", epoch)
            self._cuts = (epoch, self.objective.kept_lengths(self._whole, generator))
        return self._cuts[1]


def documents_to_score(
    documents: Sequence[Tokens], objective: CorruptionObjective, generator: Generator, size: int, device: AnyDevice
) -> Iterator[Batch]:
    """Yield documents corrupted for scoring: `size` at once, shortest first.

    All are cut before any is corrupted, and spans are then drawn one document at a time in a fixed order: the questions
    do not depend on the batch size.
    """
    cuts = objective.kept_lengths(lengths_of(documents), generator)
    order = np.argsort(cuts, kind="stable").tolist()
    for start in range(0, len(order), size):
        rows = [documents[row][: cuts[row]] for row in order[start : start + size]]
        yield objective.corrupt(rows, generator, device)


@dataclass(frozen=True)
class RecallPrompt:
    """A question of a recall probe: a prompt and its answer."""

    prompt: TokenPrompt  # the text with a gap
    answer: str  # the original text
    length: int  # its tokens
    # whether the prompt is the start of a text without a gap, which continues after the answer
    continued: bool = False


@dataclass
class DocumentScorer(RowScorer["SpanTask"]):
    """Exact scores of one split of documents, corrupted in the same way each time, and the share of facts recalled."""

    probe_format = tr("{share:.1%} of {places:,} facts exactly right")

    @property
    def activity(self) -> str:
        return trn("scoring {n:,} document", "scoring {n:,} documents", len(self.documents))

    @property
    def loss_unit(self) -> str:
        return tr("{unit}, mask tokens included", unit=tr(self.config.task.unit))

    @cached_property
    def documents(self) -> Sequence[Tokens]:
        return self.task.encoded[self.split]

    @cached_property
    def facts(self) -> Mapping[str, Sequence[RecallPrompt]]:
        return self.task.recall_prompts(self.config)

    def score_model(self, model: Network, between: Callable[[], None] = lambda: None) -> EvaluationScores:
        scores = self.token_scores(model, between)
        facts = self.facts if self.config.evaluation.probes else {}
        return EvaluationScores.create(
            documents=len(self.documents),
            loss=scores.loss,
            perplexity=scores.perplexity,
            accuracy=scores.accuracy,
            probes={name: self.recall_share(model, asked, between) for name, asked in facts.items()},
            probe_places={name: len(asked) for name, asked in facts.items()},
            profile=scores.profile(),
        )

    def batches(self) -> Iterable[Batch]:
        generator, size = mask_generator(self.config.evaluation.seed, "evaluation"), evaluation_batch(self.config)
        objective = corruption_objective(self.config, self.task.vocab_size)
        return documents_to_score(self.documents, objective, generator, size, self.device)

    def recall_share(self, model: Network, facts: Sequence[RecallPrompt], between: Callable[[], None]) -> float:
        """Return the share of facts that greedily fill their gap, or continue their text, exactly."""
        tokenizer = self.task.tokenizer
        answers = greedy_answers(
            model,
            [fact.prompt for fact in facts],
            text_vocab_size=tokenizer.vocab_size,
            most=1 + max(fact.length for fact in facts),  # anything longer is wrong anyway
            between=between,
        )

        def text(fact: RecallPrompt, answer: Hypothesis) -> str:
            if fact.continued:
                return tokenizer.decode(answer.tokens[: fact.length])
            return tokenizer.decode(answer.tokens) if answer.finished else ""

        outputs = [text(fact, answer) for fact, answer in zip(facts, answers, strict=True)]
        return exact_match([fact.answer for fact in facts], outputs)


class SpanPipeline(DocumentPipeline):
    def filled_prompt(self, text: str, written: str) -> str:
        spans = iter(written.split(MARK))
        return GAP.sub(lambda gap: f"[{next(spans, '').strip()}]", text)

    def prompt(self, text: str) -> TokenPrompt:
        parts, sentinels = GAP.split(text.strip()), self.config.objective.has_sentinels
        most = len(self.config.special_tokens) - 3 if sentinels else 1  # without pad, start and end
        if not 1 < len(parts) <= most + 1:
            gaps = tr("one gap") if most == 1 else tr("1 to {most} gaps", most=most)
            raise InputError(
                Message(
                    "prompt: this model fills {gaps} in a document; mark what is missing with ___, e.g. {example}",
                    gaps=gaps,
                    example=self.config.task.prompt_example,
                )
            )
        before = [part.rstrip(" ") if self.tokenizer.joins_spaces else part for part in parts[:-1]]
        return corruption_objective(self.config, self.size).gap_prompt(self.tokenizer.encode_all([*before, parts[-1]]))


@dataclass(frozen=True)
class SpanTask(DocumentTask):
    """Documents with their tokenizer, encoded; too short ones are left out."""

    encoded: Mapping[str, Sequence[Tokens]]
    hash_prefix = "documents-"

    @classmethod
    def from_corpus(
        cls, corpus: DocumentCorpus, config: RunConfig, given_tokenizer: AnyTokenizer | None = None
    ) -> Self:
        tokenizer = cls.tokenizer_for(corpus, config, given_tokenizer)
        encoded = {
            split: [tokens for tokens in tokenizer.encode_all(documents) if len(tokens) >= SHORTEST_DOCUMENT]
            for split, documents in corpus.documents.items()
        }
        for split in REQUIRED_SPLITS:
            if not encoded.get(split):
                problem = Message(
                    "corpus {name}: its {split} split has no document of at least {shortest_document} "
                    "tokens, so there is nothing to mask; each line is a document",
                    name=corpus.name,
                    split=split,
                    shortest_document=SHORTEST_DOCUMENT,
                )
                raise InputError(problem)
        return cls(corpus, tokenizer, encoded)

    def overlap_with(self, trained: Self) -> Overlap | None:
        return document_overlap(trained.corpus.documents["train"], self.corpus.documents["validation"], "validation")

    def n_predicted(self, split: str) -> int:
        return sum(map(len, self.encoded[split]))

    def facts(self, config: RunConfig) -> DataFacts:
        documents, scored = self.corpus.documents, {}
        for split, most in (("train", MAX_COUNTED_DOCUMENTS), ("validation", None)):
            objective = corruption_objective(config, self.vocab_size)
            masks, rows = mask_generator(config.evaluation.seed, "evaluation"), evaluation_batch(config)
            scored[split] = list(documents_to_score(self.encoded[split][:most], objective, masks, rows, "cpu"))
        probes = tuple(
            ProbeFacts.create(name=name, description=Message("facts recalled exactly"), n=len(facts), chance=None)
            for name, facts in self.recall_prompts(config).items()
        )
        splits = {
            name: {"documents": len(one)} | count_tokens(documents[name], one) for name, one in self.encoded.items()
        }
        left_out = len(documents["train"]) - len(self.encoded["train"])
        return self._facts(config, scored["train"], scored["validation"], probes, splits=splits, left_out=left_out)

    def batches(self, config: RunConfig, device: torch.device) -> DocumentBatches:
        return DocumentBatches(self.encoded["train"], config, corruption_objective(config, self.vocab_size), device)

    def scorer(self, config: RunConfig, device: torch.device, split: str = "validation") -> DocumentScorer:
        return DocumentScorer(self, config, device, split)

    def sampler(self, config: RunConfig) -> RowSampler:
        """Mask some documents of the validation split as the objective does, and let the model fill them in."""
        size, held_out = self.vocab_size, self.encoded["validation"]
        objective = corruption_objective(config, size)
        some = [held_out[i] for i in spread_indices(held_out)]
        generator = mask_generator(config.seed, "sample")
        cuts = objective.kept_lengths(lengths_of(some), generator)
        asked = [objective.example(document[:cut], generator) for document, cut in zip(some, cuts, strict=True)]
        prompts, missing = [prompt for prompt, _ in asked], [missing for _, missing in asked]
        most = 1 + 2 * max(map(len, missing))

        def decoded(rows: Iterable[Sequence[int]]) -> list[str]:
            return [decode_with_marks(self.tokenizer, row) for row in rows]

        def write(model: Network, between: Callable[[], None]) -> list[dict[str, str]]:
            answers = greedy_answers(model, prompts, text_vocab_size=size, most=most, between=between)
            return [{"text": text} for text in decoded(answer.tokens for answer in answers)]

        read = [prompt.tokens[:-1] if prompt.source is None else prompt.source for prompt in prompts]
        sources, references = (decoded(row.tolist() for row in part) for part in (read, missing))
        return RowSampler(sources, references, write)

    def recall_prompts(self, config: RunConfig) -> dict[str, list[RecallPrompt]]:
        """Return the facts of each probe, without those that do not fit the context."""
        objective, model = corruption_objective(config, self.vocab_size), config.model
        joins = self.tokenizer.joins_spaces
        found: dict[str, list[RecallPrompt]] = {}
        for name, recalls in self.corpus.recall_facts.items():
            prefixes = self.tokenizer.encode_all([r.prefix.rstrip(" ") if joins else r.prefix for r in recalls])
            suffixes = self.tokenizer.encode_all([r.suffix or "" for r in recalls])
            answers = encode_answers(self.tokenizer, [r.answer for r in recalls])
            for recall, prefix, suffix, answer in zip(recalls, prefixes, suffixes, answers, strict=True):
                gap = recall.suffix is not None
                prompt = objective.gap_prompt((prefix, suffix)) if gap else objective.continuation_prompt(prefix)
                if prompt is None:
                    continue
                fact = RecallPrompt(prompt, recall.answer, len(answer), continued=not gap)
                source = () if fact.prompt.source is None else fact.prompt.source
                if len(source) <= model.source_tokens and len(fact.prompt.tokens) + fact.length <= model.context_length:
                    found.setdefault(name, []).append(fact)
        return found
