"""What a run is trained on and how it is scored and shown: a text, pairs of sentences, documents, or questions."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn

from engine.config.schema import RunConfig
from engine.data.loader import Examples
from engine.data.overlap import Overlap
from engine.data.tokenizers import AnyTokenizer, CharacterTokenizer, read_tokenizer
from engine.errors import InputError
from engine.lints import Lint
from engine.model.transformer import Network
from engine.runs.reader import RunReader


class Scorer(Protocol):
    """Scores the validation split."""

    def record(self, model: nn.Module, between: Callable[[], None] = ...) -> dict[str, Any]:
        """The scores as fields of a validation record. `between` is called between batches and may raise to stop."""
        ...

    def outputs(self) -> dict[str, Any] | None:
        """What was written to be scored for the last record: translations.json. None where nothing is."""
        ...

    def predictions(self) -> str | None:
        """The answers of the last record, a line each: predictions.txt. None where no question is asked."""
        ...


class Shower(Protocol):
    """Shows what a model writes at a step of its training."""

    def sample(self, model: Network, step: int, between: Callable[[], None] = ...) -> dict[str, Any]:
        """A record of samples.jsonl."""
        ...


class Task(Protocol):
    """A corpus with its tokenizer, encoded, and what follows from them."""

    @property
    def name(self) -> str:
        """The corpus's."""
        ...

    @property
    def sha256(self) -> dict[str, str]:
        """The hash of each split."""
        ...

    @property
    def tokenizer(self) -> AnyTokenizer:
        """Saved with the run."""
        ...

    @property
    def vocab_size(self) -> int:
        """Tokens of the text that is predicted, without special ones."""
        ...

    @property
    def train_tokens(self) -> int:
        """Of the training split."""
        ...

    @property
    def validation_tokens(self) -> int:
        """Of the validation split, of what is predicted."""
        ...

    @property
    def overlap(self) -> Overlap | None:
        """How much of its own validation split it trains on."""
        ...

    def seen_by(self, trained: "Task") -> Overlap | None:
        """How much of its validation split another task trains on; None if the two are of different kinds."""
        ...

    def found_again(self, config: RunConfig) -> str:
        """What `data.corpus` must say to be understood wherever one stands."""
        ...

    def resolved(self, config: RunConfig, where: str, threads: int) -> RunConfig:
        """The config with what only the start of a run knows filled in.

        Raises:
            InputError: the model's vocabulary is too small, or a duration does not come out right.
        """
        ...

    def facts(self, config: RunConfig) -> dict[str, Any]:
        """The content of data.json."""
        ...

    def lints(self, config: RunConfig) -> list[Lint]:
        """Likely mistakes in the data, such as rows that do not fit the context."""
        ...

    def batches(self, config: RunConfig, device: torch.device) -> Examples:
        """What it is trained on."""
        ...

    def scorer(self, config: RunConfig, device: torch.device) -> Scorer:
        """What scores its validation split."""
        ...

    def shower(self, config: RunConfig) -> Shower:
        """What writes its samples.

        Raises:
            InputError: the prompt has characters the model will never know.
        """
        ...


def load_task(config: RunConfig, data_dir: Path | None, tokenizer: AnyTokenizer | None = None) -> Task:
    """The task of a config.

    Args:
        config: of the run.
        data_dir: where named corpora are looked for first.
        tokenizer: of the run that this one starts from, where it does; else the corpus gets one of its own.

    Raises:
        InputError: no such corpus, bad text, splits too short for the context, or text that is not in the tokenizer.
    """
    if config.translates:
        from engine.training.translation_task import TranslationTask

        return TranslationTask.load(config, data_dir, tokenizer)
    if config.answers:
        from engine.training.question_task import QuestionTask

        return QuestionTask.load(config, data_dir, tokenizer)
    if config.on_documents:
        from engine.training.span_task import SpanTask

        return SpanTask.load(config, data_dir, tokenizer)
    from engine.training.text_task import TextTask

    return TextTask.load(config, data_dir, tokenizer)


def reseeded(task: Task, config: RunConfig, device: torch.device) -> Callable[[int], Examples]:
    """The batches a run would be trained on under another seed."""
    return lambda seed: task.batches(config.model_copy(update={"seed": seed}), device)


def load_task_of(reader: RunReader, data_dir: Path | None) -> Task:
    """The task of an existing run: with its scoring rules, and its saved tokenizer if there is one.

    A run saves a tokenizer if it started from another run's weights.

    Raises:
        InputError: as `load_task`, or the tokenizer cannot be read.
    """
    from engine.training.text_task import TextTask

    config = reader.config
    kept = None if config.train.init_from is None else read_tokenizer(reader.path / "tokenizer.json")
    task = load_task(config, data_dir, kept)
    return replace(task, records=reader.run.records) if isinstance(task, TextTask) else task


def require_known(tokenizer: CharacterTokenizer, text: str, where: str) -> None:
    """Refuse text that a tokenizer taken over from another run cannot encode.

    Args:
        tokenizer: taken over.
        text: to be encoded.
        where: what it is, for the error, e.g. `corpus notes.txt: its train split`.

    Raises:
        InputError: names the first such character and its place.
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
    """Tokens the model needs, special ones too.

    Raises:
        InputError: `model.vocab_size` is smaller.
    """
    needed = config.needed_tokens(found)
    if config.model.vocab_size is not None and config.model.vocab_size < needed:
        special = "".join(f" and {name}" for name in config.special_tokens)
        raise InputError(
            f"model.vocab_size = {config.model.vocab_size}: the corpus has {found} different {of}{special}; "
            f"leave it out, or set at least {needed}"
        )
    return needed
