"""Tasks on documents: recall masked parts, or answer questions about them."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch

from engine.base.errors import InputError
from engine.base.language import Message
from engine.config.schema import RowFacts, RunConfig
from engine.config.sections import SHORTEST_DOCUMENT
from engine.config.toml import resolve_config
from engine.data.baselines import TokenPairs, token_pair_losses
from engine.data.documents.corpus import DocumentCorpus
from engine.data.loader import mask_generator
from engine.data.objectives import IGNORED, Batch, QuestionAnswer, corruption_objective
from engine.data.overlap import Overlap, document_overlap, question_overlap
from engine.data.padding import Tokens
from engine.data.rows import DocumentBatches, EncodedPairs, QuestionBatches, documents_to_score, questions_to_score
from engine.data.tokenizers import AnyTokenizer, CharacterTokenizer, Tokenizer, WordTokenizer, cached_bpe
from engine.runs.records import DataFacts, MajorityFacts, ProbeFacts
from engine.tasks.samples import RowSampler, document_sampler, question_sampler
from engine.tasks.scorers import AnswerScorer, DocumentScorer, RecallPrompt, evaluation_batch
from engine.tasks.task import Task, require_min_vocab_size, require_tokenizer_kind

MAX_COUNTED_DOCUMENTS = 10_000  # training documents for the unigram and bigram losses
REQUIRED_SPLITS = ("train", "validation")


@dataclass(frozen=True)
class _DocumentTask(Task):
    """A corpus of documents with its tokenizer, which is the same whether documents or questions are trained on."""

    corpus: DocumentCorpus
    tokenizer: Tokenizer
    corpus_class = DocumentCorpus

    @staticmethod
    def tokenizer_for(corpus: DocumentCorpus, config: RunConfig, given: AnyTokenizer | None) -> Tokenizer:
        if given is None and config.data.tokenizer == "bpe":  # learned from the training splits
            asked = corpus.questions.get("train", ())
            learned = [*corpus.documents.get("train", ()), *(q.text for q in asked), *(q.answer or "" for q in asked)]
            return cached_bpe(learned, config.data.bpe_size)
        if given is None:  # the characters or words of all splits
            kind = WordTokenizer if config.data.tokenizer == "words" else CharacterTokenizer
            return kind.from_texts(corpus.texts())
        require_tokenizer_kind(given, config)
        try:
            given.target.encode_all(list(corpus.texts()))
        except InputError as error:
            problem = Message(
                "corpus {name}: cannot be encoded with the parent's tokenizer: {error}", name=corpus.name, error=error
            )
            raise InputError(problem) from None
        return given.target

    def resolve_config(self, config: RunConfig, where: str, threads: int) -> RunConfig:
        rows = RowFacts(self.batches(config, torch.device("cpu")).steps_per_epoch)
        needed, tokens = require_min_vocab_size(config, self.vocab_size, self.tokenizer.kind), self.n_predicted("train")
        return resolve_config(config, where, vocab_size=needed, threads=threads, train_tokens=tokens, rows=rows)

    @abstractmethod
    def batches(self, config: RunConfig, device: torch.device) -> DocumentBatches | QuestionBatches:
        """Return the training batches, of rows of any length."""

    def _facts(
        self,
        config: RunConfig,
        train: Sequence[Batch],
        held_out: Sequence[Batch],
        probes: Sequence[ProbeFacts] = (),
        **more: Any,
    ) -> DataFacts:
        """Return what data.json says of either kind; the count-based losses are those of these batches' targets."""
        size = config.min_vocab_size(self.vocab_size)
        return DataFacts.create(
            corpus=self.corpus.version,
            source=self.corpus.source,
            notes=self.corpus.all_notes,
            reading=self.corpus.reading.version,
            encodings=self.corpus.reading.findings.encodings,
            sha256=self.corpus.sha256,
            vocabulary=self.vocab_size,
            tokenizer_sha256=self.tokenizer.sha256,
            floor=None,
            plausible=None,
            **token_pair_losses(_token_pairs(train), _token_pairs(held_out), size),
            **more,
            padding=round(self.batches(config, torch.device("cpu")).padding_share, 4),
            overlap=self.overlap_facts,
            probes=probes,
        )


@dataclass(frozen=True)
class SpanTask(_DocumentTask):
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
        splits = {name: {"documents": len(one)} | _counts(documents[name], one) for name, one in self.encoded.items()}
        left_out = len(documents["train"]) - len(self.encoded["train"])
        return self._facts(config, scored["train"], scored["validation"], probes, splits=splits, left_out=left_out)

    def batches(self, config: RunConfig, device: torch.device) -> DocumentBatches:
        return DocumentBatches(self.encoded["train"], config, corruption_objective(config, self.vocab_size), device)

    def scorer(self, config: RunConfig, device: torch.device, split: str = "validation") -> DocumentScorer:
        return DocumentScorer(config, self.encoded[split], self.recall_prompts(config), self.tokenizer, device)

    def sampler(self, config: RunConfig) -> RowSampler:
        return document_sampler(config, self.tokenizer, self.encoded["validation"])

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


@dataclass(frozen=True)
class QuestionTask(_DocumentTask):
    """Questions about documents with the documents' tokenizer; those with known answers are encoded."""

    encoded: Mapping[str, EncodedPairs]
    hash_prefix = "questions-"

    @classmethod
    def from_corpus(
        cls, corpus: DocumentCorpus, config: RunConfig, given_tokenizer: AnyTokenizer | None = None
    ) -> Self:
        tokenizer = cls.tokenizer_for(corpus, config, given_tokenizer)
        encoded = {}
        for split, questions in corpus.questions.items():
            told = [(q.text, q.answer) for q in questions if q.answer is not None]
            asked, answers = ([pair[side] for pair in told] for side in (0, 1))
            encoded[split] = EncodedPairs(tokenizer.encode_all(asked), encode_answers(tokenizer, answers))
        for split in REQUIRED_SPLITS:
            if split not in encoded or not len(encoded[split]):
                problem = Message(
                    "corpus {name}: no {split} questions with answers; use a folder with documents.txt, "
                    "train.tsv and validation.tsv (question, tab, answer), or objective.kind = "
                    "'span-corruption', which needs none",
                    name=corpus.name,
                    split=split,
                )
                raise InputError(problem)
        # Every question and answer must fit: a truncated one could not be answered.
        objective, room = QuestionAnswer(config, tokenizer.vocab_size), {"context_length": config.model.context_length}
        if config.has_source:
            room = {"source_length": config.model.source_tokens} | room
        for split, pairs in encoded.items():
            if not len(pairs):
                continue
            sides = objective.side_lengths(pairs.sources, pairs.targets).max(0).tolist()
            for (key, most), longest in zip(room.items(), sides, strict=True):
                if longest > most:
                    problem = Message(
                        "corpus {name}: the {split} questions and answers need model.{key} = {longest}, but it is "
                        "{most}; --set model.{key}={longest}",
                        name=corpus.name,
                        split=split,
                        longest=longest,
                        key=key,
                        most=most,
                    )
                    raise InputError(problem)
        return cls(corpus, tokenizer, encoded)

    def overlap_with(self, trained: Self) -> Overlap | None:
        # Only questions count: the documents are meant to contain the answers.
        known, asked = (t.corpus.questions[name] for t, name in ((trained, "train"), (self, "validation")))
        return question_overlap([q.text for q in known], [q.text for q in asked], "validation")

    @cached_property
    def longest_answer_tokens(self) -> int:
        """Tokens of the longest known answer, its end included."""
        return 1 + max(len(answer) for asked in self.encoded.values() for answer in asked.targets)

    def n_predicted(self, split: str) -> int:
        asked = self.encoded[split]
        if split == "train":
            return sum(len(answer) + 2 for answer in asked.targets)  # with the marks around them
        return sum(map(len, asked.sources)) + sum(map(len, asked.targets))

    def facts(self, config: RunConfig) -> DataFacts:
        # `majority` is what always giving the most frequent answer scores on the validation split.
        answer, right, of = self.corpus.majority_baseline("validation")
        objective, rows = QuestionAnswer(config, self.vocab_size), evaluation_batch(config)
        asked = (self.encoded[split] for split in REQUIRED_SPLITS)
        train, held_out = (list(questions_to_score(pairs, objective, rows, "cpu")) for pairs in asked)
        splits = {
            split: {"questions": len(questions)}
            | _counts([q.answer for q in questions if q.answer is not None], self.encoded[split].targets)
            for split, questions in self.corpus.questions.items()
        }
        majority = MajorityFacts.create(answer=answer, right=right, of=of)
        return self._facts(config, train, held_out, splits=splits, majority=majority)

    def batches(self, config: RunConfig, device: torch.device) -> QuestionBatches:
        return QuestionBatches(self.encoded["train"], config, QuestionAnswer(config, self.vocab_size), device)

    def scorer(self, config: RunConfig, device: torch.device, split: str = "validation") -> AnswerScorer:
        questions, encoded = self.corpus.questions[split], self.encoded[split]
        most, majority = self.longest_answer_tokens, self.corpus.majority_baseline(split)
        return AnswerScorer(config, questions, encoded, self.tokenizer, device, most, majority)

    def sampler(self, config: RunConfig) -> RowSampler:
        return question_sampler(config, self.tokenizer, self.corpus.questions["validation"], self.longest_answer_tokens)


def encode_answers(tokenizer: Tokenizer, answers: Sequence[str]) -> list[Tokens]:
    """Encode answers as they stand in a document: byte pairs hold the space before a word, other tokens do not."""
    space = " " if tokenizer.joins_spaces else ""
    return tokenizer.encode_all([space + answer for answer in answers])


def _counts(texts: Sequence[str], encoded: Sequence[Tokens]) -> dict[str, int]:
    return {"characters": sum(map(len, texts)), "tokens": sum(map(len, encoded))}


def _token_pairs(batches: Sequence[Batch]) -> TokenPairs:
    tokens = [batch.tokens[batch.targets != IGNORED].numpy() for batch in batches]
    targets = [batch.targets[batch.targets != IGNORED].numpy() for batch in batches]
    return np.concatenate(tokens), np.concatenate(targets)
