"""Objectives: they turn windows of text into inputs and targets.

`places` sends numbered places through the objective instead of tokens to find out which text ends up where, so the leak
probe can ask the one question that matters: does a prediction depend on the text it predicts? Nothing is declared, so
nothing can be declared wrongly. B batch, T target time, S source time, L window.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pkgutil import resolve_name

import numpy as np
import torch
from torch import Generator, Tensor

from engine.config.schema import RunConfig
from engine.config.sections import END, MASK, MASKS_IN_A_ROW, PAD, START, UNK
from engine.config.tasks import corrupted_lengths
from engine.data.padding import AnyDevice, Tokens, copy_to_device, pad_rows, right_padded_positions
from engine.data.spans import SPANS, Counts, move_span_to_end, random_prefix_lengths, replace_with_sentinels
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


class PooledBatch(Batch):
    """Texts with one target each (B, 1): the logits of a text are the mean of its tokens'.

    The head is linear, so this is a head on the mean of the last hidden states. Unlike the last token's, the mean does
    not have to carry the whole text through one position, and every token learns from every text. Padding is left out;
    the positions are those of the tokens.
    """

    def target_logits(self, logits: Tensor) -> Tensor:
        """(B, T, C) → (B, 1, C)"""
        if self.source_positions is None or self.source_positions.index.shape[1] != logits.shape[1]:
            return logits.mean(1, keepdim=True)
        real = (self.source_positions.index >= 0)[..., None]
        return torch.where(real, logits, 0.0).sum(1, keepdim=True) / real.sum(1, keepdim=True)


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


class Masked(Objective):
    """Some tokens are hidden and predicted from both sides (Devlin et al. 2019, BERT, §3.1).

    A fixed share of each row is scored. Of those 80 % are replaced by the mask token, 10 % by a random token and 10 %
    stay, drawn anew for each batch. Only scored places count.
    """

    predicts_hidden = True

    def __init__(self, config: RunConfig, vocab_size: int) -> None:
        super().__init__(config, vocab_size)
        self.n_scored = max(1, round(config.objective.mask_fraction * self.window))
        self.mask = self.special[MASK]

    def batch(self, windows: Tensor, generator: Generator) -> Batch:
        # (B, T) → (B, T) tokens with gaps, and targets
        chosen = torch.rand(windows.shape, generator=generator).argsort(-1)[:, : self.n_scored]
        fate = torch.rand(chosen.shape, generator=generator)
        drawn = torch.randint(self.vocab_size, chosen.shape, generator=generator)
        chosen, fate, drawn = (copy_to_device(x, windows.device) for x in (chosen, fate, drawn))
        truth = windows.gather(1, chosen)
        shown = torch.where(fate < 0.8, self.mask, torch.where(fate < 0.9, drawn, truth))
        targets = torch.full_like(windows, IGNORED).scatter(1, chosen, truth)
        return Batch(windows.scatter(1, chosen, shown), targets, chosen.numel())


class Transcribe(Objective):
    """The source again, in the same or another order, after a start token: toy tasks that need attention.

    The leak probe uses it for `translation`, with targets as long as their sources.
    """

    conditional = True

    def __init__(self, config: RunConfig, vocab_size: int) -> None:
        super().__init__(config, vocab_size)
        self.start = self.special[START]
        self.source_tokens = config.model.source_vocab_size

    def batch(self, windows: Tensor, generator: Generator) -> Batch:
        # (B, S) → (B, S) source, tokens and targets
        targets = self.make_target(windows)
        start = torch.full_like(targets[:, :1], self.start)
        source = windows if self.source_tokens is None else windows.remainder(self.source_tokens)
        return Batch(torch.cat((start, targets[:, :-1]), dim=1), targets, targets.numel(), source)

    def make_target(self, source: Tensor) -> Tensor:
        """(B, S) → (B, S), the target of each source."""
        return source


class JoinedPairs(Objective):
    """`source ⟨start⟩ target ⟨end⟩` in one text: what follows the start token is predicted, each token from all before
    it. A window's first half is the source.
    """

    reorders_text = True

    def __init__(self, config: RunConfig, vocab_size: int) -> None:
        super().__init__(config, vocab_size)
        self.pad, self.start, self.end = (self.special[name] for name in (PAD, START, END))

    def batch(self, windows: Tensor, generator: Generator) -> Batch:
        rows, read = windows.cpu().numpy(), self.window // 2
        ended = [np.append(row, self.end) for row in rows[:, read:]]
        return joined_batch(list(rows[:, :read]), ended, self.start, self.pad, windows.device)


def pair_objective(config: RunConfig, vocab_size: int) -> Objective:
    return (Transcribe if config.has_source else JoinedPairs)(config, vocab_size)


class Reverse(Transcribe):
    def make_target(self, source: Tensor) -> Tensor:
        return source.flip(1)


class NextToken(Objective):
    """Source, if any, tokens and targets are parts of one window (B, L)."""

    source: slice | None = None
    tokens, targets = slice(None, -1), slice(1, None)

    def batch(self, windows: Tensor, generator: Generator) -> Batch:
        targets, source = windows[:, self.targets], None if self.source is None else windows[:, self.source]
        return Batch(windows[:, self.tokens], targets, targets.numel(), source)


class Continuation(NextToken):
    """The text that follows the source; the decoder's first token is the source's last."""

    def __init__(self, config: RunConfig, vocab_size: int) -> None:
        super().__init__(config, vocab_size)
        read = config.model.source_tokens
        self.source, self.tokens, self.targets = slice(read), slice(read - 1, -1), slice(read, None)


class Shifted(NextToken):
    """A course report's mistake: the target is the shifted source, which holds all but the last target token."""

    source, tokens, targets = slice(None, -1), slice(1, -1), slice(2, None)


class CorruptionObjective(Objective):
    """Removes spans from n documents; a row has one side, or a source and a target."""

    reorders_text = True

    @abstractmethod
    def kept_lengths(self, lengths: Counts, generator: Generator) -> Counts:
        """Return (n,) the number of tokens read of each document, from its beginning."""

    @abstractmethod
    def side_lengths(self, document_lengths: Counts) -> Counts:
        """Return (n, sides) row lengths, in tokens, for documents of these lengths."""

    @abstractmethod
    def corrupt(self, documents: Sequence[Tokens], generator: Generator, device: AnyDevice = "cpu") -> Batch:
        """Return the batch of documents that are already cut; the generator draws the spans."""

    @abstractmethod
    def gap_prompt(self, parts: Sequence[Tokens]) -> TokenPrompt:
        """Return the prompt of a text with gaps, as if they had been masked; `parts` are the texts around them."""

    @abstractmethod
    def example(self, document: Tokens, generator: Generator) -> tuple[TokenPrompt, Tokens]:
        """Corrupt a document; return the prompt and (T,) what was taken out, with sentinels but without the end."""

    def continuation_prompt(self, text: Tokens) -> TokenPrompt | None:
        """Return the prompt of a text that goes on without a gap; None if the model predicts only what is masked."""
        return None

    def batch(self, windows: Tensor, generator: Generator) -> Batch:
        return self.corrupt(list(windows.cpu().numpy()), generator, windows.device)


class SpanCorruption(CorruptionObjective):
    """`prefix ⁇ suffix ⁇ span ⁇`, each token predicted from those before it (CS224N, assignment 5).

    All but padding is scored, as in the assignment. `engine.data.spans` draws the span.
    """

    def __init__(self, config: RunConfig, vocab_size: int) -> None:
        super().__init__(config, vocab_size)
        self.pad, self.mask = self.special[PAD], self.special[MASK]
        self.draw, self.fraction = SPANS[config.objective.span_form], config.objective.span_fraction

    def kept_lengths(self, lengths: Counts, generator: Generator) -> Counts:
        return random_prefix_lengths(lengths, self.window, generator)

    def side_lengths(self, document_lengths: Counts) -> Counts:
        return document_lengths[:, None] + (MASKS_IN_A_ROW - 1)

    def corrupt(self, documents: Sequence[Tokens], generator: Generator, device: AnyDevice = "cpu") -> Batch:
        lengths = np.array([len(document) for document in documents], dtype=np.int64)
        starts, sizes = (part.tolist() for part in self.draw(lengths, self.fraction, generator))
        rows = [move_span_to_end(*span, self.mask) for span in zip(documents, starts, sizes, strict=True)]
        return shifted_batch(rows, [0] * len(rows), self.pad, device)

    def gap_prompt(self, parts: Sequence[Tokens]) -> TokenPrompt:
        prefix, suffix = parts
        mark = np.array([self.mask], dtype=np.int64)
        return TokenPrompt(np.concatenate((prefix, mark, suffix, mark)), self.mask)

    def example(self, document: Tokens, generator: Generator) -> tuple[TokenPrompt, Tokens]:
        batch = self.corrupt([document], generator)
        row = np.concatenate((batch.tokens[0, :1].numpy(), batch.targets[0].numpy()))
        last_mark = int(np.flatnonzero(row == self.mask)[1])
        return TokenPrompt(row[: last_mark + 1], self.mask), row[last_mark + 1 : -1]

    def continuation_prompt(self, text: Tokens) -> TokenPrompt:
        return TokenPrompt(text, self.mask)


class SentinelSpans(CorruptionObjective):
    """`text ① text ②` is read and `① span ② span ③` is written (Raffel et al. 2020, T5, §3.1.4)."""

    def __init__(self, config: RunConfig, vocab_size: int) -> None:
        super().__init__(config, vocab_size)
        self.pad, self.start = self.special[PAD], self.special[START]
        self.first_sentinel = self.start + 1
        self.span_parameters = (config.objective.mask_fraction, config.objective.span_mean)

    def kept_lengths(self, lengths: Counts, generator: Generator) -> Counts:
        # Nothing is drawn: a document is cut only to fit the source.
        return np.minimum(lengths, self.window)

    def side_lengths(self, document_lengths: Counts) -> Counts:
        lengths = [corrupted_lengths(int(cut), *self.span_parameters) for cut in document_lengths]
        return np.array(lengths, dtype=np.int64).reshape(-1, 2)

    def corrupt(self, documents: Sequence[Tokens], generator: Generator, device: AnyDevice = "cpu") -> Batch:
        how = (*self.span_parameters, self.first_sentinel, generator)
        rows = [replace_with_sentinels(document, *how) for document in documents]
        sources, targets = zip(*rows, strict=True)
        return source_target_batch(sources, targets, self.start, self.pad, device)

    def gap_prompt(self, parts: Sequence[Tokens]) -> TokenPrompt:
        gaps = len(parts) - 1  # at most one per sentinel
        sentinels = [np.array([self.first_sentinel + i], dtype=np.int64) for i in range(gaps)]
        read = [part for pair in zip(parts, sentinels, strict=False) for part in pair]
        before = np.array([self.start, self.first_sentinel], dtype=np.int64)
        marks = tuple(range(self.first_sentinel + 1, self.first_sentinel + gaps))
        return TokenPrompt(before, self.first_sentinel + gaps, np.concatenate((*read, parts[-1])), marks)

    def example(self, document: Tokens, generator: Generator) -> tuple[TokenPrompt, Tokens]:
        batch = self.corrupt([document], generator)
        assert batch.source is not None
        targets = batch.targets[0].numpy()
        marks = tuple(range(self.first_sentinel, int(targets[-1])))
        return TokenPrompt(batch.tokens[0, :1].numpy(), int(targets[-1]), batch.source[0].numpy(), marks), targets[:-1]


class QuestionAnswer(Objective):
    """`question ⁇ answer ⁇`, as the assignment's NameDataset has it: scored are the first mark and all after it.

    In an encoder-decoder the question is the source, `⁇ answer` the decoder's input, and `answer ⁇` is scored.
    """

    def __init__(self, config: RunConfig, vocab_size: int) -> None:
        super().__init__(config, vocab_size)
        self.pad, self.mask = self.special[PAD], self.special[MASK]
        self.conditional, self.reorders_text = config.has_source, not config.has_source
        # Of a text that is made into a question.
        self.n_read = config.model.source_tokens if config.has_source else max(1, self.window // 2)

    def side_lengths(self, questions: Sequence[Tokens], answers: Sequence[Tokens]) -> Counts:
        lengths = np.array([(len(q), len(a) + 1) for q, a in zip(questions, answers, strict=True)], dtype=np.int64)
        return lengths if self.conditional else lengths.sum(1, keepdims=True)

    def answer_batch(self, questions: Sequence[Tokens], answers: Sequence[Tokens], device: AnyDevice = "cpu") -> Batch:
        ended = [np.append(answer, self.mask) for answer in answers]
        if self.conditional:
            return source_target_batch(questions, ended, self.mask, self.pad, device)
        return joined_batch(questions, ended, self.mask, self.pad, device, scored_before_mark=1)

    def make_prompt(self, question: Tokens) -> TokenPrompt:
        """`question ⁇`; the answer ends with ⁇."""
        mark = np.array([self.mask], dtype=np.int64)
        if self.conditional:
            return TokenPrompt(mark, self.mask, question)
        return TokenPrompt(np.concatenate((question, mark)), self.mask)

    def batch(self, windows: Tensor, generator: Generator) -> Batch:
        """Return the batch of (B, L) texts: the first part is the question, the rest the answer."""
        rows = windows.cpu().numpy()
        return self.answer_batch(list(rows[:, : self.n_read]), list(rows[:, self.n_read :]), windows.device)


class Classification(Objective):
    """The class of a text. In a window for the leak probe, the first token stands for the class, the rest is read."""

    conditional = pools_logits = True

    def __init__(self, config: RunConfig, vocab_size: int) -> None:
        super().__init__(config, vocab_size)
        self.pad, self.unknown = self.special[PAD], self.special[UNK]

    def class_batch(self, texts: Sequence[Tokens], classes: Sequence[int], device: AnyDevice = "cpu") -> PooledBatch:
        """Return the batch of texts, at least one token each, and their classes."""
        targets = torch.tensor(list(classes), dtype=torch.int64)[:, None]
        at = right_padded_positions([len(text) for text in texts], device)
        tokens = copy_to_device(pad_rows(texts, self.pad), device)
        return PooledBatch(tokens, copy_to_device(targets, device), len(texts), None, at)

    def batch(self, windows: Tensor, generator: Generator) -> Batch:
        rows = windows.cpu().numpy()
        return self.class_batch(list(rows[:, 1:]), rows[:, 0].tolist(), windows.device)


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


def corruption_objective(config: RunConfig, vocab_size: int) -> CorruptionObjective:
    return (SentinelSpans if config.objective.has_sentinels else SpanCorruption)(config, vocab_size)


def make_objective(config: RunConfig, vocab_size: int) -> Objective:
    """Return the objective of a config; special tokens are numbered after the text's `vocab_size`."""
    made: Objective = resolve_name(config.task.examples)(config, vocab_size)
    return made
