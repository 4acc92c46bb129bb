"""The task of classifying texts: tokens learned from the training texts, and what readers of words alone get right."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from engine.base.errors import InputError
from engine.base.language import Message
from engine.config.lints import Lint
from engine.config.schema import RowFacts, RunConfig
from engine.config.sections import UNK
from engine.config.toml import resolve_config
from engine.data.baselines import class_prior_loss, naive_bayes
from engine.data.labelled.by_path import read_labelled
from engine.data.labelled.corpus import LabelledCorpus, LabelledTexts
from engine.data.objectives import Classification
from engine.data.overlap import Overlap, labelled_overlap
from engine.data.padding import Tokens
from engine.data.rows import LabelledBatches
from engine.data.tokenizers import AnyTokenizer, CharacterTokenizer, Tokenizer, WordTokenizer, cached_bpe
from engine.generation.classifying import apply_case, encode_texts
from engine.runs.records import BestReaderScores, DataFacts, MajorityFacts, ProbeFacts
from engine.runs.verdict import Verdict
from engine.tasks.samples import RowSampler, class_sampler
from engine.tasks.scorers import ClassScorer
from engine.tasks.task import OwnFiles, Task, require_min_vocab_size, require_tokenizer_kind


@dataclass(frozen=True)
class ClassificationTask(Task):
    corpus: LabelledCorpus
    tokenizer: Tokenizer
    encoded: Mapping[str, Sequence[Tokens]]  # by split, cut to the context
    corpus_class = LabelledCorpus

    @classmethod
    def from_corpus(
        cls, corpus: LabelledCorpus, config: RunConfig, given_tokenizer: AnyTokenizer | None = None
    ) -> Self:
        tokenizer = _tokenizer(corpus, config, given_tokenizer)
        encoded = {split: encode_texts(tokenizer, config, found.texts) for split, found in corpus.splits.items()}
        return cls(corpus, tokenizer, encoded)

    @classmethod
    def user_files_scorer(cls, user_files: OwnFiles) -> ClassScorer:
        classes, tokenizer = user_files.facts.classes, user_files.tokenizer.target
        found = read_labelled(Path(user_files.files["csv"]).expanduser(), classes, user_files.reading)
        encoded = encode_texts(tokenizer, user_files.config, found.texts)
        objective = Classification(user_files.config, tokenizer.vocab_size)
        seen = cls.user_files_overlap(cls.reload_training_split(user_files), found)
        return ClassScorer(
            user_files.config, encoded, found.classes, classes, (), objective, user_files.device, True, seen
        )

    def data_verdicts(self) -> list[Verdict]:
        return [*super().data_verdicts(), *(one.verdict for one in self.corpus.shortcuts)]

    def lints(self, config: RunConfig) -> Iterator[Lint]:
        yield from super().lints(config)
        yield from (Lint("data.corpus", note) for note in self.corpus.notes if not self.corpus.reader_accuracies)

    def resolve_config(self, config: RunConfig, where: str, threads: int) -> RunConfig:
        if self.corpus.refusal:
            raise InputError(self.corpus.refusal)
        n, wanted = len(self.corpus.classes), config.model.classes
        if wanted not in (None, n):
            problem = Message(
                "model.classes = {wanted}: corpus {name} has {n} classes; leave it out",
                wanted=wanted,
                name=self.corpus.name,
                n=n,
            )
            raise InputError(problem)
        steps = self.batches(config, torch.device("cpu")).steps_per_epoch
        needed, texts = require_min_vocab_size(config, self.vocab_size, self.tokenizer.kind), self.n_predicted("train")
        rows = RowFacts(steps, classes=n)
        return resolve_config(config, where, vocab_size=needed, threads=threads, train_tokens=texts, rows=rows)

    def rows(self, split: str) -> Iterator[dict[str, Any]]:
        names, texts = self.corpus.classes, self.corpus.splits[split]
        found = zip(texts.texts, texts.classes, self.encoded[split], strict=True)
        return ({"text": text, "label": names[i], "class": i, "tokens": tokens} for text, i, tokens in found)

    def n_predicted(self, split: str) -> int:
        return len(self.encoded[split])

    @staticmethod
    def overlap_between(train: LabelledTexts, held_out: LabelledTexts, split: str) -> Overlap | None:
        return labelled_overlap(train.texts, held_out.texts, split)

    def facts(self, config: RunConfig) -> DataFacts:
        corpus, n = self.corpus, len(self.corpus.classes)
        train, held_out = (self._class_ids(split) for split in ("train", "validation"))
        answer, right, of = corpus.majority_baseline("validation")
        words = self.bag_of_words_accuracy("validation")
        reader = corpus.reader_accuracies.get("validation")
        ordered = int(np.isin(held_out, corpus.order_only_classes).sum())
        # A text's first word has no space before it, so a bag of such tokens reveals who is named first.
        unordered = not self.tokenizer.joins_spaces or self.records < 3
        probes: tuple[ProbeFacts, ...] = ()
        if reader is not None and ordered:
            said = Message("texts whose class only word order reveals; chance: the best reader that ignores order")
            if not unordered:
                said = Message("texts whose class only word order reveals")
            # By one constant answer.
            guess = max(np.bincount(held_out[np.isin(held_out, corpus.order_only_classes)])) / ordered
            best = reader.chance if self.records < 3 else max(reader.chance, float(guess))
            chance = round(best, 6) if unordered else None
            probes = (ProbeFacts.create(name="order", description=said, n=ordered, chance=chance),)
        return DataFacts.create(
            corpus=corpus.version,
            source=corpus.source,
            notes=corpus.all_notes,
            reading=corpus.reading.version,
            encodings=corpus.reading.findings.encodings,
            sha256=corpus.sha256,
            splits={split: self._counts(config, split) for split in corpus.splits},
            padding=round(self.batches(config, torch.device("cpu")).padding_share, 4),
            vocabulary=self.vocab_size,
            tokenizer_sha256=self.tokenizer.sha256,
            overlap=self.overlap_facts,
            floor=None,
            plausible=None,
            unigram=class_prior_loss(train, held_out, n),
            majority=MajorityFacts.create(answer=answer, right=right, of=of, score="accuracy"),
            classes=corpus.classes,
            bag_of_words=words,
            best_reader=None
            if reader is None
            else BestReaderScores.create(
                accuracy=reader.best, expected=reader.expected, unordered=reader.unordered if unordered else None
            ),
            probes=probes,
        )

    def bag_of_words_accuracy(self, split: str) -> float:
        """Return the accuracy of naive Bayes on the words of a split, without case, whatever the tokens are."""
        texts = {name: [text.casefold() for text in self.corpus.splits[name].texts] for name in ("train", split)}
        words = WordTokenizer.from_texts(texts["train"])
        train, held_out = (
            [ids[ids >= 0] for ids in words.encode_with_unknown(texts[name], -1)] for name in ("train", split)
        )
        found = naive_bayes(train, self._class_ids("train"), held_out, words.vocab_size, len(self.corpus.classes))
        return float((found == self._class_ids(split)).mean())

    def batches(self, config: RunConfig, device: torch.device) -> LabelledBatches:
        objective = Classification(config, self.vocab_size)
        return LabelledBatches(self.encoded["train"], self.corpus.splits["train"].classes, config, objective, device)

    def scorer(self, config: RunConfig, device: torch.device, split: str = "validation") -> ClassScorer:
        corpus, probed = self.corpus, self.corpus.order_only_classes if self.corpus.reader_accuracies else ()
        truth, objective = corpus.splits[split].classes, Classification(config, self.vocab_size)
        return ClassScorer(config, self.encoded[split], truth, corpus.classes, probed, objective, device)

    def sampler(self, config: RunConfig) -> RowSampler:
        held_out = self.corpus.splits["validation"]
        return class_sampler(config, self.tokenizer, held_out.texts, held_out.classes, self.corpus.classes)

    def _class_ids(self, split: str) -> NDArray[np.int64]:
        return np.array(self.corpus.splits[split].classes, dtype=np.int64)

    def _counts(self, config: RunConfig, split: str) -> dict[str, int]:
        encoded, context = self.encoded[split], config.model.context_length
        unknown = self.vocab_size + config.special_tokens.index(UNK)
        return {
            "texts": len(encoded),
            "characters": sum(map(len, self.corpus.splits[split].texts)),
            "tokens": sum(map(len, encoded)),
            "unknown": sum(int((tokens == unknown).sum()) for tokens in encoded),
            "at_context": sum(len(tokens) == context for tokens in encoded),
        }


def _tokenizer(corpus: LabelledCorpus, config: RunConfig, given: AnyTokenizer | None) -> Tokenizer:
    """Return the given tokenizer, or one of the training texts alone."""
    wanted, texts = config.data.tokenizer, apply_case(config, corpus.splits["train"].texts)
    if given is not None:
        require_tokenizer_kind(given, config)
        return given.target
    made: Mapping[str, Any] = {
        "bpe": lambda: cached_bpe(texts, config.data.bpe_size),
        "words": lambda: WordTokenizer.from_frequent(texts),
        "characters": lambda: CharacterTokenizer.from_texts(texts),
    }
    found: Tokenizer = made[wanted]()
    return found
