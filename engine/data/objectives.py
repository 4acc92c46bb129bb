"""Objectives: they turn windows of text into inputs and targets; each task has its own (`engine.tasks`).

`token_origins` sends numbered places through the objective instead of tokens to find out which text ends up where, so
the leak probe can ask the one question that matters: does a prediction depend on the text it predicts? Nothing is
declared, so nothing can be declared wrongly. B batch, T target time, S source time, L window.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pkgutil import resolve_name

import numpy as np
import torch
from torch import Generator, Tensor

from engine.config.schema import RunConfig
from engine.data.padding import AnyDevice, Tokens, copy_to_device, pad_rows, right_padded_positions
from engine.model.positions import Positions

IGNORED = -100  # a target that is not scored; cross_entropy's default
FIRST_PLACE = 10**9  # numbered places are above every token


@dataclass(frozen=True)
class Batch:
    tokens: Tensor  # (B, T) int64, what the model reads; in an encoder-decoder, what the decoder reads
    targets: Tensor  # (B, T) int64, `IGNORED` where nothing is predicted
    n_targets: int  # how many are predicted
    source: Tensor | None = None  # (B, S) int64, what the encoder of an encoder-decoder reads
    # Positions of the source's tokens, if padded; without a source, of `tokens`
    source_positions: Positions | None = None

    @property
    def texts(self) -> tuple[Tensor, ...]:
        return (self.tokens,) if self.source is None else (self.source, self.tokens)

    @property
    def inputs(self) -> "tuple[Tensor | Positions, ...]":
        return self.texts if self.source_positions is None else (*self.texts, self.source_positions)

    def chunk(self, how_many: int) -> Iterator["Batch"]:
        """Yield the same rows in several smaller batches, none of them empty."""
        none = [None] * how_many
        places: Sequence[Positions | None] = none
        if self.source_positions is not None:
            places = [Positions(index, one_sided_padding=True) for index in self.source_positions.index.chunk(how_many)]
        rows = zip(
            self.tokens.chunk(how_many),
            self.targets.chunk(how_many),
            none if self.source is None else self.source.chunk(how_many),
            places,
            strict=False,
        )
        for tokens, targets, source, at in rows:
            if targets.numel():
                yield type(self)(tokens, targets, 0, source, at)

    def target_logits(self, logits: Tensor) -> Tensor:
        """Return a network's logits (B, T, V) where the targets are: one for each token."""
        return logits


@dataclass(frozen=True)
class TokenOrigins:
    """The text behind an example's inputs and targets, as window places; −1 for special tokens.

    Places are those of the target if its order is not the text's, or if the source is given.
    """

    answers: Tensor  # (T,) the place of target t
    tokens: Tensor  # (T,) the place of input token j
    # (S,) the place of source token j; None if the source is given, as in translation, and may reveal anything
    source: Tensor | None = None


@dataclass(frozen=True)
class TokenPrompt:
    """The text before the part that a model writes, and how that part ends."""

    tokens: Tokens  # (T,) the decoder's input before it writes, at least one token
    end: int  # the token that ends the answer
    source: Tokens | None = None  # (S,) what the encoder of an encoder-decoder reads
    extra_allowed: tuple[int, ...] = ()  # special tokens it may write besides the end

    @property
    def source_or_tokens(self) -> Tokens:
        """What it asks about: the source, or without one all that comes before the answer."""
        return self.tokens if self.source is None else self.source


class Objective(ABC):
    """Builds examples; special tokens are numbered after the text's `vocab_size` tokens."""

    conditional = False  # the target is a function of a given source: a text's entropy does not bound its loss
    predicts_hidden = False  # it predicts tokens hidden by special tokens, from both sides
    reorders_text = False  # the text is predicted in a different order, drawn by its generator
    pools_logits = False  # one prediction is read off a whole text

    def __init__(self, config: RunConfig, vocab_size: int) -> None:
        self.window = config.window_tokens  # L, tokens of text in one example
        self.vocab_size = vocab_size
        self.special = {name: vocab_size + i for i, name in enumerate(config.special_tokens)}  # their ids

    @abstractmethod
    def batch(self, windows: Tensor, generator: Generator) -> Batch:
        """Return the batch of (B, L) windows. Any randomness comes from the generator (CPU)."""


def token_origins(objective: Objective, generator: Generator | None = None) -> TokenOrigins | None:
    """Return the places in an example; None if every input may be seen except hidden ones."""
    if objective.predicts_hidden:
        return None
    numbered = torch.arange(FIRST_PLACE, FIRST_PLACE + objective.window)[None]
    batch = objective.batch(numbered, generator or Generator().manual_seed(0))
    answers, tokens = (part[0] - FIRST_PLACE for part in (batch.targets, batch.tokens))
    source = None if batch.source is None else batch.source[0] - FIRST_PLACE
    if not (objective.conditional or objective.reorders_text):
        return TokenOrigins(answers, tokens.clamp(min=-1), source)
    found = origins_in_target(batch)
    return replace(found, source=None) if objective.conditional else found


def origins_in_target(numbered: Batch) -> TokenOrigins:
    """Return the places in a batch of one row; its predicted tokens are `numbered`."""
    answers = numbered.targets[0].tolist()
    predicted = {place: t for t, place in enumerate(answers) if place >= FIRST_PLACE}
    texts = [torch.tensor([predicted.get(at, -1) for at in part[0].tolist()]) for part in numbered.texts]
    return TokenOrigins(torch.arange(len(answers)), texts[-1], texts[0] if len(texts) > 1 else None)


def number_tokens(tokens: Tokens) -> Tokens:
    """Return (T,) the place of each token of a text, counted from `FIRST_PLACE`."""
    return FIRST_PLACE + np.arange(len(tokens), dtype=np.int64)


def shifted_batch(rows: Sequence[Tokens], unscored_counts: Sequence[int], pad: int, device: AnyDevice) -> Batch:
    """Return a batch in which each token of a row is predicted from those before it; the first `given` targets of each
    row are not scored. Padding stands on the right, where a causal decoder never looks: it needs no positions.
    """
    tokens, targets = pad_rows([row[:-1] for row in rows], pad), pad_rows([row[1:] for row in rows], IGNORED)
    targets[torch.arange(targets.shape[1])[None] < torch.tensor(list(unscored_counts))[:, None]] = IGNORED
    return Batch(copy_to_device(tokens, device), copy_to_device(targets, device), int((targets != IGNORED).sum()))


def joined_batch(
    given: Sequence[Tokens],
    written: Sequence[Tokens],
    mark: int,
    pad: int,
    device: AnyDevice,
    *,
    scored_before_mark: int = 0,
) -> Batch:
    """Return a batch of `given mark written` rows. What follows the mark is scored, and `before` tokens up to it."""
    between = np.array([mark], dtype=np.int64)
    rows = [np.concatenate((first, between, second)) for first, second in zip(given, written, strict=True)]
    return shifted_batch(rows, [len(first) - scored_before_mark for first in given], pad, device)


def source_target_batch(
    sources: Sequence[Tokens],
    targets: Sequence[Tokens],
    start: int,
    pad: int,
    device: AnyDevice,
    source_pad: int | None = None,
) -> Batch:
    """Return a batch of targets written from sources; `start` precedes them, and no end is added."""
    tokens = pad_rows([target[:-1] for target in targets], pad, first=start)
    scored = pad_rows(targets, IGNORED)
    at = right_padded_positions([len(source) for source in sources], device)
    source = copy_to_device(pad_rows(sources, pad if source_pad is None else source_pad), device)
    n_targets = int((scored != IGNORED).sum())
    return Batch(copy_to_device(tokens, device), copy_to_device(scored, device), n_targets, source, at)


def make_objective(config: RunConfig, vocab_size: int) -> Objective:
    """Return the objective of a config; special tokens are numbered after the text's `vocab_size`."""
    made: Objective = resolve_name(config.task.examples)(config, vocab_size)
    return made
