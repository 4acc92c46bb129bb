"""What runs on documents and runs on questions about them share: a corpus, its tokenizer, what data.json says of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from engine.config.schema import Rows, RunConfig
from engine.config.toml import resolved
from engine.data.documents.corpus import DocumentCorpus
from engine.data.documents.registry import DOCUMENTS, load_documents
from engine.data.objectives import IGNORED, Batch
from engine.data.padding import Tokens
from engine.data.tokenizers import AnyTokenizer, BpeTokenizer, CharacterTokenizer, PairTokenizer, WordTokenizer, bpe_of
from engine.errors import InputError
from engine.evaluation.baselines import Predicted, pairs_bigram_loss, pairs_unigram_loss
from engine.lints import Lint
from engine.training.task import require_vocabulary

DocumentTokenizer = CharacterTokenizer | BpeTokenizer | WordTokenizer


def _bpe(corpus: DocumentCorpus, config: RunConfig) -> BpeTokenizer:
    asked = corpus.questions.get("train", ())
    learned = [*corpus.documents.get("train", ()), *(q.text for q in asked), *(q.answer or "" for q in asked)]
    return bpe_of(learned, config.data.bpe_size)


# Characters and words are all there are in any split; byte pairs are learned from the training splits.
TOKENIZERS: dict[str, Callable[[DocumentCorpus, RunConfig], DocumentTokenizer]] = {
    "characters": lambda corpus, config: CharacterTokenizer.of(corpus.texts()),
    "words": lambda corpus, config: WordTokenizer.of(corpus.texts()),
    "bpe": _bpe,
}


@dataclass(frozen=True)
class OnDocuments:
    """A corpus of documents with its tokenizer, which is the same whether documents or questions are trained on."""

    corpus: DocumentCorpus
    tokenizer: DocumentTokenizer

    @classmethod
    def opened(
        cls, config: RunConfig, data_dir: Path | None, given: AnyTokenizer | None
    ) -> tuple[DocumentCorpus, DocumentTokenizer]:
        """Corpus and tokenizer of a config.

        Args:
            config: of the run.
            data_dir: where named corpora are looked for first.
            given: the tokenizer of the run that this one starts from, which is used then.

        Raises:
            InputError: no such corpus, something wrong with it, or text that the tokenizer cannot encode.
        """
        corpus = load_documents(config.data, data_dir)
        if given is None:
            return corpus, TOKENIZERS[config.data.tokenizer](corpus, config)
        return corpus, _taken_over(given, corpus, config)

    @property
    def name(self) -> str:
        """The corpus's."""
        return self.corpus.name

    def found_again(self, config: RunConfig) -> str:
        """A registered name, or the full path."""
        return config.data.corpus if config.data.corpus in DOCUMENTS else self.corpus.source

    @cached_property
    def sha256(self) -> dict[str, str]:
        """The hash of each part."""
        return self.corpus.sha256

    @property
    def vocab_size(self) -> int:
        """Tokens of the text."""
        return self.tokenizer.vocab_size

    def lints(self, config: RunConfig) -> list[Lint]:
        """See `Task`."""
        return []

    @staticmethod
    def encoded_answers(tokenizer: DocumentTokenizer, answers: Sequence[str]) -> list[Tokens]:
        """Answers as they stand in a document: byte pairs hold the space before a word, other tokens do not."""
        space = " " if tokenizer.kind == BpeTokenizer.kind else ""
        return tokenizer.encode_all([space + answer for answer in answers])

    def _resolved(self, config: RunConfig, where: str, threads: int, steps: int, train_tokens: int) -> RunConfig:
        needed = require_vocabulary(config, self.vocab_size, self.tokenizer.kind)
        return resolved(config, where, vocab_size=needed, threads=threads, train_tokens=train_tokens, rows=Rows(steps))

    def _facts(self, config: RunConfig, train: Sequence[Batch], held_out: Sequence[Batch]) -> dict[str, Any]:
        """What data.json says in either case; the counting lines are of what these batches ask."""
        size = config.needed_tokens(self.vocab_size)
        known, asked = _predicted(train), _predicted(held_out)
        return {
            "corpus": self.corpus.version,
            "source": self.corpus.source,
            "notes": list(self.corpus.notes),
            "sha256": self.sha256,
            "vocabulary": self.vocab_size,
            "tokenizer_sha256": self.tokenizer.sha256,
            "floor": None,
            "plausible": None,
            "unigram": pairs_unigram_loss(known[1], asked[1], size),
            "bigram": pairs_bigram_loss(known, asked, size),
        }


def _taken_over(given: AnyTokenizer, corpus: DocumentCorpus, config: RunConfig) -> DocumentTokenizer:
    """The tokenizer of another run, if it can encode these documents and questions."""
    if isinstance(given, PairTokenizer) or given.kind != config.data.tokenizer:
        raise InputError(
            f"train.init_from: data.tokenizer is '{config.data.tokenizer}', and that run's tokenizer is of kind "
            f"'{given.kind}': its weights mean other tokens"
        )
    try:
        given.encode_all(list(corpus.texts()))
    except InputError as error:
        raise InputError(f"corpus {corpus.name}: for a run that starts from another one, {error}") from None
    return given


def counts_of(texts: Sequence[str], encoded: Sequence[Tokens]) -> dict[str, int]:
    """What data.json says of the size of some texts."""
    return {"characters": sum(map(len, texts)), "tokens": sum(map(len, encoded))}


def _predicted(batches: Sequence[Batch]) -> Predicted:
    """All that is scored in some batches: the token that each stands at, and the target."""
    scored = [batch.targets != IGNORED for batch in batches]
    tokens, targets = (
        np.concatenate([getattr(batch, part)[which].numpy() for batch, which in zip(batches, scored, strict=True)])
        for part in ("tokens", "targets")
    )
    return tokens, targets
