"""A trained model that makes something of a text: the one source of writing for the prompt and for the Playground.

torch is imported only when a model is loaded, and whoever asks for one does so off the event loop. Which kind of writer
a run needs, `writers` knows.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, ClassVar

from engine.errors import InputError
from engine.runs.reader import RunReader
from tui_transformer.lab.play.pictures import stacks, who_sees_whom
from tui_transformer.lab.play.prompt import Settings
from tui_transformer.lab.play.written import Alternative, Answer, AnswerToken, AttentionView, TokenScores

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from engine.config.schema import RunConfig
    from engine.generation.sampling import Alternative as Likely
    from engine.generation.sampling import Sampling
    from engine.generation.surprise import TokenSurprise
    from engine.model.transformer import Network

START, MARK, END = "▷", "⁇", "■"  # how special tokens are shown: a start, a gap, an end
ARROWS = (" → ", " => ", "\t")  # between what is asked and its answer


class Writer(ABC):
    """A checkpoint of a run.

    Args:
        reader: the run.
        checkpoint: best, last, or a step.
        device: as on the command line.

    Attributes:
        continues: its text goes on from the prompt; else it is an answer of its own.
        ranks: whether it knows the likeliest whole answers, see `wholes`.
        invitation: what to type.

    Raises:
        InputError: no such checkpoint, or a damaged one.
    """

    continues: bool = False
    ranks: bool = False
    invitation: str = ""
    crossing: ClassVar[str] = "cross-attention: each token of the target sees all of the source"
    step: int
    model: "Network"
    defaults: Settings

    def __init__(self, reader: RunReader, checkpoint: str, device: str) -> None:
        from engine.training.devices import resolve_device

        self.name = reader.name
        self.config: RunConfig = reader.config
        self.device = resolve_device(device)
        self._load(reader, checkpoint)

    @abstractmethod
    def _load(self, reader: RunReader, checkpoint: str) -> None:
        """Set `step`, `model` and `defaults`."""

    def notice(self, text: str, settings: Settings) -> str:
        """Return what is to be known before an answer, "" if nothing."""
        return ""

    @abstractmethod
    def pieces(self, text: str, settings: Settings, answer: int = 0, alternatives: int = 0) -> Iterator[AnswerToken]:
        """Yield one answer as it comes.

        Args:
            text: to go on with, to fill, to answer, or a source.
            settings: see `SETTINGS`.
            answer: counts answers to the same prompt.
            alternatives: how many of the likeliest tokens to tell in each place.

        Raises:
            InputError: an empty prompt, unknown characters or words, or no gap where gaps are filled.
        """

    def wholes(self, text: str, written: str, others: int) -> tuple[Answer, ...]:
        """Return what was written as a whole answer with its probability, and the likeliest others, best first.

        () where answers have no end, or are not ranked by probability.

        Args:
            text: what was asked.
            written: the answer.
            others: how many others.
        """
        return ()

    @abstractmethod
    def surprise(self, text: str, alternatives: int = 0) -> TokenScores:
        """Return how surprised the model is by a text.

        Raises:
            InputError: not defined for this kind of model, unknown characters, no arrow, or too short a text.
        """

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of attention there are to look at: "self", or also "cross" and "encoder"."""
        from engine.generation.inspection import places

        return places(self.model)

    def shape(self, which: str) -> tuple[int, int]:
        """Return layers and heads of a kind of attention.

        Raises:
            InputError: this network has no such kind.
        """
        from engine.generation.inspection import attentions

        return len(attentions(self.model, which)), self.config.model.n_heads

    def attention(self, text: str, written: str, layer: int, head: int, which: str = "self") -> AttentionView:
        """Return where a head looks.

        Args:
            text: the prompt, or the source.
            written: what came after it.
            layer: from 1.
            head: from 1.
            which: "self", "cross" or "encoder".

        Raises:
            InputError: no such layer, head or kind, no weights, or as `pieces`.
        """
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
        """Return what the network reads to write this: (T,) tokens, and a source where it has one."""

    @abstractmethod
    def _labels(self, ids: "Tensor", *, is_source: bool) -> tuple[str, ...]:
        """Return tokens one by one, special ones as marks."""


def alternatives_of(found: "Iterable[Likely]", name: Callable[[int], str]) -> tuple[Alternative, ...]:
    """Return the likeliest tokens in a place by their texts."""
    return tuple(Alternative(name(one.token), one.probability, one.chance) for one in found)


def token_scores(
    found: "Sequence[TokenSurprise]", texts: Iterable[str], name: Callable[[int], str], source: str, rule: str
) -> TokenScores:
    """Return the tokens of a text with how surprising they are.

    Args:
        found: of each token.
        texts: of each token.
        name: the text of an alternative.
        source: what was given before.
        rule: what each token was predicted from, in a sentence.
    """
    pieces = []
    for token, text in zip(found, texts, strict=True):
        probability = None if token.nats is None else math.exp(-token.nats)
        pieces.append(AnswerToken(text, probability, None, alternatives_of(token.alternatives, name)))
    return TokenScores(tuple(pieces), tuple(token.nats for token in found), source, rule)


def sampling_of(settings: Settings, answer: int, overflow: str = "restart") -> "tuple[Sampling, int]":
    """Return how tokens are drawn, and the seed of an answer."""
    from engine.generation.sampling import Sampling
    from engine.seeds import seed_for

    cut = float(settings["temperature"]), int(settings["top_k"]), float(settings["top_p"])
    return Sampling(*cut, overflow), seed_for(int(settings["seed"]), "sample", answer)


def split_at_arrow(text: str, needed: str, *, last: bool = False) -> tuple[str, str]:
    """Return what stands before an arrow (the last one, or the first) and after it, without white space around.

    Raises:
        InputError: no arrow.
    """
    arrow = next((sign for sign in ARROWS if sign in text), None)
    if arrow is None:
        raise InputError(f"surprise: {needed}")
    asked, _, answer = text.rpartition(arrow) if last else text.partition(arrow)
    return asked.strip(), answer.strip()
