"""A trained network that reads sources, with its tokenizer: sentences in, sentences out.

Sentences are translated in batches of similar length. Padding changes no logit, and the length limit of a translation
depends only on its own source, so a translation does not depend on the rest of its batch.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.config.schema import RunConfig
from engine.data.rows import BothSpecials, Specials, read_sources
from engine.data.tokenizers import AnyTokenizer
from engine.errors import InputError
from engine.generation.answering import Prompt
from engine.generation.beam import NO_NUMBERS, Hypothesis, allowed_tokens, penalty_of, translate_batch
from engine.generation.inspection import recorded_weights
from engine.generation.sampling import Sampling, stream
from engine.model.decoding import Predictor
from engine.model.transformer import Network, evaluating

AT_ONCE = 64  # sentences
LONGEST = 2048  # tokens of a typed sentence: attention's time and memory grow with its square
ROOM = (2, 10)  # a translation has at most this many times its source's length, plus this many tokens


@dataclass(frozen=True)
class Translation:
    """One of a sentence's translations: the detokenised text, and its tokens, their chances and its score."""

    text: str
    found: Hypothesis


@dataclass(frozen=True)
class TranslatedToken:
    """A token of a translation, its chance under the model, and where the last layer looked."""

    token: int
    chance: float
    attention: tuple[float, ...]  # (S) the weight of each source token, mean of all heads; they sum to 1


def stream_translation(
    model: Network,
    source: Tensor,
    *,
    specials: Specials,
    allowed: int,
    max_length: int,
) -> Iterator[TranslatedToken]:
    """Translate one sentence, (S,) int64 without padding, greedily, token by token, as `translate_batch` does with a
    beam of 1. The model is in evaluation mode.

    No id from `allowed` on is written but the end, which is not given. `max_length`, up to the model's context, counts
    the end too: reaching it means that the model had not ended. `InputError`: a length below 1, or a model whose
    answers are no numbers.
    """
    if source.numel() == 0:
        raise ValueError("a source needs at least one token")
    if max_length < 1:
        raise InputError(f"max_length {max_length} must be at least 1")
    context, greedy = model.config.context_length, Sampling(0.0)
    open_ = allowed_tokens(model.vocab_size, specials, allowed, source.device)
    start, predictor = source.new_tensor([specials.start]), Predictor(model, source[None])
    with recorded_weights(model) as weights:
        for one in stream(predictor, start, max_length, greedy, 0, context=context, allowed=open_, end=specials.end):
            if not math.isfinite(one.probability):
                raise InputError(NO_NUMBERS)
            looked = weights[-1][0].mean(0)[-1]
            yield TranslatedToken(one.token, one.probability, tuple(looked.float().tolist()))


class Translator:
    """Translates with one model, in any mode; its weights may change between two calls."""

    def __init__(self, model: Network, tokenizer: AnyTokenizer, config: RunConfig) -> None:
        self.model, self.tokenizer, self.config = model, tokenizer, config
        self.special = both_specials(tokenizer)

    def translate(
        self,
        sentences: Sequence[str],
        *,
        beam: int = 1,
        n_best: int = 1,
        alpha: float | None = None,
        between: Callable[[], None] = lambda: None,
    ) -> list[list[Translation]]:
        """Return the `n_best` best translations of each sentence, best first, at most `beam`; a beam of 1 is greedy.
        `alpha` of the length penalty is by default the config's; `between` is called between steps and may raise to
        stop.

        A learned position table truncates longer sentences. `InputError`: characters unknown to a character tokenizer,
        or more than `LONGEST` tokens.
        """
        sources = [_bounded(self._cut(source)) for source in self.tokenizer.source.encode_all(sentences)]
        return self.translate_encoded(sources, beam=beam, n_best=n_best, alpha=alpha, between=between)

    def translate_encoded(
        self,
        sources: Sequence[NDArray[np.int64]],
        *,
        beam: int = 1,
        n_best: int = 1,
        alpha: float | None = None,
        between: Callable[[], None] = lambda: None,
    ) -> list[list[Translation]]:
        """Translate as `translate` does, from encoded sources."""
        sources = [self._cut(source) for source in sources]
        order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
        out: list[list[Translation]] = [[] for _ in sources]
        device = next(self.model.parameters()).device
        generation = self.config.generation
        alpha = generation.alpha if alpha is None else alpha
        penalty = penalty_of(generation.length_penalty, alpha)
        with evaluating(self.model):
            for start in range(0, len(order), AT_ONCE):
                rows = order[start : start + AT_ONCE]
                tokens, at = read_sources([sources[i] for i in rows], self.special.source, device)
                found = translate_batch(
                    self.model,
                    tokens,
                    at,
                    beam=beam,
                    n_best=n_best,
                    penalty=penalty,
                    specials=self.special.target,
                    allowed=self.tokenizer.vocab_size,
                    max_length=[self.most(len(sources[i]) + 1) for i in rows],
                    between=between,
                )
                for i, hypotheses in zip(rows, found, strict=True):
                    out[i] = [Translation(self.tokenizer.target.decode(h.tokens), h) for h in hypotheses]
        return out

    def stream(self, sentence: str) -> Iterator[tuple[str, TranslatedToken]]:
        """Yield the greedy translation as it is written: (text that the token completes, token)."""
        source, decoder = self.encoded(sentence), self.tokenizer.target.decoder()
        with evaluating(self.model):
            for written in stream_translation(
                self.model,
                source,
                specials=self.special.target,
                allowed=self.tokenizer.vocab_size,
                max_length=self.most(source.numel()),
            ):
                yield decoder.feed(written.token), written

    def prompt(self, sentence: str) -> Prompt:
        special = self.special.target
        return Prompt(np.array([special.start]), special.end, self.encoded(sentence).cpu().numpy())

    def encoded(self, sentence: str) -> Tensor:
        """Return (S,) a source and its end token, on the model's device. Raises InputError as `translate`."""
        source = torch.from_numpy(_bounded(self._cut(self.tokenizer.source.encode(sentence))))
        ended = torch.cat((source, torch.tensor([self.special.source.end])))
        return ended.to(next(self.model.parameters()).device)

    def pieces(self, sentence: str) -> list[str]:
        return [self.tokenizer.source.decode([token]) for token in self._cut(self.tokenizer.source.encode(sentence))]

    def most(self, source_tokens: int) -> int:
        """Return the most tokens of a translation of a source this long, both including the end token."""
        return min(self.config.model.context_length, ROOM[0] * source_tokens + ROOM[1])

    def _cut(self, source: NDArray[np.int64]) -> NDArray[np.int64]:
        longest = self.model.stacks[0].positions.longest
        return source if longest is None else source[: longest - 1]


def _bounded(source: NDArray[np.int64]) -> NDArray[np.int64]:
    if len(source) > LONGEST:
        raise InputError(f"a sentence of {len(source):,} tokens; at most {LONGEST:,} are translated at once: cut it")
    return source


def both_specials(tokenizer: AnyTokenizer) -> BothSpecials:
    return BothSpecials(Specials.after(tokenizer.source.vocab_size), Specials.after(tokenizer.vocab_size))
