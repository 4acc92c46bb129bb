"""What a config costs before it is trained: tokens, parameters, FLOPs, memory. No widget, no torch."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.config.schema import RunConfig
from engine.config.sections import ModelConfig
from engine.data.corpora import REGISTRY
from engine.data.documents.registry import DOCUMENTS
from engine.model import size
from engine.model.size import BatchShape, memory_bytes


@dataclass(frozen=True)
class Characters:
    """Different ones of a corpus that had to be read.

    Args:
        text: of it; of sentence pairs, those of the targets, or of both sides where these share a vocabulary; of
            documents, words where words are tokens.
        sources: of the sources, where they have a vocabulary of their own.
    """

    text: int
    sources: int | None = None


@dataclass(frozen=True)
class Vocabulary:
    """Tokens that a model is built for, special ones too.

    Args:
        tokens: that it predicts.
        sources: of the sources, where they have a vocabulary of their own.
        at_most: byte pairs are only learned when it is trained, and a small corpus has fewer than were asked for.
    """

    tokens: int
    sources: int | None = None
    at_most: bool = False

    @property
    def words(self) -> str:
        """`a vocabulary of at most 8,003`."""
        most = "at most " if self.at_most else ""
        if self.sources is None:
            return f"a vocabulary of {most}{self.tokens:,}"
        return f"vocabularies of {most}{self.sources:,} for sources and {self.tokens:,} for targets"


@dataclass(frozen=True)
class Cost:
    """What a design costs before it is measured.

    Args:
        vocabulary: tokens.
        parts: parameters by component; where the vocabulary is an upper bound, so are they and what follows.
        flops: to train on one token.
        memory: bytes, an estimate.
        at_most: rows differ in length, so the estimate is for batches of the longest rows that fit.
    """

    vocabulary: Vocabulary
    parts: Mapping[str, int]
    flops: int
    memory: int
    at_most: bool = False

    @property
    def parameters(self) -> int:
        """All of them."""
        return sum(self.parts.values())


def vocabulary(config: RunConfig, characters: Characters | None = None) -> Vocabulary | None:
    """The vocabulary of a config, None where its corpus has to be read first.

    Args:
        config: not yet resolved.
        characters: of a corpus that was read.
    """
    model, data = config.model, config.data
    entry = REGISTRY.get(data.corpus)
    if characters is None and entry is not None and entry.characters is not None:
        characters = Characters(entry.characters)
    documents, bound = DOCUMENTS.get(data.corpus), False
    known = documents.vocabulary if documents is not None and data.tokenizer != "bpe" else None
    if characters is None and known is not None:
        text, bound = known(data)[data.tokenizer]
        characters = Characters(text)
    elif data.tokenizer == "words" and not config.on_documents:
        characters = None  # how many words there are, no number of characters says
    if data.tokenizer == "bpe":
        characters = Characters(data.bpe_size, data.bpe_size)
    tokens = model.vocab_size or (config.needed_tokens(characters.text) if characters else None)
    if tokens is None:
        return None
    if data.shared_vocabulary or config.on_documents:
        learned = data.tokenizer == "bpe" or bound
        return Vocabulary(tokens, at_most=learned and model.vocab_size is None)
    found = config.needed_tokens(characters.sources) if characters and characters.sources else None
    sources = model.source_vocab_size or found
    if sources is None:
        return None
    learned = model.vocab_size is None or model.source_vocab_size is None
    return Vocabulary(tokens, sources, at_most=data.tokenizer == "bpe" and learned)


def cost(config: RunConfig, characters: Characters | None = None) -> Cost | None:
    """What a config costs, None where its corpus has to be read first; arguments as `vocabulary`'s."""
    known = vocabulary(config, characters)
    if known is None:
        return None
    model = _with_sources(config.model, known.sources)
    config = config.model_copy(update={"model": model})
    parts = size.parameters(model, known.tokens)
    flops = size.flops_per_token(model, known.tokens, BatchShape.of(config).rows)
    return Cost(known, parts, flops, memory_bytes(config, known.tokens), at_most=config.on_rows)


def _with_sources(model: ModelConfig, sources: int | None) -> ModelConfig:
    return model if sources is None else model.model_copy(update={"source_vocab_size": sources})
