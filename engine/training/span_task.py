"""A run on documents, parts of which are masked: batches of like length, exact scores, facts recalled, examples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from engine.config.schema import RunConfig
from engine.config.sections import SHORTEST_DOCUMENT
from engine.data.corruption import DocumentBatches, scored_documents
from engine.data.documents.corpus import Recall
from engine.data.loader import mask_generator
from engine.data.objectives import Batch, SpanCorruption, span_corruption
from engine.data.overlap import Overlap, document_overlap
from engine.data.padding import Tokens
from engine.data.spans import at_least
from engine.data.tokenizers import AnyTokenizer, BpeTokenizer
from engine.errors import InputError
from engine.evaluation.scorers import DocumentScorer, Fact, evaluation_batch
from engine.generation.answering import continued_prompt, recall_prompt
from engine.generation.samples import DocumentSampler
from engine.training.on_documents import OnDocuments, counts_of
from engine.training.task import Task

COUNTED = 10_000  # training documents that the counting lines are learned from
NEEDED = ("train", "validation")


@dataclass(frozen=True)
class SpanTask(OnDocuments):
    """Documents with their tokenizer, encoded; too short ones are left out."""

    encoded: Mapping[str, Sequence[Tokens]]

    @classmethod
    def load(cls, config: RunConfig, data_dir: Path | None, given: AnyTokenizer | None = None) -> "SpanTask":
        """Corpus and tokens of a config.

        Args:
            config: of the run.
            data_dir: where named corpora are looked for first.
            given: the tokenizer of the run that this one starts from; else the corpus gets one of its own.

        Raises:
            InputError: no such corpus, something wrong with it, or no document is long enough.
        """
        corpus, tokenizer = cls.opened(config, data_dir, given)
        encoded = {split: at_least(tokenizer.encode_all(documents)) for split, documents in corpus.documents.items()}
        for split in NEEDED:
            if not encoded.get(split):
                raise InputError(
                    f"corpus {corpus.name}: its {split} split has no document of at least {SHORTEST_DOCUMENT} tokens, "
                    "of which something could be masked; each line is a document"
                )
        return cls(corpus, tokenizer, encoded)

    @cached_property
    def overlap(self) -> Overlap | None:
        """See `Task`."""
        return self.seen_by(self)

    def seen_by(self, trained: Task) -> Overlap | None:
        """See `Task`."""
        if not isinstance(trained, SpanTask):
            return None
        return document_overlap(trained.corpus.documents["train"], self.corpus.documents["validation"], "validation")

    @cached_property
    def train_tokens(self) -> int:
        """Of the training documents."""
        return sum(map(len, self.encoded["train"]))

    @property
    def validation_tokens(self) -> int:
        """Of the validation documents."""
        return sum(map(len, self.encoded["validation"]))

    def resolved(self, config: RunConfig, where: str, threads: int) -> RunConfig:
        """See `Task`."""
        steps = self.batches(config, torch.device("cpu")).steps_per_epoch
        return self._resolved(config, where, threads, steps, self.train_tokens)

    def facts(self, config: RunConfig) -> dict[str, Any]:
        """The content of data.json."""
        train = self._scored("train", config, COUNTED)
        documents = self.corpus.documents
        return self._facts(config, train, self._scored("validation", config)) | {
            "splits": {
                split: {"documents": len(found)} | counts_of(documents[split], found)
                for split, found in self.encoded.items()
            },
            "left_out": len(documents["train"]) - len(self.encoded["train"]),
            "padding": round(self.batches(config, torch.device("cpu")).padding, 4),
            "overlap": self.overlap and self.overlap.to_json(),
            "probes": [
                {"name": name, "description": "facts recalled exactly", "n": len(facts), "chance": None}
                for name, facts in self.recalls(config).items()
            ],
        }

    def batches(self, config: RunConfig, device: torch.device) -> DocumentBatches:
        """Documents of like length, corrupted."""
        return DocumentBatches(self.encoded["train"], config, span_corruption(config, self.vocab_size), device)

    def scorer(self, config: RunConfig, device: torch.device, split: str = "validation") -> DocumentScorer:
        """Of a split, by default the validation one."""
        return DocumentScorer(config, self.encoded[split], self.recalls(config), self.tokenizer, device)

    def shower(self, config: RunConfig) -> DocumentSampler:
        """Some held-out documents, what is masked in them written."""
        return DocumentSampler(config, self.tokenizer, self.encoded["validation"])

    def recalls(self, config: RunConfig) -> dict[str, list[Fact]]:
        """The facts of each probe, without those that the context has no room for."""
        found = {name: self._facts_of(recalls, config) for name, recalls in self.corpus.recalls.items()}
        return {name: facts for name, facts in found.items() if facts}

    def _facts_of(self, recalls: Sequence[Recall], config: RunConfig) -> list[Fact]:
        objective, model = span_corruption(config, self.vocab_size), config.model
        joins = self.tokenizer.kind == BpeTokenizer.kind  # the space before an answer is a part of its first token
        prefixes = self.tokenizer.encode_all([r.prefix.rstrip(" ") if joins else r.prefix for r in recalls])
        suffixes = self.tokenizer.encode_all([r.suffix or "" for r in recalls])
        answers = self.encoded_answers(self.tokenizer, [r.answer for r in recalls])
        facts = []
        for recall, prefix, suffix, answer in zip(recalls, prefixes, suffixes, answers, strict=True):
            if recall.suffix is not None:
                facts.append(Fact(recall_prompt(objective, prefix, suffix), recall.answer, len(answer)))
            elif isinstance(objective, SpanCorruption):  # one that predicts what it reads
                facts.append(Fact(continued_prompt(objective, prefix), recall.answer, len(answer), continued=True))
        return [
            fact
            for fact in facts
            if len(fact.prompt.tokens) + fact.length <= model.context_length
            and (fact.prompt.source is None or len(fact.prompt.source) <= model.source_tokens)
        ]

    def _scored(self, split: str, config: RunConfig, most: int | None = None) -> list[Batch]:
        """What is asked of a split, on the CPU."""
        objective, generator = (
            span_corruption(config, self.vocab_size),
            mask_generator(config.evaluation.seed, "evaluation"),
        )
        return list(scored_documents(self.encoded[split][:most], objective, generator, evaluation_batch(config), "cpu"))
