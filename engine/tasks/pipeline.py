"""A trained model that is asked: how a prompt becomes tokens, and its answers texts. Each task has a pipeline."""

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
import torch
from torch import Tensor

from engine.base.errors import InputError
from engine.base.language import Message, tr
from engine.config.schema import RunConfig
from engine.data.objectives import TokenPrompt
from engine.data.padding import Tokens
from engine.data.tokenizers import AnyTokenizer
from engine.generation.answering import sample_answer
from engine.generation.output import Alternative, AnswerToken, BeamResult, FullAnswer, ScoredText
from engine.generation.sampling import SampledToken, Sampling
from engine.generation.surprise import TokenSurprise
from engine.generation.translation import Translator
from engine.model.transformer import Network

START_MARK, MARK, END_MARK = "▷", "⁇", "■"  # marks for special tokens: start, gap, end
ARROWS = (" → ", " => ", "\t")  # between a prompt and its answer


class Pipeline(ABC):
    """A network with its tokenizer. All methods raise InputError for text that cannot be a prompt."""

    default_length = 50  # tokens of an answer
    translator: Translator  # of those that translate or summarize

    def __init__(self, model: Network, tokenizer: AnyTokenizer, config: RunConfig, classes: tuple[str, ...]) -> None:
        self.model, self.tokenizer, self.config = model, tokenizer.target, config
        self.size, self.classes = self.tokenizer.vocab_size, classes
        self.device = next(model.parameters()).device

    @property
    def token_noun(self) -> str:
        return tr("character") if self.tokenizer.per_character else tr("token")

    def length_warning(self, text: str, length: int) -> str:
        """Return what to know about a prompt of this length, and an answer of at most `length` tokens."""
        return ""

    @abstractmethod
    def write(self, text: str, how: Sampling, seed: int, length: int, alternatives: int) -> Iterator[AnswerToken]:
        """Yield one answer as it comes, with the likeliest tokens at each place."""

    def search(self, text: str, how: Mapping[str, float], between: Callable[[], None]) -> tuple[BeamResult, ...]:
        """Return the `nbest` best answers that a beam search finds; () if it has no beam search."""
        return ()

    def likeliest_answers(self, text: str, written: str, others: int) -> tuple[FullAnswer, ...]:
        """Return what was written as a whole answer with its probability, and the likeliest others; () if answers have
        no end, or are not ranked by probability.
        """
        return ()

    def filled_prompt(self, text: str, written: str) -> str:
        """Return the prompt with its gaps filled in brackets; "" if it has none to fill."""
        return ""

    @abstractmethod
    def surprise(self, text: str, alternatives: int) -> ScoredText:
        """Return how surprised the model is by a text."""

    @abstractmethod
    def model_input(self, text: str, written: str) -> tuple[Tensor, Tensor | None]:
        """Return the network's input for writing this: (T,) tokens, and a source if it has one."""

    @abstractmethod
    def token_labels(self, ids: Tensor, *, is_source: bool) -> tuple[str, ...]:
        """Return each token's text, special ones as marks."""

    def decode_token(self, token: int) -> str:
        return self.tokenizer.decode([token])


class AnswerPipeline(Pipeline):
    """Writes an answer that has an end."""

    @abstractmethod
    def prompt(self, text: str) -> TokenPrompt:
        """Return the prompt that the model was trained with."""

    @abstractmethod
    def encode_answer(self, written: str, prompt: TokenPrompt) -> Tokens:
        """Return the tokens of an answer as it was written, without its end."""

    def max_length(self, prompt: TokenPrompt) -> int:
        """Return the most tokens that may be written, the end included."""
        return sys.maxsize

    def write(self, text: str, how: Sampling, seed: int, length: int, alternatives: int) -> Iterator[AnswerToken]:
        prompt, size = self.prompt(text), self.size
        most = min(length, self.max_length(prompt))
        drawn = sample_answer(self.model, prompt, how, seed, text_vocab_size=size, most=most, alternatives=alternatives)
        yield from answer_tokens(drawn, self.decoder(), lambda token: self.token_text(token, prompt))

    def model_input(self, text: str, written: str) -> tuple[Tensor, Tensor | None]:
        prompt = self.prompt(text)
        tokens = np.concatenate((prompt.tokens, self.encode_answer(written, prompt))).astype(np.int64)
        source = None if prompt.source is None else torch.from_numpy(prompt.source).to(self.device)
        return torch.from_numpy(tokens[: self.config.model.context_length]).to(self.device), source

    def decoder(self) -> Callable[[int], str]:
        """Return a token-by-token decoder that puts spaces before words and shows special tokens as marks."""
        decoder = self.tokenizer.decoder()

        def text_of(token: int) -> str:
            nonlocal decoder
            if token < self.size:
                return decoder.feed(token)
            decoder = self.tokenizer.decoder()
            return MARK

        return text_of

    def token_text(self, token: int, prompt: TokenPrompt) -> str:
        if token < self.size:
            return self.decode_token(token)
        return END_MARK if token == prompt.end else MARK


def answer_tokens(
    drawn: Iterable[SampledToken], text_of: Callable[[int], str], name: Callable[[int], str]
) -> Iterator[AnswerToken]:
    """Yield drawn tokens: `text_of` decodes them in sequence, `name` any token by itself."""
    for one in drawn:
        yield AnswerToken(text_of(one.token), one.probability, one.chance, _alternatives(one.alternatives, name))


def scored_text(
    found: Iterable[TokenSurprise], text_of: Callable[[int], str], name: Callable[[int], str], source: str, rule: str
) -> ScoredText:
    """Return a text's tokens with their surprise; `text_of` and `name` are as in `answer_tokens`."""
    pieces, nats = [], []
    for token in found:
        probability = None if token.nats is None else math.exp(-token.nats)
        pieces.append(AnswerToken(text_of(token.token), probability, None, _alternatives(token.alternatives, name)))
        nats.append(token.nats)
    return ScoredText(tuple(pieces), tuple(nats), source, rule)


def _alternatives(found: Iterable[SampledToken], name: Callable[[int], str]) -> tuple[Alternative, ...]:
    return tuple(Alternative(name(one.token), one.probability, one.chance) for one in found)


def split_at_arrow(text: str, needed: str, *, last: bool = False) -> tuple[str, str]:
    """Return the text before and after an arrow (the last, or the first), stripped."""
    arrow = next((sign for sign in ARROWS if sign in text), None)
    if arrow is None:
        raise InputError(Message("surprise: {needed}", needed=needed))
    asked, _, answer = text.rpartition(arrow) if last else text.partition(arrow)
    return asked.strip(), answer.strip()
