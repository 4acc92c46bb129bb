"""A trained encoder-decoder with its tokenizer: sentences in, sentences out.

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
from engine.data.pairs import BothSpecials, Specials, read_sources
from engine.data.tokenizers import PairTokenizer
from engine.errors import InputError
from engine.generation.beam import BeamSearch, Hypothesis, closed_tokens, likeliest, translate_batch
from engine.generation.inspection import cross_attention, one_head, recorded_weights
from engine.generation.sampling import EndingPredictor, SampledToken, Sampling, SourcePredictor, stream_to_end
from engine.model.transformer import EncoderDecoder, evaluating

AT_ONCE = 64  # sentences
LONGEST = 2048  # tokens of a sentence that somebody types: attention costs time and memory by the square of it
ROOM = (2, 10)  # a translation is at most so many times as long as its source, and so many tokens


@dataclass(frozen=True)
class Translation:
    """One of a sentence's translations: the detokenised text, and its tokens, their chances and its score."""

    text: str
    found: Hypothesis


@dataclass(frozen=True)
class TranslatedToken:
    """A token of a translation, its chance under the model, and (S) the weight of each source token, which sum to 1."""

    token: int
    chance: float
    attention: tuple[float, ...]


def stream_translation(
    model: EncoderDecoder,
    source: Tensor,
    *,
    specials: Specials,
    allowed: int,
    max_length: int,
    layer: int = -1,
    head: int | None = None,
) -> Iterator[TranslatedToken]:
    """Translate one sentence greedily, token by token, as `translate_batch` does with a beam of 1.

    Args:
        model: in evaluation mode.
        source: (S,) int64, without padding.
        specials: start, end and padding.
        allowed: tokens of the text; no id from here on is written but the end.
        max_length: most tokens to write, the end included, up to the model's context. Where as many come, the model had
            not ended.
        layer: whose cross-attention is shown, from 0; −1 is the last.
        head: which head of it, from 0; None: the mean of all.

    Yields:
        Each token of the text; the end ends it.

    Raises:
        InputError: no such layer or head, a length below 1, or a model whose answers are no numbers.
        ValueError: an empty source, or no token for the end.
    """
    if source.numel() == 0:
        raise ValueError("a source needs at least one token")
    limit = min(max_length, model.config.context_length)
    if limit < 1:
        raise InputError(f"max_length {max_length} must be at least 1")
    closed = closed_tokens(model.vocab_size, specials, allowed, source.device)
    attention = cross_attention(model, layer)
    with torch.inference_mode():
        memory, cache = model.encode(source[None]), model.new_cache()
    token = specials.start
    for _ in range(limit):
        with torch.inference_mode(), recorded_weights(attention) as weights:
            logits = model.decode(source.new_tensor([[token]]), memory, cache=cache)[:, -1]
            ids, log_probabilities = likeliest(logits, 1, closed)
            looked = one_head(weights[0][0], head)[-1]
        token = int(ids)
        if token == specials.end:
            return
        yield TranslatedToken(token, math.exp(float(log_probabilities)), tuple(looked.float().tolist()))


class Translator:
    """Translates with one model, in any mode; its weights may change between two calls."""

    def __init__(self, model: EncoderDecoder, tokenizer: PairTokenizer, config: RunConfig) -> None:
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
        """Return the `n_best` best translations of each sentence, best first.

        Where positions are a learned table, what is past it is cut off.

        Args:
            sentences: as they are typed.
            beam: hypotheses that are followed; 1 is greedy.
            n_best: how many are returned, at most `beam`.
            alpha: of the length penalty, if it is not the config's.
            between: called between steps; may raise to stop.

        Raises:
            InputError: characters that a tokenizer of characters has never seen, or more tokens than `LONGEST`.
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
        """`translate` for sources that are tokens already."""
        sources = [self._cut(source) for source in sources]
        order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
        out: list[list[Translation]] = [[] for _ in sources]
        device = next(self.model.parameters()).device
        generation = self.config.generation
        alpha = generation.alpha if alpha is None else alpha
        search = BeamSearch(beam, n_best, generation.length_penalty, alpha)
        with evaluating(self.model):
            for start in range(0, len(order), AT_ONCE):
                rows = order[start : start + AT_ONCE]
                tokens, at = read_sources([sources[i] for i in rows], self.special.source, device)
                found = translate_batch(
                    self.model,
                    tokens,
                    at,
                    search,
                    specials=self.special.target,
                    allowed=self.tokenizer.vocab_size,
                    max_length=[self._most(len(sources[i]) + 1) for i in rows],
                    between=between,
                )
                for i, hypotheses in zip(rows, found, strict=True):
                    out[i] = [Translation(self.tokenizer.target.decode(h.tokens), h) for h in hypotheses]
        return out

    def stream(
        self, sentence: str, *, layer: int = -1, head: int | None = None
    ) -> Iterator[tuple[str, TranslatedToken]]:
        """Yield the greedy translation as it is written: (text that the token completes, token); see
        `stream_translation`.
        """
        ended = self.encoded(sentence)
        decoder = self.tokenizer.target.decoder()
        with evaluating(self.model):
            for written in stream_translation(
                self.model,
                ended,
                specials=self.special.target,
                allowed=self.tokenizer.vocab_size,
                max_length=self._most(ended.numel()),
                layer=layer,
                head=head,
            ):
                yield decoder.feed(written.token), written

    def sample(
        self, sentence: str, how: Sampling, seed: int, length: int, alternatives: int = 0
    ) -> Iterator[SampledToken]:
        """Sample a translation token by token, or at temperature 0 the greedy one; its end is not given.

        `length` is the most tokens; the end has the id `vocab_size` among the `alternatives`.
        """
        text, special = self.tokenizer.vocab_size, self.special.target
        source = self.encoded(sentence)
        with evaluating(self.model):
            predictor = EndingPredictor(SourcePredictor(self.model, source[None]), text, special.end)
        start, most = source.new_tensor([special.start]), min(length, self._most(source.numel()))
        context = self.config.model.context_length
        yield from stream_to_end(predictor, start, most, how, seed, context=context, alternatives=alternatives)

    def encoded(self, sentence: str) -> Tensor:
        """Return (S,) a source with its end token, on the model's device.

        Raises:
            InputError: as `translate`.
        """
        source = torch.from_numpy(_bounded(self._cut(self.tokenizer.source.encode(sentence))))
        ended = torch.cat((source, torch.tensor([self.special.source.end])))
        return ended.to(next(self.model.parameters()).device)

    def pieces(self, sentence: str) -> list[str]:
        """Return the tokens of a source, as texts."""
        return [self.tokenizer.source.decode([token]) for token in self._cut(self.tokenizer.source.encode(sentence))]

    def _most(self, source_tokens: int) -> int:
        """Return the most tokens of a translation for a source of this length, both including the end token."""
        return min(self.config.model.context_length, ROOM[0] * source_tokens + ROOM[1])

    def _cut(self, source: NDArray[np.int64]) -> NDArray[np.int64]:
        longest = self.model.encoder.positions.longest
        return source if longest is None else source[: longest - 1]


def _bounded(source: NDArray[np.int64]) -> NDArray[np.int64]:
    if len(source) > LONGEST:
        raise InputError(f"a sentence of {len(source):,} tokens; at most {LONGEST:,} are translated at once: cut it")
    return source


def both_specials(tokenizer: PairTokenizer) -> BothSpecials:
    """Return the special tokens that come after a tokenizer's own."""
    return BothSpecials(Specials.after(tokenizer.source_vocab_size), Specials.after(tokenizer.vocab_size))
