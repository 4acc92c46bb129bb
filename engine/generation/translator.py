"""A trained encoder-decoder with its tokenizer: sentences in, sentences out.

Sentences are translated in batches of similar length. Padding changes no logit, and the length limit of a translation
depends only on its own source, so a translation does not depend on the rest of its batch.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.config.schema import RunConfig
from engine.data.pairs import BothSpecials, Specials, read_sources
from engine.data.tokenizers import PairTokenizer
from engine.errors import InputError
from engine.evaluation.metrics import evaluating
from engine.generation.beam import translate_batch
from engine.generation.greedy import Written, stream_translation
from engine.generation.hypotheses import Hypothesis
from engine.generation.sampling import Drawn, FromSource, Sampling, stream
from engine.generation.until_the_end import UntilTheEnd
from engine.model.transformer import EncoderDecoder

AT_ONCE = 64  # sentences
LONGEST = 2048  # tokens of a sentence that somebody types: attention costs time and memory by the square of it
ROOM = (2, 10)  # a translation is at most so many times as long as its source, and so many tokens


@dataclass(frozen=True)
class Translation:
    """One of a sentence's translations.

    Args:
        text: detokenised.
        found: its tokens, their chances and its score.
    """

    text: str
    found: Hypothesis


class Translator:
    """Translates with one model.

    Args:
        model: its weights may change between two calls; it is evaluated, whatever mode it is in.
        tokenizer: of both sides.
        config: the run's: length penalty and limits.
    """

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
        """The `n_best` best translations of each sentence, best first.

        Args:
            sentences: where positions are a learned table, what is past it is cut off.
            beam: hypotheses that are followed; 1 is greedy.
            n_best: how many are given back, at most `beam`.
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
        with evaluating(self.model):
            for start in range(0, len(order), AT_ONCE):
                rows = order[start : start + AT_ONCE]
                tokens, at = read_sources([sources[i] for i in rows], self.special.source, device)
                found = translate_batch(
                    self.model,
                    tokens,
                    at,
                    specials=self.special.target,
                    allowed=self.tokenizer.vocab_size,
                    max_length=[self._most(len(sources[i]) + 1) for i in rows],
                    beam=beam,
                    n_best=n_best,
                    length_penalty=generation.length_penalty,
                    alpha=generation.alpha if alpha is None else alpha,
                    between=between,
                )
                for i, hypotheses in zip(rows, found, strict=True):
                    out[i] = [Translation(self.tokenizer.target.decode(h.tokens), h) for h in hypotheses]
        return out

    def stream(self, sentence: str, *, layer: int = -1, head: int | None = None) -> Iterator[tuple[str, Written]]:
        """The greedy translation as it is written: (text that the token completes, token and where it looked).

        Args:
            sentence: the source.
            layer: of the cross-attention that is shown, from 0; −1 is the last.
            head: from 0; None: the mean of all.
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

    def drawn(self, sentence: str, how: Sampling, seed: int, length: int, alternatives: int = 0) -> Iterator[Drawn]:
        """A translation drawn token by token, or at temperature 0 the greedy one; its end is not given.

        Args:
            sentence: the source.
            how: temperature and cuts.
            seed: of the draws.
            length: tokens at most.
            alternatives: how many of the likeliest tokens to tell in each place; the end is `vocab_size`.
        """
        text, special = self.tokenizer.vocab_size, self.special.target
        source = self.encoded(sentence)
        start = source.new_tensor([special.start])
        with evaluating(self.model):
            writer = UntilTheEnd(FromSource(self.model, source[None]), text, special.end)
        how = replace(how, overflow="stop")
        most = min(length, self._most(source.numel()))
        context = self.config.model.context_length
        for one in stream(
            writer, start, most, how, seed, context=context, allowed=writer.allowed, alternatives=alternatives
        ):
            if one.token == text:
                return
            yield one

    def encoded(self, sentence: str) -> Tensor:
        """(S,) a source with its end token, on the model's device.

        Raises:
            InputError: as `translate`.
        """
        source = torch.from_numpy(_bounded(self._cut(self.tokenizer.source.encode(sentence))))
        ended = torch.cat((source, torch.tensor([self.special.source.end])))
        return ended.to(next(self.model.parameters()).device)

    def pieces(self, sentence: str) -> list[str]:
        """The tokens of a source, as texts."""
        return [self.tokenizer.source.decode([token]) for token in self._cut(self.tokenizer.source.encode(sentence))]

    def _most(self, source_tokens: int) -> int:
        """The most tokens a translation may have for a source of this length, both including the end token."""
        return min(self.config.model.context_length, ROOM[0] * source_tokens + ROOM[1])

    def _cut(self, source: NDArray[np.int64]) -> NDArray[np.int64]:
        longest = self.model.encoder.positions.longest
        return source if longest is None else source[: longest - 1]


def _bounded(source: NDArray[np.int64]) -> NDArray[np.int64]:
    if len(source) > LONGEST:
        raise InputError(f"a sentence of {len(source):,} tokens; at most {LONGEST:,} are translated at once: cut it")
    return source


def both_specials(tokenizer: PairTokenizer) -> BothSpecials:
    """The special tokens that come after a tokenizer's own."""
    return BothSpecials(Specials.after(tokenizer.source_vocab_size), Specials.after(tokenizer.vocab_size))
