"""The base of writers: a trained model that generates text, for both the prompt and the Playground.

torch is imported only when a model is loaded, so load one off the event loop. `writers` chooses the kind of writer for
a run.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, ClassVar

from engine.errors import InputError
from engine.runs.reader import RunReader
from tui_transformer.lab.play.pictures import stacks, who_sees_whom
from tui_transformer.lab.play.prompt import Settings
from tui_transformer.lab.play.written import Alternative, Answer, AnswerToken, AttentionView, Example, TokenScores

if TYPE_CHECKING:
    from torch import Tensor

    from engine.config.schema import RunConfig
    from engine.data.padding import Tokens
    from engine.generation.answering import Prompt
    from engine.generation.sampling import SampledToken, Sampling
    from engine.generation.surprise import TokenSurprise
    from engine.model.transformer import Network

START, MARK, END = "▷", "⁇", "■"  # marks for special tokens: start, gap, end
ARROWS = (" → ", " => ", "\t")  # between a prompt and its answer


class Writer(ABC):
    """A checkpoint of a run: best, last, or a step. Raises InputError if it is missing or damaged."""

    continues: bool = False  # its text continues the prompt; else it is a separate answer
    ranks: bool = False  # its answers have an end: it can rank whole ones, see `wholes`, and shows held-out `examples`
    invitation: str = ""
    crossing: ClassVar[str] = "cross-attention: each token of the target sees all of the source"
    step: int
    model: "Network"
    defaults: Settings

    def __init__(self, reader: RunReader, checkpoint: str, device: str) -> None:
        from engine.training.devices import resolve_device

        self.reader, self.name = reader, reader.name
        self.config: RunConfig = reader.config
        self.device = resolve_device(device)
        self._load(reader, checkpoint)

    @abstractmethod
    def _load(self, reader: RunReader, checkpoint: str) -> None:
        """Set `step`, `model` and `defaults`."""

    def notice(self, text: str, settings: Settings) -> str:
        return ""

    @abstractmethod
    def pieces(self, text: str, settings: Settings, answer: int = 0, alternatives: int = 0) -> Iterator[AnswerToken]:
        """Yield one answer as it comes, with the likeliest tokens in each place.

        `answer` counts answers to the same prompt. Raises InputError: an empty prompt, unknown characters, no gap.
        """

    def wholes(self, text: str, written: str, others: int) -> tuple[Answer, ...]:
        """Return what was written as a whole answer with its probability, and the likeliest others.

        () if answers have no end, or are not ranked by probability.
        """
        return ()

    def filled(self, text: str, written: str) -> str:
        """Return the prompt with its gaps filled in brackets; "" if it has none to fill."""
        return ""

    def examples(self) -> list[Example]:
        """Return a few held-out questions or documents with gaps, always the same ones; loads the corpus."""
        raise InputError(f"examples: {self.name} goes on with any text; runs on documents have some")

    @abstractmethod
    def surprise(self, text: str, alternatives: int = 0) -> TokenScores:
        """Return how surprised the model is by a text."""

    @property
    def kinds(self) -> tuple[str, ...]:
        from engine.generation.inspection import places

        return places(self.model)

    def shape(self, which: str) -> tuple[int, int]:
        from engine.generation.inspection import attentions

        return len(attentions(self.model, which)), self.config.model.n_heads

    def attention(self, text: str, written: str, layer: int, head: int, which: str = "self") -> AttentionView:
        """Return a head's attention over a prompt or source and the text written after it; layer and head from 1."""
        from engine.generation.inspection import head_attention

        tokens, source = self._read(text, written)
        found = head_attention(self.model, tokens, layer - 1, head - 1, which, source)
        layers, heads = self.shape(which)
        wrote = self._labels(tokens, is_source=False)
        read = () if source is None else self._labels(source, is_source=True)
        plan = stacks(self.config.model)[0 if which == "encoder" else -1]
        return AttentionView(
            read if which == "encoder" else wrote,
            wrote if which == "self" else read,
            found.weights.float().cpu().numpy(),
            found.visible.cpu().numpy(),
            None if found.bias is None else found.bias.float().cpu().numpy(),
            f"layer {layer} of {layers}, head {head} of {heads}" + (f", {which}" if which != "self" else ""),
            self.crossing if which == "cross" else who_sees_whom(plan, plan.length),
            which == "cross",
        )

    @abstractmethod
    def _read(self, text: str, written: str) -> "tuple[Tensor, Tensor | None]":
        """Return the network's input for writing this: (T,) tokens, and a source if it has one."""

    def _prompted(self, prompt: "Prompt", answer: "Tokens") -> "tuple[Tensor, Tensor | None]":
        import numpy as np
        import torch

        tokens = np.concatenate((prompt.tokens, answer)).astype(np.int64)[: self.config.model.context_length]
        source = None if prompt.source is None else torch.from_numpy(prompt.source).to(self.device)
        return torch.from_numpy(tokens).to(self.device), source

    @abstractmethod
    def _labels(self, ids: "Tensor", *, is_source: bool) -> tuple[str, ...]:
        """Return each token's text, special ones as marks."""


def alternatives_of(found: "Iterable[SampledToken]", name: Callable[[int], str]) -> tuple[Alternative, ...]:
    return tuple(Alternative(name(one.token), one.probability, one.chance) for one in found)


def answer_tokens(
    drawn: "Iterable[SampledToken]", text_of: Callable[[int], str], name: Callable[[int], str]
) -> Iterator[AnswerToken]:
    """Yield drawn tokens: `text_of` decodes them in sequence, `name` any token by itself."""
    for one in drawn:
        yield AnswerToken(text_of(one.token), one.probability, one.chance, alternatives_of(one.alternatives, name))


def token_scores(
    found: "Iterable[TokenSurprise]",
    text_of: Callable[[int], str],
    name: Callable[[int], str],
    source: str,
    rule: str,
) -> TokenScores:
    """Return a text's tokens with their surprise; functions are as in `answer_tokens`."""
    pieces, nats = [], []
    for token in found:
        probability = None if token.nats is None else math.exp(-token.nats)
        pieces.append(AnswerToken(text_of(token.token), probability, None, alternatives_of(token.alternatives, name)))
        nats.append(token.nats)
    return TokenScores(tuple(pieces), tuple(nats), source, rule)


def sampling_of(settings: Settings, answer: int, overflow: str = "restart") -> "tuple[Sampling, int]":
    from engine.generation.sampling import Sampling
    from engine.seeds import seed_for

    cut = float(settings["temperature"]), int(settings["top_k"]), float(settings["top_p"])
    return Sampling(*cut, overflow), seed_for(int(settings["seed"]), "sample", answer)


def split_at_arrow(text: str, needed: str, *, last: bool = False) -> tuple[str, str]:
    """Return the text before and after an arrow (the last, or the first), stripped."""
    arrow = next((sign for sign in ARROWS if sign in text), None)
    if arrow is None:
        raise InputError(f"surprise: {needed}")
    asked, _, answer = text.rpartition(arrow) if last else text.partition(arrow)
    return asked.strip(), answer.strip()
