"""A task: a corpus with its tokenizer, encoded, and what follows from them. `tasks.make_task` chooses the kind."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, Self

import torch
from torch import nn

from engine.config.schema import RunConfig
from engine.data.corpora import TextCorpus
from engine.data.documents.corpus import DocumentCorpus
from engine.data.loader import Examples
from engine.data.overlap import Overlap
from engine.data.parallel.pairs import ParallelCorpus
from engine.data.tokenizers import AnyTokenizer, CharacterTokenizer
from engine.errors import InputError
from engine.lints import Lint
from engine.model.transformer import Network


class Scorer(Protocol):
    """Scores the validation split."""

    def record(self, model: nn.Module, between: Callable[[], None] = ...) -> dict[str, Any]:
        """Return the scores as fields of a validation record; `between` is called between batches and may raise."""
        ...

    def outputs(self) -> dict[str, Any] | None:
        """Return the texts generated for the last record, for translations.json; None where none are."""
        ...

    def predictions(self) -> str | None:
        """Return the answers of the last record, one a line, for predictions.txt; None without questions."""
        ...


class SampleCallback(Protocol):
    """Generates a sample at a step of training."""

    def sample(self, model: Network, step: int, between: Callable[[], None] = ...) -> dict[str, Any]:
        """Return a record of samples.jsonl."""
        ...


class Task(ABC):
    """A corpus with its tokenizer, encoded, and what follows from them."""

    corpus: TextCorpus | ParallelCorpus | DocumentCorpus
    tokenizer: AnyTokenizer

    @classmethod
    @abstractmethod
    def load(cls, config: RunConfig, data_dir: Path | None, given: AnyTokenizer | None = None) -> Self:
        """Load and encode the corpus of a config.

        Args:
            config: of the run.
            data_dir: where named corpora are looked for first.
            given: the tokenizer of the run that this one starts from; without one, the corpus gets its own.

        Raises:
            InputError: no such corpus, something wrong with it, too little of it for the context, or text that the
                given tokenizer cannot encode.
        """

    @property
    def name(self) -> str:
        return self.corpus.name

    @cached_property
    def sha256(self) -> dict[str, str]:
        """Hash of each split."""
        return self.corpus.sha256

    @property
    def vocab_size(self) -> int:
        """Tokens of the text that is predicted, without special ones."""
        return self.tokenizer.vocab_size

    @property
    @abstractmethod
    def train_tokens(self) -> int:
        """Tokens of the training split, of what is predicted."""

    @property
    @abstractmethod
    def validation_tokens(self) -> int:
        """Tokens of the validation split, of what is predicted."""

    @cached_property
    def overlap(self) -> Overlap | None:
        """How much of its own validation split it trains on."""
        return self.seen_by(self)

    @abstractmethod
    def seen_by(self, trained: "Task") -> Overlap | None:
        """Return how much of its validation split another task trains on; None if the two are of different kinds."""

    @abstractmethod
    def portable_corpus(self, config: RunConfig) -> str:
        """Return a `data.corpus` that means the same from any folder: a registered name or an absolute path."""

    @abstractmethod
    def resolved(self, config: RunConfig, where: str, threads: int) -> RunConfig:
        """Return the config with vocabulary, threads and durations filled in; raise `InputError` if they do not fit."""

    @abstractmethod
    def facts(self, config: RunConfig) -> dict[str, Any]:
        """Return the content of data.json: what the run is trained on, and the losses that counting reaches."""

    def lints(self, config: RunConfig) -> list[Lint]:
        """Return likely mistakes in the data, such as rows that do not fit the context."""
        return []

    @abstractmethod
    def batches(self, config: RunConfig, device: torch.device) -> Examples:
        """Return the training batches."""

    @abstractmethod
    def scorer(self, config: RunConfig, device: torch.device) -> Scorer:
        """Return the scorer of the validation split."""

    @abstractmethod
    def sampler(self, config: RunConfig) -> SampleCallback:
        """Return what writes the samples; raise `InputError` if the prompt has characters the model will never know."""


@dataclass(frozen=True)
class RunParts:
    """Everything a run needs besides its directory.

    The config is resolved and complete; the model is fp32, on its device, in training mode.
    """

    config: RunConfig
    task: Task
    model: Network
    sampler: SampleCallback

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @cached_property
    def batches(self) -> Examples:
        return self.task.batches(self.config, self.device)


def require_known(tokenizer: CharacterTokenizer, text: str, where: str) -> None:
    """Refuse text that a tokenizer taken over from another run cannot encode; names the character and its place.

    `where` says what the text is, e.g. `corpus notes.txt: its train split`.
    """
    place = tokenizer.first_unknown(text)
    if place is not None:
        character, line = text[place], text.count("\n", 0, place) + 1
        raise InputError(
            f"{where} has {character!a} (U+{ord(character):04X}) at character {place + 1:,} (line {line:,}), and the "
            f"tokenizer of the run it starts from has no such among its {tokenizer.vocab_size} characters; take it out "
            "of the text, or leave train.init_from out"
        )


def require_vocabulary(config: RunConfig, found: int, of: str) -> int:
    """Return how many tokens the model needs, special ones included; raise if `model.vocab_size` is smaller."""
    needed = config.needed_tokens(found)
    if config.model.vocab_size is not None and config.model.vocab_size < needed:
        special = "".join(f" and {name}" for name in config.special_tokens)
        raise InputError(
            f"model.vocab_size = {config.model.vocab_size}: the corpus has {found} different {of}{special}; "
            f"leave it out, or set at least {needed}"
        )
    return needed
