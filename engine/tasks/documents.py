"""What the tasks on documents share: a tokenizer, answers, the facts of their data."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from engine.base.errors import InputError
from engine.base.language import Message
from engine.config.schema import RunConfig
from engine.data.baselines import TokenPairs, token_pair_losses
from engine.data.documents.corpus import DocumentCorpus
from engine.data.objectives import IGNORED, Batch
from engine.data.padding import Tokens
from engine.data.tokenizers import AnyTokenizer, CharacterTokenizer, Tokenizer, WordTokenizer, cached_bpe
from engine.runs.records import DataFacts, ProbeFacts
from engine.tasks.task import RowTask, require_tokenizer_kind

MARK = "⁇"  # shown for a mask, and a sentinel
REQUIRED_SPLITS = ("train", "validation")


@dataclass(frozen=True)
class DocumentTask(RowTask):
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
            **self.corpus_facts(),
            vocabulary=self.vocab_size,
            tokenizer_sha256=self.tokenizer.sha256,
            floor=None,
            plausible=None,
            **token_pair_losses(token_pairs(train), token_pairs(held_out), size),
            **more,
            padding=self.padding_share(config),
            overlap=self.overlap_facts,
            probes=probes,
        )


def encode_answers(tokenizer: Tokenizer, answers: Sequence[str]) -> list[Tokens]:
    """Encode answers as they stand in a document: byte pairs hold the space before a word, other tokens do not."""
    space = " " if tokenizer.joins_spaces else ""
    return tokenizer.encode_all([space + answer for answer in answers])


def decode_with_marks(tokenizer: Tokenizer, tokens: Sequence[int]) -> str:
    """Decode tokens, showing each special one as a mark."""
    size = tokenizer.vocab_size
    runs = groupby(tokens, key=lambda token: token < size)
    return "".join(tokenizer.decode(run) if is_text else MARK * len(list(run)) for is_text, run in runs)


def count_tokens(texts: Sequence[str], encoded: Sequence[Tokens]) -> dict[str, int]:
    return {"characters": sum(map(len, texts)), "tokens": sum(map(len, encoded))}


def token_pairs(batches: Sequence[Batch]) -> TokenPairs:
    tokens = [batch.tokens[batch.targets != IGNORED].numpy() for batch in batches]
    targets = [batch.targets[batch.targets != IGNORED].numpy() for batch in batches]
    return np.concatenate(tokens), np.concatenate(targets)
