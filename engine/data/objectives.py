"""What is predicted from what: an objective turns windows of text into inputs and targets.

`places` finds out which text stands where by sending numbered places through the objective instead of tokens, so that
the leak probe can ask the one question that matters: does a prediction depend on the text it predicts? Nothing is
declared that could be wrong. B batch, T target time, S source time, L window.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Generator, Tensor

from engine.config.schema import START, RunConfig
from engine.model.span import Span

IGNORED = -100  # a target that is not scored; cross_entropy's own default
FIRST_PLACE = 10**9  # numbered places are above every token


@dataclass(frozen=True)
class Batch:
    """One micro-batch.

    Args:
        tokens: (B, T) int64, what the model reads; in an encoder-decoder what the decoder does.
        targets: (B, T) int64, `IGNORED` where nothing is predicted.
        n_targets: how many are predicted.
        source: (B, S) int64, what the encoder of an encoder-decoder reads.
        source_at: where the source's tokens stand, if it is padded.
    """

    tokens: Tensor
    targets: Tensor
    n_targets: int
    source: Tensor | None = None
    source_at: Span | None = None

    @property
    def texts(self) -> tuple[Tensor, ...]:
        """What it reads, as tokens."""
        return (self.tokens,) if self.source is None else (self.source, self.tokens)

    @property
    def inputs(self) -> "tuple[Tensor | Span, ...]":
        """What the network is called with."""
        return self.texts if self.source_at is None else (*self.texts, self.source_at)

    def pieces(self, how_many: int) -> Iterator["Batch"]:
        """The same rows in several smaller batches; none for rows that do not exist."""
        none = [None] * how_many
        sources = none if self.source is None else self.source.chunk(how_many)
        stand = (
            none if self.source_at is None else [Span(i, one_side=True) for i in self.source_at.index.chunk(how_many)]
        )
        for tokens, targets, source, at in zip(
            self.tokens.chunk(how_many), self.targets.chunk(how_many), sources, stand, strict=False
        ):
            if targets.numel():
                yield Batch(tokens, targets, 0, source, at)


@dataclass(frozen=True)
class Places:
    """Which text an example's inputs and targets are, as places of the window; −1 for special tokens.

    Args:
        answers: (T,) the place that target t is.
        tokens: (T,) the place that input token j is.
        source: (S,) the place that source token j is; None where the source is given, as in translation, and may
            tell all it has. Places are then those of the target.
    """

    answers: Tensor
    tokens: Tensor
    source: Tensor | None = None


class Objective(Protocol):
    """How examples are made."""

    vocab_size: int
    """Tokens of the text; special ones are numbered after them."""
    window: int
    """L, tokens of text in one example."""
    conditional: bool
    """The target is a function of a given source: no text's entropy bounds its loss."""
    hides: bool
    """Predicts what special tokens hide, from both sides."""

    def batch(self, windows: Tensor, generator: Generator) -> Batch:
        """(B, L) windows → a batch. Chance, where there is any, comes from the generator (CPU)."""
        ...


def places(objective: Objective) -> Places | None:
    """What stands where in an example; None where any input may be seen but those that are hidden."""
    if objective.hides:
        return None
    numbered = torch.arange(FIRST_PLACE, FIRST_PLACE + objective.window)[None]
    batch = objective.batch(numbered, Generator().manual_seed(0))
    answers, tokens = (part[0] - FIRST_PLACE for part in (batch.targets, batch.tokens))
    if not objective.conditional:
        return Places(answers, tokens.clamp(min=-1), None if batch.source is None else batch.source[0] - FIRST_PLACE)
    at = {int(place): t for t, place in enumerate(answers)}
    in_target = torch.tensor([at.get(int(place), -1) for place in tokens])
    return Places(torch.arange(len(answers)), in_target, None)


class NextToken:
    """Each token is predicted from those before it."""

    conditional, hides = False, False

    def __init__(self, config: RunConfig, vocab_size: int) -> None:
        self.window, self.vocab_size = config.window_tokens, vocab_size

    def batch(self, windows: Tensor, generator: Generator) -> Batch:
        """(B, T + 1) → (B, T) tokens and targets."""
        return Batch(windows[:, :-1], windows[:, 1:], windows[:, 1:].numel())


class Masked:
    """Some tokens are hidden and predicted from both sides (Devlin et al. 2019, BERT, §3.1).

    A fixed share of each row is scored. Of those 80 % are replaced by the mask token, 10 % by a random token and 10 %
    stay, drawn anew for each batch. Only scored places count.
    """

    conditional, hides = False, True

    def __init__(self, config: RunConfig, vocab_size: int) -> None:
        self.window = config.window_tokens
        self.scored = max(1, round(config.objective.mask_fraction * self.window))
        self.vocab_size, self.mask = vocab_size, vocab_size

    def batch(self, windows: Tensor, generator: Generator) -> Batch:
        """(B, T) → (B, T) tokens with gaps, and targets."""
        chosen = torch.rand(windows.shape, generator=generator).argsort(-1)[:, : self.scored]
        fate = torch.rand(chosen.shape, generator=generator)
        drawn = torch.randint(self.vocab_size, chosen.shape, generator=generator)
        chosen, fate, drawn = (x.to(windows.device) for x in (chosen, fate, drawn))
        truth = windows.gather(1, chosen)
        shown = torch.where(fate < 0.8, self.mask, torch.where(fate < 0.9, drawn, truth))
        targets = torch.full_like(windows, IGNORED).scatter(1, chosen, truth)
        return Batch(windows.scatter(1, chosen, shown), targets, chosen.numel())


class Transcribe:
    """The source again, in the same or in reverse order, after a start token: toy tasks that attention must solve.

    Of `translation` this is the shape, sentences as long as their sources: what the leak probe asks about.
    """

    conditional, hides = True, False

    def __init__(self, config: RunConfig, vocab_size: int) -> None:
        self.window, self.vocab_size = config.window_tokens, vocab_size
        self.start = vocab_size + config.special_tokens.index(START)
        self.source_tokens = config.model.source_vocab_size
        self.backwards = config.objective.kind == "reverse"

    def batch(self, windows: Tensor, generator: Generator) -> Batch:
        """(B, S) → (B, S) source, tokens and targets."""
        targets = windows.flip(1) if self.backwards else windows
        start = torch.full_like(targets[:, :1], self.start)
        source = windows if self.source_tokens is None else windows.remainder(self.source_tokens)
        return Batch(torch.cat((start, targets[:, :-1]), dim=1), targets, targets.numel(), source)


class Continuation:
    """The text that follows the source; the decoder's first token is the source's last."""

    conditional, hides = False, False

    def __init__(self, config: RunConfig, vocab_size: int) -> None:
        self.window, self.vocab_size = config.window_tokens, vocab_size
        self.source = config.model.source_tokens

    def batch(self, windows: Tensor, generator: Generator) -> Batch:
        """(B, S + T) → (B, S) source, (B, T) tokens and targets."""
        tokens, targets = windows[:, self.source - 1 : -1], windows[:, self.source :]
        return Batch(tokens, targets, targets.numel(), windows[:, : self.source])


class Shifted:
    """A founding report's mistake: the target is the source, moved on: all but its last token stand in the source.

    source d[i : i+S], decoder input d[i+1 : i+S], target d[i+2 : i+S+1].
    """

    conditional, hides = False, False

    def __init__(self, config: RunConfig, vocab_size: int) -> None:
        self.window, self.vocab_size = config.window_tokens, vocab_size

    def batch(self, windows: Tensor, generator: Generator) -> Batch:
        """(B, S + 1) → (B, S) source, (B, S − 1) tokens and targets."""
        targets = windows[:, 2:]
        return Batch(windows[:, 1:-1], targets, targets.numel(), windows[:, :-1])


OBJECTIVES: dict[str, Callable[[RunConfig, int], Objective]] = {
    "next-token": NextToken,
    "masked": Masked,
    "copy": Transcribe,
    "reverse": Transcribe,
    "continuation": Continuation,
    "shifted": Shifted,
    "translation": Transcribe,
}


def make_objective(config: RunConfig, vocab_size: int) -> Objective:
    """The objective of a config.

    Args:
        config: the run.
        vocab_size: tokens of the text; special tokens are numbered after them.
    """
    return OBJECTIVES[config.objective.kind](config, vocab_size)
